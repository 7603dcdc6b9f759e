"""A protocol with nodes in both forms: stale synchronous parallel training, whose workers are scripts.

A worker may start clock c once the durable clock of every worker is at least c - staleness. The server reacts to
whoever comes, so it has handlers; a worker has a conversation, so it is one coroutine. Both are nodes as any other, on
the emulator and over TCP: ``train(1, engine="tcp")``. One worker is killed on its way and comes back: it goes on at the
clock that it had saved, on the same batches.
"""

import numpy as np

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.testing import run_nodes

WORKERS, CLOCKS = 4, 40
SERVER = emuml.NodeId("server", 0)
TRUTH = np.array([2.0, -1.0, 0.5])


class Pull(emuml.Message):
    """Asks for the table, to start a clock."""

    clock: int


class View(emuml.Message):
    """The table."""

    clock: int
    table: emuml.Array


class Push(emuml.Message):
    """What a worker adds to the table at a clock."""

    clock: int
    update: emuml.Array


class Applied(emuml.Message):
    """A push is in the table, and durable."""

    clock: int


class Server(emuml.Node):
    """Keeps the table; answers whom the staleness bound allows to start."""

    def __init__(self, staleness):
        self.staleness = staleness

    def on_start(self, ctx, saved):
        """Go on with what was saved."""
        self.table = saved.get("table", np.zeros(len(TRUTH)))
        self.applied = saved.get("applied", [0] * WORKERS)
        self.durable = list(self.applied)
        self.waiting = {}

    def on_message(self, ctx, sender, message):
        """Apply each push once, by worker and clock; acknowledge it when it is saved."""
        worker, clock = sender.index, message.clock
        if isinstance(message, Pull):
            self.waiting[sender] = clock
            self.release(ctx)
        elif clock == self.applied[worker]:
            ahead = clock - min(self.applied)
            self.table = self.table + message.update
            self.applied[worker] += 1
            ctx.log(pushes=sum(self.applied), ahead=ahead, error=self.error())
            ctx.save((worker, clock), {"table": self.table, "applied": self.applied})
        elif clock < self.durable[worker]:
            ctx.send(sender, Applied(clock))

    def on_saved(self, ctx, tag):
        """Let the worker know, and others start."""
        worker, clock = tag
        self.durable[worker] = clock + 1
        ctx.send(emuml.NodeId("worker", worker), Applied(clock))
        self.release(ctx)
        if min(self.durable) == CLOCKS:
            ctx.stop("every clock is durable")

    def release(self, ctx):
        """Answer in the order of ids."""
        for worker in sorted(self.waiting):
            if self.waiting[worker] - min(self.durable) <= self.staleness:
                ctx.send(worker, View(self.waiting.pop(worker), self.table))

    def error(self):
        """Return the distance from the truth."""
        return float(np.linalg.norm(self.table - TRUTH))


class Worker(emuml.Script):
    """Pulls, computes, pushes, saves; again for every clock."""

    async def main(self, node):
        """Begin where a former life has saved."""
        for clock in range(node.saved.get("clock", 0), CLOCKS):
            view = await self.ask(node, Pull(clock), View)
            batch = node.rng(f"batch/{clock}").standard_normal((20, len(TRUTH)))
            change = await node.compute(emuml.Task(update, (view.table, batch), cost=1.0, shape=(len(TRUTH),)))
            await self.ask(node, Push(clock, change), Applied)
            await node.save({"clock": clock + 1})

    async def ask(self, node, question, reply):
        """Ask until this very clock is answered; again whenever the server's link comes back."""
        while True:
            node.send(SERVER, question)
            while True:
                _, message = await node.receive(reply, emuml.PeerChange)
                if isinstance(message, reply) and message.clock == question.clock:
                    return message
                if isinstance(message, emuml.PeerChange) and message.state in BACK:
                    break


BACK = (emuml.PeerState.UP, emuml.PeerState.RESTARTED)


def update(table, batch):
    """Return a step of least squares on one batch."""
    return -0.05 / len(batch) * batch.T @ (batch @ (table - TRUTH))


def train(staleness, engine="des"):
    nodes = {"server-0": ("server", lambda: Server(staleness))}
    nodes |= {f"worker-{i}": ("worker", Worker) for i in range(WORKERS)}
    cluster = Cluster(workers=WORKERS, compute=ShiftedExponential(shift_s=0.1, mean_s=0.5))
    faults = emuml.FaultPlan((emuml.Crash("worker-2", after=("pushes", 60), restart_after_s=2.0),))
    run = run_nodes(nodes, engine, cluster, faults, seed=1, processes="shared" if engine == "tcp" else None)
    if run.error is not None:
        raise run.error
    return run


def main():
    for staleness in (0, 1, 2, 4, 8):
        run = train(staleness)
        ahead = max(item.metrics["ahead"] for item in run.logs)
        error = run.logs[-1].metrics["error"]
        print(f"staleness {staleness}: {run.duration_s:5.2f} s, at most {ahead} clocks ahead, error {error:.4f}")


if __name__ == "__main__":
    main()
