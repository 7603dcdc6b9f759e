"""What the coroutine form costs: messages per second of scripts against the same nodes as handlers.

A master sends a number to each of n workers and waits for all answers, round by round. Both forms record the same
effects, so that what is compared is the form alone. On the emulator a run is timed whole, its emulator included; by
hand, events go straight into one worker, which is the cost of the adapter without any engine.

Verdict (2 cores shared with other work, CPython 3.11): scripts run at 0.65 of the speed of handlers with 10 workers,
0.69 with 100, 0.69 with 1,000; by hand at 0.52: 2.4 us more for each event.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import harness
from emuml import Message, Node, NodeId, Script
from emuml import effects as fx
from emuml.blocks import Saved
from emuml.cluster import Cluster
from emuml.des.emulator import Emulator
from emuml.directory import Directory
from emuml.life import Life
from emuml.roster import Roster

MESSAGES = 20_000
"""Of one emulated run, each way."""

MASTER = NodeId("master", 0)


class Ask(Message):
    """A number."""

    number: int


class Answer(Message):
    """The number again."""

    number: int


class Master(Node):
    """Asks all, again when all have answered."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def on_start(self, ctx: Any, saved: Saved) -> None:
        """Ask."""
        self.round, self.missing = 0, len(ctx.peers("worker"))
        ctx.broadcast("worker", Ask(0))

    def on_message(self, ctx: Any, sender: NodeId, message: Answer) -> None:
        """Count."""
        self.missing -= 1
        if self.missing:
            return
        self.round, self.missing = self.round + 1, len(ctx.peers("worker"))
        if self.round == self.rounds:
            ctx.stop("done")
        else:
            ctx.broadcast("worker", Ask(self.round))


class ScriptedMaster(Script):
    """The same as a script."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    async def main(self, node: Any) -> None:
        """Ask and count."""
        for round in range(self.rounds):
            node.broadcast("worker", Ask(round))
            for _ in node.peers("worker"):
                await node.receive(Answer)
        node.stop("done")


class Worker(Node):
    """Answers."""

    def on_message(self, ctx: Any, sender: NodeId, message: Ask) -> None:
        """Answer."""
        ctx.send(sender, Answer(message.number))


class ScriptedWorker(Script):
    """The same as a script."""

    async def main(self, node: Any) -> None:
        """Answer for ever."""
        while True:
            sender, message = await node.receive(Ask)
            node.send(sender, Answer(message.number))


FORMS: dict[str, tuple[type[Any], type[Node]]] = {
    "handlers": (Master, Worker),
    "scripts": (ScriptedMaster, ScriptedWorker),
}


def emulate(form: str, workers: int, rounds: int) -> int:
    """Run one form to its end and return how many events were handled."""
    master, worker = FORMS[form]
    nodes: dict[NodeId, tuple[str, Callable[[], Node]]] = {MASTER: ("master", partial(master, rounds))}
    nodes |= {NodeId("worker", i): ("worker", worker) for i in range(workers)}
    run = Emulator(nodes, Cluster(workers=workers), Roster(tuple(sorted(nodes)), 0)).run()
    if run.error is not None or run.stopped != "done":
        raise RuntimeError(f"{form}: {run.error or run.stopped}")
    return run.events


def feed(life: Life, events: int) -> int:
    """Hand messages to one life, and return how many effects came out."""
    event = fx.Received(MASTER, Ask(3))
    return sum(len(life.handle(event, 1.0)) for _ in range(events))


def alive(form: str) -> Life:
    """Return a worker of one form, started."""
    roster = Roster.of_counts(0, master=1, worker=1)
    life = Life(FORMS[form][1](), NodeId("worker", 0), 1, Directory(roster, {}))
    life.handle(fx.Started(Saved()), 0.0)
    return life


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return speed of scripts over that of handlers."""
    figures, turns, least_s = {}, 3 if brief else 9, 0.01 if brief else 0.1
    for workers in (10,) if brief else (10, 100, 1000):
        rounds = max((200 if brief else MESSAGES) // workers, 1)
        times = harness.alternate({form: partial(emulate, form, workers, rounds) for form in FORMS}, turns, least_s)
        figures[f"emulated, {workers} workers"] = harness.speedup(times, "handlers", "scripts", None)
    lives = {form: alive(form) for form in FORMS}
    times = harness.alternate({form: partial(feed, life, 1000) for form, life in lives.items()}, turns, least_s)
    figures["by hand"] = harness.speedup(times, "handlers", "scripts", None)
    added_us = 1e6 * (statistics.median(times["scripts"]) - statistics.median(times["handlers"])) / 1000
    figures["added_us"] = harness.Figure("one event of the same handler", None, "lower", value=round(added_us, 2))
    return figures


if __name__ == "__main__":
    harness.main(measure)
