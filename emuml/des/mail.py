"""Messages between emulated nodes: FIFO links with latency and bandwidth, sessions, and the fence around each life."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from emuml import effects as fx
from emuml.cluster.cluster import Network
from emuml.des.environment import NORMAL, Call, is_call
from emuml.des.machine import Machine
from emuml.des.network import Carrier
from emuml.des.wires import Parcel, Wires
from emuml.errors import MutatedAfterSend
from emuml.message import Message, decode, digest, encode, freeze
from emuml.node import NodeId

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator
    from emuml.des.silences import Silences

Origin = tuple[Machine, int, int, int, float]
"""Sender, its incarnation, session, number in the session, and when the message left."""


class Mail:
    """Carries messages; one object serves all links of a run."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator, cluster = emulator, emulator.cluster
        self._network = cluster.network if isinstance(cluster.network, Network) else Network()
        self._carrier = None if cluster.shares_nothing else Carrier(emulator.env, cluster, emulator.roster.ids)
        self.wires: Wires | None = None
        self.silences: Silences | None = None
        self._free_s: dict[tuple[NodeId, NodeId], float] = {}
        self._arrives_s: dict[tuple[NodeId, NodeId], float] = {}
        self._on_the_way: dict[NodeId, dict[NodeId, list[Call]]] = {}  # kept where an explorer may lose them

    def broadcast(self, machine: Machine, effect: fx.Broadcast) -> None:
        """Send one message to several peers, in their order."""
        for peer in effect.to:
            self.send(machine, peer, effect.message, effect.size_bytes)

    def send(self, machine: Machine, to: NodeId, message: Message, size_bytes: int) -> None:
        """Put a message on its link, keep it while the link is joining, or discard it when the peer is down."""
        emulator, link = self._emulator, machine.links.of(to)
        kind = type(message).__name__
        if link.carries:
            emulator.trace.add(emulator.now, machine.name, "send", str(to), kind, size_bytes)
            self._leave(machine, to, message, size_bytes, link.session, link.next_seq())
        elif link.state == "joining":
            link.waiting.append((message, size_bytes))
        else:
            emulator.trace.add(emulator.now, machine.name, "discarded", str(to), kind, size_bytes)

    def latency_s(self, sender: NodeId, to: NodeId) -> float:
        """Return the latency from one node to another."""
        return self._network.latency_s if self._carrier is None else self._carrier.latency_s(sender, to)

    @property
    def bandwidth_bps(self) -> float | None:
        """Bits per second of each pair, where no links are shared."""
        return self._network.bandwidth_bps

    def forget(self, first: NodeId, second: NodeId) -> None:
        """Begin a new session: what the old one had queued, in both directions, holds nothing up."""
        for link in ((first, second), (second, first)):
            self._free_s.pop(link, None)
            self._arrives_s.pop(link, None)
            if self.wires is not None:
                self.wires.forget(*link)
            if self._carrier is not None:
                self._carrier.forget(*link)

    def _leave(self, machine: Machine, to: NodeId, message: Message, size_bytes: int, session: int, seq: int) -> None:
        emulator = self._emulator
        now = left = arrives = emulator.env._now
        link, choices = (machine.id, to), emulator.choices
        name = "" if choices is None else choices.name("message", machine.name, to, type(message).__name__)
        check = digest(message) if emulator.checker is not None else 0
        receiver = emulator.machines[to]
        if self.wires is not None and to != machine.id:
            late_s = 0.0 if choices is None else choices.late_s(name, self.latency_s(*link))
            origin = (machine, machine.incarnation, session, seq)
            self.wires.send(Parcel(origin, receiver, message, size_bytes, check, name, late_s))
            return
        if self._carrier is not None and to != machine.id:
            sent = (machine, machine.incarnation, session, seq), receiver, message, size_bytes, check, name
            self._carrier.send(machine.id, to, size_bytes, partial(self._carried, *sent))
            return
        if to != machine.id:
            network = self._network
            if network.bandwidth_bps is not None:
                begins = max(now, self._free_s.get(link, 0.0))
                left = arrives = self._free_s[link] = begins + 8 * size_bytes / network.bandwidth_bps
            arrives += network.latency_s
            if choices is not None and network.latency_s > 0:
                arrives += choices.late_s(name, network.latency_s)
                arrives = self._arrives_s[link] = max(arrives, self._arrives_s.get(link, 0.0))
        life = (machine, machine.incarnation, session, seq, left)
        self._arrive_at(arrives, life, receiver, message, size_bytes, check, name)

    @property
    def shares(self) -> bool:
        """Whether messages share links, or cost servers something."""
        return self._carrier is not None

    def carry(self, parcel: Parcel, arrived: Callable[[Parcel, float, float], None]) -> None:
        """Put what leaves a wire on links that it shares; ``arrived`` is called with its time and that of leaving."""
        assert self._carrier is not None
        sender = parcel.origin[0].id
        self._carrier.send(sender, parcel.to.id, parcel.size_bytes, partial(arrived, parcel))

    def arrive_at(self, at: float, parcel: Parcel) -> Call:
        """Let what leaves a wire arrive."""
        origin = (*parcel.origin, parcel.left_s)
        return self._arrive_at(at, origin, parcel.to, parcel.message, parcel.size_bytes, parcel.check, parcel.name)

    def _carried(
        self,
        origin: tuple[Machine, int, int, int],
        receiver: Machine,
        message: Message,
        size_bytes: int,
        check: int,
        name: str,
        arrives: float,
        left: float,
    ) -> None:
        """Let a message arrive that shared its links with others; an explorer may hold it back."""
        choices, link = self._emulator.choices, (origin[0].id, receiver.id)
        if choices is not None and (latency_s := self.latency_s(*link)) > 0:
            arrives += choices.late_s(name, latency_s)
            arrives = self._arrives_s[link] = max(arrives, self._arrives_s.get(link, 0.0))
        self._arrive_at(arrives, (*origin, left), receiver, message, size_bytes, check, name)

    def _arrive_at(
        self, at: float, origin: Origin, receiver: Machine, message: Message, size_bytes: int, check: int, name: str
    ) -> Call:
        emulator, sender = self._emulator, origin[0]
        call = emulator.env.call_at(at, NORMAL, self._arrive, origin, receiver, message, size_bytes, check)
        call.lane = (sender.id, receiver.id)
        if emulator.choices is not None:
            call.name = name
            self._on_the_way.setdefault(sender.id, {}).setdefault(receiver.id, []).append(call)
        return call

    def lose_on_the_way(self, machine: Machine) -> None:
        """At a crash: of what is on the way to each peer, a prefix arrives (contract 3.10)."""
        if self._carrier is not None:
            self._carrier.crashed(machine.id)
        choices = self._emulator.choices
        if choices is None:
            return
        for to, calls in self._on_the_way.pop(machine.id, {}).items():
            left = [call for call in calls if is_call(call)]
            if left and to != machine.id:
                lost = choices.choose(choices.name("lost", machine.name, to), len(left) + 1)
                for call in left[len(left) - lost :]:
                    self._emulator.env.cancel(call)

    def on_the_way(self) -> dict[tuple[NodeId, NodeId], Call]:
        """Return the first message on its way of each link that has one; where an explorer is asked."""
        found: dict[tuple[NodeId, NodeId], Call] = {}
        for sender, links in self._on_the_way.items():
            for to, calls in links.items():
                head = next(filter(is_call, calls), None)
                if head is not None:
                    found[sender, to] = head
        return found

    def _arrive(self, origin: Origin, machine: Machine, message: Message, size_bytes: int, check: int) -> None:
        if machine.stall is not None:
            machine.stall.keep(self._arrive, origin, machine, message, size_bytes, check)
            return
        sender, incarnation, session, seq, left = origin
        emulator = self._emulator
        if machine.life is None or left > sender.ended.get(incarnation, left):
            return
        link = machine.links.of(sender.id)
        if not link.carries or link.session != session:
            return
        if self.silences is not None and self.silences.hears(machine, sender):
            self._arrive(origin, machine, message, size_bytes, check)  # unless that news set off a fault
            return
        if emulator.checker is not None:
            message = _as_received(message, check, sender.name)
        message = freeze(message)  # receivers of one broadcast share no list; arrays are read-only and stay shared
        emulator.trace.add(emulator.now, machine.name, "receive", sender.name, type(message).__name__, size_bytes)
        emulator.step(
            machine,
            fx.Received(sender.id, message),
            "message",
            lambda: [sender.name, incarnation, session, seq, digest(message)],
        )


def _as_received(message: Message, check: int, sender: str) -> Message:
    """Return what TCP would deliver, after making sure that the content has not changed since it was sent."""
    if digest(message) != check:
        raise MutatedAfterSend(sender, type(message).__name__, "an array")
    return decode(encode(message), type(message))
