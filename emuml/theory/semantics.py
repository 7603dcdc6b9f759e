"""When rounds end on given delays, by the recursions that define what becomes of work on a closed round.

With ``t_i`` the end of round ``i``, ``D[i, w]`` the time worker ``w`` needs for it, and ``t_(-1) = 0``:

- ``"cancel"``: everybody starts at ``t_(i-1)``; work that is not done by ``t_i`` is dropped.
- ``"skip-stale"``: a worker that is free at ``f`` starts at ``max(t_(i-1), f)``; if that is not before ``t_i`` it never
  does round ``i``.
- ``"carry-over"``: everybody does every round, ``F[i, w] = max(t_(i-1), F[i-1, w]) + D[i, w]``.
- ``"wait-all"``: the decision falls as under ``"cancel"``, but the next round starts when the last worker is done.

On one matrix and for stop rules that more answers never undo, no round ends later under an earlier one of these. With a
deadline, which asks for times and not for who has answered, that need not be so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emuml.deadlines import NO_DEADLINE, Deadline
from emuml.errors import UserError
from emuml.selection import Closing
from emuml.shapes import StopRule, Stragglers
from emuml.theory import arguments

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RoundEnds:
    """When the rounds of one run end, in seconds from its start.

    Attributes
    ----------
    decided_s : ndarray of float64, shape (rounds,)
        When the stop rule was satisfied.
    ended_s : ndarray of float64, shape (rounds,)
        When the next round starts: the decision, or under ``"wait-all"`` the last answer.
    drained_s : float
        When all work that was ever begun is done, if nothing stops it after the last round.
    answered : ndarray of bool, shape (rounds, workers)
        Whose answers the decision used.
    sent : ndarray of int64, shape (rounds,)
        Answers to each round that left their workers, late ones and replicas included, until the run is over: at the
        last decision, or under ``"wait-all"`` and ``"carry-over"`` at the last answer.
    """

    decided_s: Floats
    ended_s: Floats
    drained_s: float
    answered: NDArray[np.bool_]
    sent: NDArray[np.int64]


def round_ends(
    delays: ArrayLike,
    rule: StopRule,
    stragglers: Stragglers,
    question_s: ArrayLike = 0.0,
    answer_s: ArrayLike = 0.0,
    deadline: Deadline = NO_DEADLINE,
) -> RoundEnds:
    """Return when each round ends if the workers take these times.

    Parameters
    ----------
    delays : array_like, shape (rounds, workers)
        Seconds of each worker for each round, finite and >= 0.
    rule : StopRule
        When a round may close; answers of one instant count in the order of the workers.
    stragglers : {"cancel", "skip-stale", "carry-over", "wait-all"}
        What becomes of work on a closed round.
    question_s, answer_s : array_like, shape () or (rounds,)
        Seconds that the parameters of a round travel to a worker, and its answer back, finite and >= 0.
    deadline : Deadline
        When a round closes by the clock.

    Raises
    ------
    UserError
        If the delays, the times of travel or the semantics are none.

    Examples
    --------
    >>> from emuml.shapes import Count
    >>> delays = [[1.0, 3.0], [1.0, 1.0], [4.0, 1.0]]
    >>> for stragglers in ("cancel", "skip-stale", "carry-over", "wait-all"):
    ...     print(round_ends(delays, Count(workers=2, count=1), stragglers).ended_s)
    [1. 2. 3.]
    [1. 2. 4.]
    [1. 2. 5.]
    [3. 4. 8.]
    """
    work = _checked(delays, rule.workers, stragglers)
    decided_s, ended_s = np.empty(len(work)), np.empty(len(work))
    answered, done_s = np.zeros(work.shape, np.bool_), np.empty(work.shape)
    asking_s, answering_s = (_travel_s(question_s, "question_s", len(work)), _travel_s(answer_s, "answer_s", len(work)))
    for i, step in enumerate(recursion(work, Closing(rule), stragglers, asking_s, answering_s, deadline)):
        decided_s[i], ended_s[i], answered[i] = step.decided_s, step.ended_s, step.used
        done_s[i] = np.where(step.is_done, step.finish_s, np.inf)
    last_s = float(ended_s[-1])
    drained_s = last_s if stragglers == "cancel" else float(step.free_s.max() + answering_s[-1])
    over_s = drained_s if stragglers in ("wait-all", "carry-over") else last_s
    return RoundEnds(decided_s, ended_s, drained_s, answered, np.count_nonzero(done_s <= over_s, axis=1))


class Step(NamedTuple):
    """One round of the recursions.

    Attributes
    ----------
    decided_s, ended_s : float
    used : ndarray of bool, shape (workers,)
        Whose answers the decision used.
    finish_s : ndarray of float64, shape (workers,)
        When each worker is done with this round, if it does its work.
    is_done : ndarray of bool, shape (workers,)
        Who does it.
    free_s : ndarray of float64, shape (workers,)
        When each worker is done with all that it has begun.
    """

    decided_s: float
    ended_s: float
    used: NDArray[np.bool_]
    finish_s: Floats
    is_done: NDArray[np.bool_]
    free_s: Floats


def recursion(
    work: Iterable[Floats],
    closing: Closing,
    stragglers: Stragglers,
    asking_s: Floats,
    answering_s: Floats,
    deadline: Deadline = NO_DEADLINE,
) -> Iterator[Step]:
    """Yield what happens in each round if the workers need these times, one row a round.

    ``asking_s`` and ``answering_s`` are the seconds that messages of each round travel, shape (rounds,).
    """
    opened_s, asked_s, free_s = 0.0, float(asking_s[0]), np.zeros(closing.rule.workers)
    for i, needed_s in enumerate(work):
        start_s = np.maximum(asked_s, free_s)
        finish_s = start_s + needed_s
        arrival_s = finish_s + answering_s[i]
        decided_s, used = closing.of(arrival_s)
        if deadline:
            decided_s, used, _ = deadline.close(opened_s, arrival_s, decided_s, used)
        if not np.isfinite(decided_s):  # a rule that nothing satisfies: the last answer ends a round
            decided_s = float(arrival_s.max())
        ended_s = float(arrival_s.max()) if stragglers == "wait-all" else decided_s
        opened_s, asked_s = ended_s, float(ended_s + asking_s[min(i + 1, len(asking_s) - 1)])
        is_done = _is_done(stragglers, start_s, finish_s, asked_s)
        if stragglers != "cancel":
            free_s = np.where(is_done, finish_s, free_s)
        yield Step(decided_s, ended_s, used, finish_s, is_done, free_s)


def _is_done(stragglers: Stragglers, start_s: Floats, finish_s: Floats, newer_s: float) -> NDArray[np.bool_]:
    """Return which workers do this round's work, when newer parameters reach them at ``newer_s``."""
    if stragglers == "cancel":
        return finish_s <= newer_s
    if stragglers == "skip-stale":
        return (start_s < newer_s) | (finish_s <= newer_s)  # the second for work that takes no time
    return np.ones(finish_s.shape, np.bool_)


def _checked(delays: ArrayLike, workers: int, stragglers: str) -> Floats:
    """Return the delays as an array, or say what is wrong."""
    arguments.check_stragglers(stragglers)
    work = np.asarray(delays, np.float64)
    if work.ndim != 2 or not len(work) or work.shape[1] != workers:
        raise UserError(f"got shape {work.shape}", "delays", f"shape (rounds, {workers})")
    return arguments.seconds(work, "delays")


def _travel_s(values: ArrayLike, where: str, rounds: int) -> Floats:
    """Return the seconds that messages of each round travel, or say what is wrong."""
    found = arguments.seconds(values, where)
    if found.shape not in ((), (rounds,)):
        raise UserError(f"got shape {found.shape}", where, f"shape () or ({rounds},)")
    return np.broadcast_to(found, rounds)
