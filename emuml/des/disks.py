"""Stable storage of emulated nodes: FIFO operations that take time, atomic commits, and what a crash leaves pending."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emuml import effects as fx
from emuml.blocks import size_of
from emuml.des.environment import NORMAL, Call
from emuml.des.machine import Machine
from emuml.journal import blocks_digest

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator


class Disks:
    """Executes saves and loads."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    def _schedule(self, machine: Machine, tag: Any, size_bytes: int, done: Callable[..., None], *args: Any) -> Call:
        """Call ``done`` when the disk is through with an operation that begins when it is free."""
        emulator = self._emulator
        takes_s, name = emulator.cluster.storage.seconds(size_bytes), ""
        if emulator.choices is not None:
            name = emulator.choices.name("storage", machine.name, tag)
            takes_s += emulator.choices.late_s(name, takes_s)
        machine.disk_free_s = max(emulator.env._now, machine.disk_free_s) + takes_s
        call = emulator.env.call_at(machine.disk_free_s, NORMAL, done, machine, machine.incarnation, *args)
        call.lane, call.name = (machine.id, "disk"), name
        return call

    def save(self, machine: Machine, effect: fx.Save) -> None:
        """Begin a commit; it is durable when the disk is done with it."""
        emulator = self._emulator
        size = size_of(effect.blocks)
        emulator.trace.add(emulator.now, machine.name, "save", effect.tag, size)
        call = self._schedule(machine, effect.tag, size, self._saved)
        machine.pending_saves.append((effect, call))

    def _saved(self, machine: Machine, incarnation: int) -> None:
        if not machine.lives(incarnation):
            return
        effect, _ = machine.pending_saves.pop(0)
        machine.store.commit(effect.blocks)
        self._tell_saved(machine, incarnation, effect)

    def _tell_saved(self, machine: Machine, incarnation: int, effect: fx.Save) -> None:
        if machine.stall is not None:  # the disk goes on where its node stands still
            machine.stall.keep(self._tell_saved, machine, incarnation, effect)
            return
        if not machine.lives(incarnation):
            return
        emulator = self._emulator
        emulator.trace.add(emulator.now, machine.name, "saved", effect.tag)
        emulator.step(machine, fx.SaveDone(effect.tag), "saved", lambda: [effect.tag])

    def load(self, machine: Machine, effect: fx.Load) -> None:
        """Begin reading blocks; what was saved before is seen, because operations are FIFO."""
        emulator = self._emulator
        emulator.trace.add(emulator.now, machine.name, "load", effect.tag)
        size = size_of(dict(machine.store.read(effect.ids)))
        self._schedule(machine, effect.tag, size, self._loaded, effect)

    def _loaded(self, machine: Machine, incarnation: int, effect: fx.Load) -> None:
        if machine.stall is not None:
            machine.stall.keep(self._loaded, machine, incarnation, effect)
            return
        if not machine.lives(incarnation):
            return
        emulator, blocks = self._emulator, machine.store.read(effect.ids)
        emulator.trace.add(emulator.now, machine.name, "loaded", effect.tag)
        event = fx.LoadDone(effect.tag, blocks)
        emulator.step(machine, event, "loaded", lambda: [effect.tag, blocks_digest(blocks)])

    def lose_pending(self, machine: Machine) -> None:
        """At a crash: keep or lose each pending save as a whole, independently of the others."""
        emulator = self._emulator
        for effect, call in machine.pending_saves:
            emulator.env.cancel(call)
            if emulator.choices is not None and emulator.choices.choose(call.name.replace("storage", "save", 1), 2):
                machine.store.commit(effect.blocks)
