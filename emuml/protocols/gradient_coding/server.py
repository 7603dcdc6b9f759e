"""The server of gradient coding: asks, decides when the answers suffice, decodes, steps, and asks again.

A round *closes* when its stop rule says so: the answers that are there are decoded and the step is taken. The next one
opens at once, or, with ``"wait-all"``, when every worker has answered. Sums are formed in worker order.

With a deadline a round also closes by the clock. If nobody has answered, that is a step of no gradient, and logged.
Servers of codes whose answers must be looked at override ``count``, ``decode`` and ``notes``.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from emuml.deadlines import NO_DEADLINE, Deadline
from emuml.message import Array, Message
from emuml.node import Node, NodeId, PeerState
from emuml.parameters import ParameterBlocks
from emuml.protocol import Problem
from emuml.protocols.gradient_coding.codes.seam import BuiltCode, Decoding
from emuml.protocols.gradient_coding.messages import Gradient, Parameters
from emuml.roster import Roster
from emuml.rounds import Answers
from emuml.shapes import Stragglers

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context


class Server(Node):
    """Asks all workers for coded sums, decodes the answers, takes a step, and asks again."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"worker"})
    messages: ClassVar[tuple[type[Message], ...]] = (Gradient, Parameters)

    def __init__(
        self,
        code: BuiltCode,
        workload: Problem,
        roster: Roster,
        stragglers: Stragglers = "cancel",
        deadline: Deadline = NO_DEADLINE,
    ) -> None:
        self.code, self.workload, self.stop = code.of(workload.initial.shape), workload, roster.stop
        self.rule, self.stragglers, self.deadline = code.stop_rule(), stragglers, deadline

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin with the initial parameters."""
        self.parameters = ParameterBlocks(self.workload.initial)
        self.parameters.state = self.workload.start()
        self.down: set[int] = set()
        self.lost_rounds = self.stale = 0
        self.round = 0
        ctx.publish(0, self.parameters.values)
        self.open(ctx)

    def open(self, ctx: Context) -> None:
        """Ask everybody for the next round."""
        self.tracker = self.rule.tracker()
        self.answers: dict[int, Array] = {}
        self.idle = set(self.down)
        self.closed = self.held = False
        self.opened_s, self.due_s = ctx.now, self.deadline.due_s(ctx.now)
        ctx.broadcast("worker", self.question(ctx))
        if self.deadline.after_s is not None:
            ctx.set_timer("deadline", self.deadline.after_s)

    def question(self, ctx: Context) -> Parameters:
        """Return the question of the open round."""
        return Parameters(ctx.incarnation, self.round, self.parameters.values)

    def on_message(self, ctx: Context, sender: NodeId, message: Gradient) -> None:
        """Take an answer to the open round; one to a closed round or a former life changes no parameters."""
        worker = sender.index
        if ctx.now >= self.due_s:  # at this instant; the timer is about to fire
            self.overdue(ctx)
        if (message.life, message.round) != (ctx.incarnation, self.round):
            self.stale += 1
        elif self.closed:
            self.stale += worker not in self.idle
            self.is_idle(ctx, worker)
        elif worker not in self.answers:
            self.idle.add(worker)
            self.count(worker, message.value)
            self.close_if_decided(ctx)
            if len(self.answers) == 1 and not self.closed:
                self.allow_longer(ctx)

    def count(self, worker: int, value: Array) -> None:
        """Take the first answer of a worker to the open round."""
        self.answers[worker] = value
        self.tracker.arrived(worker)

    def allow_longer(self, ctx: Context) -> None:
        """Set the deadline that follows from the time of the first answer, if it is the earlier one."""
        more_s = self.deadline.more_s(ctx.now - self.opened_s)
        if more_s > 0.0 and ctx.now + more_s < self.due_s:
            self.due_s = ctx.now + more_s
            ctx.set_timer("deadline", more_s)

    def on_timer(self, ctx: Context, name: str) -> None:
        """Close a round that is due."""
        if not self.closed and ctx.now >= self.due_s:
            self.overdue(ctx)

    def overdue(self, ctx: Context) -> None:
        """Close the round with what is there, unless nobody could answer: then wait for whoever comes back."""
        if len(self.down) < self.code.workers or self.answers:
            self.close(ctx, by_clock=True)
        else:
            self.due_s = inf

    def close_if_decided(self, ctx: Context) -> None:
        """Close the round if its rule says so, or if nobody who lives can add to it."""
        silent = sum(worker not in self.answers for worker in self.down)
        nobody_left = silent > 0 and len(self.answers) + silent == self.code.workers
        if self.tracker.closed or (nobody_left and self.answers):
            self.lost_rounds += not self.tracker.closed
            self.close(ctx)

    def close(self, ctx: Context, by_clock: bool = False) -> None:
        """Decode and step; what arrives from now on changes no parameters."""
        answers = Answers.of(self.answers)
        answers.by_clock = by_clock
        self.take(ctx, answers)

    def answered(self, ctx: Context, answers: Answers, late: int) -> None:
        """Close the round with the answers that its rule asks for; see :class:`emuml.rounds.RoundServer`."""
        self.stale += late
        if self.stragglers in ("wait-all", "carry-over"):  # in the others nobody is waited for
            self.idle.update(answers.workers.tolist())
        self.take(ctx, answers)

    def finished(self, ctx: Context, late: int) -> None:
        """Go on after the last of those who were waited for; see :class:`emuml.rounds.RoundServer`."""
        self.stale += late
        self.idle.update(range(self.code.workers))
        self.go_on(ctx)

    def take(self, ctx: Context, answers: Answers) -> None:
        """Make the step of these answers, and go on."""
        decoding = self.decode(answers)
        gradient = self.code.combine(answers, decoding)
        if gradient is None:
            gradient = np.zeros_like(self.parameters.values)
        self.arrivals = len(answers)
        state, values = self.workload.step(self.parameters.state, self.parameters.values, gradient, self.round)
        self.parameters.on_step(values, state)
        self.closed, self.closed_s, self.decoding = True, ctx.now, decoding
        self.is_overdue, self.due_s = answers.by_clock, inf
        if self.deadline:
            ctx.cancel_timer("deadline")
        if self.stragglers != "wait-all":
            self.report(ctx)
        self.go_on(ctx)

    def decode(self, answers: Answers) -> Decoding:
        """Return how the answers that close a round combine."""
        return self.code.decode(answers.workers)

    def notes(self) -> dict[str, float | str]:
        """Return what else is logged of a closed round."""
        return {"overdue": int(self.is_overdue)} if self.deadline else {}

    def go_on(self, ctx: Context) -> None:
        """Open the next round or stop, unless somebody has to finish first."""
        done = self.round + 1
        is_last = self.stop.reached(done, self.parameters.version, ctx.now)
        waits = self.stragglers == "wait-all" or (self.stragglers == "carry-over" and is_last)
        self.held = waits and len(self.idle) < self.code.workers
        if self.held:
            return
        if self.stragglers == "wait-all":
            self.report(ctx)
        if not is_last:
            self.round = done
            self.open(ctx)
            return
        if self.stragglers == "carry-over":
            ctx.log(drain_s=ctx.now - self.closed_s, stale=self.stale)
        ctx.stop(f"{done} rounds done")

    def is_idle(self, ctx: Context, worker: int) -> None:
        """Note that a worker has nothing left to do for the closed round."""
        self.idle.add(worker)
        if self.held:
            self.go_on(ctx)

    def report(self, ctx: Context) -> None:
        """Log the closed round, then publish its parameters; rounds are counted from 1."""
        times = {"decided_s": self.closed_s} if self.stragglers == "wait-all" else {}
        ctx.log(
            round=self.round + 1,
            arrivals=self.arrivals,
            covered=self.decoding.covered_groups.size,
            groups=len(self.code.groups),
            covered_set=_as_bits(self.decoding),
            decode_error=self.decoding.error,
            noise_gain=self.decoding.noise_gain,
            down=len(self.down),
            lost_rounds=self.lost_rounds,
            stale=self.stale,
            **times,
            **self.notes(),
        )
        self.stale = 0
        ctx.publish(self.round + 1, self.parameters.values)

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Go on without a worker that is down; ask one that came back."""
        worker = peer.index
        if state is PeerState.DOWN:
            self.down.add(worker)
            if self.closed:
                self.is_idle(ctx, worker)
            else:
                self.idle.add(worker)
                self.close_if_decided(ctx)
        elif state in (PeerState.UP, PeerState.RESTARTED):
            self.down.discard(worker)
            if not self.closed and worker not in self.answers:
                self.idle.discard(worker)
                ctx.send(peer, self.question(ctx))
            elif state is PeerState.RESTARTED:  # whatever its former life was asked for is gone
                self.is_idle(ctx, worker)
            elif self.held and worker not in self.answers:  # it lived on, and computes or says again what it has
                self.idle.discard(worker)
                ctx.send(peer, self.question(ctx))

    def waiting_for(self) -> str:
        """Name the workers whose answers are missing."""
        there = self.idle if self.held else self.answers.keys()
        missing = sorted(set(range(self.code.workers)) - there)
        shown = ", ".join(f"worker-{w}{' (down)' if w in self.down else ''}" for w in missing[:8])
        what = f"work on round {self.round + 1} to end on" if self.held else f"answers of round {self.round + 1} from"
        return f"{what} {shown}{' ...' if len(missing) > 8 else ''}"


def _as_bits(decoding: Decoding) -> str:
    """Return the decoded groups as a hexadecimal number: bit ``j`` stands for group ``j``."""
    covered = decoding.covered_groups
    if not covered.size:
        return "0x0"
    flags = np.zeros(int(covered[-1]) + 1, np.uint8)
    flags[covered] = 1
    return hex(int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little"))
