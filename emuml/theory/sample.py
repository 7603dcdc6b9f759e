"""Times of rounds and pushes drawn by seed, without running anything: what the emulator finds, to the last bit.

Durations come from the counter-based streams that the engines draw from, and times are added in the engines' order: at
equal seeds they are those of :func:`emuml.run` on a cluster whose messages take no time and nobody of which fails. So
a question without a closed form has an answer with a standard error, thousands of times faster than by a run; and the
emulator has a second opinion.

- Rounds that everybody begins anew, under exponential draws, are closed by selection among raw words: one logarithm a
  round. Other laws and semantics go by the recursions of ``semantics.py``.
- Pushes go by the recursion of starts, one iteration of all workers at a time: ``F_p(c) = S_p(c) + X_p(c)`` with
  ``S_p(c) = max(F_p(c-1), max_q F_q(c-s-1))`` under slack ``s`` (Ho et al., NIPS 2013), so that all workers' draws are
  made together, which a heap of their next pushes would not allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from emuml.durations import DrawnLaw, ExponentialDraws, Floats, durations
from emuml.errors import RunFailed
from emuml.selection import Closing
from emuml.shapes import StopRule, Stragglers
from emuml.theory import arguments
from emuml.theory.seams import StartBarrier
from emuml.theory.semantics import recursion

BLOCKS = 20
"""Equal parts of a run whose means say how sure its mean is: neighbouring rounds and pushes are not independent."""


def mean_and_error(ends_s: Floats) -> tuple[float, float]:
    """Return the mean time from one end to the next, and its standard error from the means of blocks.

    Parameters
    ----------
    ends_s : ndarray of float64, shape (n,)
        Ascending seconds, counted from 0; at least twice as many as ``BLOCKS`` for an error, else it is infinite.
    """
    mean = float(ends_s[-1]) / len(ends_s)
    size = len(ends_s) // BLOCKS
    if size < 2:
        return mean, np.inf
    edges = np.concatenate([[0.0], ends_s[size - 1 :: size][:BLOCKS]])
    return mean, float(np.std(np.diff(edges) / size, ddof=1)) / BLOCKS**0.5


@dataclass(frozen=True, eq=False)
class SampledRounds:
    """Rounds of one sampled run, with times in seconds from its start.

    Attributes
    ----------
    decided_s, ended_s : ndarray of float64, shape (rounds,)
        When the stop rule is satisfied, and when the next round starts; they differ under ``"wait-all"``.
    answered : ndarray of bool, shape (rounds, workers), or (0, workers) if nobody asked
        Whose answers the decision uses.
    """

    decided_s: Floats
    ended_s: Floats
    answered: NDArray[np.bool_]

    @property
    def mean_and_error_s(self) -> tuple[float, float]:
        """Mean seconds per round and its standard error; see :func:`mean_and_error`."""
        return mean_and_error(self.ended_s)


def round_times(
    law: DrawnLaw,
    rule: StopRule,
    rounds: int,
    seed: int = 0,
    *,
    load: float = 1.0,
    stragglers: Stragglers = "cancel",
    asks_who: bool = False,
) -> SampledRounds:
    """Return when the rounds of one run end.

    Parameters
    ----------
    law : DrawnLaw
        Law of the workers' times, such as ``emuml.cluster.ShiftedExponential``.
    rule : StopRule
        When a round may close; ``code.build(workers).stop_rule()`` is that of a code.
    rounds : int
        How many, > 0.
    seed : int
        Seed of the experiment.
    load : float
        Of each worker, in units of ``1/workers`` of the data; ``code.build(workers).load`` is that of a code.
    stragglers : {"cancel", "skip-stale", "carry-over", "wait-all"}
        What becomes of work on a closed round.
    asks_who : bool
        Whether to tell whose answers are used, a byte for each worker and round.

    Raises
    ------
    UserError, RunFailed
        If an argument is none, or the law does not know so many workers or draws.

    Examples
    --------
    >>> from emuml.cluster import ShiftedExponential
    >>> from emuml.shapes import Count
    >>> law = ShiftedExponential(shift_s=0.05, mean_s=0.5)
    >>> found = round_times(law, Count(workers=30, count=27), rounds=10_000, seed=1)
    >>> [round(value, 3) for value in found.mean_and_error_s]  # 1.1308 in closed form
    [1.128, 0.003]
    """
    arguments.check_integer(rounds, "rounds", 1)
    arguments.check_number(load, "load", above=0.0)
    arguments.check_stragglers(stragglers)
    closing = Closing(rule)
    if closing.has_parts and stragglers in ("cancel", "wait-all") and isinstance(law, ExponentialDraws):
        return SampledRounds(*closing.exponential(law, seed, load, rounds, stragglers == "wait-all", asks_who))
    decided_s, ended_s = np.empty(rounds), np.empty(rounds)
    answered = np.empty((rounds if asks_who else 0, rule.workers), np.bool_)
    travel_s = np.zeros(rounds)
    rows = _rows(law, rule.workers, rounds, seed, load)
    for i, step in enumerate(recursion(rows, closing, stragglers, travel_s, travel_s)):
        decided_s[i], ended_s[i] = step.decided_s, step.ended_s
        if asks_who:
            answered[i] = step.used
    return SampledRounds(decided_s, ended_s, answered)


def _rows(law: DrawnLaw, workers: int, rounds: int, seed: int, load: float) -> Iterator[Floats]:
    """Yield the durations of each round, in one array that is used again."""
    fill, row = durations(law, seed, workers), np.empty(workers)
    for draw in range(rounds):
        fill(draw, load, row)
        yield row


@dataclass(frozen=True, eq=False)
class SampledPushes:
    """The first pushes of one sampled run, in the order of time and worker.

    Attributes
    ----------
    at_s : ndarray of float64, shape (pushes,)
        When each arrives, in seconds from the start, ascending.
    worker : ndarray of int64, shape (pushes,), or (0,) if nobody asked
        Whose each is.
    updates_s : ndarray of float64, shape (updates,)
        When the parameters change: with each push, or where a barrier works in step with the last of all workers.
    """

    at_s: Floats
    worker: NDArray[np.int64]
    updates_s: Floats

    @property
    def mean_and_error_s(self) -> tuple[float, float]:
        """Mean seconds per update and its standard error; see :func:`mean_and_error`."""
        return mean_and_error(self.updates_s)


def push_times(
    law: DrawnLaw,
    barrier: StartBarrier,
    workers: int,
    pushes: int,
    seed: int = 0,
    *,
    load: float = 1.0,
    asks_who: bool = False,
) -> SampledPushes:
    """Return when the first pushes of one run arrive.

    Parameters
    ----------
    law : DrawnLaw
        Law of the workers' times.
    barrier : StartBarrier
        ``BSP()``, ``SSP(s)`` or ``ASP()`` of ``emuml.protocols.async_updates``.
    workers, pushes : int
        How many, > 0. All iterations that the fastest worker begins until then are drawn for all workers.
    seed : int
        Seed of the experiment.
    load : float
        Of each worker.
    asks_who : bool
        Whether to tell whose pushes they are, which takes a slower sort.

    Raises
    ------
    UserError, RunFailed
        If an argument is none, or the law does not know so many workers or draws.

    Examples
    --------
    >>> from emuml.cluster import Constant
    >>> from emuml.protocols.async_updates import ASP
    >>> push_times(Constant(2.0), ASP(), workers=2, pushes=5, asks_who=True).worker
    array([0, 1, 0, 1, 0])
    """
    for value, where in ((workers, "workers"), (pushes, "pushes")):
        arguments.check_integer(value, where, 1)
    arguments.check_number(load, "load", above=0.0)
    if barrier.slack is not None:
        arguments.check_integer(barrier.slack, "slack", 0)
    finish = _iterations(law, barrier.slack, workers, pushes, seed, load)
    if asks_who:
        # Worker by worker, so that the stable sort leaves equal times in the order of the workers.
        by_worker = np.ascontiguousarray(finish.T).ravel()
        order = np.argsort(by_worker, kind="stable")[:pushes]
        at_s, worker = by_worker[order], order // len(finish)
    else:
        flat = finish.ravel()
        at_s, worker = np.sort(flat[flat <= _nth(finish, pushes)])[:pushes], np.empty(0, np.int64)
    return SampledPushes(at_s, worker, at_s[workers - 1 :: workers] if barrier.in_step else at_s)


def _iterations(law: DrawnLaw, slack: int | None, workers: int, pushes: int, seed: int, load: float) -> Floats:
    """Return when each worker finishes its iterations, shape (iterations, workers): all that end by so many pushes."""
    fill, start = durations(law, seed, workers), np.zeros(workers)
    finish = np.empty((ceil(pushes / workers) + 1, workers))
    slowest: list[float] = []  # when all have finished an iteration
    last_s, looks_at = np.inf, ceil(pushes / workers)  # the last push comes no later; when to look again
    c = 0
    while start.min() < last_s:
        if c == len(finish):
            finish = np.concatenate([finish, np.empty((c // 2 + 1, workers))])
        try:
            fill(c, load, finish[c])
        except RunFailed:  # draws end: fine if what follows comes after the last push
            if c * workers >= pushes and start.min() >= _nth(finish[:c], pushes):
                break
            raise
        finish[c] += start
        slowest.append(float(finish[c].max()))
        c += 1
        start = finish[c - 1]
        if slack is not None and c > slack:
            start = np.maximum(start, slowest[c - slack - 1])
        if c >= looks_at:
            last_s, looks_at = _nth(finish[:c], pushes), c + c // 32 + 1
    return finish[:c]


def _nth(finish: Floats, pushes: int) -> float:
    """Return the time of the last of so many pushes, among those that are known."""
    return float(np.partition(finish, pushes - 1, axis=None)[pushes - 1])
