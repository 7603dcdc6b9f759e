"""Columns in which a few values are frequent, most are rare, and none is missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Draws = np.random.Generator
Whole = NDArray[np.int64]


def skewed(draws: Draws, rows: int, values: int, exponent: float = 0.9) -> Whole:
    """Draw a column of the values 0 .. values - 1, each of which occurs.

    Parameters
    ----------
    draws : numpy.random.Generator
    rows, values : int
        1 <= values <= rows.
    exponent : float
        Beyond one row for each value, the frequency of the k-th most frequent falls as ``k**-exponent`` (Zipf's law).

    Returns
    -------
    ndarray of int64, shape (rows,)

    Examples
    --------
    >>> sorted(skewed(np.random.default_rng(7), 3, 3).tolist())
    [0, 1, 2]
    """
    share = np.cumsum(np.arange(1, values + 1) ** -exponent)
    more = np.searchsorted(share / share[-1], draws.random(rows - values), side="right")
    ranks = draws.permutation(np.concatenate([np.arange(values), more]))
    column: Whole = draws.permutation(values)[ranks]
    return column
