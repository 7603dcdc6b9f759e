"""Crashes of a node that saves: it finds only what is allowed, and all that is allowed is found (contract 9.3, 10).

The saver keeps two blocks that every save writes together, and one block for each save; so a save that is kept in part,
lost after it was acknowledged, or invented shows at once.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from emuml.blocks import Saved
from emuml.cluster.faults import Crash, FaultPlan
from emuml.context import Context
from emuml.message import Message
from emuml.node import Node, NodeId
from emuml.testing.conformance.engine import Explored, RunNodes, equal, expect, slow_disk, stopped

STEP_S = 0.002


class Order(Message):
    """Save this number."""

    number: int


class Durable(Message):
    """It is saved."""

    number: int


class Recovered(Message):
    """What a new life found: the last number, and all numbers that have a block of their own."""

    life: int
    last: int
    numbers: list[int]


class Saver(Node):
    """Saves each number as it comes, and acknowledges it when it is durable."""

    def __init__(self) -> None:
        self.fresh = True

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Report what was found; raise if a save was kept in part."""
        equal(self.fresh, True, "a restarted node is a fresh object")
        self.fresh = False
        equal(saved.get("last"), saved.get("again"), "two blocks of one save")
        numbers = sorted(id[1] for id in saved if isinstance(id, tuple))
        expect("last" not in saved or saved["last"] in numbers, "the last number has no block of its own")
        if ctx.incarnation > 1:
            ctx.send(NodeId("client", 0), Recovered(ctx.incarnation, saved.get("last", 0), numbers))

    def on_message(self, ctx: Context, sender: NodeId, message: Order) -> None:
        """Save three blocks in one commit."""
        number = message.number
        ctx.save(number, {"last": number, ("number", number): number, "again": number})

    def on_saved(self, ctx: Context, tag: Any) -> None:
        """Acknowledge."""
        ctx.send(NodeId("client", 0), Durable(tag))


class Client(Node):
    """Gives orders at each step, judges what new lives found, and stops when all of them have reported.

    Parameters
    ----------
    steps : int
    crashes : int
    burst : int
        Orders per step; several of them wait for the disk.
    """

    def __init__(self, steps: int, crashes: int, burst: int) -> None:
        self.steps, self.crashes, self.burst = steps, crashes, burst
        self.step = self.ordered = 0
        self.durable: set[int] = set()
        self.life = 1

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin."""
        ctx.set_timer("step", 0.0)

    def on_timer(self, ctx: Context, name: str) -> None:
        """Log the step, at which the fault plan may act, then order."""
        self.step += 1
        ctx.log(step=self.step)
        for _ in range(self.burst):
            self.ordered += 1
            ctx.send(NodeId("saver", 0), Order(self.ordered))
        if self.step < self.steps:
            ctx.set_timer("step", STEP_S)
        self._stop_when_done(ctx)

    def on_message(self, ctx: Context, sender: NodeId, message: Durable | Recovered) -> None:
        """Judge a recovery: all that was acknowledged, nothing that was not ordered, the newest value of a block."""
        if isinstance(message, Durable):
            self.durable.add(message.number)
            return
        found = set(message.numbers)
        expect(self.durable <= found, f"acknowledged {sorted(self.durable)}, found {message.numbers}")
        expect(found <= set(range(1, self.ordered + 1)), f"ordered {self.ordered}, found {message.numbers}")
        equal(message.last, max(found, default=0), "the last number that was kept")
        expect(message.life > self.life, f"life {message.life} of the saver after life {self.life}")
        self.life = message.life
        self.durable |= found
        ctx.log(life=message.life, found=",".join(map(str, message.numbers)))
        self._stop_when_done(ctx)

    def _stop_when_done(self, ctx: Context) -> None:
        if self.step == self.steps and self.life == self.crashes + 1:
            ctx.stop("done")


def _nodes(steps: int, crashes: int, burst: int) -> dict[str, tuple[str, partial[Client] | type[Saver]]]:
    return {"client-0": ("client", partial(Client, steps, crashes, burst)), "saver-0": ("saver", Saver)}


def acknowledged_saves_survive_a_crash_at_any_step(run: RunNodes) -> None:
    """K15 (9.3, 10.1-10.3): killed at every second step of a run, in the midst of its saves, and back at the next."""
    at = range(2, 18, 2)
    faults = FaultPlan(tuple(Crash("saver-0", after=("step", n), restart_after=("step", n + 1)) for n in at))
    stopped(run(_nodes(20, len(at), 3), cluster=slow_disk(0.7 * STEP_S), faults=faults))


def emulated_crashes_at_every_step_leave_an_allowed_state(run: RunNodes) -> None:
    """K15 (9.3, 10), emulators: one run for each step and speed of the disk."""
    for latency_s in (0.0, 0.4 * STEP_S, 2.5 * STEP_S):
        for step in range(1, 11):
            faults = FaultPlan((Crash("saver-0", after=("step", step), restart_after_s=0.5 * STEP_S),))
            stopped(run(_nodes(12, 1, 1), cluster=slow_disk(latency_s), faults=faults))


def every_subset_of_pending_saves_is_met(run: Explored) -> None:
    """K15 (9.3), explored emulators: three pending saves, kept or lost independently, over a campaign of eight runs."""
    faults = FaultPlan((Crash("saver-0", after=("step", 5), restart_after_s=STEP_S),))
    met = set()
    for kept in range(8):

        def choose(what: str, count: int, kept: int = kept) -> int:
            return kept >> int(what.split("/")[2]) - 2 & 1 if what.startswith("save/") else 0

        # The first order is durable before the crash; the next three wait for the disk; the fifth has not left.
        cluster = slow_disk(2.2 * STEP_S)
        found = stopped(run(_nodes(6, 1, 1), cluster=cluster, faults=faults, choose=choose))
        met.add(next(item.metrics["found"] for item in found.logs if "found" in item.metrics))
    pending = [",".join(map(str, (1, *subset))) for subset in _subsets((2, 3, 4))]
    equal(sorted(met, key=str), sorted(pending), "recovered sets of numbers")


def _subsets(items: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [tuple(item for i, item in enumerate(items) if mask >> i & 1) for mask in range(1 << len(items))]
