"""The least servers that array tiers can drive: they decide and count, and train nothing."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.simpy_idiom import Clocks
from emuml import Message, Node, NodeId, Task
from emuml.pushes import PushNodes
from emuml.rounds import Answers, RoundNodes
from emuml.shapes import StopRule, Tracker

SERVER = NodeId("server", 0)


class Work(Message):
    """What to do."""

    round: int


class Asker(Node):
    """Asks for one round after the other: a handler for each round."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"worker"})
    messages = (Work,)

    def __init__(self, rounds: int) -> None:
        self.rounds, self.round, self.late = rounds, 0, 0

    def on_start(self, ctx: Any, saved: Any) -> None:
        """Begin."""
        ctx.broadcast("worker", Work(self.round))

    def answered(self, ctx: Any, answers: Answers, late: int) -> None:
        """Go on."""
        self.round += 1
        self.late += late
        if self.round == self.rounds:
            ctx.stop("done")
        else:
            ctx.broadcast("worker", Work(self.round))


def nothing() -> NDArray[np.float64]:
    """Return the result of every task."""
    return np.zeros(1)


def _task(question: Work, worker: int) -> Task:
    return Task(nothing, (), 1.0, (1,), draw=question.round)


def asking(rule: StopRule, rounds: int) -> RoundNodes:
    """Return nodes of rounds that a rule closes; stragglers are cancelled."""

    def ones(question: Work) -> NDArray[np.float64]:
        return np.ones(rule.workers)

    return RoundNodes(SERVER, partial(Asker, rounds), rule, "cancel", _task, lambda question, result: question, ones)


class OneByOne(StopRule):
    """Another rule, of which only its tracker is known: it is asked arrival by arrival.

    Parameters
    ----------
    of : StopRule
    """

    def __init__(self, of: StopRule) -> None:
        self.of, self.workers = of, of.workers

    def tracker(self) -> Tracker:
        """Return a tracker for one new round."""
        return self.of.tracker()


class Barrier(Node):
    """Counts pushes and lets workers start: a handler for each push."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"worker"})
    messages = (Work,)

    def __init__(self, workers: int, staleness: int, pushes: int) -> None:
        self.barrier, self.left = Clocks(workers, staleness), pushes

    def asked(self, ctx: Any, worker: int, start: Any) -> None:
        """Let everybody begin."""
        start(worker, 0, 0)

    def pushed(self, ctx: Any, worker: int, reads: bool, start: Any) -> None:
        """Count, and let those start who may."""
        for freed in self.barrier.push(worker):
            clock = self.barrier.clocks[freed]
            start(freed, clock, clock)
        self.left -= 1
        if not self.left:
            ctx.stop("done")

    def up_bytes(self, worker: int, clock: int, reads: bool) -> int:
        """Return that messages have no size."""
        return 0

    def down_bytes(self, worker: int, clock: int) -> int:
        """Return that messages have no size."""
        return 0


def pushing(workers: int, staleness: int, pushes: int) -> PushNodes:
    """Return nodes of pushes under stale synchronous parallel."""
    return PushNodes(SERVER, partial(Barrier, workers, staleness, pushes), lambda: np.ones(workers))
