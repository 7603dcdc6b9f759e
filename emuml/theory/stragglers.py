"""Seconds per round when stragglers are not cancelled: what has a closed form, and what has none.

Waiting for all makes every round the slowest of ``n`` fresh starts. Unit exponential times, which remember nothing,
have exact long-run means for ``k``-of-``n`` rules: ``"skip-stale"`` by a recursion over the stale and fresh tasks that
run, ``"carry-over"`` by the Markov chain of the workers' backlogs. Everything else is for
:func:`~emuml.theory.round_ends` and a simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from emuml.cover_times import CoverTimes
from emuml.shapes import All, StopRule, Stragglers
from emuml.theory import arguments
from emuml.theory.atoms import atoms_of
from emuml.theory.chains import explored
from emuml.theory.seams import (
    Code,
    ComputeLaw,
    NoClosedForm,
    ShiftedExponentialLaw,
    check_equal_loads,
    check_independent,
)

_LEAST_CAP = 16
_NEGLIGIBLE = 1e-9
_STATES_MAX = 10_000

Lags = tuple[int, ...]


def answers_needed(rule: StopRule) -> int | None:
    """Return ``k`` if the rule closes at the first ``k`` answers whoever gives them, else ``None``."""
    if isinstance(rule, CoverTimes):
        return _answers_needed_times(rule)
    try:
        count, cover = rule.parts()
    except NotImplementedError:
        return None
    if cover is None:
        return rule.workers if count is None else count
    groups = len(cover.groups)
    if groups in (1, rule.workers):
        return groups if count is None else min(groups, count)
    return count if count is not None and count <= groups else None


def _answers_needed_times(rule: CoverTimes) -> int | None:
    if len(rule.groups) == 1:
        return rule.times
    return rule.workers if all(len(group) == rule.times for group in rule.groups) else None


def fresh_start(
    code: Code, workers: int, compute: ComputeLaw | ShiftedExponentialLaw, collect: int | None, stragglers: Stragglers
) -> tuple[float, StopRule, StopRule | None]:
    """Return the load, the stop rule, and the rule whose time on fresh starts is the time of a round.

    The last is ``None`` if stale work delays rounds.
    """
    arguments.check_stragglers(stragglers)
    check_independent(compute)
    built = code.build(workers, collect=collect)
    check_equal_loads(built)
    rule = built.stop_rule()
    if stragglers == "wait-all" or answers_needed(rule) == workers:
        return built.load, rule, All(workers)
    # Workers that always take equally long are never stale.
    is_fresh = stragglers == "cancel" or constant_s(compute, built.load) is not None
    return built.load, rule, rule if is_fresh else None


def constant_s(compute: ComputeLaw | ShiftedExponentialLaw, load: float) -> float | None:
    """Return the seconds that every worker takes, if they are always the same."""
    if isinstance(compute, ShiftedExponentialLaw):
        return None
    if (values := atoms_of(compute, load)) is not None:
        return float(values[0]) if len(values) == 1 else None
    least, most = compute.ppf(np.array([2.0**-53, 1.0 - 2.0**-53]), load).tolist()
    return float(least) if least == most else None


def no_closed_form(rule: StopRule, stragglers: Stragglers, what: str) -> NoClosedForm:
    """Return the error that says so."""
    return NoClosedForm(
        f"no closed form is known for {what} of {type(rule).__name__} of {rule.workers} workers",
        f"stragglers={stragglers!r}",
        "cancel and wait-all; skip-stale and small carry-over for k-of-n with exponential times without shift",
        "round_ends(delays, rule, stragglers) simulates it",
    )


def skip_stale_moments(workers: int, count: int) -> tuple[float, float]:
    """Return mean and variance of a round under ``"skip-stale"``, for unit exponential times and ``count`` answers.

    Every round but the first begins with ``workers - count`` stale tasks and ``count`` fresh ones, and is independent
    of the others. With ``a`` stale and ``b`` fresh tasks running, a task ends after ``Exp(a + b)``; a stale one makes
    its worker start afresh, a fresh one is an answer:
    ``V(a, b) = 1/(a+b) + a/(a+b) V(a-1, b+1) + b/(a+b) V(a, b-1)``, and 0 once ``count`` have answered.
    O(count * (workers - count)).

    Examples
    --------
    >>> round(skip_stale_moments(workers=5, count=3)[0], 6)
    1.133639
    """
    _check_count(workers, count)
    stale_max = workers - count
    mean, second = np.zeros(stale_max + 1), np.zeros(stale_max + 1)
    # By anti-diagonals, on which the values are independent: a + (a + b) grows by one with each step.
    for diagonal in range(1, workers + 1):
        stale = np.arange(max(0, diagonal - count), min(stale_max, diagonal - 1) + 1)
        running = stale_max + diagonal - stale
        share = stale / running
        mean_after = share * mean[stale - 1] + (1.0 - share) * mean[stale]
        second_after = share * second[stale - 1] + (1.0 - share) * second[stale]
        mean[stale] = 1.0 / running + mean_after
        second[stale] = 2.0 / running * (1.0 / running + mean_after) + second_after
    return float(mean[-1]), float(second[-1] - mean[-1] ** 2)


def carry_over_mean(workers: int, count: int) -> float:
    """Return the long-run mean of a round under ``"carry-over"``, for unit exponential times and ``count`` answers.

    From the stationary law of the workers' lags (rounds that they still have to do), up to a lag that is longer with
    a probability below 1e-9.

    Returns
    -------
    float
        Accurate to 1e-6. For one answer it is 1, for all workers the slowest of fresh starts.

    Raises
    ------
    NoClosedForm
        If more than 10,000 states would be needed: about four stragglers or more, or two of many workers.

    Examples
    --------
    >>> round(carry_over_mean(workers=3, count=2), 6)
    1.264298
    """
    _check_count(workers, count)
    return _carry_over_mean(workers, count)


@cache
def _carry_over_mean(workers: int, count: int) -> float:
    if count == 1:
        return 1.0  # nobody ever waits, so the leader's time is a sum of its own times, and lags grow without bound
    if count == workers:
        return float(np.sum(1.0 / np.arange(1, workers + 1)))
    cap = _LEAST_CAP
    while True:
        mean, at_cap = _stationary_round(workers, count, cap)
        if at_cap < _NEGLIGIBLE:
            return mean
        cap += cap // 2


def _stationary_round(workers: int, count: int, cap: int) -> tuple[float, float]:
    """Return the mean round when lags end at ``cap``, and the probability that one is there."""
    start: Lags = (1,) * workers
    chain = explored(start, lambda lags: _moves(lags, count, cap), _STATES_MAX)
    if chain is None:
        raise NoClosedForm(
            f"the chain of {workers} workers' lags has more than {_STATES_MAX:,} states",
            "stragglers='carry-over'",
            hint="round_ends(delays, rule, stragglers) simulates it",
        )
    chances = chain.chances()
    closings_per_s = float(chances[chain.origins] @ (chain.rates * chain.marks))
    return 1.0 / closings_per_s, float(chances[[lags[-1] == cap for lags in chain.states]].sum())


def _moves(lags: Lags, count: int, cap: int) -> Iterator[tuple[Lags, int, bool]]:
    """Yield what follows when a worker ends a round; lags are ascending, and each worker that has one is as quick."""
    for lag in sorted(set(lags) - {0}):
        first = lags.index(lag)
        after = (*lags[:first], lag - 1, *lags[first + 1 :])
        closes = after.count(0) == count
        yield tuple(min(lag + 1, cap) for lag in after) if closes else after, lags.count(lag), closes


def _check_count(workers: int, count: int) -> None:
    arguments.check_integer(workers, "workers", 1)
    arguments.check_integer(count, "count", 1, workers)
