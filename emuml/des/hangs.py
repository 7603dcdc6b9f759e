"""Nodes that stand still in the emulator: what comes for them waits, and is handed over when they go on.

Messages and other news are handed over first, in the order in which they came; then timers whose deadlines have passed
fire, as in a process that was stopped: its sockets are read before its timers are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emuml import effects as fx
from emuml.des.environment import TIMER
from emuml.des.machine import Machine, Stall

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator


class Hangs:
    """Stops and resumes nodes."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    def begin(self, machine: Machine) -> None:
        """Let a node stand still, or longer than it would."""
        if machine.stall is None:
            machine.stall = Stall(self._emulator.env._now)
        machine.stall.depth += 1

    def end(self, machine: Machine) -> Stall | None:
        """Let a node go on; return what has come for it, or None while something else still holds it."""
        stall = machine.stall
        assert stall is not None
        stall.depth -= 1
        if stall.depth:
            return None
        machine.stall = None
        return stall

    def catch_up(self, machine: Machine, stall: Stall) -> None:
        """Hand over what has come meanwhile."""
        emulator = self._emulator
        for function, arguments in stall.events:
            if emulator.result.stopped is not None:
                return
            function(*arguments)
        for function, (_, incarnation, effect) in stall.timers:
            if machine.lives(incarnation) and machine.life is not None:
                self._fire_late(machine, incarnation, effect, function)

    def _fire_late(self, machine: Machine, incarnation: int, effect: fx.SetTimer, function: Callable[..., Any]) -> None:
        event = fx.TimerFired(effect.name, effect.generation)
        if machine.life is not None and machine.life.is_current(event):
            env, name = self._emulator.env, machine.timers[effect.name].name
            call = env.call_at(env._now, TIMER, function, machine, incarnation, effect)
            call.name = name
            machine.timers[effect.name] = call
