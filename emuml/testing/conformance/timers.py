"""Timers: never early, never after their cancellation, once; random programs against a model (contract 6)."""

from __future__ import annotations

from functools import partial

import numpy as np

from emuml.blocks import Saved
from emuml.context import Context
from emuml.message import Message
from emuml.node import Node, NodeId
from emuml.testing.conformance.engine import WORKERS, RunNodes, equal, expect, stopped

NAMES = ("a", "b", "c", "d")
DELAYS_S = (0.0, 0.0, 0.001, 0.001, 0.002, 0.003)
"""Few and equal, so that expiries are often queued when their timer is cancelled or armed again."""


class Finished(Message):
    """A program ended; how many timers it saw."""

    fired: int


class Referee(Node):
    """Stops the run when all programs have ended."""

    def __init__(self, programs: int) -> None:
        self.programs = programs

    def on_message(self, ctx: Context, sender: NodeId, message: Finished) -> None:
        """Count."""
        expect(message.fired > 0, f"no timer fired at {sender}")
        self.programs -= 1
        if self.programs == 0:
            ctx.stop("done")

    def waiting_for(self) -> str:
        """Say how many are missing."""
        return f"{self.programs} programs"


class TimerProgram(Node):
    """Sets, re-arms and cancels timers at random, and compares what fires with a model."""

    talks_to = frozenset({"referee"})

    def __init__(self, operations: int) -> None:
        self.left = operations
        self.live: dict[str, float] = {}
        self.fired = 0

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin."""
        self.random: np.random.Generator = ctx.rng("program")
        self.now = ctx.now
        self._go_on(ctx)

    def on_timer(self, ctx: Context, name: str) -> None:
        """Judge the expiry, then go on."""
        expect(name in self.live, f"{ctx.id}: timer {name!r} fired at {ctx.now!r} though it is not set")
        due = self.live.pop(name)
        expect(ctx.now >= due, f"{ctx.id}: timer {name!r} fired at {ctx.now!r}, due at {due!r}")
        expect(ctx.now >= self.now, f"{ctx.id}: time went from {self.now!r} to {ctx.now!r}")
        self.now, self.fired = ctx.now, self.fired + 1
        if name == "last":
            ctx.send(NodeId("referee", 0), Finished(self.fired))
        else:
            self._go_on(ctx)

    def _go_on(self, ctx: Context) -> None:
        for _ in range(int(self.random.integers(1, 4))):
            self._operate(ctx)
        while self.left and not self.live:
            self._operate(ctx)
        if not self.left and not self.live:  # any expiry that should not be has time to show itself
            ctx.set_timer("last", 2 * max(DELAYS_S))
            self.live["last"] = ctx.now + 2 * max(DELAYS_S)

    def _operate(self, ctx: Context) -> None:
        if self.left == 0:
            return
        self.left -= 1
        name = NAMES[int(self.random.integers(len(NAMES)))]
        if self.random.random() < 0.4:
            ctx.cancel_timer(name)
            self.live.pop(name, None)
        else:
            after_s = DELAYS_S[int(self.random.integers(len(DELAYS_S)))]
            ctx.set_timer(name, after_s)
            self.live[name] = ctx.now + after_s

    def waiting_for(self) -> str:
        """Say which timers should still fire."""
        return f"timers {sorted(self.live)}" if self.live else ""


def timers_fire_once_and_never_early_nor_after_a_cancel(run: RunNodes) -> None:
    """K9 (6.1-6.4): random programs of 12 nodes, 100 operations each, against a model; none is lost either."""
    programs = {f"program-{i}": ("program", partial(TimerProgram, 100)) for i in range(12)}
    stopped(run({"referee-0": ("referee", partial(Referee, len(programs))), **programs}, cluster=WORKERS, seed=5))


class Exact(Node):
    """Sets a timer at its expiry again and again; in virtual time it fires at its very deadline."""

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin."""
        self.due: list[float] = []
        self._set(ctx)

    def _set(self, ctx: Context) -> None:
        after_s = float(ctx.rng(f"delay/{len(self.due)}").random())
        self.due.append(ctx.now + after_s)
        ctx.set_timer("tick", after_s)

    def on_timer(self, ctx: Context, name: str) -> None:
        """Compare with the sum of doubles."""
        equal(ctx.now, self.due[-1], "time of the expiry")
        if len(self.due) == 500:
            ctx.stop("done")
        else:
            self._set(ctx)


def emulated_timers_fire_at_their_very_deadline(run: RunNodes) -> None:
    """K9 (6.3), emulators: deadlines are absolute times, never recomputed as differences."""
    stopped(run({"exact-0": ("exact", Exact)}, cluster=WORKERS))
