"""How long asynchronous training will take, and how many pushes: computed where delays are certain, else simulated.

Of trainings that are too long for that, the first rounds are, and continued. A round is as many pushes as workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from emuml.experiment.forecast import (
    LEAST_TRAININGS,
    MOST_TRAININGS,
    certain_delays,
    dependence,
    drawing,
    drawn,
    longer,
    source,
)
from emuml.experiment.pushing import Pace, Pushed, pushed
from emuml.experiment.training import Floats, Range, Training
from emuml.stopping import AnyOf, Rounds, Seconds, StopCondition, Updates
from emuml.streams import generator

_ITERATIONS_MAX, _ENTRIES_MAX = 20_000, 1_500_000


class Goal(NamedTuple):
    """When a training ends: with so many pushes, or with the first update at or after a time, in seconds."""

    pushes: int | None
    limit_s: float | None


@dataclass(frozen=True, eq=False)
class Found:
    """What was computed of trainings.

    Attributes
    ----------
    at_s, pushes : ndarray of float64, shape (trainings, ends)
        Time and pushes at the end of each of the first rounds, or at the ends of the trainings only.
    run : Pushed
    is_certain : bool
        Whether there is no chance in it.
    """

    at_s: Floats
    pushes: Floats
    run: Pushed
    is_certain: bool


@dataclass(frozen=True)
class Forecast:
    """What is to be expected of asynchronous training.

    Attributes
    ----------
    pushes : float
        On average.
    ends : int
        Of how many ends the totals in ``found`` are to be continued to.
    duration_s : Range
    is_by_time, is_cut : bool
        Whether a time limit ends it, and whether only its first rounds were computed.
    detail : str
    """

    pushes: float
    ends: int
    duration_s: Range
    is_by_time: bool
    is_cut: bool
    detail: str


def goal_of(stop: StopCondition, workers: int, in_step: bool, scale: float) -> Goal:
    """Return when a training ends; ``scale`` is how much slower than emulated time its clock is."""
    pushes, limits_s = [], []
    for part in _parts(stop):
        if isinstance(part, Rounds):
            pushes.append(part.count * workers)
        elif isinstance(part, Updates):
            pushes.append(part.count * (workers if in_step else 1))
        elif isinstance(part, Seconds):
            limits_s.append(part.limit_s / scale)
    return Goal(min(pushes, default=None), min(limits_s, default=None))


def _parts(stop: StopCondition) -> Iterator[StopCondition]:
    if isinstance(stop, AnyOf):
        for part in stop.conditions:
            yield from _parts(part)
    else:
        yield stop


def forecast(training: Training, goal: Goal, found: Found) -> Forecast:
    """Return what follows from what was computed."""
    trainings, ends = found.at_s.shape
    what = source(training) if found.is_certain else f"{trainings} simulated trainings"
    computed = float(found.pushes[:, -1].mean())
    is_by_pushes = goal.pushes is not None and bool(np.all(found.pushes[:, -1] == goal.pushes))
    if is_by_pushes or (ends == 1 and goal.limit_s is not None):
        least_s = 0.0 if is_by_pushes or goal.limit_s is None else goal.limit_s
        duration_s = longer(found.at_s, ends).within(least_s, np.inf)
        return Forecast(computed, ends, duration_s, not is_by_pushes, False, f"{what}, push by push")
    return _continued(training, goal, found, what)


def _continued(training: Training, goal: Goal, found: Found, what: str) -> Forecast:
    """Return the forecast of a training of which the first rounds were computed."""
    known, workers = found.at_s.shape[1], training.workers
    round_s = longer(found.at_s, known).mean / known
    pushes, is_by_time = float(goal.pushes or np.inf), False
    if goal.limit_s is not None and goal.limit_s < pushes / workers * round_s:
        pushes, is_by_time = workers * goal.limit_s / round_s, True
    ends = ceil(pushes / workers)
    duration_s = longer(found.at_s, ends)
    if is_by_time and goal.limit_s is not None:
        duration_s = Range(goal.limit_s, goal.limit_s, goal.limit_s + round_s)
    detail = f"{known:,} rounds of {what}, continued to {ends:,}"
    return Forecast(pushes, ends, duration_s, is_by_time, True, detail)


# Computed and simulated trainings


def find(pace: Pace, training: Training, goal: Goal) -> Found | None:
    """Return what is computed or simulated, or None if recorded delays end too early."""
    workers = training.workers
    if certain_delays(training, 1) is not None:
        most = max(min(_ITERATIONS_MAX, _ENTRIES_MAX // workers), 2)
        extent = getattr(training.law, "extent", (None,))[0]
        of = _certain(training, min(most, extent or most))
        return _ended(pace, workers, goal, of, most, is_certain=True, is_short=extent is not None and extent < most)
    draws = generator(training.roster.seed, "", "plan")
    most = max(min(_ITERATIONS_MAX, _ENTRIES_MAX // workers) // LEAST_TRAININGS, 2)
    probe = _ended(pace, workers, goal, _drawn(training, draws, 1), most, is_certain=False)
    assert probe is not None
    iterations = max(probe.pushes[0, -1] / workers, 1.0)
    affordable = min(_ITERATIONS_MAX, _ENTRIES_MAX // workers) / iterations
    trainings = min(max(int(affordable), LEAST_TRAININGS), MOST_TRAININGS)
    return _ended(pace, workers, goal, _drawn(training, draws, trainings), most, is_certain=False)


def _certain(training: Training, most: int) -> Callable[[int], Floats]:
    def of(iterations: int) -> Floats:
        delays = certain_delays(training, min(iterations, most))
        assert delays is not None
        return delays[:, None, :]

    return of


def _drawn(training: Training, draws: np.random.Generator, trainings: int) -> Callable[[int], Floats]:
    workers = training.workers
    known = np.empty((0, trainings, workers))
    each = [drawing(training, draws) for _ in range(trainings)] if dependence(training) else []

    def of(iterations: int) -> Floats:
        nonlocal known
        first, count = len(known), max(iterations - len(known), 0)
        if each:
            more = np.stack([delays(first, count) for delays in each], axis=1)
        else:
            more = drawn(training, draws, count * trainings).reshape(-1, trainings, workers)
        known = np.concatenate([known, more])
        return known

    return of


def _ended(
    pace: Pace,
    workers: int,
    goal: Goal,
    delays: Callable[[int], Floats],
    most: int,
    is_certain: bool,
    is_short: bool = False,
) -> Found | None:
    """Return trainings up to their ends, or up to ``most`` rounds if that is too far."""
    iterations, rounds = 16, None if goal.pushes is None else min(-(-goal.pushes // workers), most)
    if rounds is not None:
        iterations = rounds + min(pace.slack or 0, 64) + (0 if pace.slack == 0 else 8 + 2 * int(rounds**0.5))
    while True:
        run = pushed(pace, delays(iterations))
        for is_whole in (True, False):
            pushes = _pushes(run, workers, goal, pace.in_step, None if is_whole else most)
            at_s = None if pushes is None else np.take_along_axis(run.arrivals_s, pushes - 1, axis=1)
            if pushes is not None and at_s is not None and np.all(at_s[:, -1] <= run.known_s):
                return Found(at_s, pushes.astype(np.float64), run, is_certain)
        if is_short and len(delays(iterations)) < iterations:
            return None
        iterations += iterations // 2 + 1


def _pushes(run: Pushed, workers: int, goal: Goal, in_step: bool, most: int | None) -> Any:
    """Return after how many pushes each round of the trainings ends, or each training if that is a matter of time.

    ``most`` rounds are enough if it is given. None if more must be computed.
    """
    trainings, known = run.arrivals_s.shape
    if most is None and goal.limit_s is not None:
        step = workers if in_step else 1
        steps = [np.searchsorted(arrivals[step - 1 :: step], goal.limit_s) + 1 for arrivals in run.arrivals_s]
        pushes = step * np.array(steps)[:, None]
        if goal.pushes is not None:
            pushes = np.minimum(pushes, goal.pushes)
        return pushes if pushes.max() <= known else None
    last = goal.pushes if most is None else min(goal.pushes or most * workers, most * workers)
    if last is None or last > known:
        return None
    ends = np.append(np.arange(workers, last, workers), last)
    return np.broadcast_to(ends, (trainings, len(ends)))
