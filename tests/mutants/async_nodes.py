"""Wrong nodes of asynchronous updates, each with one decision changed; and legal ones that only talk more."""

from __future__ import annotations

import random

import msgspec
import numpy as np

from emuml.node import PeerState
from emuml.protocols.async_updates import SSP
from emuml.protocols.async_updates.messages import Read, Update, View
from emuml.protocols.async_updates.server import Server
from emuml.protocols.async_updates.worker import Worker
from tests.mutants.coding_nodes import Through


class OffByOne(Server):
    def release(self, ctx):
        actual, slack = self.barrier, self.barrier.slack
        self.barrier = SSP(slack + 1)
        super().release(ctx)
        self.barrier = actual


class AppliesAgain(Server):
    """A repeated update is applied again, and not counted again."""

    def from_worker(self, ctx, worker, message):
        if hasattr(message, "value") and message.life == ctx.incarnation and message.clock < self.completed[worker]:
            _, self.table.values = self.workload.apply((), self.table.values, message.value, message.clock)
        super().from_worker(ctx, worker, message)


class RepeatsPushes(Worker):
    """A legal worker: it says each push twice, as after a session that broke."""

    def on_computed(self, ctx, tag, result):
        super().on_computed(ctx, tag, result)
        for server, update in self.unconfirmed[-1].items() if self.unconfirmed else ():
            ctx.send(server, update)


class ClockFirst(Server):
    """A clock travels apart from its update: it is counted when the worker asks to read, one update before."""

    def take(self, ctx, worker, update):
        self.completed[worker] += 1
        self.find_slowest()
        self.release(ctx)
        self.completed[worker] -= 1
        self.find_slowest()
        super().take(ctx, worker, update)


class LargestClock(Server):
    """The view is labelled with the largest clock instead of the smallest."""

    def release(self, ctx):
        before = ctx.send

        class Labels:
            def __getattr__(_, name):
                return getattr(ctx, name)

            def send(_, to, message):
                if isinstance(message, View):
                    message = msgspec.structs.replace(message, slowest=max(self.completed))
                before(to, message)

        super().release(Labels())


class ReleasesOne(Server):
    def release(self, ctx):
        kept = dict(self.waiting)
        members = self.members
        eligible = [w for w in sorted(kept) if self.barrier.may_start(self.completed[w], members)]
        self.waiting = {w: kept[w] for w in eligible[:1]}
        super().release(ctx)
        self.waiting |= {w: since for w, since in kept.items() if w not in eligible[:1]}


class ForgetsReads(Worker):
    """After a server crash the waiting read is not asked again."""

    def begin_anew(self, ctx):
        if ctx.now == 0:
            super().begin_anew(ctx)
        else:
            self.views, self.fetched, self.unconfirmed = {}, [], []
            ctx.cancel("gradient")
            self.places, self.asked, self.clock, self.waits = {}, None, -1, True


class DiscardsSlow(Server):
    """Updates of workers that are behind are counted and thrown away."""

    def apply(self, ctx, updates):
        ahead = max(self.completed)
        nothing = {
            worker: msgspec.structs.replace(update, value=np.zeros_like(update.value))
            for worker, update in updates.items()
            if update.clock + 1 < ahead
        }
        super().apply(ctx, nothing or updates)


class SendsTheLiveTable(Server):
    """The table that was sent is updated in place."""

    def apply(self, ctx, updates):
        live = self.table.values
        super().apply(ctx, updates)
        live += self.table.values - live
        self.table.values = live


class NoCatchingUp(Server):
    """Who was evicted rejoins where it was."""

    def wants(self, ctx, worker, clock):
        self.evicted.discard(worker)
        super().wants(ctx, worker, clock)


class BatchesFromTheStart(Worker):
    """After a restart batches are drawn from the beginning of the stream."""

    def begin(self, ctx, clock, copy):
        self.clock, self.copy = clock, copy
        self.drawn = getattr(self, "drawn", -1) + 1
        ctx.compute("gradient", self.workload.push(copy, self.index, self.workers, draw=self.drawn))


# Of any protocol


class RepeatsUnderANewClock(Worker):
    """It says each push twice, the second time as if it were the next one."""

    def on_computed(self, ctx, tag, result):
        super().on_computed(ctx, tag, result)
        for server, update in self.unconfirmed[-1].items() if self.unconfirmed else ():
            ctx.send(server, msgspec.structs.replace(update, clock=update.clock + 1))


class ReleasesInOrderOfHashes(Server):
    """Who may read is answered in the order of a set of names."""

    def release(self, ctx):
        kept, self.waiting = self.waiting, {}
        for name in {f"worker-{worker}" for worker in kept}:
            worker = int(name.rpartition("-")[2])
            self.waiting[worker] = kept[worker]
            super().release(ctx)


class KeepsTheFormerServer(Worker):
    """What it knows of a server outlives it: it goes on as after a broken session."""

    def on_peer(self, ctx, peer, state):
        super().on_peer(ctx, peer, PeerState.UP if state is PeerState.RESTARTED else state)


class DrawsFromTheProcess(Worker):
    """How long it dawdles is drawn from the process, not from a stream of its own."""

    def on_start(self, ctx, saved):
        super().on_start(ctx, saved)
        ctx.set_timer("dawdle", random.random())


class HoldsBack(Worker):
    """Keeps its push until the view comes that the server keeps until the push comes."""

    def on_start(self, ctx, saved):
        self.kept = None
        super().on_start(ctx, saved)

    def on_computed(self, ctx, tag, result):
        class Keeps(Through):
            def send(_, to, message):
                if isinstance(message, Update) and message.reads:
                    self.kept = to, message
                    message = Read(message.clock + 1)
                ctx.send(to, message)

        super().on_computed(Keeps(ctx), tag, result)

    def on_message(self, ctx, sender, message):
        if isinstance(message, View) and self.kept is not None:
            ctx.send(*self.kept)
            self.kept = None
        super().on_message(ctx, sender, message)


# Legal


class KeepsOldReads(Server):
    """What a former life of a worker asked is answered; the worker tells by the iteration."""

    def on_peer(self, ctx, peer, state):
        if state is not PeerState.RESTARTED:
            super().on_peer(ctx, peer, state)


class AnswersInReverse(Server):
    def release(self, ctx):
        sent = []

        class Collects(Through):
            def send(_, to, message):
                sent.append((to, message))

        super().release(Collects(ctx))
        for to, message in reversed(sent):
            ctx.send(to, message)
