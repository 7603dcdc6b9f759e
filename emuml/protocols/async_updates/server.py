"""The server of asynchronous training: holds the table, applies updates, and lets workers read when they may.

1. Each (worker, clock) is applied once: an update counts only if its clock is the number of updates that its worker has
   had applied.
2. At one instant the push is counted, an update that it completes is applied, and then the pusher reads.
3. Pushes that belong to one step are added in the order of workers, never of arrival.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar, Literal

from emuml.lazy import combine
from emuml.message import Array
from emuml.node import Node, NodeId, PeerState
from emuml.parameters import ParameterBlocks
from emuml.protocols.async_updates.barriers import Barrier
from emuml.protocols.async_updates.messages import Read, Update, View
from emuml.protocols.async_updates.problem import SharedProblem
from emuml.roster import Roster

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context

OnLost = Literal["wait", "evict"]


class Server(Node):
    """Applies pushes to the table and answers reads under a barrier."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"worker"})
    messages = (Read, View, Update)

    def __init__(self, barrier: Barrier, workload: SharedProblem, roster: Roster, on_lost: OnLost) -> None:
        self.barrier, self.workload, self.stop, self.on_lost = barrier, workload, roster.stop, on_lost
        self.workers = len(roster.of("worker"))

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin with the initial parameters; workers ask."""
        self.table = ParameterBlocks(self.workload.initial)
        self.table.state = self.workload.start()
        self.completed = [0] * self.workers
        self.evicted: set[int] = set()
        self.waiting: dict[int, float] = {}  # worker -> since when
        self.together: dict[int, Update] = {}
        self.pushes = self.skipped = self.reported = 0
        self.ended = False
        self.count_anew()
        ctx.publish(0, self.table.values)

    def count_anew(self) -> None:
        """Start counting what the next log reports."""
        self.staleness: Counter[int] = Counter()
        self.leads: Counter[int] = Counter()
        self.blocked_s = 0.0

    @property
    def members(self) -> list[int]:
        """Clocks of the workers that count."""
        return [clock for worker, clock in enumerate(self.completed) if worker not in self.evicted]

    def on_message(self, ctx: Context, sender: NodeId, message: Read | Update) -> None:
        """Apply a push that is new, note who waits to read, and let those read who may."""
        worker = sender.index
        if isinstance(message, Read):
            self.wants(ctx, worker)
        elif message.life == ctx.incarnation:
            if message.clock == self.completed[worker]:
                self.take(ctx, worker, message)
            if message.reads and message.clock + 1 == self.completed[worker]:
                self.wants(ctx, worker)
        self.release(ctx)

    def wants(self, ctx: Context, worker: int) -> None:
        """Note that a worker waits; one that was evicted comes back no later than the slowest of the others."""
        if worker in self.evicted:
            clock = max([self.completed[worker], *([min(self.members)] if self.members else [])])
            self.skipped += clock - self.completed[worker]
            self.completed[worker] = clock
            self.evicted.discard(worker)
        self.waiting.setdefault(worker, ctx.now)

    def take(self, ctx: Context, worker: int, update: Update) -> None:
        """Count a push, and apply what it completes."""
        self.completed[worker] += 1
        self.pushes += 1
        if self.barrier.in_step:
            self.together[worker] = update
            self.step_together(ctx)
        else:
            self.apply(ctx, [update])

    def step_together(self, ctx: Context) -> None:
        """Apply the pushes of one iteration once every worker that counts has pushed."""
        missing = set(range(self.workers)) - self.evicted - self.together.keys()
        if self.together and not missing:
            updates = [self.together[worker] for worker in sorted(self.together)]
            self.together = {}
            self.apply(ctx, updates)

    def apply(self, ctx: Context, updates: list[Update]) -> None:
        """Make one update of the table, and see whether a round or the training is over."""
        values: list[Array] = [update.value for update in updates]
        self.staleness.update(self.table.version - update.version for update in updates)
        push = values[0] if len(values) == 1 else combine([1.0] * len(values), values)
        state, after = self.workload.apply(self.table.state, self.table.values, push, updates[0].clock)
        self.table.on_step(after, state)
        rounds = self.table.version if self.barrier.in_step else self.pushes // self.workers
        self.ended = self.stop.reached(rounds, self.table.version, ctx.now)
        if rounds > self.reported or self.ended:
            self.report(ctx, max(rounds, self.reported + 1))
        if self.ended:
            ctx.stop(f"{rounds} rounds done")

    def release(self, ctx: Context) -> None:
        """Send views to those who wait and may start, in their order."""
        if self.ended:
            return
        members = self.members
        slowest = min(members, default=0)
        for worker in sorted(self.waiting):
            clock = self.completed[worker]
            if worker not in self.together and self.barrier.may_start(clock, members):
                self.blocked_s += ctx.now - self.waiting.pop(worker)
                self.leads[clock - slowest] += 1
                view = View(ctx.incarnation, clock, self.table.version, slowest, self.table.values)
                ctx.send(NodeId("worker", worker), view)

    def report(self, ctx: Context, round: int) -> None:
        """Log what a round was like, then publish its parameters; rounds are counted from 1."""
        ctx.log(
            round=round,
            updates=self.table.version,
            staleness_mean=_mean(self.staleness),
            staleness_max=max(self.staleness, default=0),
            staleness=_text(self.staleness),
            lead=_text(self.leads),
            spread=max(self.completed) - min(self.members, default=0),
            blocked_s=self.blocked_s,
            evicted=len(self.evicted),
            skipped=self.skipped,
        )
        self.count_anew()
        self.reported = round
        ctx.publish(round, self.table.values)

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Wait for a worker that is down, or go on without it, as was asked for."""
        worker = peer.index
        if state is PeerState.RESTARTED:
            self.waiting.pop(worker, None)  # its former life waited
        elif state is PeerState.DOWN and self.on_lost == "evict":
            self.evicted.add(worker)
            self.waiting.pop(worker, None)
            self.step_together(ctx)
            self.release(ctx)

    def waiting_for(self) -> str:
        """Name the workers that hold the others back."""
        slowest = min(self.members, default=0)
        behind = [w for w, clock in enumerate(self.completed) if clock == slowest and w not in self.evicted]
        shown = ", ".join(f"worker-{w}" for w in behind[:8])
        return f"updates of iteration {slowest} from {shown}{' ...' if len(behind) > 8 else ''}"


def _mean(counts: Counter[int]) -> float:
    return sum(value * times for value, times in counts.items()) / max(counts.total(), 1)


def _text(counts: Counter[int]) -> str:
    """Return a histogram as text: ``0:12 1:3`` for twelve zeros and three ones."""
    return " ".join(f"{value}:{counts[value]}" for value in sorted(counts))
