"""Compute slots in real threads: order, injected delays, cancellation at every point, and what goes wrong."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from emuml.cluster import Cluster, DelayTrace
from emuml.effects import Compute
from emuml.errors import ContractError, NodeFailed, RunFailed, TaskCancelled
from emuml.node import Node
from emuml.runtime.compute import ComputeSlots, Sampler
from emuml.runtime.settings import RuntimeSettings
from emuml.task import Task
from emuml.testing.running import run_nodes
from tests.runtime.asynchronous import drive, until

NEVER_S = 1e6
"""A delay that no test waits for."""


def one() -> np.ndarray:
    return np.ones(1)


def task(function: Callable[..., Any] = one, cost: float = 1.0, cancellable: bool = False) -> Task:
    return Task(function, (), cost, (1,), cancellable=cancellable)


@dataclass
class Bench:
    """Slots, and what came out of them."""

    law: Sampler | None = None
    cores: int = 1
    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    unit_cost: float = 1.0
    done: list[tuple[str, float]] = field(default_factory=list)
    broken: list[tuple[str, BaseException]] = field(default_factory=list)
    notes: list[tuple[Any, ...]] = field(default_factory=list)
    count: int = 0

    def open(self) -> None:
        self.slots = ComputeSlots(
            self.cores,
            self.law,
            self.unit_cost,
            self.settings,
            lambda effect, result, real_s: self.done.append((effect.tag, real_s)),
            lambda effect, error: self.broken.append((effect.tag, error)),
            lambda *note: self.notes.append(note),
        )

    def compute(self, tag: str, given: Task | None = None, draw: int = 0) -> int:
        self.count += 1
        self.slots.compute(Compute(tag, given or task(), draw, self.count))
        return self.count

    def begun(self) -> list[str]:
        return [note[1] for note in self.notes if note[0] == "begin"]


@asynccontextmanager
async def bench(law: Sampler | None = None, **options: Any) -> AsyncIterator[Bench]:
    found = Bench(law, **options)
    found.open()
    yield found
    found.slots.close()


class Gate:
    """A task that computes until it is let go, or, in chunks, until it is cancelled."""

    def __init__(self) -> None:
        self.entered, self.let_go, self.left = threading.Event(), threading.Event(), threading.Event()

    def whole(self) -> np.ndarray:
        self.entered.set()
        assert self.let_go.wait(60)
        self.left.set()
        return np.ones(1)

    def chunks(self, cancelled: Callable[[], bool]) -> np.ndarray:
        self.entered.set()
        while not self.let_go.wait(0.001):
            if cancelled():
                self.left.set()
                raise TaskCancelled("between two chunks")
        return np.ones(1)


def test_tasks_run_in_order_in_as_many_threads_as_there_are_cores() -> None:
    async def work() -> None:
        gates = [Gate() for _ in range(3)]
        async with bench(cores=2) as b:
            for number, gate in enumerate(gates):
                b.compute(f"task{number}", task(gate.whole))
            await until(lambda: gates[0].entered.is_set() and gates[1].entered.is_set())
            assert b.begun() == ["task0", "task1"]
            assert b.slots.pending == 3
            gates[1].let_go.set()
            await until(gates[2].entered.is_set)
            assert [tag for tag, _ in b.done] == ["task1"]
            gates[0].let_go.set()
            gates[2].let_go.set()
            await until(lambda: len(b.done) == 3)
            assert b.slots.pending == 0
            assert b.slots.completed == 3

    drive(work())


def test_the_loop_turns_while_a_task_computes() -> None:
    async def work() -> None:
        gate = Gate()
        async with bench() as b:
            b.compute("long", task(gate.whole))
            await until(gate.entered.is_set)
            for _ in range(100):
                await asyncio.sleep(0)
            assert b.done == []
            gate.let_go.set()
            await until(lambda: b.done)

    drive(work())


def test_floor_holds_a_task_until_its_drawn_time() -> None:
    asked: list[tuple[int, float]] = []

    def law(draw: int, load: float) -> float:
        asked.append((draw, load))
        return 0.25

    async def work() -> None:
        loop = asyncio.get_running_loop()
        async with bench(law, settings=RuntimeSettings(time_scale=0.1), unit_cost=4.0) as b:
            began = loop.time()
            b.compute("held", task(cost=12.0), draw=17)
            await until(lambda: b.done)
            assert loop.time() - began >= 0.025
            assert b.done[0][1] < loop.time() - began  # the real duration is told, not the held one
        assert asked == [(17, 3.0)]

    drive(work())


def test_floor_does_not_hold_what_took_longer_anyway() -> None:
    async def work() -> None:
        gate = Gate()
        async with bench(lambda draw, load: 1e-9) as b:
            b.compute("slow", task(gate.whole))
            gate.let_go.set()
            await until(lambda: b.done)
            assert b.slots.overruns == 1

    drive(work())


def test_add_comes_after_the_real_duration() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        gate = Gate()
        async with bench(lambda draw, load: 0.02, settings=RuntimeSettings(inject="add")) as b:
            b.compute("added", task(gate.whole))
            await until(gate.entered.is_set)
            released = loop.time()
            gate.let_go.set()
            await until(lambda: b.done)
            assert loop.time() - released >= 0.02
            assert b.slots.overruns == 0

    drive(work())


@pytest.mark.parametrize(
    ("inject", "real_s", "wanted_s"), [("floor", 3.0, 3.0), ("floor", 1.0, 2.0), ("add", 3.0, 5.0), ("off", 3.0, 3.0)]
)
def test_what_a_drawn_time_of_two_seconds_does(inject: Any, real_s: float, wanted_s: float) -> None:
    async def work() -> None:
        async with bench(lambda draw, load: 4.0, settings=RuntimeSettings(inject=inject, time_scale=0.5)) as b:
            assert b.slots._wanted_s(Compute("tag", task(), 0, 1), real_s) == wanted_s

    drive(work())


def test_off_ignores_the_law() -> None:
    async def work() -> None:
        async with bench(lambda draw, load: NEVER_S, settings=RuntimeSettings(inject="off")) as b:
            b.compute("free")
            await until(lambda: b.done)

    drive(work())


def test_a_held_task_keeps_its_slot_and_cancel_frees_it_at_once() -> None:
    async def work() -> None:
        async with bench(lambda draw, load: NEVER_S if draw == 0 else 0.0) as b:
            held = b.compute("held", draw=0)
            b.compute("next", draw=1)
            await until(lambda: b.slots._running[held].hold is not None)
            assert b.begun() == ["held"]
            b.slots.cancel("held", held)
            assert b.begun() == ["held", "next"]
            await until(lambda: b.done)
            assert [tag for tag, _ in b.done] == ["next"]

    drive(work())


def test_cancel_in_the_queue() -> None:
    async def work() -> None:
        gate = Gate()
        async with bench() as b:
            b.compute("first", task(gate.whole))
            second = b.compute("again")
            b.slots.cancel("again", second)
            b.compute("again")  # the tag is free at once; the cancelled one must not take this one along
            await until(gate.entered.is_set)
            gate.let_go.set()
            await until(lambda: len(b.done) == 2)
            assert b.begun() == ["first", "again"]
            assert [tag for tag, _ in b.done] == ["first", "again"]

    drive(work())


def test_cancel_between_chunks_ends_the_work_and_then_frees_the_slot() -> None:
    async def work() -> None:
        gate = Gate()
        async with bench() as b:
            long = b.compute("long", task(gate.chunks, cancellable=True))
            b.compute("next")
            await until(gate.entered.is_set)
            b.slots.cancel("long", long)
            assert b.begun() == ["long"]
            await until(lambda: b.done)
            assert gate.left.is_set()
            assert [tag for tag, _ in b.done] == ["next"]
            assert b.broken == []

    drive(work())


def test_nothing_is_delivered_of_a_cancelled_task_that_cannot_stop_early() -> None:
    async def work() -> None:
        gate = Gate()
        async with bench() as b:
            whole = b.compute("whole", task(gate.whole))
            b.compute("next")
            await until(gate.entered.is_set)
            b.slots.cancel("whole", whole)
            gate.let_go.set()
            await until(lambda: b.done)
            assert [tag for tag, _ in b.done] == ["next"]

    drive(work())


def test_cancel_after_the_work_ended_and_before_the_loop_knows() -> None:
    async def work() -> None:
        gate = Gate()
        async with bench() as b:
            late = b.compute("late", task(gate.whole))
            gate.let_go.set()
            assert gate.left.wait(60)  # the loop stands still here, so it cannot have heard
            b.slots.cancel("late", late)
            b.compute("next")
            await until(lambda: b.done)
            assert [tag for tag, _ in b.done] == ["next"]

    drive(work())


def test_cancel_of_something_unknown_is_nothing() -> None:
    async def work() -> None:
        async with bench() as b:
            b.slots.cancel("never", 99)
            b.compute("task")
            await until(lambda: b.done)

    drive(work())


def failing() -> np.ndarray:
    raise ZeroDivisionError("in a task")


def wrong_shape() -> np.ndarray:
    return np.ones(2)


def impatient() -> np.ndarray:
    raise TaskCancelled("nobody asked")


@pytest.mark.parametrize(
    ("function", "kind"),
    [(failing, ZeroDivisionError), (wrong_shape, ContractError), (impatient, TaskCancelled)],
)
def test_a_task_that_raises_is_reported_and_its_slot_is_free(function: Callable[..., Any], kind: type) -> None:
    async def work() -> None:
        async with bench() as b:
            b.compute("bad", task(function))
            b.compute("good")
            await until(lambda: b.done)
            assert [(tag, type(error)) for tag, error in b.broken] == [("bad", kind)]

    drive(work())


def test_a_law_that_has_no_answer_is_reported() -> None:
    async def work() -> None:
        async with bench(lambda draw, load: 1 / 0) as b:
            b.compute("lawless")
            await until(lambda: b.broken)
            assert isinstance(b.broken[0][1], ZeroDivisionError)
            assert b.slots.pending == 0

    drive(work())


def test_work_that_outlives_its_loop_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()

    async def work() -> None:
        async with bench() as b:
            b.compute("long", task(gate.whole))
            b.compute("queued")
            await until(gate.entered.is_set)

    drive(work())
    gate.let_go.set()
    assert gate.left.wait(60)
    for thread in threading.enumerate():
        if thread.name.startswith("compute"):
            thread.join(60)
    assert caplog.records == []


class Asker(Node):
    """Computes once, or as often as told."""

    def __init__(self, function: Callable[..., Any], times: int = 1) -> None:
        self.function, self.times = function, times

    def on_start(self, ctx: Any, saved: Any) -> None:
        ctx.compute("round-7", task(self.function))

    def on_computed(self, ctx: Any, tag: Any, result: Any) -> None:
        self.times -= 1
        if self.times:
            ctx.compute("round-8", task(self.function))
        else:
            ctx.stop("computed")


def test_a_raising_task_ends_the_run_with_node_tag_and_cause() -> None:
    run = run_nodes({"worker-0": ("worker", lambda: Asker(failing))}, "tcp", processes="shared")
    assert isinstance(run.error, NodeFailed)
    assert (run.error.node, run.error.event) == ("worker-0", "task 'round-7' (failing)")
    assert isinstance(run.error.__cause__, ZeroDivisionError)


def test_a_recorded_trace_that_has_ended_ends_the_run() -> None:
    cluster = Cluster(workers=1, compute=DelayTrace(np.zeros((1, 1))))
    nodes = {"worker-0": ("worker", lambda: Asker(one, times=2))}
    run = run_nodes(nodes, "tcp", cluster, processes="shared")
    assert isinstance(run.error, NodeFailed)
    assert isinstance(run.error.__cause__, RunFailed)
    assert "draw 1" in str(run.error)
