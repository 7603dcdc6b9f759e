"""Wrong nodes of gradient coding, each with one decision changed; and legal ones that only talk more or wait longer."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np

from emuml import Message
from emuml.lazy import combine
from emuml.node import PeerState
from emuml.protocols.gradient_coding.messages import Gradient, Parameters
from emuml.protocols.gradient_coding.server import Server
from emuml.protocols.gradient_coding.worker import Worker


class Through:
    """A context that passes everything on; subclasses change one thing."""

    def __init__(self, ctx):
        self.ctx = ctx

    def __getattr__(self, name):
        return getattr(self.ctx, name)


class AnyRound(Server):
    def on_message(self, ctx, sender, message):
        super().on_message(ctx, sender, msgspec.structs.replace(message, round=self.round))


class AnswersTwice(Worker):
    """A legal worker that makes answers come twice: it repeats its answer after every UP (control E3)."""

    def on_peer(self, ctx, peer, state):
        if state is PeerState.UP and self.answer is not None:
            ctx.send(peer, self.answer)

    def on_computed(self, ctx, tag, result):
        super().on_computed(ctx, tag, result)
        ctx.send(self.server, self.answer)


class CountsRepeats(Server):
    def on_message(self, ctx, sender, message):
        if (message.life, message.round) == (ctx.incarnation, self.round) and sender.index in self.answers:
            self.tracker.arrived((sender.index + 1) % self.code.workers)
            self.close_if_decided(ctx)
        else:
            super().on_message(ctx, sender, message)


class OneEarly(Server):
    def close_if_decided(self, ctx):
        if len(self.answers) >= self.code.workers - 1 and self.answers:
            self.close(ctx)
        else:
            super().close_if_decided(ctx)


class IgnoresRestarted(Server):
    def on_peer(self, ctx, peer, state):
        if state is PeerState.RESTARTED:
            self.down.discard(peer.index)
        else:
            super().on_peer(ctx, peer, state)


class DecodesByArrival(Server):
    def close(self, ctx):
        values, order = list(self.answers.values()), sorted(self.answers)
        self.answers = dict(zip(order, values, strict=True))
        super().close(ctx)


class Mislabels(Worker):
    """Running work goes on under a new question, and its answer is labelled with the newest one."""

    def on_message(self, ctx, sender, message):
        if (message.life, message.round) > self.newest and self.open is not None:
            self.newest, self.server = (message.life, message.round), sender
            self.open = msgspec.structs.replace(self.open, life=message.life, round=message.round)
        else:
            super().on_message(ctx, sender, message)


class AnyLife(Server):
    def on_message(self, ctx, sender, message):
        super().on_message(ctx, sender, Gradient(ctx.incarnation, message.round, message.value))


class SumsByArrival(Server):
    """The sum is formed in the order of arrival."""

    def close(self, ctx):
        weights = self.code.decode(list(self.answers)).weights.tolist()
        used = [(weight, value) for weight, value in zip(weights, self.answers.values(), strict=True) if weight]
        total = combine(*map(list, zip(*used, strict=True)))

        class Fixed(Through):
            def step(self, state, parameters, gradient, round):
                return self.ctx.step(state, parameters, total, round)

        self.workload, kept = Fixed(self.workload), self.workload
        super().close(ctx)
        self.workload = kept


class KeepsMomentum(Server):
    """Momentum outlives a crash, and is applied again to what is trained anew."""

    momentum: ClassVar[object] = None

    def on_start(self, ctx, saved):
        super().on_start(ctx, saved)
        if ctx.incarnation == 1:
            KeepsMomentum.momentum = self.parameters.state
        self.parameters.state = KeepsMomentum.momentum

    def close(self, ctx):
        super().close(ctx)
        KeepsMomentum.momentum = self.parameters.state


class OwnCode(Worker):
    """Partitions are dealt out anew at a restart, from a state of the process that the server does not share."""

    process = np.random.default_rng(0)

    def on_start(self, ctx, saved):
        super().on_start(ctx, saved)
        if ctx.incarnation > 1:
            self.index = int(OwnCode.process.integers(self.code.workers))


class NeverInterrupts(Worker):
    """New parameters do not end old work."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.interrupts = False


