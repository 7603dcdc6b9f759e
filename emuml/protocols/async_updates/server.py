"""A server of asynchronous training: holds the table, applies updates, and lets workers read when they may.

Each of several servers does so for its own slice of the parameters, by its own clocks. The first one publishes: it
gathers the slices of each round, and those of the last one before it stops.

1. Each (worker, clock) is applied once: an update counts only if its clock is the number of updates that its worker has
   had applied.
2. At one instant the push is counted, an update that it completes is applied, and then the pusher reads.
3. Pushes that belong to one step are added in the order of workers, never of arrival, and were computed from the
   parameters before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from emuml.lazy import combine
from emuml.message import Array
from emuml.node import Node, NodeId, PeerState
from emuml.parameters import ParameterBlocks
from emuml.protocols.async_updates.barriers import Barrier
from emuml.protocols.async_updates.gathering import Gathering
from emuml.protocols.async_updates.messages import Finish, Place, Read, Slice, Update, View
from emuml.protocols.async_updates.problem import SharedProblem
from emuml.protocols.async_updates.slices import slice_of
from emuml.roster import Roster

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context

OnLost = Literal["wait", "evict"]


class Server(Node):
    """Applies pushes to its part of the table and answers reads under a barrier."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"worker", "server"})
    messages = (Read, Place, View, Update, Slice, Finish)

    def __init__(self, barrier: Barrier, workload: SharedProblem, roster: Roster, on_lost: OnLost) -> None:
        self.barrier, self.workload, self.stop, self.on_lost = barrier, workload, roster.stop, on_lost
        self.workers = len(roster.of("worker"))
        self.by_slowest = type(barrier).may_start is Barrier.may_start  # other barriers look at every clock

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin with the initial parameters; workers ask."""
        others = ctx.peers("server")
        whole = self.workload.initial
        mine = slice_of(ctx.id.index, len(others) + 1, whole.shape[0])
        self.table = ParameterBlocks(whole[mine] if others else whole)
        self.table.state = tuple(part[mine] for part in self.workload.start()) if others else self.workload.start()
        self.first = min((ctx.id, *others))
        self.gathering = Gathering(ctx.id, others)
        self.completed = [0] * self.workers
        self.evicted: set[int] = set()
        self.find_slowest()
        self.waiting: dict[int, tuple[int, float]] = {}  # worker -> for which iteration, since when
        self.newly: list[int] = []  # who waits and has not been looked at
        self.together: dict[int, Update] = {}
        self.pushes = self.skipped = self.reported = self.promised = 0
        self.ended = False
        self.count_anew()
        if ctx.id == self.first:
            ctx.publish(0, whole)

    def count_anew(self) -> None:
        """Start counting what the next log reports."""
        self.staleness: dict[int, int] = {}
        self.leads: dict[int, int] = {}
        self.applied: dict[int, int] = {}
        self.blocked: dict[int, float] = {}
        self.blocked_s = 0.0

    @property
    def members(self) -> list[int]:
        """Clocks of the workers that count."""
        if not self.evicted:
            return self.completed
        return [clock for worker, clock in enumerate(self.completed) if worker not in self.evicted]

    def find_slowest(self) -> None:
        """Note the least clock of the workers that count, and how many are there: it moves when the last one does."""
        members = self.members
        self.slowest = min(members, default=0)
        self.at_slowest = members.count(self.slowest)
        self.has_moved = True  # since the last look at all who wait

    def on_message(self, ctx: Context, sender: NodeId, message: Read | Update | Slice | Finish) -> None:
        """Take what workers push and want, and what other servers hold."""
        if isinstance(message, Slice):
            self.gathering.add(message.round, sender, message.value)
            self.publish(ctx)
        elif isinstance(message, Finish):
            self.ended = True
            ctx.send(self.first, Slice(message.round, self.table.values))
        else:
            self.from_worker(ctx, sender.index, message)

    def from_worker(self, ctx: Context, worker: int, message: Read | Update) -> None:
        """Apply a push that is new, note who waits to read, and let those read who may."""
        if isinstance(message, Read) and message.clock < 0 and self.gathering.is_shared:
            ctx.send(NodeId("worker", worker), Place(self.completed[worker]))
        elif isinstance(message, Read):
            self.wants(ctx, worker, message.clock)
        elif message.life == ctx.incarnation:
            # Who was thought dead may push what a step has gone on without: it joins the others, its push is skipped.
            is_late = self.barrier.in_step and message.version != self.table.version
            if message.clock == self.completed[worker] and not (is_late or self.ended):
                self.take(ctx, worker, message)
            # Also who does an old iteration again, for a server that lost it, has to read here to go on.
            is_old = message.clock + 1 < self.completed[worker] and self.gathering.is_shared
            rejoins = is_late and worker in self.evicted
            if message.reads and (message.clock + 1 == self.completed[worker] or is_old or rejoins or self.ended):
                self.wants(ctx, worker, message.clock + 1)
        self.release(ctx)

    def wants(self, ctx: Context, worker: int, clock: int) -> None:
        """Note that a worker waits; one that was evicted comes back no later than the slowest of the others."""
        if worker in self.evicted:
            joined = max(self.completed[worker], self.earliest())
            self.skipped += joined - self.completed[worker]
            self.completed[worker] = joined
            self.evicted.discard(worker)
            self.find_slowest()
            clock = joined
        since_s = self.waiting.get(worker, (clock, ctx.now))[1]
        self.waiting[worker] = (self.completed[worker] if clock < 0 else clock), since_s
        self.newly.append(worker)

    def earliest(self) -> int:
        """Return the iteration that whoever comes back may join; if nobody counts, where the furthest held them.

        The furthest may be alive, and go on as far as the last view lets it.
        """
        if self.members:
            return min(self.members)
        return 0 if self.barrier.slack is None else max(max(self.completed) - self.barrier.slack, self.promised)

    def take(self, ctx: Context, worker: int, update: Update) -> None:
        """Count a push, and apply what it completes."""
        if self.completed[worker] == self.slowest and worker not in self.evicted:
            self.at_slowest -= 1
        self.completed[worker] += 1
        if not self.at_slowest:
            self.find_slowest()
        self.pushes += 1
        if self.barrier.in_step:
            self.together[worker] = update
            self.step_together(ctx)
        else:
            self.apply(ctx, {worker: update})

    def step_together(self, ctx: Context) -> None:
        """Apply the pushes of one iteration once every worker that counts has pushed."""
        missing = set(range(self.workers)) - self.evicted - self.together.keys()
        if self.together and not missing:
            updates = {worker: self.together[worker] for worker in sorted(self.together)}
            self.together = {}
            self.apply(ctx, updates)

    def apply(self, ctx: Context, updates: dict[int, Update]) -> None:
        """Make one update of the table with these workers' pushes, and see whether a round or the training is over."""
        values: list[Array] = [update.value for update in updates.values()]
        for worker, update in updates.items():
            self.applied[worker] = self.applied.get(worker, 0) + 1
            lag = self.table.version - update.version
            self.staleness[lag] = self.staleness.get(lag, 0) + 1
        push = values[0] if len(values) == 1 else combine([1.0] * len(values), values)
        state, after = self.workload.apply(
            self.table.state, self.table.values, push, next(iter(updates.values())).clock
        )
        self.table.on_step(after, state)
        rounds = self.table.version if self.barrier.in_step else self.pushes // self.workers
        if ctx.id == self.first:
            self.ended = self.stop.reached(rounds, self.table.version, ctx.now)
        if rounds > self.reported:
            self.report(ctx, rounds)
        elif self.ended:  # in the middle of a round
            self.gathering.finish(ctx, rounds + 1)
            self.report(ctx, rounds + 1)

    def release(self, ctx: Context) -> None:
        """Send views to those who wait and may start, in their order.

        When training is over for this server, nobody is held back any more: another one may have started again, and
        needs the workers to catch up.
        """
        if self.ended and not self.gathering.is_shared:
            return
        for worker in self.candidates():
            clock, since_s = self.waiting[worker]
            if self.ended or self.may_start(clock):
                del self.waiting[worker]
                waited_s = ctx.now - since_s
                self.blocked_s += waited_s
                self.blocked[worker] = self.blocked.get(worker, 0.0) + waited_s
                lead = clock - self.slowest
                self.leads[lead] = self.leads.get(lead, 0) + 1
                self.promised = max(self.promised, self.slowest)
                self.show(ctx, worker, clock)

    def candidates(self) -> list[int]:
        """Return those who wait and may start now: who just asked, and everybody once the slowest has moved."""
        newly, self.newly = self.newly, []
        if self.ended or self.has_moved or not self.by_slowest:
            self.has_moved = False
            return sorted(self.waiting)
        return [worker for worker in sorted(set(newly)) if worker in self.waiting]

    def may_start(self, clock: int) -> bool:
        """Tell whether the barrier lets an iteration start."""
        if self.by_slowest:
            return not self.at_slowest or self.barrier.admits(clock, self.slowest)
        return self.barrier.may_start(clock, self.members)

    def show(self, ctx: Context, worker: int, clock: int) -> None:
        """Send a worker the parameters for its next iteration."""
        view = View(ctx.incarnation, clock, self.table.version, self.slowest, self.table.values)
        ctx.send(NodeId("worker", worker), view)

    def report(self, ctx: Context, round: int) -> None:
        """Note what a round was like and what it came to; rounds are counted from 1."""
        log = {
            "round": round,
            "updates": self.table.version,
            "staleness_mean": _mean(self.staleness),
            "staleness_max": max(self.staleness, default=0),
            "staleness": _text(self.staleness),
            "lead": _text(self.leads),
            "spread": max(self.completed) - self.slowest,
            "blocked_s": self.blocked_s,
            "evicted": len(self.evicted),
            "skipped": self.skipped,
            "worker_updates": _text(self.applied),
            "worker_blocked_s": _text({worker: total_s for worker, total_s in self.blocked.items() if total_s}),
        }
        self.count_anew()
        self.reported = round
        if ctx.id != self.first:
            ctx.send(self.first, Slice(round, self.table.values))
            return
        self.gathering.add(round, ctx.id, self.table.values, log)
        self.publish(ctx)

    def publish(self, ctx: Context) -> None:
        """Log and publish the rounds whose parameters are whole, in their order; stop after the last."""
        for round, log, parameters in self.gathering.whole():
            ctx.log(**log)
            ctx.publish(round, parameters)
            if self.ended and round == self.reported:
                ctx.stop(f"{round} rounds done")

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Wait for a worker that is down, or go on without it, as was asked for."""
        worker = peer.index
        if peer.role == "server":
            if peer == self.first and state in (PeerState.UP, PeerState.RESTARTED) and self.reported:
                ctx.send(peer, Slice(self.reported, self.table.values))  # what was sent before may be lost
            return
        if state is PeerState.RESTARTED:
            self.waiting.pop(worker, None)  # its former life waited
        elif state is PeerState.DOWN and self.on_lost == "evict":
            self.evicted.add(worker)
            self.find_slowest()
            self.waiting.pop(worker, None)
            self.step_together(ctx)
            self.release(ctx)

    def waiting_for(self) -> str:
        """Name the workers that hold the others back, or the servers whose slices are missing."""
        if self.ended:
            return self.gathering.waiting_for()
        slowest = self.slowest
        behind = [w for w, clock in enumerate(self.completed) if clock == slowest and w not in self.evicted]
        shown = ", ".join(f"worker-{w}" for w in behind[:8])
        return f"updates of iteration {slowest} from {shown}{' ...' if len(behind) > 8 else ''}"


def _mean(counts: Mapping[int, int]) -> float:
    return sum(value * times for value, times in counts.items()) / max(sum(counts.values()), 1)


def _text(counts: Mapping[int, float]) -> str:
    """Return a histogram as text: ``0:12 1:3`` for twelve zeros and three ones, or for amounts of workers 0 and 1."""
    return " ".join(f"{value}:{counts[value]!r}" for value in sorted(counts))
