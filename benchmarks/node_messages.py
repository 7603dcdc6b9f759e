"""How fast nodes exchange messages on the emulator, against the idiomatic SimPy program.

A master sends a number to each of n workers, every worker computes for a random time and answers, and the master begins
the next round when all have answered. The SimPy program is the usual one: a process and a ``Store`` for each worker.
Durations are random, so that its master keeps up with what arrives: SimPy's ``Store`` gives an item from a backlog in
time proportional to the backlog, which would be counted for us.

SimGrid's engine (C++, and its Python bindings with a thread for each actor) runs the same rounds as processes of their
own, timed by the CPU seconds that they tell; its figures are left out where it is not installed, and say so.

Memory is that of a process of its own: what a waiting worker takes, node and all, and the peak of one round.

Handlers alone are the handlers of the same run in a plain loop, with a context of whose effects nothing comes: what is
left to an engine is the rest up to the target.

Verdict (2 cores shared with other work, CPython 3.11): where the master broadcasts, 19.6 to 20.9 times SimPy's speed at
1,000 workers, so that 20 is reached in some runs only, and 19 to 20 times at 10,000; where it sends one by one, 15.5 to
16.9 (20 is missed) and 16 to 18. With a trace kept 7.6 and 8.3. Handlers alone are 45 and 32 times as fast at 1,000:
of the 0.5 us of a worker's round with a broadcast 0.22 are theirs, with single sends 0.30 of 0.65, and 0.06 of both are
the set-up of the run. 21 times SimGrid's C++, 133 times its bindings; 856 bytes for each of 300,000 idle
workers.
"""

from __future__ import annotations

import operator
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import simpy

from benchmarks import harness, simgrid
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

    def __init__(self) -> None:
        self.master, self.round = MASTER, 0

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


class Nothing:
    """A context of whose effects nothing comes; each of them is a call of C, as on the emulator."""

    send = compute = broadcast = operator.is_

    def __init__(self, ids: tuple[NodeId, ...]) -> None:
        self.ids = ids

    def peers(self, role: str) -> tuple[NodeId, ...]:
        """Return the workers."""
        return self.ids


def handle(master: type[Sender], workers: int, rounds: int) -> None:
    """Call the handlers of a run and do nothing else: no engine that calls handlers can be faster."""
    ids = tuple([NodeId("worker", index) for index in range(workers)])
    ctx, sender, nodes = Nothing(ids), master(rounds + 1), [Worker() for _ in ids]
    sender.on_start(ctx, Saved())
    for round in range(rounds):
        work, answer = Work(round), Answer(round)
        for node in nodes:
            node.on_message(ctx, MASTER, work)
        for node, id in zip(nodes, ids, strict=True):
            node.on_computed(ctx, "work", None)
            sender.on_message(ctx, id, answer)


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


def told(command: list[str]) -> float:
    """Run a SimGrid program and return the CPU seconds that it tells."""
    done = subprocess.run([*command, "--log=root.thres:critical"], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def bindings() -> str:
    """Return a Python interpreter that has SimGrid's bindings.

    Raises
    ------
    simgrid.Absent
        If there is none.
    """
    for python in (sys.executable, "/usr/bin/python3"):
        if (
            Path(python).exists()
            and not subprocess.run([python, "-I", "-c", "import simgrid"], capture_output=True).returncode
        ):
            return python
    raise simgrid.Absent("no Python has SimGrid's bindings (Debian: python3-simgrid)")


def beside_simgrid(brief: bool) -> dict[str, harness.Figure]:
    """Return speed over SimGrid's, in turns: seconds of ours and of its processes."""
    figures: dict[str, harness.Figure] = {}
    with tempfile.TemporaryDirectory() as folder:
        for engine, workers, rounds, target in (("C++", 1000, 50, 4.0), ("Python", 1000, 3 if brief else 20, 100.0)):
            name = f"against SimGrid {engine}, {workers} workers"
            try:
                if engine == "C++":
                    command = [str(simgrid.compiled(Path(folder), "simgrid_rounds"))]
                else:
                    command = [bindings(), "-I", str(Path(__file__).with_name("simgrid_rounds.py"))]
            except simgrid.Absent as absent:
                figures[name] = harness.Figure(str(absent), None, value=0.0, details={"left_out": str(absent)})
                continue
            times: dict[str, list[float]] = {"ours": [], name: []}
            for _ in range(2 if brief else 5):
                times[name].append(told([*command, str(workers), str(rounds)]))
                times["ours"].append(harness.cpu_s(partial(emulate, Broadcaster, workers, rounds), 1))
            figures[name] = harness.speedup(times, name, "ours", target)
    return figures


def resident_bytes() -> int:
    """Return how much memory this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def weigh(workers: int) -> None:
    """Print bytes of a waiting worker, and the peak of this process in GiB after one round."""
    before = resident_bytes()
    built = emulator(Broadcaster, workers, 1, False)
    built._start_all()
    idle = (resident_bytes() - before) / workers
    built._loop(float("inf"))
    run = built._finish(0.0)
    if run.stopped != "done":
        raise RuntimeError(f"{run.error or run.stopped}")
    print(idle, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def memory(brief: bool) -> dict[str, harness.Figure]:
    """Return what workers weigh, in a process of its own."""
    workers = 20_000 if brief else 1_000_000
    code = f"from benchmarks.node_messages import weigh; weigh({workers})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    idle, peak = map(float, done.stdout.split())
    return {
        "bytes of an idle worker": harness.Figure("1 kB", 1000.0, "lower", value=round(idle)),
        "workers in 2 GiB, idle": harness.Figure("SimPy: 1.07 M", 2e6, value=round(2**31 / idle)),
        f"GiB of one round of {workers:,} workers": harness.Figure("2 GiB", 2.0, "lower", value=round(peak, 3)),
    }


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
            "handlers alone, sends": partial(handle, Sender, workers, rounds),
            "handlers alone, broadcast": partial(handle, Broadcaster, workers, rounds),
        }
        times = harness.alternate(contestants, turns, least_s)
        for name in list(contestants)[1:]:
            figures[f"{name}, {workers} workers"] = harness.speedup(
                times, "simpy", name, target if name in ("sends", "broadcast") else None
            )
    return figures | beside_simgrid(brief) | memory(brief)


if __name__ == "__main__":
    harness.main(measure)
