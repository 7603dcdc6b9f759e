"""Means and variances of the k-th fastest of n equal workers, for exponential tails and for any law with quantiles.

Exponential: ``E[X_(k)] = H_n - H_(n-k)`` for unit mean (Renyi's representation). Any law: ``X_(k) = F^-1(U_(k))`` with
``U_(k) ~ Beta(k, n-k+1)``, integrated over the quantile of the order statistic, whose integrand is monotone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from emuml.theory.seams import ComputeLaw

Floats = NDArray[np.float64]

_POINTS = 16
_MIDDLE_PANELS = 32
_TAIL_PANELS = 45

# The largest level below 1: at 1 itself a quantile may be infinite.
_LARGEST = 1.0 - 2.0**-53


def exponential_means(workers: int) -> Floats:
    """Return the mean time of the ``k``-th of ``workers`` unit exponentials, ``k = 1..workers``, at index ``k - 1``."""
    return np.cumsum(1.0 / np.arange(workers, 0, -1))


def exponential_variances(workers: int) -> Floats:
    """Return the variance of the ``k``-th of ``workers`` unit exponentials, ``k = 1..workers``, at index ``k - 1``."""
    return np.cumsum(1.0 / np.arange(workers, 0, -1, dtype=np.float64) ** 2)


def order_statistic_moments(law: ComputeLaw, load: float, workers: int, k: int) -> tuple[float, float]:
    """Return mean and second moment of the ``k``-th of ``workers`` independent times of a law.

    Parameters
    ----------
    law : ComputeLaw
        Any law that answers ``ppf``.
    load : float
        Load of each worker.
    workers, k : int
        ``1 <= k <= workers``.

    Returns
    -------
    tuple of float
        Seconds and seconds squared. Relative accuracy about 1e-12 for smooth laws with exponential tails and about
        1e-3 for laws with jumps. Quantiles beyond ``1 - 2^-53`` are cut off, which a tail heavier than ``t^-2`` feels.
    """
    from scipy.special import betaincinv

    return moments_over(law, load, lambda level: np.asarray(betaincinv(k, workers - k + 1, level), dtype=np.float64))


def moments_over(law: ComputeLaw, load: float, worker_level: Callable[[Floats], Floats]) -> tuple[float, float]:
    """Return mean and second moment of a time whose quantile at ``v`` is the law's quantile at ``worker_level(v)``."""
    levels, weights = _nodes()
    times = law.ppf(np.clip(worker_level(levels), 0.0, _LARGEST), load)
    return float(weights @ times), float(weights @ times**2)


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
    return np.minimum(levels.ravel(), _LARGEST), (half * weights).ravel()
