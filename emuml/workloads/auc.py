"""Area under the ROC curve: how well scores order two classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def auc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Return the share of pairs, one row of each class, that scores put in the right order; ties count half.

    It is the Mann-Whitney statistic over the number of pairs, equal to the area under the ROC curve, and exact: the
    pairs are counted in whole numbers, from the sorted scores of each class.

    Parameters
    ----------
    scores : ndarray of float64, shape (rows,)
        Higher for rows that are rather positive.
    positive : ndarray of bool, shape (rows,)
        Which rows are.

    Returns
    -------
    float
        From 0 to 1, dimensionless; NaN where a class has no rows or a score is NaN.

    References
    ----------
    Hanley and McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC) curve",
    Radiology 143 (1982).

    Examples
    --------
    >>> auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]))
    0.875
    """
    above, below = np.sort(scores[positive]), np.sort(scores[~positive])
    if not len(above) or not len(below) or np.isnan(above[-1]) or np.isnan(below[-1]):  # NaN is sorted last
        return float("nan")
    lower = np.searchsorted(below, above, "left")
    tied = below[np.minimum(lower, len(below) - 1)] == above
    equal = np.searchsorted(below, above[tied], "right") - lower[tied]
    return (2 * int(lower.sum()) + int(equal.sum())) / (2 * len(above) * len(below))
