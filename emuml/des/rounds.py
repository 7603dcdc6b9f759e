"""The array tier for rounds: all durations, arrivals and the decision of a round at once, one call of the server each.

Times are those of the event tier bit for bit, because each is made by the same additions in the same order. What the
event tier orders by schedule numbers is known here as long as work begins with its question: at one instant answers
arrive in the order in which they were finished, and that of equal times is the order of the workers. Where work
begins when a worker is through with older work, the order of equal times is not known: :class:`Unordered` is raised
when it matters, and the run belongs to the event tier.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from emuml import effects as fx
from emuml.cluster.cluster import Cluster, Network
from emuml.des.array_tier import ArrayTier, Unordered, most_at_once
from emuml.des.drawing import Drawing
from emuml.des.late import Late
from emuml.des.words import WordRounds
from emuml.errors import ContractError, Livelock
from emuml.lazy import Deferred
from emuml.message import Message, size_bytes
from emuml.outcome import LogSink, Observer
from emuml.roster import Roster
from emuml.rounds import Answers, RoundNodes
from emuml.selection import Closing

Floats = NDArray[np.float64]


class _Work(NamedTuple):
    """What the workers make of one question; arrays of shape (workers,), in seconds."""

    asked_s: float
    is_ready: NDArray[np.bool_] | None
    start_s: Floats | float
    finish_s: Floats
    left_s: Floats
    arrival_s: Floats

    def order(self) -> NDArray[np.int64]:
        """Return the workers by arrival; of one instant by finish, then by number.

        Raises
        ------
        Unordered
            If that does not tell who of one instant is first.
        """
        order = np.lexsort((self.finish_s, self.arrival_s))
        if self.is_ready is not None and not self.is_ready.all():
            times = self.arrival_s[order]
            tied = np.zeros(times.size, np.bool_)
            tied[1:] = times[1:] == times[:-1]
            tied[:-1] |= tied[1:]
            if not self.is_ready[order[tied]].all():
                raise Unordered("whose answers of one instant come first")
        return order


class RoundTier(ArrayTier):
    """One emulated run in rounds, without events of workers.

    Parameters
    ----------
    nodes : RoundNodes
    cluster : Cluster
    roster : Roster
    unit_cost : float
        Cost of a task of load 1.
    observers, log_sinks : sequences of callables
        As of the emulator.
    """

    def __init__(
        self,
        nodes: RoundNodes,
        cluster: Cluster,
        roster: Roster,
        unit_cost: float,
        observers: Sequence[Observer] = (),
        log_sinks: Sequence[LogSink] = (),
    ) -> None:
        assert isinstance(cluster.network, Network)
        super().__init__(nodes, roster, observers, log_sinks)
        self._nodes, self._network = nodes, cluster.network
        self._workers, self._unit_cost = cluster.workers, unit_cost
        self._closing, self._late = Closing(nodes.rule), Late()
        self._law, self._seed, self._seconds = cluster.compute, roster.seed, np.empty(cluster.workers)
        self._now = 0.0
        self._still = 0
        self._words: WordRounds | None = None
        self._asked: tuple[Message, float] | None = None  # and when it reaches the workers
        # Of each worker: when its link is free, and when it began and ends the work that it did last.
        self._link_free_s = None if self._network.bandwidth_bps is None else np.zeros(cluster.workers)
        never = np.full(cluster.workers if self._queues else 0, -np.inf)
        self._began_s, self._free_s = never, never

    @property
    def _queues(self) -> bool:
        """Whether workers finish older work before they begin what they are asked."""
        return self._nodes.stragglers in ("skip-stale", "carry-over")

    def now_s(self) -> float:
        """See :class:`ArrayTier`."""
        return self._now

    def serve(self) -> None:
        """See :class:`ArrayTier`."""
        while self.result.stopped is None:
            self._round()

    def ask(self, effect: fx.Effect) -> None:
        """Put a question on the links to all workers; the timer of a deadline is known without it."""
        if isinstance(effect, fx.SetTimer | fx.CancelTimer) and self._nodes.deadline:
            return
        if not isinstance(effect, fx.Broadcast) or self._asked is not None:
            super().ask(effect)
            return
        left_s, bandwidth_bps = self._now, self._network.bandwidth_bps
        if bandwidth_bps is not None:
            left_s += 8 * effect.size_bytes / bandwidth_bps  # nobody answers before the question before has left
        self._asked = effect.message, left_s + self._network.latency_s

    def _round(self) -> None:
        """Let everybody work on the question, hand over the answers that close the round, and see who is late."""
        if self._asked is None:
            raise ContractError(f"{self.server} neither asks nor stops, and nobody works")
        (question, asked_s), self._asked = self._asked, None
        draw = self._draw_of(question)
        closed = self._words.take(draw, asked_s) if self._words is not None else None
        if closed is not None:  # nobody is late: whatever is not used was not finished when it was cancelled
            self._pass(closed[0])
            self._hand_over(question, closed[1])
            return
        work = self._work_on(question, asked_s, draw)
        closed_s, is_used, by_clock = self._decide(work)
        self._pass(closed_s)
        self._hand_over(question, is_used, by_clock)
        if self.result.stopped is None:
            self._go_on(work, ~is_used)

    def _hand_over(self, question: Message, is_used: NDArray[np.bool_], by_clock: bool = False) -> None:
        answers = Answers.among(is_used, partial(self._value, question))
        answers.by_clock = by_clock
        self.step(fx.Handed("answered", (answers, self._count_late())))

    def _work_on(self, question: Message, asked_s: float, draw: int) -> _Work:
        self._drawing.fill(draw, self._seconds)
        is_ready, start_s = None, asked_s
        if self._queues:
            # Work that ends as the question arrives ends before it if it began before the question was sent.
            is_ready = (self._free_s < asked_s) | ((self._free_s == asked_s) & (self._began_s < self._now))
            start_s = np.maximum(asked_s, self._free_s)
        finish_s = left_s = np.add(start_s, self._seconds, out=self._seconds)
        if self._network.bandwidth_bps is not None:
            assert self._link_free_s is not None
            answer = self._nodes.answer(question, self._value(question, 0))
            left_s = np.maximum(finish_s, self._link_free_s) + 8 * size_bytes(answer) / self._network.bandwidth_bps
        arrival_s = left_s + self._network.latency_s if self._network.latency_s else left_s
        return _Work(asked_s, is_ready, start_s, finish_s, left_s, arrival_s)

    def _decide(self, work: _Work) -> tuple[float, NDArray[np.bool_], bool]:
        """Return when the round closes, whose answers close it, and whether that is by the clock.

        The order of arrivals matters where two arrive at that instant, and to rules that judge them one by one. It does
        not to a deadline.
        """
        closed_s, is_used = self._decide_by_rule(work)
        if self._nodes.deadline:
            return self._nodes.deadline.close(self._now, work.arrival_s, closed_s, is_used)
        return closed_s, is_used, False

    def _decide_by_rule(self, work: _Work) -> tuple[float, NDArray[np.bool_]]:
        if self._closing.has_parts:
            closed_s, is_used = self._closing.of(work.arrival_s)
            needs_all = self._closing.count == self._workers and not self._closing.groups
            if needs_all or np.count_nonzero(work.arrival_s == closed_s) == 1:
                return closed_s, is_used
        order = work.order()
        used = order[: self._nodes.rule.stop_index(order)]
        is_used = np.zeros(self._workers, np.bool_)
        is_used[used] = True
        return float(work.arrival_s[used[-1]]), is_used

    def _pass(self, now_s: float) -> None:
        """Let time pass, and see that it does."""
        self._still = self._still + 3 * self._workers if now_s == self._now else 0
        if self._still > most_at_once(self._workers):
            raise Livelock(now_s, self._still, self.life.describe())
        self._now = now_s

    def _go_on(self, work: _Work, is_late: NDArray[np.bool_]) -> None:
        """See what becomes of the work of those whose answers were not used."""
        if self._asked is None:  # the server waits for them
            self._wait(work, is_late)
            return
        newer_s = self._asked[1]
        if self._nodes.stragglers == "skip-stale":
            is_done = self._is_begun(work, newer_s)
        elif self._nodes.stragglers == "carry-over":
            is_done = np.ones(self._workers, np.bool_)
        else:
            is_done = work.finish_s <= newer_s
        self._late.add(work.arrival_s[is_done & is_late])
        if self._link_free_s is not None:
            self._link_free_s = np.where(is_done, work.left_s, self._link_free_s)
        if self._queues:
            self._began_s = np.where(is_done, work.start_s, self._began_s)
            self._free_s = np.where(is_done, work.finish_s, self._free_s)

    def _is_begun(self, work: _Work, newer_s: float) -> NDArray[np.bool_]:
        """Return who begins the work before newer parameters take its place."""
        assert work.is_ready is not None
        if newer_s == work.asked_s and np.any(~work.is_ready & (self._free_s == newer_s)):
            raise Unordered("whether work begins in a round that takes no time")
        begun: NDArray[np.bool_] = work.is_ready | (self._free_s < newer_s)
        return begun

    def _wait(self, work: _Work, is_late: NDArray[np.bool_]) -> None:
        if self._nodes.stragglers in ("cancel", "skip-stale") or not is_late.any():
            raise ContractError(f"{self.server} neither asks nor stops, and nobody finishes")
        self._late.add(work.arrival_s[is_late])
        self._now = float(work.arrival_s.max())
        self.step(fx.Handed("finished", (sum(self._late.take(self._now)),)))

    def _count_late(self) -> int:
        """Return how many late answers have come since the last decision.

        Those of this instant came before the decision where they were sent before the question came.
        """
        before, at = self._late.take(self._now)
        if at and (self._queues or self._nodes.deadline):
            raise Unordered("whether a late answer comes before the decision of its instant")
        return before + at

    def _value(self, question: Message, worker: int) -> Deferred:
        return Deferred(self._nodes.task(question, worker), "gradient", f"worker-{worker}")

    def _draw_of(self, question: Message) -> int:
        """Return the draw of everybody's duration; the first question tells what the tasks cost."""
        if self.result.events == 1:
            self._first = question
            is_instant = not self._network.latency_s and self._network.bandwidth_bps is None
            if is_instant and self._nodes.stragglers == "cancel" and not self._nodes.deadline:
                self._words = WordRounds.of(self._closing, self._law, self._seed, self._loads())
        draw = self._nodes.task(question, 0).draw
        if draw is None:
            raise ContractError("tasks of rounds name their draw, such as the round")
        return draw

    def _loads(self) -> Floats:
        return self._nodes.costs(self._first) / self._unit_cost

    @cached_property
    def _drawing(self) -> Drawing:
        return Drawing(self._law, self._seed, self._loads())


def why_not(nodes: RoundNodes, cluster: Cluster) -> str:
    """Return why this tier cannot serve such a run, or an empty string."""
    if not cluster.shares_nothing:
        return "messages wait for each other"
    if cluster.servers != 1:
        return f"there are {cluster.servers} servers"
    if cluster.cancel_lag_s and nodes.stragglers == "cancel":
        return "cancelled tasks free their slots late"
    return ""
