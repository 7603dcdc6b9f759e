"""Tasks: FIFO slots, once, never after their cancellation; random programs against models (contract 8.2-8.6)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from math import ceil
from typing import Any

import numpy as np

from emuml.blocks import Saved
from emuml.cluster.compute import Constant, ShiftedExponential
from emuml.context import Context
from emuml.errors import TagInUse
from emuml.lazy import combine
from emuml.message import Array, Message
from emuml.node import Node, NodeId
from emuml.streams import generator
from emuml.task import Task
from emuml.testing.conformance.engine import WORKERS, Nodes, RunNodes, equal, expect, stopped

TAGS = ("a", "b", ("c", 1), 4)


class Ended(Message):
    """A program ended."""

    computed: int


class Foreman(Node):
    """Stops the run when all programs have ended."""

    def __init__(self, programs: int) -> None:
        self.programs = programs

    def on_message(self, ctx: Context, sender: NodeId, message: Ended) -> None:
        """Count."""
        self.programs -= 1
        if self.programs == 0:
            ctx.stop("done")


def token_of(number: float) -> Array:
    """Return a number as an array: the value by which a result is told from that of a former task of its tag."""
    return np.array([number])


class ComputeProgram(Node):
    """Computes and cancels at random, and compares what ends with a model."""

    talks_to = frozenset({"foreman"})

    def __init__(self, operations: int) -> None:
        self.left = operations
        self.live: dict[Any, float] = {}
        self.computed = self.begun = 0

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin."""
        self.random: np.random.Generator = ctx.rng("program")
        self._go_on(ctx)

    def on_computed(self, ctx: Context, tag: Any, result: Array) -> None:
        """Judge the result, then go on."""
        expect(tag in self.live, f"{ctx.id}: {tag!r} ended though no such task is alive")
        equal(combine([1.0], [result])[0], self.live.pop(tag), f"{ctx.id}: result of {tag!r}")
        self.computed += 1
        self._go_on(ctx)

    def _go_on(self, ctx: Context) -> None:
        for _ in range(int(self.random.integers(1, 5))):
            self._operate(ctx)
        while self.left and not self.live:
            self._operate(ctx)
        if not self.left and not self.live:
            ctx.send(NodeId("foreman", 0), Ended(self.computed))

    def _operate(self, ctx: Context) -> None:
        if self.left == 0:
            return
        self.left -= 1
        tag = TAGS[int(self.random.integers(len(TAGS)))]
        if self.random.random() < 0.35:
            ctx.cancel(tag)
            self.live.pop(tag, None)
            return
        task = Task(token_of, (float(self.begun),), 1.0, (1,))
        try:
            ctx.compute(tag, task)
        except TagInUse:
            expect(tag in self.live, f"{ctx.id}: {tag!r} is refused though no such task is alive")
        else:
            expect(tag not in self.live, f"{ctx.id}: {tag!r} was taken twice")
            self.live[tag] = float(self.begun)
            self.begun += 1


def tasks_end_once_in_order_and_never_after_a_cancel(run: RunNodes) -> None:
    """K12 (8.2, 8.4, 8.5): random programs with 1, 2 and 4 slots; tasks begin in call order."""
    for cores in (1, 2, 4):
        programs = {f"worker-{i}": ("worker", partial(ComputeProgram, 40)) for i in range(3)}
        # No law acts on other roles: results come together, and are cancelled while they wait to be handed over.
        programs |= {f"helper-{i}": ("helper", partial(ComputeProgram, 300)) for i in range(3)}
        cluster = replace(WORKERS, compute=Constant(0.001), cores=cores)
        nodes: Nodes = {"foreman-0": ("foreman", partial(Foreman, len(programs))), **programs}
        found = stopped(run(nodes, cluster=cluster, seed=cores))
        for worker in programs:
            draws = [row[4] for row in found.trace.rows if row[1] == worker and row[2] == "begin"]
            equal(draws, sorted(set(draws)), f"draws of the tasks that {worker} began, with {cores} slots")