# With a message that ends work on closed rounds, in place of new parameters that do


class Cancel(Message):
    """Work on a round is in vain."""

    life: int
    round: int


class CancelsThenAsks(Server):
    """Tells those that are late to stop, then asks for the next round."""

    messages = (Gradient, Parameters, Cancel)

    def close(self, ctx):
        self.cancel(ctx, set(range(self.code.workers)) - self.answers.keys() - self.down, self.round)
        super().close(ctx)

    def cancel(self, ctx, late, round):
        for worker in ctx.peers("worker"):
            if worker.index in late:
                ctx.send(worker, Cancel(ctx.incarnation, round))


class AsksThenCancels(CancelsThenAsks):
    """The same in the other order: workers may have begun the next round when they are told to stop."""

    def close(self, ctx):
        late, round = set(range(self.code.workers)) - self.answers.keys() - self.down, self.round
        Server.close(self, ctx)
        self.cancel(ctx, late, round)


class Cancellable(Worker):
    """Stops the work that a message names."""

    messages = (Gradient, Parameters, Cancel)

    def on_message(self, ctx, sender, message):
        if not isinstance(message, Cancel):
            super().on_message(ctx, sender, message)
        elif self.is_meant(message):
            ctx.cancel("gradient")
            self.open = None
            if self.mailbox:
                self.begin(ctx)

    def is_meant(self, cancel):
        return self.open is not None and (cancel.life, cancel.round) == (self.open.life, self.open.round)


class StopsWhateverRuns(Cancellable):
    def is_meant(self, cancel):
        return self.open is not None


class CancelsTheNext(CancelsThenAsks):
    def cancel(self, ctx, late, round):
        super().cancel(ctx, late, round + 1)


# Of any protocol


class SetsItsTimerOnce(Worker):
    """The timer that begins what was kept is not set again."""

    def on_start(self, ctx, saved):
        super().on_start(ctx, saved)
        self.is_set = False

    def on_computed(self, ctx, tag, result):
        class Once(Through):
            def set_timer(_, name, after_s):
                if not self.is_set:
                    ctx.set_timer(name, after_s)
                self.is_set = True

        super().on_computed(Once(ctx), tag, result)


class KeepsTheDeadBusy(Server):
    """What a worker was busy with outlives it."""

    def on_peer(self, ctx, peer, state):
        if state is PeerState.DOWN:
            self.down.add(peer.index)
            if not self.closed:
                self.close_if_decided(ctx)
        elif self.closed:
            self.down.discard(peer.index)
        else:
            super().on_peer(ctx, peer, state)


class CountsWhoRejoinsTwice(Server):
    """A worker that comes back is appended to the members once more."""

    def on_start(self, ctx, saved):
        self.members = list(range(self.code.workers))
        super().on_start(ctx, saved)

    def on_peer(self, ctx, peer, state):
        if state is PeerState.RESTARTED:
            self.members.append(peer.index)
        super().on_peer(ctx, peer, state)

    def close_if_decided(self, ctx):
        if sum(worker in self.answers for worker in self.members) >= self.code.workers:
            self.close(ctx)
        else:
            super().close_if_decided(ctx)


# Legal


class AsksInReverse(Server):
    def open(self, ctx):
        class Reversed(Through):
            def broadcast(_, role, message):
                for peer in reversed(ctx.peers(role)):
                    ctx.send(peer, message)

        super().open(Reversed(ctx))


class Dawdles(Worker):
    """Its timers are half as long again."""

    def on_computed(self, ctx, tag, result):
        class Slow(Through):
            def set_timer(_, name, after_s):
                ctx.set_timer(name, 1.5 * after_s)

        super().on_computed(Slow(ctx), tag, result)
