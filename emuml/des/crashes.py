"""Crashes, restarts and late starts in the emulator, and what the neighbours are told of them (contract 3.4, 10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from emuml import effects as fx
from emuml.blocks import size_of
from emuml.cluster.faults import Crash, Fault, FaultPlan
from emuml.des.environment import NORMAL, URGENT
from emuml.des.machine import Machine
from emuml.node import NodeId, PeerState

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator


class Crashes:
    """Executes the fault plan of a run and keeps the sessions of its links."""

    def __init__(self, emulator: Emulator, plan: FaultPlan) -> None:
        self._emulator = emulator
        self._plan = plan
        self._sessions: dict[frozenset[NodeId], int] = {}
        self._triggers = plan.triggers()
        self.due = list(plan.faults)
        starts = (fault for fault in plan.faults if not isinstance(fault, Crash))
        self.absent = frozenset(fault.target for fault in starts)

    def schedule(self) -> None:
        """Put the clock forms of the plan into the queue."""
        emulator = self._emulator
        for fault in self._plan.faults:
            at_s = getattr(fault, "at_s", None)
            if at_s is not None:
                emulator.env.call_at(at_s, URGENT, self._strike, fault)

    def missed(self) -> list[str]:
        """Return a sentence for each fault that the run ended without."""
        return self._plan.missed(self.due)

    def tell_absent(self) -> None:
        """Tell the neighbours of nodes that start later that they are not there: nobody waits for them."""
        emulator = self._emulator
        for id in sorted(self.absent):
            for peer in emulator.directory.neighbours(id):
                neighbour = emulator.machines[peer]
                if neighbour.life is not None:
                    emulator.soon(self._unreachable, neighbour, neighbour.incarnation, emulator.machines[id])

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
                    self._restart(self._emulator.machines[fault.target])

    def crash(self, machine: Machine) -> None:
        """Let a node vanish now."""
        self._crash(machine)

    def restart(self, machine: Machine) -> None:
        """Begin the next life of a node that vanished."""
        self._restart(machine)

    def _strike(self, fault: Fault) -> None:
        self.due = [other for other in self.due if other is not fault]
        machine = self._emulator.machines[fault.target]
        self._emulator.trace.add(self._emulator.now, machine.name, "fault", type(fault).__name__)
        if isinstance(fault, Crash):
            self._crash(machine)
            if fault.restart_after_s is not None:
                at = self._emulator.env._now + fault.restart_after_s
                self._emulator.env.call_at(at, URGENT, self._restart, machine)
        else:
            self.absent -= {machine.id}
            self._restart(machine)

    def _crash(self, machine: Machine) -> None:
        emulator = self._emulator
        if machine.life is None:
            return
        emulator.trace.add(emulator.now, machine.name, "crash", machine.incarnation)
        emulator.result.ends.append(f"{machine.name} (life {machine.incarnation}) crashed at t={emulator.now:.6g} s")
        machine.ended[machine.incarnation] = emulator.env._now
        machine.life, machine.journal = None, None
        for call in (*machine.timers.values(), *machine.running.values()):
            emulator.env.cancel(call)
        emulator.disks.lose_pending(machine)
        emulator.mail.lose_on_the_way(machine)
        machine.reset()
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
        session = self._session(machine.id, neighbour.id)
        at = emulator.env._now + noticed_s
        emulator.env.call_at(at, NORMAL, self._tell_down, neighbour, machine, session).name = name

    def _tell_down(self, neighbour: Machine, machine: Machine, session: int) -> None:
        if neighbour.life is not None:
            link = neighbour.links.of(machine.id)
            if link.carries and link.session == session:
                self._tell(neighbour, machine.id, PeerState.DOWN, session)

    def _session(self, first: NodeId, second: NodeId) -> int:
        return self._sessions.get(frozenset((first, second)), 0)

    def _tell(self, machine: Machine, peer: NodeId, state: PeerState, session: int) -> None:
        """Hand news of a peer over, unless the run was stopped or the node crashed by news before."""
        emulator = self._emulator
        if machine.life is None or emulator.result.stopped is not None:
            return
        waiting = machine.links.change(peer, state, session)
        emulator.trace.add(emulator.now, machine.name, "peer", str(peer), state.value)
        for message, size_bytes in waiting:  # recorded before anything that the handler will send now
            emulator.mail.send(machine, peer, message, size_bytes)
        emulator.step(machine, fx.PeerChanged(peer, state), "peer", lambda: [str(peer), state.value, session, ""])

    def _restart(self, machine: Machine) -> None:
        emulator = self._emulator
        if machine.life is not None:
            return
        reading_s = emulator.cluster.storage.seconds(size) if (size := size_of(dict(machine.store.read()))) else 0.0
        if reading_s > 0:
            emulator.env.call_at(emulator.env._now + reading_s, URGENT, self._begin, machine, machine.incarnation)
        else:
            self._begin(machine, machine.incarnation)

    def _begin(self, machine: Machine, former: int) -> None:
        """Start the next incarnation, unless another start came first, and dial all its neighbours."""
        emulator = self._emulator
        if machine.life is not None or machine.incarnation != former:
            return
        emulator.start(machine, joining=True)
        if not machine.lives(former + 1):
            return
        detection, now = emulator.cluster.detection, emulator.env._now
        for peer in emulator.directory.neighbours(machine.id):
            connected = now + emulator.mail.latency_s(machine.id, peer) + detection.connect_s
            emulator.env.call_at(
                connected, NORMAL, self._connect, machine, machine.incarnation, emulator.machines[peer]
            )

    def _connect(self, machine: Machine, incarnation: int, neighbour: Machine) -> None:
        emulator = self._emulator
        if not machine.lives(incarnation):
            return
        if neighbour.life is None:
            at = emulator.env._now + emulator.cluster.detection.unreachable_s
            emulator.env.call_at(at, NORMAL, self._unreachable, machine, incarnation, neighbour)
            return
        if machine.links.of(neighbour.id).state != "joining":
            return  # the neighbour, fresh as well, has connected the two before
        self._open(machine, neighbour)

    def _open(self, machine: Machine, neighbour: Machine) -> None:
        """Begin a new session between a joining node and a living neighbour; both are told."""
        old, lives = self._session(machine.id, neighbour.id), (machine.incarnation, neighbour.incarnation)
        link = neighbour.links.of(machine.id)
        if link.carries:
            self._tell(neighbour, machine.id, PeerState.DOWN, old)
        if not machine.lives(lives[0]) or not neighbour.lives(lives[1]):
            return
        session = self._sessions[frozenset((machine.id, neighbour.id))] = old + 1
        self._emulator.mail.forget(machine.id, neighbour.id)
        fresh = link.state == "joining" or lives[0] == 1
        self._tell(neighbour, machine.id, PeerState.UP if fresh else PeerState.RESTARTED, session)
        if machine.lives(lives[0]):
            self._tell(machine, neighbour.id, PeerState.UP, session)

    def _unreachable(self, machine: Machine, incarnation: int, neighbour: Machine) -> None:
        if machine.lives(incarnation) and machine.links.of(neighbour.id).state == "joining":
            self._tell(machine, neighbour.id, PeerState.DOWN, self._session(machine.id, neighbour.id))
