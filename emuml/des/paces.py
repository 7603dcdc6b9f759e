"""How fast emulated nodes compute while something slows them down or stops them: tasks are split exactly.

A task has so many seconds of work, which is what its law says. In ``d`` seconds of a node that is ``f`` times as slow
``d / f`` of them are done, and none while it stands still.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from emuml import effects as fx
from emuml.des.machine import Machine, Work
from emuml.node import NodeId

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator


class Paces:
    """Keeps the factors of all nodes, and what is left of each running task."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._factors: dict[NodeId, list[float]] = {}

    def _slowness(self, machine: Machine) -> float:
        return prod(self._factors.get(machine.id, ()))

    def begin(self, machine: Machine, effect: fx.Compute, seconds: float, name: str) -> None:
        """Begin a task of so many seconds of work."""
        work = machine.works[effect.generation] = Work(effect, seconds, self._emulator.env._now, name)
        self._schedule(machine, work)

    def change(self, machine: Machine, factor: float, begins: bool) -> None:
        """Let a node be so many times as slow, or not any more."""
        self._settle(machine)
        factors = self._factors.setdefault(machine.id, [])
        if begins:
            factors.append(factor)
        else:
            factors.remove(factor)
        self.go_on(machine)

    def stand_still(self, machine: Machine) -> None:
        """Stop all tasks of a node that is about to hang."""
        self._settle(machine)

    def go_on(self, machine: Machine) -> None:
        """Go on with what is left of all tasks, from now on and at the pace that holds now."""
        for work in self._running(machine).values():
            work.since_s = self._emulator.env._now
            self._schedule(machine, work)

    def _settle(self, machine: Machine) -> None:
        """Take off what has been done since the pace last changed; tasks have no end any more until they go on."""
        if machine.stall is not None:
            return
        env = self._emulator.env
        for key, work in self._running(machine).items():
            env.cancel(machine.running[key])
            work.left_s = max(work.left_s - (env._now - work.since_s) / self._slowness(machine), 0.0)

    def _running(self, machine: Machine) -> dict[int, Work]:
        """Return the tasks that have neither ended nor been cancelled, and forget the others."""
        machine.works = {key: work for key, work in machine.works.items() if key in machine.running}
        return machine.works

    def _schedule(self, machine: Machine, work: Work) -> None:
        call = self._emulator.slots.end_in(machine, work.effect, work.left_s * self._slowness(machine), work.name)
        if machine.stall is not None:
            self._emulator.env.cancel(call)
