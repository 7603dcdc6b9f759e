"""The fault plan of an emulated run: what strikes when, and which modules execute it.

A run whose plan has nothing but crashes and starts is ordinary: :attr:`Faults.touches_links` and
:attr:`Faults.touches_compute` are known before it starts, and modules that make such runs fast may rely on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from emuml.cluster.faults import Crash, Fault, FaultPlan, GroupCrash, Hang, Lossy, Partition, SlowLink, SlowNode, Start
from emuml.des.environment import URGENT
from emuml.des.hangs import Hangs
from emuml.des.machine import Machine
from emuml.des.paces import Paces
from emuml.des.silences import Silences
from emuml.des.wires import Wires
from emuml.errors import UserError
from emuml.node import NodeId

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator

SUPPORTED = (Crash, GroupCrash, Start, Hang, Partition, SlowLink, Lossy, SlowNode)
_OF_LINKS = (Hang, Partition, SlowLink, Lossy)
_OF_COMPUTE = (Hang, SlowNode)


class Faults:
    """Executes the fault plan of a run.

    Attributes
    ----------
    touches_links : bool
        Whether the plan has faults that delay messages or end sessions of nodes that live.
    touches_compute : bool
        Whether it has faults that make tasks take longer.
    """

    def __init__(self, emulator: Emulator, plan: FaultPlan) -> None:
        self._emulator = emulator
        self._plan = plan
        self._triggers = plan.triggers()
        self._due = list(plan.faults)
        self.touches_links = any(isinstance(fault, _OF_LINKS) for fault in plan.faults)
        self.touches_compute = any(isinstance(fault, _OF_COMPUTE) for fault in plan.faults)
        self._hangs = Hangs(emulator)
        for problem in () if emulator.cluster.shares_nothing else problems_where_shared(plan):
            raise problem
        if self.touches_links:
            self._silences = emulator.mail.silences = Silences(emulator)
            self._wires = emulator.mail.wires = Wires(emulator)
        if self.touches_compute:
            self._paces = emulator.slots.paces = Paces(emulator)

    def schedule(self) -> None:
        """Put the clock forms of the plan into the queue."""
        for fault in self._plan.faults:
            at_s = getattr(fault, "at_s", None)
            if at_s is not None:
                self._emulator.call_at(at_s, URGENT, _parts(fault), self._strike, fault)

    def missed(self) -> list[str]:
        """Return a sentence for each fault that the run ended without."""
        return self._plan.missed(self._due)

    def reached(self, metrics: Mapping[str, float | str]) -> None:
        """Execute the logical forms that wait for one of these counters, the first time it is logged.

        Once, because a server that begins again logs the same counts again.
        """
        if not self._triggers:
            return
        for after in [(name, value) for name, value in metrics.items() if (name, value) in self._triggers]:
            self._triggers -= {after}
            for fault in self._plan.faults:
                if getattr(fault, "after", None) == after:
                    self._strike(fault)
            for fault in self._plan.faults:
                if getattr(fault, "restart_after", None) == after:
                    self._emulator.crashes.restart(self._machine(fault.target))

    def _machine(self, id: NodeId) -> Machine:
        return self._emulator.machines[id]

    def _strike(self, fault: Fault) -> None:
        self._emulator.stand_aside()
        self._due = [other for other in self._due if other is not fault]
        self._note(fault, "fault")
        match fault:
            case Crash():
                self._emulator.crashes.crash(self._machine(fault.target), fault.restart_after_s)
            case Start():
                self._emulator.crashes.start(self._machine(fault.target))
            case GroupCrash():
                self._crash_group(fault)
            case Hang():
                self._hang(self._machine(fault.target), fault)
            case _:
                self._change(fault, begins=True)
                at = self._emulator.env._now + fault.for_s  # type: ignore[attr-defined]
                self._emulator.call_at(at, URGENT, ("end", *_parts(fault)), self._end, fault)

    def _end(self, fault: Fault) -> None:
        self._note(fault, "healed")
        self._change(fault, begins=False)

    def _note(self, fault: Fault, kind: str) -> None:
        """Record what happens to whom; of links it is the ends named first."""
        emulator = self._emulator
        for field, node in fault.named():
            if not field.startswith("second"):
                emulator.trace.add(emulator.now, node, kind, type(fault).__name__)

    def _crash_group(self, fault: GroupCrash) -> None:
        emulator = self._emulator
        for id, after_s in fault.crashes():
            if after_s == 0:
                emulator.crashes.crash(self._machine(id), fault.restart_after_s)
            else:
                at, crash = emulator.env._now + after_s, emulator.crashes.crash
                emulator.call_at(at, URGENT, ("crash", id), crash, self._machine(id), fault.restart_after_s)

    def _change(self, fault: Fault, begins: bool) -> None:
        """Let a fault that lasts begin or end."""
        match fault:
            case SlowNode():
                self._paces.change(self._machine(fault.target), fault.factor, begins)
            case Partition() if begins:
                self._cut(self._linked(fault))
            case Partition():
                self._heal(self._linked(fault))
            case SlowLink() | Lossy():
                for sender, receiver in (fault.ends, fault.ends[::-1]):
                    self._change_wire(fault, self._machine(sender), self._machine(receiver), begins)

    def _linked(self, fault: Partition) -> list[tuple[Machine, Machine]]:
        """Return the links that a partition cuts, as (sender, receiver)."""
        directory = self._emulator.directory
        pairs = [pair for pair in fault.links(self._emulator.roster.ids) if not directory.why_not(*pair)]
        return [(self._machine(sender), self._machine(receiver)) for sender, receiver in pairs]

    def _cut(self, pairs: list[tuple[Machine, Machine]]) -> None:
        for sender, receiver in pairs:
            was_silent = self.is_silent(receiver, sender)
            self._wires.cut(sender, receiver)
            if not was_silent:
                self._silences.begins(receiver, sender)

    def _heal(self, pairs: list[tuple[Machine, Machine]]) -> None:
        """Let messages pass again: first those who were silent are heard, then what waited leaves."""
        for sender, receiver in pairs:
            self._wires.uncut(sender, receiver)
            if not self.is_silent(receiver, sender):
                self._silences.ends(receiver, sender)
        for sender, receiver in pairs:
            self._wires.release(sender, receiver)
        both = {frozenset((sender.id, receiver.id)): (sender, receiver) for sender, receiver in pairs}
        for sender, receiver in both.values():
            if not self.separate(sender, receiver):
                self._emulator.sessions.reopen(sender, receiver)

    def _change_wire(self, fault: SlowLink | Lossy, sender: Machine, receiver: Machine, begins: bool) -> None:
        """Slow a direction down; the first sign of life after that is late, which may look like silence."""
        is_later = begins and isinstance(fault, SlowLink) and not self.is_silent(receiver, sender)
        if is_later:
            self._silences.begins(receiver, sender)
        self._wires.change(sender, receiver, fault, begins)
        if is_later:
            self._silences.ends(receiver, sender, at_next_sign=True)

    def _hang(self, machine: Machine, fault: Hang) -> None:
        if machine.life is None:
            return
        if machine.stall is None:
            for neighbour in self._neighbours(machine):
                if not self.is_silent(neighbour, machine):
                    self._silences.begins(neighbour, machine)
            self._paces.stand_still(machine)
        self._hangs.begin(machine)
        at = self._emulator.env._now + fault.for_s
        what = ("end", *_parts(fault))
        self._emulator.call_at(at, URGENT, what, self._wake, machine, machine.incarnation, fault)

    def _wake(self, machine: Machine, incarnation: int, fault: Hang) -> None:
        """Let a node go on: it is heard, then takes what has come meanwhile, then its timers are late."""
        if not machine.lives(incarnation):
            return
        self._note(fault, "healed")
        stall = self._hangs.end(machine)
        if stall is None:
            return
        self._silences.resumed(machine, stall.since_s)
        for neighbour in self._neighbours(machine):
            if not self.is_silent(neighbour, machine):
                self._silences.ends(neighbour, machine)
        self._paces.go_on(machine)
        self._hangs.catch_up(machine, stall)
        if machine.lives(incarnation):
            for neighbour in self._neighbours(machine):
                if not self.separate(machine, neighbour):
                    self._emulator.sessions.reopen(machine, neighbour)

    def _neighbours(self, machine: Machine) -> list[Machine]:
        return [self._machine(id) for id in self._emulator.directory.neighbours(machine.id)]

    # What other modules ask and tell

    def is_silent(self, observer: Machine, peer: Machine) -> bool:
        """Tell whether nothing that a node might say leaves it for an observer."""
        return peer.stall is not None or (self.touches_links and self._wires.is_cut(peer, observer))

    def separate(self, first: Machine, second: Machine) -> bool:
        """Tell whether two nodes cannot begin a session now."""
        return self.touches_links and (self.is_silent(first, second) or self.is_silent(second, first))

    def latency_s(self, sender: Machine, receiver: Machine) -> float:
        """Return how long a message takes that leaves now."""
        return self._wires.latency_s(sender, receiver)

    def crashed(self, machine: Machine) -> None:
        """Judge nobody for a node that is gone, and it no more: its exit is noticed."""
        if self.touches_links:
            for neighbour in self._neighbours(machine):
                self._silences.forget(machine, neighbour)

    def opened(self, first: Machine, second: Machine) -> None:
        """Take a new session as a sign of life of both ends."""
        if self.touches_links:
            self._silences.forget(first, second)

    def session_over(self, observer: Machine, peer: NodeId) -> None:
        """Listen to a peer no more that a node takes for dead."""
        if self.touches_links:
            self._silences.drop(observer.id, peer)


def _parts(fault: Fault) -> tuple[str, ...]:
    """Return what the name of a fault is made of."""
    return type(fault).__name__.lower(), *(node for _, node in fault.named())


def problems_where_shared(plan: FaultPlan) -> list[UserError]:
    """Return what has no meaning where messages share links: in how fast bytes leave, the others have a say."""
    slow = [(i, fault) for i, fault in enumerate(plan.faults) if isinstance(fault, SlowLink) and fault.slowdown != 1]
    what = "got {:g} where messages share links or cost servers something"
    allowed = "1, or a plain network"
    return [UserError(what.format(fault.slowdown), f"faults[{i}].slowdown", allowed) for i, fault in slow]
