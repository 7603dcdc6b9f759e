"""Crashes, restarts and late starts in the emulator: what a life loses, and how the next one begins (contract 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuml.blocks import size_of
from emuml.cluster.faults import FaultPlan, Start
from emuml.des.environment import URGENT
from emuml.des.machine import Machine

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator


class Crashes:
    """Ends and begins the lives of nodes.

    Attributes
    ----------
    absent : frozenset of NodeId
        Nodes that have not started yet.
    """

    def __init__(self, emulator: Emulator, plan: FaultPlan) -> None:
        self._emulator = emulator
        self.absent = frozenset(fault.target for fault in plan.faults if isinstance(fault, Start))

    def start(self, machine: Machine) -> None:
        """Let a node join that was absent."""
        self.absent -= {machine.id}
        self.restart(machine)

    def crash(self, machine: Machine, restart_after_s: float | None = None) -> None:
        """Let a node vanish, if it is there; plan its next life."""
        emulator = self._emulator
        if machine.life is not None:
            self._vanish(machine)
        if restart_after_s is not None:
            at = emulator.env._now + restart_after_s
            emulator.call_at(at, URGENT, ("restart", machine.name), self.restart, machine)

    def _vanish(self, machine: Machine) -> None:
        emulator = self._emulator
        emulator.trace.add(emulator.now, machine.name, "crash", machine.incarnation)
        emulator.result.ends.append(f"{machine.name} (life {machine.incarnation}) crashed at t={emulator.now:.6g} s")
        machine.ended[machine.incarnation] = emulator.env._now
        machine.life, machine.journal = None, None
        for call in (*machine.timers.values(), *machine.running.values()):
            emulator.env.cancel(call)
        emulator.disks.lose_pending(machine)
        emulator.faults.crashed(machine)
        emulator.mail.lose_on_the_way(machine)
        machine.reset()
        emulator.sessions.exited(machine)

    def restart(self, machine: Machine) -> None:
        """Begin the next life of a node that is not there, as soon as its storage is read."""
        emulator = self._emulator
        if machine.life is not None:
            return
        reading_s = emulator.cluster.storage.seconds(size) if (size := size_of(dict(machine.store.read()))) else 0.0
        if reading_s > 0:
            at, what = emulator.env._now + reading_s, ("begin", machine.name)
            emulator.call_at(at, URGENT, what, self._begin, machine, machine.incarnation)
        else:
            self._begin(machine, machine.incarnation)

    def _begin(self, machine: Machine, former: int) -> None:
        """Start the next incarnation, unless another start came first, and dial all its neighbours."""
        emulator = self._emulator
        if machine.life is not None or machine.incarnation != former:
            return
        emulator.start(machine, joining=True)
        if machine.lives(former + 1):
            emulator.sessions.dial(machine)
