"""How fast nodes exchange messages on the emulator, against the idiomatic SimPy program.

A master sends a number to each of n workers, every worker computes for a random time and answers, and the master begins
the next round when all have answered. The SimPy program is the usual one: a process and a ``Store`` for each worker.
Durations are random, so that its master keeps up with what arrives: SimPy's ``Store`` gives an item from a backlog in
time proportional to the backlog, which would be counted for us.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import numpy as np
import simpy

from benchmarks import harness
from emuml import Message, Node, NodeId, Task
from emuml.blocks import Saved
from emuml.cluster import Cluster, ShiftedExponential
from emuml.des.emulator import Emulator
from emuml.roster import Roster
from emuml.trace import Trace

MASTER = NodeId("master", 0)
MEAN_S = 1.0


class Work(Message):
    """What to do."""

    round: int


class Answer(Message):
    """It is done."""

    round: int


def nothing() -> Any:
    """Return the result of every task: the benchmark is of messages, and nobody reads it."""
    return np.zeros(1)


TASK = Task(nothing, (), 1.0, (1,))


class Sender(Node):
    """Sends work to each worker, again when all have answered."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def on_start(self, ctx: Any, saved: Saved) -> None:
        """Begin."""
        self.round, self.missing = 0, len(ctx.peers("worker"))
        self.ask(ctx)

    def ask(self, ctx: Any) -> None:
        """Send the work of one round."""
        for worker in ctx.peers("worker"):
            ctx.send(worker, Work(self.round))

    def on_message(self, ctx: Any, sender: NodeId, message: Answer) -> None:
        """Count."""
        self.missing -= 1
        if not self.missing:
            self.round, self.missing = self.round + 1, len(ctx.peers("worker"))
            if self.round == self.rounds:
                ctx.stop("done")
            else:
                self.ask(ctx)


class Broadcaster(Sender):
    """Sends one message to all workers."""

    def ask(self, ctx: Any) -> None:
        """Broadcast the work of one round."""
        ctx.broadcast("worker", Work(self.round))


class Worker(Node):
    """Computes and answers."""

    def on_message(self, ctx: Any, sender: NodeId, message: Work) -> None:
        """Begin to compute."""
        self.master, self.round = sender, message.round
        ctx.compute("work", TASK)

    def on_computed(self, ctx: Any, tag: str, result: Any) -> None:
        """Answer."""
        ctx.send(self.master, Answer(self.round))


def emulator(master: type[Sender], workers: int, rounds: int, traced: bool) -> Emulator:
    """Return an emulator of the node program, which has not begun."""
    nodes: dict[NodeId, tuple[str, Callable[[], Node]]] = {MASTER: ("master", partial(master, rounds))}
    nodes |= {NodeId("worker", index): ("worker", Worker) for index in range(workers)}
    cluster = Cluster(workers=workers, compute=ShiftedExponential(shift_s=0.0, mean_s=MEAN_S))
    return Emulator(nodes, cluster, Roster(tuple(nodes), 1), trace=Trace(keep=traced))


def emulate(master: type[Sender], workers: int, rounds: int, traced: bool = False) -> None:
    """Run the node program to its end."""
    run = emulator(master, workers, rounds, traced).run()
    if run.error is not None or run.stopped != "done":
        raise RuntimeError(f"{run.error or run.stopped}")


def simulate(workers: int, rounds: int) -> None:
    """Run the SimPy program to its end."""
    env = simpy.Environment()
    inbox = simpy.Store(env)
    boxes = [simpy.Store(env) for _ in range(workers)]
    draw = random.Random(1).expovariate

    def worker(box: simpy.Store) -> Generator[simpy.Event, Any, None]:
        while True:
            master, round = yield box.get()
            yield env.timeout(draw(1.0 / MEAN_S))
            master.put(round)

    def master() -> Generator[simpy.Event, Any, None]:
        for round in range(rounds):
            for box in boxes:
                box.put((inbox, round))
            for _ in boxes:
                yield inbox.get()

    for box in boxes:
        env.process(worker(box))
    env.run(env.process(master()))


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return speed over that of the SimPy program."""
    figures, turns, least_s = {}, 3 if brief else 7, 0.01 if brief else 0.2
    for workers, target in ((1000, 20.0), (10_000, 15.0)):
        rounds = 3 if brief else {1000: 50, 10_000: 10}[workers]
        contestants: dict[str, harness.Work] = {
            "simpy": partial(simulate, workers, rounds),
            "sends": partial(emulate, Sender, workers, rounds),
            "broadcast": partial(emulate, Broadcaster, workers, rounds),
            "broadcast, traced": partial(emulate, Broadcaster, workers, rounds, True),
        }
        times = harness.alternate(contestants, turns, least_s)
        for name in list(contestants)[1:]:
            figures[f"{name}, {workers} workers"] = harness.speedup(
                times, "simpy", name, None if "traced" in name else target
            )
    return figures


if __name__ == "__main__":
    harness.main(measure)
