"""Stable storage of emulated nodes: FIFO operations that take time, atomic commits, and what a crash leaves pending."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuml import effects as fx
from emuml.blocks import size_of
from emuml.des.environment import NORMAL
from emuml.des.machine import Machine
from emuml.journal import blocks_digest

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator


class Disks:
    """Executes saves and loads."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    def _done_at(self, machine: Machine, size_bytes: int) -> float:
        begins = max(self._emulator.env._now, machine.disk_free_s)
        machine.disk_free_s = begins + self._emulator.cluster.storage.seconds(size_bytes)
        return machine.disk_free_s

    def save(self, machine: Machine, effect: fx.Save) -> None:
        """Begin a commit; it is durable when the disk is done with it."""
        emulator = self._emulator
        size = size_of(effect.blocks)
        emulator.trace.add(emulator.now, machine.name, "save", effect.tag, size)
        at = self._done_at(machine, size)
        call = emulator.env.call_at(at, NORMAL, self._saved, machine, machine.incarnation)
        call.lane = (machine.id, "disk")
        machine.pending_saves.append((effect, call))

    def _saved(self, machine: Machine, incarnation: int) -> None:
        if not machine.lives(incarnation):
            return
        effect, _ = machine.pending_saves.pop(0)
        machine.store.commit(effect.blocks)
        emulator = self._emulator
        emulator.trace.add(emulator.now, machine.name, "saved", effect.tag)
        emulator.step(machine, fx.SaveDone(effect.tag), "saved", lambda: [effect.tag])

    def load(self, machine: Machine, effect: fx.Load) -> None:
        """Begin reading blocks; what was saved before is seen, because operations are FIFO."""
        emulator = self._emulator
        emulator.trace.add(emulator.now, machine.name, "load", effect.tag)
        size = size_of(dict(machine.store.read(effect.ids)))
        at = self._done_at(machine, size)
        call = emulator.env.call_at(at, NORMAL, self._loaded, machine, machine.incarnation, effect)
        call.lane = (machine.id, "disk")

    def _loaded(self, machine: Machine, incarnation: int, effect: fx.Load) -> None:
        if not machine.lives(incarnation):
            return
        emulator, blocks = self._emulator, machine.store.read(effect.ids)
        emulator.trace.add(emulator.now, machine.name, "loaded", effect.tag)
        event = fx.LoadDone(effect.tag, blocks)
        emulator.step(machine, event, "loaded", lambda: [effect.tag, blocks_digest(blocks)])

    def lose_pending(self, machine: Machine) -> None:
        """At a crash: keep or lose each pending save as a whole, independently of the others."""
        emulator = self._emulator
        for n, (effect, call) in enumerate(machine.pending_saves):
            emulator.env.cancel(call)
            name = f"save/{machine.name}/{effect.tag}/{n}"
            if emulator.choose is not None and emulator.choose(name, 2):
                machine.store.commit(effect.blocks)
