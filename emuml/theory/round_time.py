"""Mean and variance of the seconds per round of a gradient code.

All workers have the same law and are independent; messages take no time. When every round starts afresh, because new
parameters cancel what stragglers still do or because the server waits for them, every rule is in closed form for
shifted exponentials and for laws of finitely many values; others go through the quantiles of order statistics. Where
stragglers finish in vain, see ``stragglers.py``.
"""

from __future__ import annotations

import numpy as np

from emuml.cover_times import CoverTimes
from emuml.deadlines import NO_DEADLINE, Deadline
from emuml.shapes import Cover, StopRule, Stragglers
from emuml.theory.atoms import atomic_moments, atoms_of
from emuml.theory.capped import under
from emuml.theory.closing import Floats, cover_level, cover_missing, worker_level
from emuml.theory.coverage import arrivals_distribution
from emuml.theory.decoding_error import covered_fraction
from emuml.theory.order_statistics import (
    exponential_means,
    exponential_variances,
    heavy_moments_over,
    moments_over,
    order_statistic,
)
from emuml.theory.seams import Code, ComputeLaw, HeavyLaw, ShiftedExponentialLaw
from emuml.theory.stragglers import (
    answers_needed,
    carry_over_mean,
    constant_s,
    fresh_start,
    no_closed_form,
    skip_stale_moments,
)

# Arrival counts less likely than this change no digit of a mean.
_NEGLIGIBLE = 1e-16


