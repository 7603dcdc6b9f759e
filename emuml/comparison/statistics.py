"""Paired comparison of two samples: differences and ratios with intervals, what pairing saves, many claims at once.

Pure functions of arrays. Differences within rounding of the last digits count as none, so that a sum that was formed in
another order is no finding; and where all differences are equal there is nothing to estimate and no interval.

References
----------
Law, Simulation Modeling and Analysis, chapters 9 (batch means), 10 (paired t) and 11 (common random numbers);
Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979; Ljung and Box, "On a
measure of lack of fit in time series models", Biometrika 65, 1978.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

LEVEL = 0.95
SAME = 1e-9
"""Relative difference up to which two numbers are the same but for rounding."""
BATCHES = 10
BATCH_ROUNDS = 20
"""Shortest batch whose mean is taken to be independent of the next one's."""


@dataclass(frozen=True)
class Interval:
    """An estimate, and the ends of its interval where there is one.

    Parameters
    ----------
    value : float
    low, high : float, optional
        Ends at ``LEVEL``; ``None`` where nothing can be said.
    """

    value: float
    low: float | None = None
    high: float | None = None

    def excludes(self, value: float) -> bool:
        """Tell whether there is an interval, and it does not hold ``value``."""
        return self.low is not None and self.high is not None and not self.low <= value <= self.high


@dataclass(frozen=True)
class Paired:
    """One sample against another, pair by pair.

    Parameters
    ----------
    pairs : int
        How many there are.
    over : str
        What they are: ``"seeds"``, ``"rounds"``, ``"batches of rounds"``, or ``"dependent rounds"`` that are too few
        for batches.
    difference : Interval
        First minus second.
    ratio : Interval, optional
        First over second; ``None`` unless all numbers are positive.
    p_value : float, optional
        Two-sided, of no difference; ``None`` where there is no interval.
    saving : float, optional
        Variance of a difference of unpaired samples over that of the paired ones: so many times the pairs would be
        needed without common random numbers. Infinite where pairing leaves no variance.
    constant : bool
        Whether all differences are equal (and there are several).
    """

    pairs: int
    over: str
    difference: Interval
    ratio: Interval | None = None
    p_value: float | None = None
    saving: float | None = None
    constant: bool = False


def t_interval(values: ArrayLike) -> Interval:
    """Return the mean with its Student t interval; none for fewer than two values.

    Examples
    --------
    >>> t_interval([1.0, 2.0, 3.0])
    Interval(value=2.0, low=-0.48413771175033027, high=4.48413771175033)
    """
    sample = np.asarray(values, np.float64)
    mean = float(sample.mean())
    if sample.size < 2:
        return Interval(mean)
    half = _quantile(sample.size - 1) * _standard_error(sample)
    return Interval(mean, mean - half, mean + half)


def p_value(values: ArrayLike) -> float:
    """Return the two-sided probability of a mean as far from zero by chance, by Student's t; two values or more."""
    from scipy.special import stdtr

    sample = np.asarray(values, np.float64)
    return float(2 * stdtr(sample.size - 1, -abs(float(sample.mean())) / _standard_error(sample)))


def paired(first: ArrayLike, second: ArrayLike) -> Paired:
    """Compare two samples whose items belong together, such as one for each seed.

    Parameters
    ----------
    first, second : array_like, shape (pairs,)
        Finite numbers; at least one pair.

    Returns
    -------
    Paired
        The ratio is the geometric mean of the pairs' ratios, its interval that of their logarithms.
    """
    a, b = _both(first, second)
    ratio = None
    if a.size and min(a.min(), b.min()) > 0:
        logs = np.log(a / b)
        inside = Interval(float(logs.mean())) if _constant(logs, np.ones(logs.shape)) else t_interval(logs)
        ratio = Interval(*(None if end is None else math.exp(end) for end in (inside.value, inside.low, inside.high)))  # type: ignore[arg-type]
    return _paired(a, b, "seeds", ratio)


