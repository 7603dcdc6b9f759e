"""Sessions of emulated links: how they begin and end, and what both ends are told of it (contract 3.2-3.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuml import effects as fx
from emuml.des.environment import NORMAL
from emuml.des.machine import Machine
from emuml.node import NodeId, PeerState

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator


class Sessions:
    """Keeps the number of each link's session and hands news of peers over; one object serves all links of a run."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._numbers: dict[frozenset[NodeId], int] = {}

    def number(self, first: NodeId, second: NodeId) -> int:
        """Return the number of the newest session of a link; the first one is 0."""
        return self._numbers.get(frozenset((first, second)), 0)

    def tell_absent(self) -> None:
        """Tell the neighbours of nodes that start later that they are not there: nobody waits for them."""
        emulator = self._emulator
        for id in sorted(emulator.crashes.absent):
            for peer in emulator.directory.neighbours(id):
                neighbour = emulator.machines[peer]
                if neighbour.life is not None:
                    machine, now = emulator.machines[id], emulator.env._now
                    self._not_there(now, neighbour, neighbour.incarnation, machine)

    def exited(self, machine: Machine) -> None:
        """Let the neighbours of a node that has just crashed notice it."""
        emulator = self._emulator
        for peer in emulator.directory.neighbours(machine.id):
            neighbour = emulator.machines[peer]
            if neighbour.life is not None:
                self._will_notice(neighbour, machine)

    def _will_notice(self, neighbour: Machine, machine: Machine) -> None:
        emulator = self._emulator
        noticed_s, name = emulator.cluster.detection.exit_s, ""
        if emulator.choices is not None:
            name = emulator.choices.name("verdict", neighbour.name, machine.name)
            noticed_s += emulator.choices.late_s(name, noticed_s)
        self.ends_later(neighbour, machine, self.number(machine.id, neighbour.id), noticed_s, name)

    def ends_later(self, neighbour: Machine, machine: Machine, session: int, after_s: float, name: str) -> None:
        """Tell a neighbour after so many seconds that a session with a node is over, unless it knows by then."""
        at = self._emulator.env._now + after_s
        self._emulator.env.call_at(at, NORMAL, self.ends, neighbour, machine, session).name = name

    def ends(self, neighbour: Machine, machine: Machine, session: int) -> None:
        """Tell a neighbour that a session with a node is over, unless it knows."""
        if neighbour.stall is not None:
            neighbour.stall.keep(self.ends, neighbour, machine, session)
        elif neighbour.life is not None:
            link = neighbour.links.of(machine.id)
            if link.carries and link.session == session:
                self.tell(neighbour, machine.id, PeerState.DOWN, session)

    def tell(self, machine: Machine, peer: NodeId, state: PeerState, session: int) -> None:
        """Hand news of a peer over, unless the run was stopped or the node crashed by news before."""
        emulator = self._emulator
        if machine.life is None or emulator.result.stopped is not None:
            return
        waiting = machine.links.change(peer, state, session)
        if state is PeerState.DOWN:
            emulator.faults.session_over(machine, peer)
        emulator.trace.add(emulator.now, machine.name, "peer", str(peer), state.value)
        for message, size_bytes in waiting:  # recorded before anything that the handler will send now
            emulator.mail.send(machine, peer, message, size_bytes)
        emulator.step(machine, fx.PeerChanged(peer, state), "peer", lambda: [str(peer), state.value, session, ""])

    def dial(self, machine: Machine) -> None:
        """Let a new incarnation reach all its neighbours."""
        emulator = self._emulator
        for peer in emulator.directory.neighbours(machine.id):
            latency_s = emulator.mail.latency_s(machine.id, peer)
            connected = emulator.env._now + latency_s + emulator.cluster.detection.connect_s
            neighbour = emulator.machines[peer]
            what = ("connect", machine.name, neighbour.name)
            emulator.call_at(connected, NORMAL, what, self._connect, machine, machine.incarnation, neighbour)

    def _connect(self, machine: Machine, incarnation: int, neighbour: Machine) -> None:
        emulator = self._emulator
        if not machine.lives(incarnation):
            return
        if neighbour.life is None or emulator.faults.separate(machine, neighbour):
            at = emulator.env._now + emulator.cluster.detection.unreachable_s
            self._not_there(at, machine, incarnation, neighbour)
            return
        if machine.links.of(neighbour.id).state != "joining":
            return  # the neighbour, fresh as well, has connected the two before
        self._open(machine, neighbour)

    def _not_there(self, at: float, machine: Machine, incarnation: int, neighbour: Machine) -> None:
        what = ("unreachable", machine.name, neighbour.name)
        self._emulator.call_at(at, NORMAL, what, self._unreachable, machine, incarnation, neighbour)

    def _unreachable(self, machine: Machine, incarnation: int, neighbour: Machine) -> None:
        if machine.stall is not None:
            machine.stall.keep(self._unreachable, machine, incarnation, neighbour)
        elif machine.lives(incarnation) and machine.links.of(neighbour.id).state == "joining":
            self.tell(machine, neighbour.id, PeerState.DOWN, self.number(machine.id, neighbour.id))

    def reopen(self, first: Machine, second: Machine) -> None:
        """Begin a new session soon between two that can reach each other again, if their old one is over."""
        emulator = self._emulator
        if first.life is None or second.life is None or self._is_whole(first, second):
            return
        at = emulator.env._now + emulator.faults.latency_s(first, second) + emulator.cluster.detection.connect_s
        lives = first.incarnation, second.incarnation
        emulator.call_at(at, NORMAL, ("reopen", first.name, second.name), self._reopen, first, second, lives)

    def _reopen(self, first: Machine, second: Machine, lives: tuple[int, int]) -> None:
        both_live = first.lives(lives[0]) and second.lives(lives[1])
        if both_live and not self._is_whole(first, second) and not self._emulator.faults.separate(first, second):
            self._open(first, second)

    def _is_whole(self, first: Machine, second: Machine) -> bool:
        """Tell whether both ends take part in one session."""
        one, other = first.links.of(second.id), second.links.of(first.id)
        return one.carries and other.carries and one.session == other.session

    def _open(self, machine: Machine, neighbour: Machine) -> None:
        """Begin a new session between two nodes that live; both are told, and of the end of the old one before."""
        ends = ((neighbour, machine), (machine, neighbour))
        old, lives = self.number(machine.id, neighbour.id), (machine.incarnation, neighbour.incarnation)
        for one, other in ends:
            if one.links.of(other.id).carries:
                self.tell(one, other.id, PeerState.DOWN, old)
        if not machine.lives(lives[0]) or not neighbour.lives(lives[1]):
            return
        session = self._numbers[frozenset((machine.id, neighbour.id))] = old + 1
        self._emulator.mail.forget(machine.id, neighbour.id)
        self._emulator.faults.opened(machine, neighbour)
        for one, other in ends:
            if machine.lives(lives[0]) and (one is machine or neighbour.lives(lives[1])):
                self._tell_of(one, other, lives[0] if other is machine else lives[1], session)

    def _tell_of(self, one: Machine, other: Machine, incarnation: int, session: int) -> None:
        is_newer = incarnation > one.known.get(other.id, 1) and one.links.of(other.id).state == "down"
        one.known[other.id] = incarnation
        state = PeerState.RESTARTED if is_newer else PeerState.UP
        if one.stall is not None:  # by a fault that the news for the other end has set off
            one.stall.keep(self._tell_late, one, other.id, state, session)
        else:
            self.tell(one, other.id, state, session)

    def _tell_late(self, machine: Machine, peer: NodeId, state: PeerState, session: int) -> None:
        if machine.life is not None and machine.links.allows(peer, state) and self.number(machine.id, peer) == session:
            self.tell(machine, peer, state, session)
