"""When a round is over, as a chance: a polynomial of the one chance ``u`` that a worker has answered, and its inverse.

``I_u(k, n-k+1)`` for ``k``-of-``n`` (the regularised incomplete beta function), ``prod_j (1 - (1-u)^(n_j))`` for the
cover of groups, ``prod_j I_u(t, n_j-t+1)`` for ``t`` answers of each, and otherwise a mixture over the number of
arrivals used.

References
----------
David and Nagaraja, Order Statistics, section 2.1.
"""

from __future__ import annotations

from collections import Counter
from math import comb, log

import numpy as np
from numpy.typing import NDArray

from emuml.cover_times import CoverTimes
from emuml.shapes import Cover, StopRule
from emuml.theory.coverage import arrivals_distribution

Floats = NDArray[np.float64]

LARGEST = 1.0 - 2.0**-53
"""The largest level below 1: at 1 itself a quantile may be infinite."""

# Arrival counts less likely than this change no digit.
_NEGLIGIBLE = 1e-16
# The width of doubles in [0.5, 1): a bisection of [0, 1] needs no more steps to be as good as it gets.
_BISECTIONS = 60


def closed_by(rule: StopRule, level: Floats) -> Floats:
    """Return the chance that a round is over when each worker has answered with chance ``level``."""
    if isinstance(rule, Cover):
        return _all_met(Counter(map(len, rule.groups)), level)
    if isinstance(rule, CoverTimes):
        return _all_met_times(rule, level)
    from scipy.special import betainc

    counts, chances = _used(rule)
    enough = betainc(counts[-1], rule.workers - counts[-1] + 1, level)
    with np.errstate(divide="ignore"):
        logs = np.log(level), np.log1p(-level)
    return np.asarray(np.minimum(enough + _between(rule.workers, counts, np.cumsum(chances), level, *logs), 1.0))


def open_by(rule: StopRule, missing: Floats) -> Floats:
    """Return the chance that a round is still open when each worker is missing with chance ``missing``.

    ``1 - closed_by(rule, 1 - missing)`` without cancellation: right to the last digits where it is small.
    """
    if isinstance(rule, Cover):
        with np.errstate(divide="ignore"):
            met = sum(groups * np.log1p(-(missing**size)) for size, groups in Counter(map(len, rule.groups)).items())
        return np.asarray(-np.expm1(met), np.float64)
    from scipy.special import betainc

    if isinstance(rule, CoverTimes):
        late = {size: betainc(size - rule.times + 1, rule.times, missing) for size in set(map(len, rule.groups))}
        with np.errstate(divide="ignore"):
            met = sum(groups * np.log1p(-late[size]) for size, groups in Counter(map(len, rule.groups)).items())
        return np.asarray(-np.expm1(met), np.float64)
    counts, chances = _used(rule)
    too_few = betainc(rule.workers - counts[0] + 1, counts[0], missing)
    with np.errstate(divide="ignore"):
        logs = np.log1p(-missing), np.log(missing)
    later = np.cumsum(chances[::-1])[::-1] - chances
    return np.asarray(np.minimum(too_few + _between(rule.workers, counts, later, 1.0 - missing, *logs), 1.0))


def worker_level(rule: StopRule, chances: Floats) -> Floats:
    """Return the least level at which :func:`closed_by` reaches the given chances."""
    from scipy.special import betaincinv

    if isinstance(rule, Cover):
        sizes = sorted(map(len, rule.groups))
        low, high = (cover_level(chances, len(sizes), size) for size in (sizes[-1], sizes[0]))
    elif isinstance(rule, CoverTimes):
        sizes = sorted(map(len, rule.groups))
        low, high = (_times_level(chances, len(sizes), size, rule.times) for size in (sizes[-1], sizes[0]))
    else:
        counts, _ = _used(rule)
        low, high = (betaincinv(k, rule.workers - k + 1, chances) for k in (counts[0], counts[-1]))
    return _bisected(rule, chances, low, high)


def cover_level(chances: Floats, groups: int, size: int) -> Floats:
    """Return ``u`` with ``(1 - (1-u)^size)^groups = chances``: the fastest of each group, then the slowest of those."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(np.log(-np.expm1(np.log(chances) / groups)) / size), np.float64)


def cover_missing(open_chances: Floats, groups: int, size: int) -> Floats:
    """Return ``m`` with ``(1 - m^size)^groups = 1 - open_chances``, right to the last digits where it is small."""
    with np.errstate(divide="ignore"):
        return np.asarray((-np.expm1(np.log1p(-open_chances) / groups)) ** (1.0 / size), np.float64)


def _times_level(chances: Floats, groups: int, size: int, times: int) -> Floats:
    """Return ``u`` with ``I_u(times, size-times+1)^groups = chances``, right to the last digits at both ends."""
    from scipy.special import betaincinv

    with np.errstate(divide="ignore"):
        each = np.log(chances) / groups
    early = betaincinv(times, size - times + 1, np.exp(each))
    late = 1.0 - betaincinv(size - times + 1, times, -np.expm1(each))
    return np.asarray(np.where(each < -0.5, early, late), np.float64)


def _all_met_times(rule: CoverTimes, level: Floats) -> Floats:
    """Return the chance that every group has so many answers."""
    from scipy.special import betainc

    chance = np.ones(level.shape)
    for size, groups in Counter(map(len, rule.groups)).items():
        chance *= betainc(rule.times, size - rule.times + 1, level) ** groups
    return chance


def _bisected(rule: StopRule, chances: Floats, low: Floats, high: Floats) -> Floats:
    for _ in range(_BISECTIONS if np.any(low < high) else 0):
        middle = (low + high) / 2
        enough = closed_by(rule, middle) >= chances
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _all_met(groups_by_size: Counter[int], level: Floats) -> Floats:
    """Return the chance that every group has an answer."""
    with np.errstate(divide="ignore"):
        missed = np.log1p(-level)
    chance = np.ones(level.shape)
    for size, groups in groups_by_size.items():
        chance *= (-np.expm1(size * missed)) ** groups
    return chance


def _used(rule: StopRule) -> tuple[NDArray[np.int64], Floats]:
    """Return the range of the numbers of arrivals that a round may use, and their chances."""
    used = arrivals_distribution(rule)
    likely = np.flatnonzero(used > _NEGLIGIBLE)
    range_ = np.arange(likely[0], likely[-1] + 1)
    return range_ + 1, used[range_]


def _between(
    workers: int, counts: NDArray[np.int64], weights: Floats, level: Floats, log_level: Floats, log_missing: Floats
) -> Floats:
    """Return the sum of ``weights`` over the numbers of arrivals but the last, each with its chance at a level.

    Binomial chances below exp(-100) are left out: ``n KL(j/n, u) >= 2 n (j/n - u)^2``.
    """
    if len(counts) == 1:
        return np.zeros(level.shape)
    order = np.argsort(level, axis=None)
    ascending, log_in, log_out = (values.ravel()[order] for values in (level, log_level, log_missing))
    total, ways, reach = np.zeros(order.size), comb(workers, int(counts[0])), (50.0 / workers) ** 0.5
    for j, weight in zip(counts[:-1].tolist(), weights.tolist(), strict=False):
        near = slice(*np.searchsorted(ascending, [j / workers - reach, j / workers + reach]))
        total[near] += weight * np.exp(log(ways) + j * log_in[near] + (workers - j) * log_out[near])
        ways = ways * (workers - j) // (j + 1)
    found = np.empty(order.size)
    found[order] = total
    return found.reshape(level.shape)
