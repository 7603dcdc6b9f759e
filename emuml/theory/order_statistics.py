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
_TINY = 1e-200


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
        accuracy is about 1e-12 for smooth laws with exponential tails, and 0.03 or better for laws that jump without
        saying so. Infinite where a law says that its tail is too heavy for a moment.

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
    if isinstance(law, HeavyLaw):
        return heavy_moments_over(law, load, later, lambda chance: _missing(chance, workers, later))
    return moments_over(law, load, lambda level: np.asarray(betaincinv(k, later, level), dtype=np.float64))


def moments_over(law: ComputeLaw, load: float, worker_level: Callable[[Floats], Floats]) -> tuple[float, float]:
    """Return mean and variance of a time whose quantile at ``v`` is the law's quantile at ``worker_level(v)``."""
    levels, weights = _nodes()
    times = law.ppf(np.clip(worker_level(levels), 0.0, LARGEST), load)
    mean = float(weights @ times)
    return mean, float(weights @ (times - mean) ** 2)


def _missing(chances: Floats, workers: int, later: int) -> Floats:
    """Return the chance of a worker to be missing with which at least ``later`` of all are with the chances given.

    Of tiny chances the first term of the binomial sum is all.
    """
    from scipy.special import betaincinv

    tiny = chances < _TINY
    found = np.empty(chances.shape)
    found[~tiny] = betaincinv(later, workers - later + 1, chances[~tiny])
    found[tiny] = np.exp((np.log(chances[tiny]) - log(comb(workers, later))) / later)
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
    chances, weights = _tail_nodes(int(min(_TAIL_PANELS / power, _HEAVY_PANELS)) + 8)
    times = law.isf(worker_missing(chances), load)
    mean = float(weights @ times)
    return mean, float(weights @ (times - mean) ** 2) if index > 2.0 else np.inf


@cache
def _tail_nodes(panels: int) -> tuple[Floats, Floats]:
    """Return Gauss-Legendre nodes and weights on (0, 1), in panels that halve down to ``2**-panels``.

    A power ``v ** -c`` is as smooth on each of them.
    """
    return _in_panels(panels)


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Return Gauss-Legendre nodes and weights on (0, 1), in panels that halve towards both ends.

    Quantiles of exponential tails grow like ``-log(1-v)``: halving panels resolve that to the last bit.
    """
    levels, weights = _in_panels(_TAIL_PANELS + 5)
    return np.minimum(levels, LARGEST), weights


def _in_panels(lowest: int) -> tuple[Floats, Floats]:
    """Return nodes and weights on (0, 1), a rule for each panel, halving towards 1 and down to ``2**-lowest``."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    low, high = (np.exp2(-np.arange(ends, 5.0, -1.0)) for ends in (lowest, _TAIL_PANELS + 5))
    middle = np.arange(1, _MIDDLE_PANELS) / _MIDDLE_PANELS
    edges = np.concatenate(([0.0], low, middle, 1.0 - high[::-1], [1.0]))
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1.0 + points)).ravel(), (half * weights).ravel()
