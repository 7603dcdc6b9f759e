"""Chances that the first answers of a round cover all groups, for workers that are equally fast in law.

The textbook form, inclusion and exclusion, is exact in integers and worthless in floats (1000 workers in pairs, 800
answers: -3e-6 for 1.2e-11). ``coverage_probabilities`` adds one worker at a time instead, with weights in [0, 1] and no
subtraction, and so does ``covered_groups_distribution``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from emuml.cover_times import CoverTimes
from emuml.errors import UserError
from emuml.shapes import Cover, StopRule
from emuml.theory.arguments import check_integer
from emuml.theory.seams import NoClosedForm


def coverage_probabilities(
    group_sizes: Sequence[int], arrivals: int | None = None, times: int = 1
) -> NDArray[np.float64]:
    """Return the probability that the first ``j`` arrivals hold a member of every group, for ``j = 0..arrivals``.

    ``P_j = [x^j] prod_g ((1+x)^(n_g) - 1) / C(n, j)`` for disjoint groups of ``n_g`` workers, ``n`` in all, every
    order of arrival being equally likely. With ``times = t`` they hold ``t`` members of every group, and the factors
    are ``sum_(i>=t) C(n_g, i) x^i``. O(n * arrivals * times).

    Parameters
    ----------
    group_sizes : sequence of int
        Workers in each group, at least 1 each.
    arrivals : int, optional
        Largest ``j``; all workers when left out.
    times : int
        Members of each group that are asked for.

    Returns
    -------
    ndarray of float64, shape (arrivals + 1,)
        Non-decreasing probabilities.

    Examples
    --------
    >>> coverage_probabilities([2, 2])
    array([0.        , 0.        , 0.66666667, 1.        , 1.        ])
    >>> coverage_probabilities([2, 2], times=2)
    array([0., 0., 0., 0., 1.])
    """
    workers = sum(group_sizes)
    top = workers if arrivals is None else arrivals
    if not group_sizes or min(group_sizes) < 1 or not 0 <= top <= workers:
        raise UserError(
            f"got {top} arrivals at groups of {group_sizes!r:.60}", "coverage", "0..workers arrivals, groups of >= 1"
        )
    check_integer(times, "times", 1, min(group_sizes))
    return _coverage(tuple(group_sizes), top, times).copy()


def coverage_probability(group_sizes: Sequence[int], arrivals: int) -> float:
    """Return the probability ``P_j`` that the first ``arrivals`` workers cover every group.

    Examples
    --------
    >>> round(coverage_probability([3] * 10, 15), 7)
    0.2177448
    """
    return float(coverage_probabilities(group_sizes, arrivals)[-1])


def arrivals_distribution(rule: StopRule) -> NDArray[np.float64]:
    """Return the probability that a round uses exactly ``k`` arrivals, for ``k = 1..workers``, at index ``k - 1``.

    The workers' times are independent and equally distributed, so every order of arrival is equally likely and the
    number of arrivals used is independent of when the ``k``-th arrives.

    Raises
    ------
    NoClosedForm
        For rules of other kinds than counts and covers.
    """
    count, cover = (None, rule.cover) if isinstance(rule, CoverTimes) else parts_of(rule)
    times = rule.times if isinstance(rule, CoverTimes) else 1
    limit = rule.workers if count is None else count
    used = np.zeros(rule.workers)
    used[limit - 1] = 1.0
    if cover is not None:
        reached = coverage_probabilities([len(group) for group in cover.groups], limit - 1, times)
        used[: limit - 1] = np.diff(reached)
        used[limit - 1] = 1.0 - reached[-1]
    return used


def parts_of(rule: StopRule) -> tuple[int | None, Cover | None]:
    """Return count and groups of a rule; raise :class:`NoClosedForm` for rules of other kinds."""
    try:
        return rule.parts()
    except NotImplementedError:
        what = f"no closed form is known for when {type(rule).__name__} closes a round"
        hint = "emuml.theory.sample draws rounds without a run"
        raise NoClosedForm(what, "stop rule", "a number of answers, or answers of groups", hint) from None


def covered_groups_distribution(groups: int, replication: int, collect: int) -> list[float]:
    """Return the probability that ``collect`` arrivals cover exactly ``v`` of equal groups, for ``v = 0..groups``.

    Arrivals come one by one: with ``v`` groups covered by ``j`` of ``n`` workers, the next covers another one with
    probability ``(m - v) r / (n - j)``, and none with ``(v r - j) / (n - j)``. No term is negative, so small chances
    keep their digits: each arrival adds few roundings. O(groups * collect).

    Examples
    --------
    >>> [round(chance, 12) for chance in covered_groups_distribution(groups=3, replication=2, collect=3)]
    [0.0, 0.0, 0.6, 0.4]
    """
    check_integer(groups, "groups", 1)
    check_integer(replication, "replication", 1)
    check_integer(collect, "collect", 0, groups * replication)
    if replication == 1:  # each arrival covers a group of its own
        return [float(v == collect) for v in range(groups + 1)]
    chances, covered, workers = np.zeros(groups + 1), np.arange(groups + 1.0), groups * replication
    chances[0] = 1.0
    for arrived in range(collect):
        # So many groups may be covered by now; all workers of the others are still to come.
        low, high = -(-arrived // replication), min(arrived, groups)
        known = chances[low : high + 1]
        grown = known * ((groups - covered[low : high + 1]) * replication) / (workers - arrived)
        known *= (covered[low : high + 1] * replication - arrived) / (workers - arrived)
        top = min(high + 1, groups)
        chances[low + 1 : top + 1] += grown[: top - low]
    return chances.tolist()


@lru_cache(maxsize=16)
def _coverage(group_sizes: tuple[int, ...], top: int, times: int) -> NDArray[np.float64]:
    """Return the probabilities; kept, since a distribution of times asks for the same ones at each of its points."""
    covered = np.zeros(top + 1)
    covered[0] = 1.0
    seen = 0
    for size in group_sizes:
        covered = _with_group(covered, seen, size, times)
        seen += size
    return covered


def _with_group(covered: NDArray[np.float64], seen: int, size: int, times: int) -> NDArray[np.float64]:
    """Return the coverage probabilities once a group of ``size`` joins the ``seen`` workers before it.

    Of ``j`` workers drawn from ``n``, the newest worker is one with probability ``j/n``; otherwise all ``j`` are among
    the earlier ones, and if it is one, ``j - 1`` of them are. Members of the group are counted up to ``times``.
    """
    counted = [covered.copy(), *(np.zeros_like(covered) for _ in range(times))]
    draws = np.arange(covered.size)
    for n in range(seen + 1, seen + size + 1):
        top = min(n, covered.size - 1) + 1
        drawn = draws[:top] / n
        for members in range(times, -1, -1):
            before = counted[members - 1][: top - 1] if members else 0.0
            if members == times:
                before = counted[times][: top - 1] + before
            counted[members][:top] *= 1.0 - drawn
            counted[members][1:top] += drawn[1:] * before
    return counted[times]