def paired_rounds(first: ArrayLike, second: ArrayLike, independent: bool) -> Paired:
    """Compare the seconds per round of two runs of one seed, round by round as far as both go.

    Parameters
    ----------
    first, second : array_like, shape (rounds,)
        Seconds, positive.
    independent : bool
        Whether a round tells nothing about the next. If not, means of ``BATCHES`` batches stand for the rounds, and
        there is no interval when a batch would be shorter than ``BATCH_ROUNDS``.

    Returns
    -------
    Paired
        The ratio is that of the means; its interval is by the delta method on its logarithm.
    """
    a, b = _both(first, second)
    over = "rounds"
    if not independent:
        if a.size < BATCHES * BATCH_ROUNDS:
            mean_a, mean_b = float(a.mean()), float(b.mean())
            ratio = Interval(mean_a / mean_b) if min(mean_a, mean_b) > 0 else None
            return Paired(int(a.size), "dependent rounds", Interval(mean_a - mean_b), ratio)
        a, b, over = batch_means(a), batch_means(b), "batches of rounds"
    return _paired(a, b, over, _ratio_of_means(a, b))


def batch_means(values: ArrayLike, batches: int = BATCHES) -> Floats:
    """Return the means of so many equal batches; what is left over at the start is dropped.

    Examples
    --------
    >>> batch_means([9.0, 1.0, 2.0, 3.0, 4.0], batches=2)
    array([1.5, 3.5])
    """
    sample = np.asarray(values, np.float64)
    length = sample.size // batches
    return np.asarray(sample[sample.size - batches * length :].reshape(batches, length).mean(axis=1))


def is_correlated(values: ArrayLike) -> bool:
    """Tell whether numbers in a row depend on those before: the test of Ljung and Box over up to five lags, at 5 %.

    Examples
    --------
    >>> is_correlated(np.sin(np.arange(50) / 5)), is_correlated([0.3, 0.1, 0.7, 0.2, 0.6, 0.9])
    (True, False)
    """
    from scipy.special import chdtrc

    sample = np.asarray(values, np.float64)
    n, lags = sample.size, min(5, sample.size // 5)
    left = sample - sample.mean() if n else sample
    power = float(left @ left)
    if not lags or power <= n * (SAME * float(np.abs(sample).max())) ** 2:
        return False
    statistic = n * (n + 2) * sum((float(left[k:] @ left[:-k]) / power) ** 2 / (n - k) for k in range(1, lags + 1))
    return float(chdtrc(lags, statistic)) < 1 - LEVEL


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values that hold for all claims together: compare each with one minus the level.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, worst = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = worst
    return adjusted


def _paired(a: Floats, b: Floats, over: str, ratio: Interval | None) -> Paired:
    differences = _differences(a, b)
    if a.size < 2:
        return Paired(int(a.size), over, Interval(float(differences.mean())), ratio)
    apart = float(a.var(ddof=1) + b.var(ddof=1))
    if _constant(differences, np.maximum(np.abs(a), np.abs(b))):
        left = None if _constant(a, np.abs(a)) and _constant(b, np.abs(b)) else math.inf
        value = ratio and Interval(ratio.value)
        return Paired(int(a.size), over, Interval(float(differences.mean())), value, saving=left, constant=True)
    saving = apart / float(differences.var(ddof=1))
    return Paired(int(a.size), over, t_interval(differences), ratio, p_value(differences), saving)


def _both(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    n = min(a.size, b.size)
    return a[:n], b[:n]


def _differences(a: Floats, b: Floats) -> Floats:
    differences = a - b
    same = np.abs(differences) <= SAME * np.maximum(np.abs(a), np.abs(b))
    return np.where(same, 0.0, differences)


def _constant(values: Floats, scale: Floats) -> bool:
    return values.size > 1 and float(np.ptp(values)) <= SAME * float(scale.max())


def _ratio_of_means(a: Floats, b: Floats) -> Interval | None:
    mean_a, mean_b = float(a.mean()), float(b.mean())
    if min(mean_a, mean_b) <= 0:
        return None
    if a.size < 2:
        return Interval(mean_a / mean_b)
    half = _quantile(a.size - 1) * _standard_error(a / mean_a - b / mean_b)
    ratio = mean_a / mean_b
    return Interval(ratio, ratio * math.exp(-half), ratio * math.exp(half))


def _quantile(freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def _standard_error(sample: Floats) -> float:
    return float(sample.std(ddof=1)) / math.sqrt(sample.size)
