"""Least squares: the weights of least error for any code, by a dense decomposition; the reference for all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emuml.errors import UserError
from emuml.protocols.gradient_coding.decoders.conditioning import Unsound
from emuml.protocols.gradient_coding.decoders.seam import Floats, Indices, Rows, Weights

ENTRIES_MAX = 1 << 24
"""Entries of a matrix up to which a decomposition takes a minute or two, and not hours or all memory."""


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
        """See :class:`Decoder`.

        Raises
        ------
        Unsound
            If there are more answers than could be decomposed.
        """
        values: Floats = np.zeros(received.size)
        if received.size * self.rows.partitions > ENTRIES_MAX:
            raise Unsound(f"{_matrix(received.size, self.rows.partitions)} is too large for least squares")
        if received.size:
            matrix = self.rows.dense(received)
            values = np.linalg.lstsq(matrix.T, np.ones(self.rows.partitions), rcond=None)[0].astype(
                np.float64, copy=False
            )
        return self.rows.judged(received, values)


def check_size(answers: int, partitions: int, code: str, hint: str) -> None:
    """Refuse a code whose rounds would decompose more than can be decomposed.

    Raises
    ------
    UserError
        If there are more entries than ``ENTRIES_MAX``.
    """
    if answers * partitions > ENTRIES_MAX:
        what = f"decoding {code} decomposes {_matrix(answers, partitions)}"
        raise UserError(what, "workers", f"at most {ENTRIES_MAX:,} entries, those of 4,096 x 4,096", hint)


def _matrix(answers: int, partitions: int) -> str:
    return f"a matrix of {answers:,} x {partitions:,}"
