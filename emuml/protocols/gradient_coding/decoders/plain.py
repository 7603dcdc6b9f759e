"""Plain sums: every answer counts once, because workers send what is right on average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emuml.protocols.gradient_coding.decoders.seam import Indices, Rows, Weights


@dataclass(frozen=True, eq=False)
class PlainSum:
    """The weight 1 for every answer.

    Parameters
    ----------
    rows : Rows
        The code.
    """

    rows: Rows
    is_cheap = True

    def weight(self, responders: int) -> float:
        """Return the weight of each answer if there are so many."""
        return 1.0

    def weights(self, received: Indices) -> Weights:
        """See :class:`Decoder`."""
        return self.rows.judged(received, np.ones(received.size))