class Batch(Node):
    """Queues several tasks of one duration at once and judges when each ends."""

    def __init__(self, tasks: int, cores: int, task_s: float) -> None:
        self.tasks, self.cores, self.task_s = tasks, cores, task_s
        self.ended = 0

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Queue them, with one in front that is cancelled."""
        self.began_s = ctx.now
        ctx.compute("dropped", Task(token_of, (-1.0,), 1.0, (1,)))
        ctx.cancel("dropped")
        for number in range(self.tasks):
            ctx.compute(number, Task(token_of, (float(number),), 1.0, (1,)))

    def on_computed(self, ctx: Context, tag: Any, result: Array) -> None:
        """Task number k of n slots ends in round ceil(k / n), or later."""
        self.ended += 1
        least = self.began_s + ceil(self.ended / self.cores) * self.task_s
        expect(ctx.now >= least - 1e-6, f"task {self.ended} of {self.cores} slots ended at {ctx.now}, before {least}")
        if self.ended == self.tasks:
            ctx.stop("done")


def no_more_tasks_run_than_there_are_slots(run: RunNodes) -> None:
    """K12 (8.4): n slots end at most n tasks in the time of one."""
    for cores in (1, 2, 3):
        cluster = replace(WORKERS, compute=Constant(0.004), cores=cores)
        stopped(run({"worker-0": ("worker", partial(Batch, 7, cores, 0.004))}, cluster=cluster))


@dataclass(order=True)
class Call:
    """One operation of a fixed program."""

    at_s: float
    cancels: bool
    tag: int
    cost: float = field(default=1.0)


def program(seed: int, calls: int) -> list[Call]:
    """Return a program by time; tags are used again and again, often while their task is alive."""
    random = generator(seed, "", "conformance/compute")
    times = np.sort(random.random(calls) * 3.0)
    return [
        Call(float(at_s), bool(random.random() < 0.3), int(random.integers(6)), float(random.uniform(0.5, 2.0)))
        for at_s in times
    ]


class Scheduled(Node):
    """Executes a fixed program at its times and notes when tasks end."""

    def __init__(self, seed: int, calls: int) -> None:
        self.calls = program(seed, calls)
        self.ends: list[tuple[float, int]] = []

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Set one timer for each call."""
        for number, call in enumerate(self.calls):
            ctx.set_timer(f"{number}", call.at_s)
        ctx.set_timer("end", 1000.0)

    def on_timer(self, ctx: Context, name: str) -> None:
        """Execute the call; a tag in use is left alone."""
        if name == "end":
            ctx.stop("done")
            return
        call = self.calls[int(name)]
        if call.cancels:
            ctx.cancel(call.tag)
            return
        try:
            ctx.compute(call.tag, Task(token_of, (0.0,), call.cost, (1,)))
        except TagInUse:
            ctx.log(refused=call.tag)

    def on_computed(self, ctx: Context, tag: Any, result: Array) -> None:
        """Note it."""
        self.ends.append((ctx.now, tag))


class Slots:
    """The model: a FIFO queue before ``cores`` slots, in which a cancelled task holds its slot for ``lag_s`` more."""

    def __init__(self, law: Any, cores: int, lag_s: float) -> None:
        self.law, self.free, self.lag_s = law, cores, lag_s
        self.queue: deque[tuple[int, int, float]] = deque()
        self.alive: dict[int, int] = {}
        self.running: set[int] = set()
        self.events: list[tuple[float, int, str, int]] = []
        self.begun = 0
        self.ends: list[tuple[float, int]] = []

    def call(self, call: Call) -> None:
        """Compute or cancel, after everything that is due before."""
        self.advance(call.at_s)
        if not call.cancels:
            if call.tag not in self.alive:
                self.alive[call.tag] = self.begun
                self.queue.append((call.tag, self.begun, call.cost))
                self.begun += 1
        elif call.tag in self.alive:
            number = self.alive.pop(call.tag)
            if number in self.running:
                self.running.discard(number)
                heappush(self.events, (call.at_s + self.lag_s, -1, "free", 0))
            else:
                self.queue = deque(item for item in self.queue if item[1] != number)
        self.advance(call.at_s)

    def _fill(self, now: float) -> None:
        while self.queue and self.free:
            tag, number, cost = self.queue.popleft()
            self.free -= 1
            self.running.add(number)
            heappush(self.events, (now + self.law(number, cost), number, "end", tag))

    def advance(self, until_s: float) -> None:
        """Let time pass."""
        self._fill(until_s)
        while self.events and self.events[0][0] <= until_s:
            at_s, number, kind, tag = heappop(self.events)
            if kind == "end":
                if number not in self.running:
                    continue
                self.running.discard(number)
                del self.alive[tag]
                self.ends.append((at_s, tag))
            self.free += 1
            self._fill(at_s)


def emulated_tasks_end_when_a_queue_model_says(run: RunNodes) -> None:
    """K12 (8.2-8.6), emulators within one process: exact times of 1 to 4 slots, with and without a lag of cancels."""
    law = ShiftedExponential(shift_s=0.02, mean_s=0.08)
    for seed, (cores, lag_s) in enumerate([(1, 0.0), (2, 0.0), (3, 0.03), (4, 0.0), (1, 0.05), (2, 0.1)]):
        cluster = replace(WORKERS, compute=law, cores=cores, cancel_lag_s=lag_s)
        found = stopped(run({"worker-0": ("worker", partial(Scheduled, seed, 60))}, cluster=cluster, seed=seed))
        model = Slots(law.sampler(seed, NodeId("worker", 0)), cores, lag_s)
        for call in program(seed, 60):
            model.call(call)
        model.advance(float("inf"))
        node = found.nodes[NodeId("worker", 0)]
        expect(len(model.ends) > 15, "too few tasks to mean anything")
        equal(getattr(node, "ends", None), model.ends, f"ends of tasks with {cores} slots and a lag of {lag_s} s")
