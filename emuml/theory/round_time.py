"""Seconds per round of a gradient code when new parameters cancel what stragglers still do.

All workers have the same law and are independent; messages take no time. For shifted exponentials every rule is in
closed form; other laws go through the quantiles of order statistics. This is the time of fresh starts: programs that
let stragglers finish are slower, and no formula here is theirs.
"""

from __future__ import annotations

import numpy as np

from emuml.shapes import Cover, StopRule
from emuml.theory.coverage import arrivals_distribution
from emuml.theory.order_statistics import (
    Floats,
    exponential_means,
    exponential_variances,
    moments_over,
    order_statistic_moments,
)
from emuml.theory.seams import Code, ComputeLaw, ShiftedExponentialLaw

# Arrival counts less likely than this change no digit of a mean.
_NEGLIGIBLE = 1e-16


def expected_round_time(
    code: Code, workers: int, compute: ComputeLaw | ShiftedExponentialLaw, collect: int | None = None
) -> float:
    """Return the mean seconds per round of a code.

    Parameters
    ----------
    code : Code
        Declaration of the code.
    workers : int
        Number of workers.
    compute : ComputeLaw or ShiftedExponentialLaw
        Law of each worker's time for one answer.
    collect : int, optional
        Answers at which a round closes at the latest, as for the protocol.

    Returns
    -------
    float
        Seconds. Exact for shifted exponentials and for constant times; see :func:`order_statistic_moments` for the
        accuracy of other laws.

    References
    ----------
    ErasureHead, arXiv:1901.09671 (the rule); David and Nagaraja, Order Statistics, section 2.5 (exponential spacings).
    """
    return _mean_and_variance(code, workers, compute, collect)[0]


def round_time_variance(
    code: Code, workers: int, compute: ComputeLaw | ShiftedExponentialLaw, collect: int | None = None
) -> float:
    """Return the variance, in seconds squared, of the time of one round; parameters as for the mean."""
    return _mean_and_variance(code, workers, compute, collect)[1]


def exponential_part(rule: StopRule) -> tuple[float, float]:
    """Return mean and variance of the time a rule takes when all times are exponential with mean 1.

    ``k``-of-``n``: ``H_n - H_(n-k)``. Cover of ``m`` groups of ``r``: ``H_m / r``. Otherwise the sum over the number
    of arrivals used, which is independent of the arrival times.
    """
    equal = _equal_groups(rule)
    if equal is not None:
        groups, size = equal
        return float(exponential_means(groups)[-1]) / size, float(exponential_variances(groups)[-1]) / size**2
    used = arrivals_distribution(rule)
    means, variances = exponential_means(rule.workers), exponential_variances(rule.workers)
    mean = float(used @ means)
    return mean, float(used @ (variances + (means - mean) ** 2))


def _mean_and_variance(
    code: Code, workers: int, compute: ComputeLaw | ShiftedExponentialLaw, collect: int | None
) -> tuple[float, float]:
    built = code.build(workers, collect=collect)
    load, rule = built.load, built.stop_rule()
    if isinstance(compute, ShiftedExponentialLaw):
        scale_s = compute.mean_s * (load if compute.tail == "scaled" else 1.0)
        mean, variance = exponential_part(rule)
        return load * compute.shift_s + scale_s * mean, scale_s**2 * variance
    least, most = compute.ppf(np.array([2.0**-53, 1.0 - 2.0**-53]), load).tolist()
    if least == most:
        return least, 0.0
    mean, second = _moments(rule, compute, load)
    return mean, max(second - mean**2, 0.0)


def _moments(rule: StopRule, compute: ComputeLaw, load: float) -> tuple[float, float]:
    """Return mean and second moment of a round's time under any law."""
    equal = _equal_groups(rule)
    if equal is not None:
        return moments_over(compute, load, lambda level: _cover_level(level, *equal))
    used = arrivals_distribution(rule)
    mean, second = 0.0, 0.0
    for k in (np.flatnonzero(used > _NEGLIGIBLE) + 1).tolist():
        first_k, second_k = order_statistic_moments(compute, load, rule.workers, k)
        mean += float(used[k - 1]) * first_k
        second += float(used[k - 1]) * second_k
    return mean, second


def _equal_groups(rule: StopRule) -> tuple[int, int] | None:
    """Return number and size of the groups when the rule is to cover groups of one size."""
    if not isinstance(rule, Cover):
        return None
    sizes = {len(group) for group in rule.groups}
    return (len(rule.groups), sizes.pop()) if len(sizes) == 1 else None


def _cover_level(level: Floats, groups: int, size: int) -> Floats:
    """Return ``u`` with ``(1 - (1-u)^size)^groups = level``: the fastest of each group, then the slowest of those."""
    return -np.expm1(np.log(-np.expm1(np.log(level) / groups)) / size)
