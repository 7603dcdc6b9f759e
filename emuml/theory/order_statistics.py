"""Means and variances of the k-th fastest of n equal workers, for exponential tails and for any law with quantiles.

Exponential: ``E[X_(k)] = H_n - H_(n-k)`` for unit mean (Renyi's representation). Any law: ``X_(k) = F^-1(U_(k))`` with
``U_(k) ~ Beta(k, n-k+1)``, integrated over the quantile of the order statistic, whose integrand is monotone. Laws of
finitely many values, which say so: sums over these (``atoms.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from emuml.shapes import Count
from emuml.theory import arguments
from emuml.theory.atoms import atomic_moments, atoms_of
from emuml.theory.closing import LARGEST, Floats
from emuml.theory.seams import ComputeLaw

_POINTS = 16
_MIDDLE_PANELS = 32
_TAIL_PANELS = 45


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
        saying so. Quantiles beyond ``1 - 2^-53`` are cut off, which a tail heavier than ``t^-2`` feels.

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
    mean, variance = order_statistic(law, load, workers, k)
    return mean, variance + mean**2


def order_statistic(law: ComputeLaw, load: float, workers: int, k: int) -> tuple[float, float]:
    """Return mean and variance of the ``k``-th of ``workers`` independent times of a law."""
    from scipy.special import betaincinv

    if (values := atoms_of(law, load)) is not None:
        return atomic_moments(Count(workers, k), values, law.cdf(values, load))
    return moments_over(law, load, lambda level: np.asarray(betaincinv(k, workers - k + 1, level), dtype=np.float64))


def moments_over(law: ComputeLaw, load: float, worker_level: Callable[[Floats], Floats]) -> tuple[float, float]:
    """Return mean and variance of a time whose quantile at ``v`` is the law's quantile at ``worker_level(v)``."""
    levels, weights = _nodes()
    times = law.ppf(np.clip(worker_level(levels), 0.0, LARGEST), load)
    mean = float(weights @ times)
    return mean, float(weights @ (times - mean) ** 2)


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Return Gauss-Legendre nodes and weights on (0, 1), in panels that halve towards both ends.

    Quantiles of exponential tails grow like ``-log(1-v)``: halving panels resolve that to the last bit.
    """
    middle = np.arange(1, _MIDDLE_PANELS) / _MIDDLE_PANELS
    tail = 2.0 ** -np.arange(_TAIL_PANELS + 5, 5, -1)
    edges = np.concatenate(([0.0], tail, middle, 1.0 - tail[::-1], [1.0]))
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    half = np.diff(edges)[:, None] / 2
    levels = edges[:-1, None] + half * (1.0 + points)
    return np.minimum(levels.ravel(), LARGEST), (half * weights).ravel()
