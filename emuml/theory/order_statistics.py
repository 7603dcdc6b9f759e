"""Means and variances of the k-th fastest of n equal workers, for exponential tails and for any law with quantiles.

Exponential: ``E[X_(k)] = H_n - H_(n-k)`` for unit mean (Renyi's representation). Any law: ``X_(k) = F^-1(U_(k))`` with
``U_(k) ~ Beta(k, n-k+1)``, integrated over the quantile of the order statistic, whose integrand is monotone. Laws of
finitely many values, which say so: sums over these (``atoms.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import comb, log

import numpy as np

from emuml.shapes import Count
from emuml.theory import arguments
from emuml.theory.atoms import atomic_moments, atoms_of
from emuml.theory.closing import LARGEST, Floats
from emuml.theory.seams import ComputeLaw, HeavyLaw, check_independent

_POINTS = 16
_MIDDLE_PANELS = 32
_TAIL_PANELS = 45
_HEAVY_PANELS = 1000
_TINY = 1e-17
_ROUGH, _NEXT, _LEAST, _PANELS_MAX = 1e-13, 1e-10, 1e-280, 4_000


def exponential_means(workers: int) -> Floats:
    """Return the mean time of the ``k``-th of ``workers`` unit exponentials, ``k = 1..workers``, at index ``k - 1``."""
    arguments.check_integer(workers, "workers", 1)
    return np.cumsum(1.0 / np.arange(workers, 0, -1))


def exponential_variances(workers: int) -> Floats:
    """Return the variance of the ``k``-th of ``workers`` unit exponentials, ``k = 1..workers``, at index ``k - 1``."""
    arguments.check_integer(workers, "workers", 1)
    return np.cumsum(1.0 / np.arange(workers, 0, -1, dtype=np.float64) ** 2)


def order_statistic_moments(law: ComputeLaw, load: float, workers: int, k: int) -> tuple[float, float]:
    """Return mean and second moment of the ``k``-th of ``workers`` independent times of a law.

    Parameters
    ----------
    law : ComputeLaw
        Any law that answers ``ppf``.
    load : float
        Load of each worker, > 0.
    workers, k : int
        ``1 <= k <= workers``.

    Returns
    -------
    tuple of float
        Seconds and seconds squared. Exact for laws that say that they have finitely many values. Otherwise the relative
        accuracy is about 1e-12, also where a law jumps at a few places without saying so.
        Infinite where a law says that its tail is too heavy for a moment.

    Raises
    ------
    NoClosedForm
        If workers are not independent and equal.

    Examples
    --------
    >>> import numpy as np
    >>> from emuml.cluster import DelayTrace
    >>> order_statistic_moments(DelayTrace(np.array([[0.0, 4.0]])), load=1.0, workers=2, k=2)
    (3.0, 12.0)
    """
    arguments.check_number(load, "load", above=0.0)
    arguments.check_integer(workers, "workers", 1)
    arguments.check_integer(k, "k", 1, workers)
    check_independent(law)
    mean, variance = order_statistic(law, load, workers, k)
    return mean, variance + mean**2


def order_statistic(law: ComputeLaw, load: float, workers: int, k: int) -> tuple[float, float]:
    """Return mean and variance of the ``k``-th of ``workers`` independent times of a law."""
    from scipy.special import betaincinv

    if (values := atoms_of(law, load)) is not None:
        return atomic_moments(Count(workers, k), values, law.cdf(values, load))
    later = workers - k + 1
    if isinstance(law, HeavyLaw) and law.tail_index < np.inf:
        return heavy_moments_over(law, load, later, lambda chance: _missing(chance, workers, later))
    return moments_over(law, load, lambda level: np.asarray(betaincinv(k, later, level), dtype=np.float64))


def moments_over(law: ComputeLaw, load: float, worker_level: Callable[[Floats], Floats]) -> tuple[float, float]:
    """Return mean and variance of a time whose quantile at ``v`` is the law's quantile at ``worker_level(v)``."""

    def time_at(levels: Floats) -> Floats:
        return law.ppf(np.clip(worker_level(np.minimum(levels, LARGEST)), 0.0, LARGEST), load)

    times, weights = _refined(time_at, _edges(_TAIL_PANELS + 5))
    mean = float(weights @ times)
    return mean, float(weights @ (times - mean) ** 2)