def expected_round_time(
    code: Code,
    workers: int,
    compute: ComputeLaw | ShiftedExponentialLaw,
    collect: int | None = None,
    stragglers: Stragglers = "cancel",
    deadline: Deadline = NO_DEADLINE,
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
    stragglers : str
        What becomes of work on a closed round. Under ``"wait-all"`` a round lasts until the next one starts; under
        ``"skip-stale"`` and ``"carry-over"`` it is the mean in the long run, and the first round is shorter.
    deadline : Deadline
        When a round closes by the clock.

    Returns
    -------
    float
        Seconds. Exact for shifted exponentials (see :func:`carry_over_mean` for the accuracy of its chain) and for
        constant and recorded times, the latter as if drawn from all that were recorded; see
        :func:`order_statistic_moments` for the accuracy of other laws. Infinite if the tail is too heavy for a mean.

    Raises
    ------
    NoClosedForm
        If none is known, or workers are not independent and equal.

    References
    ----------
    ErasureHead, arXiv:1901.09671 (the rule); David and Nagaraja, Order Statistics, section 2.5 (exponential spacings).
    """
    compute = under(compute, deadline, stragglers)
    load, rule, fresh = fresh_start(code, workers, compute, collect, stragglers)
    if fresh is not None:
        return moments_of_rule(fresh, compute, load)[0]
    count, scale_s = _memoryless(rule, compute, load, stragglers)
    if stragglers == "carry-over":
        return scale_s * carry_over_mean(workers, count)
    return scale_s * skip_stale_moments(workers, count)[0]


def round_time_variance(
    code: Code,
    workers: int,
    compute: ComputeLaw | ShiftedExponentialLaw,
    collect: int | None = None,
    stragglers: Stragglers = "cancel",
    deadline: Deadline = NO_DEADLINE,
) -> float:
    """Return the variance, in seconds squared, of the time of one round; parameters as for the mean.

    Rounds are independent of each other where a variance is known.
    """
    compute = under(compute, deadline, stragglers)
    load, rule, fresh = fresh_start(code, workers, compute, collect, stragglers)
    if fresh is not None:
        return moments_of_rule(fresh, compute, load)[1]
    if stragglers == "carry-over":
        raise no_closed_form(rule, stragglers, "the variance of a round's time")
    count, scale_s = _memoryless(rule, compute, load, stragglers)
    return scale_s**2 * skip_stale_moments(workers, count)[1]


def seconds_per_gradient(
    code: Code,
    workers: int,
    compute: ComputeLaw | ShiftedExponentialLaw,
    collect: int | None = None,
    stragglers: Stragglers = "cancel",
) -> float:
    """Return the mean seconds per round over the length of the mean estimate; parameters as for the mean.

    A round that is stopped early and not scaled delivers ``1 - p`` of a gradient on average, so its time counts
    ``1/(1-p)`` fold. Codes whose estimates are scaled to be unbiased deliver a whole one.

    Examples
    --------
    >>> from emuml.cluster import ShiftedExponential
    >>> from emuml.protocols.gradient_coding import FractionalRepetition
    >>> round(seconds_per_gradient(FractionalRepetition(3), 30, ShiftedExponential(0.0, 0.5), collect=15), 6)
    0.372442
    """
    mean_s = expected_round_time(code, workers, compute, collect, stragglers)
    is_shorter = getattr(code.build(workers, collect=collect), "scale", "") == "none"
    return mean_s / covered_fraction(code, workers, collect) if is_shorter else mean_s


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
    return _mixed(used, exponential_means(rule.workers), exponential_variances(rule.workers))


def _memoryless(
    rule: StopRule, compute: ComputeLaw | ShiftedExponentialLaw, load: float, stragglers: Stragglers
) -> tuple[int, float]:
    """Return the answers that close a round and the mean of a worker's time, if that is exponential and no more."""
    count = answers_needed(rule)
    if count is None or not isinstance(compute, ShiftedExponentialLaw) or compute.shift_s != 0.0:
        raise no_closed_form(rule, stragglers, "the time of a round")
    return count, tail_mean_s(compute, load)


def moments_of_rule(rule: StopRule, compute: ComputeLaw | ShiftedExponentialLaw, load: float) -> tuple[float, float]:
    """Return mean and variance of the time that a rule takes when all workers start together."""
    if isinstance(compute, ShiftedExponentialLaw):
        mean, variance = exponential_part(rule)
        scale_s = tail_mean_s(compute, load)
        return load * compute.shift_s + scale_s * mean, scale_s**2 * variance
    seconds = constant_s(compute, load)
    if seconds is not None:
        return seconds, 0.0
    return _moments(rule, compute, load)


def tail_mean_s(compute: ShiftedExponentialLaw, load: float) -> float:
    """Return the mean of the tail in seconds for a load."""
    return compute.mean_s * (load if compute.tail == "scaled" else 1.0)


def _moments(rule: StopRule, compute: ComputeLaw, load: float) -> tuple[float, float]:
    """Return mean and variance of a round's time under any law."""
    if (values := atoms_of(compute, load)) is not None:
        return atomic_moments(rule, values, compute.cdf(values, load))
    equal = _equal_groups(rule)
    if equal is not None and isinstance(compute, HeavyLaw) and compute.tail_index < np.inf:
        return heavy_moments_over(compute, load, equal[1], lambda chance: cover_missing(chance, *equal))
    if equal is not None:
        return moments_over(compute, load, lambda level: cover_level(level, *equal))
    if isinstance(rule, CoverTimes) and not (isinstance(compute, HeavyLaw) and compute.tail_index < np.inf):
        return moments_over(compute, load, lambda level: worker_level(rule, level))
    used = arrivals_distribution(rule)
    counts = np.flatnonzero(used > _NEGLIGIBLE) + 1
    parts = [order_statistic(compute, load, rule.workers, k) for k in counts.tolist()]
    return _mixed(used[counts - 1], *np.array(parts).T)


def _mixed(chances: Floats, means: Floats, variances: Floats) -> tuple[float, float]:
    """Return mean and variance of a mixture."""
    mean = float(chances @ means)
    if not np.isfinite(mean):
        return mean, mean
    return mean, float(chances @ (variances + (means - mean) ** 2))


def _equal_groups(rule: StopRule) -> tuple[int, int] | None:
    """Return number and size of the groups when the rule is to cover groups of one size."""
    if not isinstance(rule, Cover):
        return None
    sizes = {len(group) for group in rule.groups}
    return (len(rule.groups), sizes.pop()) if len(sizes) == 1 else None
