"""Messages between emulated nodes: FIFO links with latency and bandwidth, sessions, and the fence around each life."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from emuml import effects as fx
from emuml.des.environment import NORMAL
from emuml.des.machine import Machine
from emuml.errors import MutatedAfterSend
from emuml.message import Message, decode, digest, encode, freeze
from emuml.node import NodeId

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator

DELAY_LEVELS = 6
"""Choices of a message's delay: 0 to 5 extra latencies."""


class Mail:
    """Carries messages; one object serves all links of a run."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._free_s: dict[tuple[NodeId, NodeId], float] = {}
        self._arrives_s: dict[tuple[NodeId, NodeId], float] = {}
        self._counts: Counter[tuple[NodeId, NodeId, str]] = Counter()

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

    def forget(self, first: NodeId, second: NodeId) -> None:
        """Begin a new session: what the old one had queued, in both directions, holds nothing up."""
        for link in ((first, second), (second, first)):
            self._free_s.pop(link, None)
            self._arrives_s.pop(link, None)

    def _leave(self, machine: Machine, to: NodeId, message: Message, size_bytes: int, session: int, seq: int) -> None:
        emulator = self._emulator
        now = left = arrives = emulator.env._now
        link = (machine.id, to)
        if to != machine.id:
            network = emulator.cluster.network
            if network.bandwidth_bps is not None:
                begins = max(now, self._free_s.get(link, 0.0))
                left = arrives = self._free_s[link] = begins + 8 * size_bytes / network.bandwidth_bps
            arrives += network.latency_s
            if emulator.choose is not None and network.latency_s > 0:
                arrives += network.latency_s * emulator.choose(self._name(machine.id, to, message), DELAY_LEVELS)
                arrives = self._arrives_s[link] = max(arrives, self._arrives_s.get(link, 0.0))
        check = digest(message) if emulator.checker is not None else 0
        origin = (machine, machine.incarnation, session, seq, left)
        receiver = emulator.machines[to]
        call = emulator.env.call_at(arrives, NORMAL, self._arrive, origin, receiver, message, size_bytes, check)
        call.lane = link

    def _name(self, sender: NodeId, to: NodeId, message: Message) -> str:
        key = (sender, to, type(message).__name__)
        self._counts[key] += 1
        return f"message/{sender}/{to}/{key[2]}/{self._counts[key] - 1}"

    def _arrive(
        self,
        origin: tuple[Machine, int, int, int, float],
        machine: Machine,
        message: Message,
        size_bytes: int,
        check: int,
    ) -> None:
        sender, incarnation, session, seq, left = origin
        emulator = self._emulator
        if machine.life is None or left > sender.ended.get(incarnation, left):
            return
        link = machine.links.of(sender.id)
        if not link.carries or link.session != session:
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
