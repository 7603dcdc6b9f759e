"""What a page says of samples: standard errors, the distance to a law, and the band that chance allows for counts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Cdf = Callable[[Floats], Floats]


def standard_error(values: Floats) -> float:
    """Return the standard error of the mean of independent values; NaN for fewer than two."""
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def running_mean(values: Floats) -> Floats:
    """Return the mean of the first 1, 2, ... values; those that are not finite count for nothing.

    Examples
    --------
    >>> running_mean(np.array([1.0, 3.0, np.nan, 5.0]))
    array([1., 2., 2., 3.])
    """
    known = np.isfinite(values)
    seen = np.cumsum(known)
    return np.cumsum(np.where(known, values, 0.0)) / np.where(seen > 0, seen, np.nan)


def ks_distance(values: Floats, cdf: Cdf) -> float:
    """Return the Kolmogorov-Smirnov distance: the largest gap between the shares seen and those of a law.

    Laws with jumps are legal. Values are taken as equal to a jump's place when they are so to nine digits, because the
    seconds of a round are a difference of two times.

    Examples
    --------
    >>> ks_distance(np.array([0.25, 0.75]), lambda t: np.clip(t, 0, 1))
    0.25
    """
    ordered = np.sort(values)
    slack = 1e-9 * np.maximum(np.abs(ordered), 1e-300)
    shares = np.arange(len(ordered) + 1) / len(ordered)
    above = shares[1:] - cdf(ordered + slack)
    below = cdf(ordered - slack) - shares[:-1]
    return round(float(max(above.max(), below.max(), 0.0)), 9)


def ks_bound(count: int) -> float:
    """Return the distance that so many independent values of the law itself exceed with probability 5 %.

    References
    ----------
    Stephens, "EDF statistics for goodness of fit and some comparisons", JASA 69 (1974), table 1A, case 0.
    """
    root = math.sqrt(count)
    return 1.358 / (root + 0.12 + 0.11 / root)


def binomial_band(trials: int, chance: float, error: float) -> tuple[int, int]:
    """Return the least and the largest count that ``trials`` of ``chance`` each stay between.

    Below and above lies a probability of at most ``error / 2`` each.

    Examples
    --------
    >>> binomial_band(100, 0.5, 0.05)
    (40, 60)
    """
    if chance <= 0.0 or chance >= 1.0:
        return (0, 0) if chance <= 0.0 else (trials, trials)
    counts = np.arange(trials)
    steps = np.log((trials - counts) / (counts + 1.0)) + math.log(chance) - math.log1p(-chance)
    logs = trials * math.log1p(-chance) + np.concatenate(([0.0], np.cumsum(steps)))
    density = np.exp(logs)
    low = int(np.searchsorted(np.cumsum(density), error / 2, side="right"))
    high = trials - int(np.searchsorted(np.cumsum(density[::-1]), error / 2, side="right"))
    return low, high
