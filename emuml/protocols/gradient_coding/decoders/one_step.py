"""One-step decoding: the same weight for every answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emuml.protocols.gradient_coding.decoders.seam import Indices, Rows, Weights


@dataclass(frozen=True, eq=False)
class OneStep:
    """Every one of ``c`` answers gets the weight ``k / (c load)``, as if each held ``load`` of the ``k`` partitions.

    The weight goes by the number of answers that came, not by the number that was planned for. Source: Charles,
    Papailiopoulos and Ellenberg, arXiv:1711.06771.

    Parameters
    ----------
    rows : Rows
        The code.
    load : float
        Sum of the factors of a worker's partitions, by design.

    Examples
    --------
    >>> ring = np.array([0, 1, 1, 2, 0, 2])
    >>> rows = Rows(3, np.array([0, 2, 4, 6]), ring, np.ones(6))
    >>> OneStep(rows, load=2).weights(np.array([0, 2])).values
    array([0.75, 0.75])
    """

    rows: Rows
    load: float
    is_cheap = True

    def weight(self, responders: int) -> float:
        """Return the weight of each answer if there are so many, at least 1."""
        return self.rows.partitions / (responders * self.load)

    def weights(self, received: Indices) -> Weights:
        """See :class:`Decoder`."""
        return self.rows.judged(received, np.full(received.size, self.weight(max(received.size, 1))))
