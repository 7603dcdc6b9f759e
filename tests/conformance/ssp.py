"""Stale synchronous parallel training, whose workers are written in both forms: as a script, and as handlers.

A worker may start clock c once the durable clock of every worker is at least c - staleness. Updates are whole numbers
that depend on worker and clock alone, so the final table is the same whatever the order, the engine and the crashes.
"""

import numpy as np

from emuml import Array, Message, Node, NodeId, PeerChange, PeerState, Script, Task
from emuml.streams import generator

CLOCKS, WORKERS, STALENESS, SIZE = 5, 3, 1, 4
BACK = (PeerState.UP, PeerState.RESTARTED)
SERVER = NodeId("server", 0)


class Pull(Message):
    clock: int


class View(Message):
    clock: int
    table: Array


class Push(Message):
    clock: int
    update: Array


class Applied(Message):
    clock: int


def update(table, draw):
    """Return an update; the table is an input, so that it is sent, kept and compared."""
    return draw + 0.0 * table


class Server(Node):
    def on_start(self, ctx, saved):
        workers = ctx.peers("worker")
        self.table = saved.get("table", np.zeros(SIZE))
        self.applied = dict(zip(workers, saved.get("applied", [0] * len(workers)), strict=True))
        self.durable = dict(self.applied)
        self.waiting = {}
        if min(self.durable.values()) == CLOCKS:
            self.end(ctx)

    def on_message(self, ctx, sender, message):
        if isinstance(message, Pull):
            self.waiting[sender] = message.clock
            self.release(ctx)
        elif message.clock == self.applied[sender]:
            self.table = self.table + message.update
            self.applied[sender] += 1
            ctx.log(pushes=sum(self.applied.values()))
            ctx.save((sender, message.clock), {"table": self.table, "applied": list(self.applied.values())})
        elif message.clock < self.durable[sender]:
            ctx.send(sender, Applied(message.clock))

    def on_saved(self, ctx, tag):
        worker, clock = tag
        self.durable[worker] = clock + 1
        ctx.send(worker, Applied(clock))
        self.release(ctx)
        if min(self.durable.values()) == CLOCKS:
            self.end(ctx)

    def release(self, ctx):
        for worker in sorted(self.waiting):
            if self.waiting[worker] - min(self.durable.values()) <= STALENESS:
                ctx.send(worker, View(self.waiting.pop(worker), self.table))

    def end(self, ctx):
        ctx.publish(CLOCKS, self.table)
        ctx.stop("done")


def task(ctx, clock, table):
    """Return the work of a clock, on the draws of that clock."""
    draw = np.floor(ctx.rng(f"batch/{clock}").random(SIZE) * 100)
    return Task(update, (table, draw), 1.0, (SIZE,), draw=clock)


class ScriptedWorker(Script):
    async def main(self, node):
        for clock in range(node.saved.get("clock", 0), CLOCKS):
            view = await self.ask(node, Pull(clock), View)
            change = await node.compute(task(node, clock, view.table))
            await self.ask(node, Push(clock, change), Applied)
            await node.save({"clock": clock + 1})

    async def ask(self, node, question, reply):
        """Ask until this very clock is answered; again whenever the server's link comes back."""
        while True:
            node.send(SERVER, question)
            while True:
                _, message = await node.receive(reply, PeerChange)
                if isinstance(message, reply) and message.clock == question.clock:
                    return message
                if isinstance(message, PeerChange) and message.state in BACK:
                    break


class HandlerWorker(Node):
    """The same as a state machine: it asks, or it waits for a task or a save, while what comes stays unread."""

    def on_start(self, ctx, saved):
        self.clock, self.inbox, self.question, self.jobs = saved.get("clock", 0), [], None, 0
        self.begin(ctx)

    def begin(self, ctx):
        if self.clock < CLOCKS:
            self.ask(ctx, Pull(self.clock), View)

    def ask(self, ctx, question, reply):
        self.question, self.reply = question, reply
        ctx.send(SERVER, question)
        self.read(ctx)

    def on_message(self, ctx, sender, message):
        self.inbox.append(message)
        self.read(ctx)

    def on_peer(self, ctx, peer, state):
        self.on_message(ctx, peer, state)

    def read(self, ctx):
        """Read replies and changes of peers until the question is answered; other messages stay."""
        while self.question is not None:
            wanted = [message for message in self.inbox if isinstance(message, (self.reply, PeerState))]
            if not wanted:
                return
            self.inbox.remove(message := wanted[0])
            if isinstance(message, self.reply) and message.clock == self.question.clock:
                self.question = None
                self.answered(ctx, message)
            elif message in BACK:
                ctx.send(SERVER, self.question)

    def answered(self, ctx, message):
        if isinstance(message, View):
            ctx.compute(f"compute/{self.jobs}", task(ctx, self.clock, message.table))
        else:
            ctx.save(f"save/{self.jobs}", {"clock": self.clock + 1})

    def on_computed(self, ctx, tag, result):
        self.ask(ctx, Push(self.clock, result), Applied)

    def on_saved(self, ctx, tag):
        self.clock, self.jobs = self.clock + 1, self.jobs + 1
        self.begin(ctx)


def nodes(worker=ScriptedWorker):
    return {"server-0": ("server", Server), **{f"worker-{i}": ("worker", worker) for i in range(WORKERS)}}


def expected(seed):
    """Return the final table, computed without any engine."""
    draws = [
        generator(seed, f"worker-{i}", f"batch/{clock}").random(SIZE) for i in range(WORKERS) for clock in range(CLOCKS)
    ]
    return np.floor(np.array(draws) * 100).sum(axis=0).tolist()