def _missing(chances: Floats, workers: int, later: int) -> Floats:
    """Return the chance of a worker to be missing with which at least ``later`` of all are with the chances given.

    Of tiny chances the first term of the binomial sum is all.
    """
    from scipy.special import betaincinv

    found = np.exp((np.log(chances) - log(comb(workers, later))) / later)
    told = found * workers > _TINY
    found[told] = betaincinv(later, workers - later + 1, chances[told])
    return found


def heavy_moments_over(
    law: HeavyLaw, load: float, replicas: int, worker_missing: Callable[[Floats], Floats]
) -> tuple[float, float]:
    """Return mean and variance of a time that is exceeded with chance ``v`` where a worker's is with another chance.

    Parameters
    ----------
    law : HeavyLaw
    load : float
    replicas : int
        How many workers must be late for the time to be late: its tail falls like ``t ** -(replicas * a)``, and its
        moments are infinite where that is too slow.
    worker_missing : callable
        From chances of the time to those of a worker, to the same relative accuracy.
    """
    index = replicas * law.tail_index
    if index <= 1.0:
        return np.inf, np.inf
    power = 1.0 - (2.0 if index > 2.0 else 1.0) / index  # what lies below a chance v is a share v ** power of a moment
    edges = _edges(int(min(_TAIL_PANELS / power, _HEAVY_PANELS)) + 8)
    times, weights = _refined(lambda chances: law.isf(worker_missing(chances), load), edges)
    mean = float(weights @ times)
    return mean, float(weights @ (times - mean) ** 2) if index > 2.0 else np.inf


@cache
def _edges(lowest: int) -> Floats:
    """Return edges of panels on (0, 1), which halve towards 1 and down to ``2**-lowest``.

    Quantiles of exponential tails grow like ``-log(1-v)``, others like a power: halving panels resolve both.
    """
    low, high = (np.exp2(-np.arange(ends, 5.0, -1.0)) for ends in (lowest, _TAIL_PANELS + 5))
    middle = np.arange(1, _MIDDLE_PANELS) / _MIDDLE_PANELS
    return np.concatenate(([0.0], low, middle, 1.0 - high[::-1], [1.0]))


@cache
def _rule() -> tuple[Floats, Floats, Floats]:
    """Return points on (-1, 1), the weights of a rule of Gauss and Legendre, and what tells whether it may be trusted.

    The first points are the rule's. Of their values the last array gives the last two terms of the Legendre series, and
    the values that it has at the other two points, which are next to the ends.
    """
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    ends = np.array([-1.0, 1.0]) * (1.0 - _NEXT)
    terms = np.polynomial.legendre.legvander(points, _POINTS - 1) * (np.arange(_POINTS) + 0.5) * weights[:, None]
    at_ends = terms @ np.polynomial.legendre.legvander(ends, _POINTS - 1).T
    return np.append(points, ends), weights, np.hstack([terms[:, -2:], at_ends])


def _refined(at: Callable[[Floats], Floats], edges: Floats) -> tuple[Floats, Floats]:
    """Return values and weights whose sum of products is an integral over (0, 1), as is that of the squares.

    Panels are halved where the values are no short series, as where a law jumps, until that no longer matters.
    """
    points, weights, trial = _rule()
    low, high = edges[:-1], edges[1:]
    found: list[tuple[Floats, Floats]] = []
    panels, scales = low.size, np.zeros(2)
    while low.size:
        half = (high - low)[:, None] / 2
        values = at((low[:, None] + half * (1.0 + points)).ravel()).reshape(-1, _POINTS + 2)
        values, ends = values[:, :_POINTS], values[:, _POINTS:]
        shares = half * weights
        if not found:
            scales = np.array([np.sum(shares * np.abs(values) ** power) for power in (1, 2)])
        wrong = np.abs(values @ trial - np.hstack([np.zeros(ends.shape), ends])).max(axis=1)
        # What the rounding of a level alone may move; next to 1 that is much.
        moved = np.ptp(values, axis=1) * (high * 2.0**-49 / half[:, 0])
        lost = wrong * half[:, 0]
        rough = (lost > _ROUGH * scales[0]) | (lost * np.abs(values).max(axis=1) > _ROUGH * scales[1])
        rough &= (wrong > moved) & (high > _LEAST) & (panels < _PANELS_MAX)
        found.append((values[~rough].ravel(), shares[~rough].ravel()))
        panels += int(np.count_nonzero(rough))
        middle = (low[rough] + high[rough]) / 2
        low, high = np.append(low[rough], middle), np.append(middle, high[rough])
    return np.concatenate([values for values, _ in found]), np.concatenate([share for _, share in found])
