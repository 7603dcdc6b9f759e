"""Least squares: the weights of least error for any code, by a dense decomposition; the reference for all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emuml.protocols.gradient_coding.decoders.seam import Floats, Indices, Rows, Weights


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """The weights of least norm among those of least error: O(n_received^2 partitions).

    Parameters
    ----------
    rows : Rows
        The code.

    Examples
    --------
    >>> ones = np.ones(4)
    >>> rows = Rows(3, np.array([0, 1, 2, 4]), np.array([0, 1, 0, 2]), ones)
    >>> LeastSquares(rows).weights(np.array([0, 1])).error.__round__(9)
    1.0
    """

    rows: Rows
    is_cheap = False

    def weights(self, received: Indices) -> Weights:
        """See :class:`Decoder`."""
        values: Floats = np.zeros(received.size)
        if received.size:
            matrix = self.rows.dense(received)
            values = np.linalg.lstsq(matrix.T, np.ones(self.rows.partitions), rcond=None)[0].astype(
                np.float64, copy=False
            )
        return self.rows.judged(received, values)
