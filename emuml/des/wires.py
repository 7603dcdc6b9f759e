"""Links that faults cut, slow down or make lossy: each direction is a wire that messages leave one after the other.

A message has so many seconds of leaving, which is its size over the bandwidth. A wire that is ``f`` times as slow gets
``d / f`` of them done in ``d`` seconds, a cut one none; so what is leaving when something changes is split exactly.
What has left arrives, after the latency that held when it left. Nothing overtakes. Where messages share links a wire is
what comes before those: a message that has begun to leave goes on.
"""

from __future__ import annotations

from collections import deque
from math import prod
from typing import TYPE_CHECKING

from emuml.cluster.faults import Lossy, SlowLink
from emuml.des.environment import Call
from emuml.des.machine import Machine
from emuml.message import Message
from emuml.node import NodeId
from emuml.streams import stream_key, uniform

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator

BACKOFFS_MAX = 6
"""The timeout of a repetition doubles so many times."""


class Parcel:
    """A message with where it comes from and goes to, what is left of its leaving, and how late it is beyond that."""

    __slots__ = ("arrives_s", "call", "check", "late_s", "left_s", "message", "name",
                 "origin", "since_s", "size_bytes", "to", "work_s")  # fmt: skip

    def __init__(
        self,
        origin: tuple[Machine, int, int, int],
        to: Machine,
        message: Message,
        size_bytes: int,
        check: int,
        name: str,
        late_s: float,
    ) -> None:
        self.origin, self.to, self.message, self.size_bytes = origin, to, message, size_bytes
        self.check, self.name, self.late_s = check, name, late_s
        self.work_s = self.since_s = self.left_s = self.arrives_s = 0.0
        self.call: Call | None = None


class Wire:
    """One direction of a link: what is wrong with it, and the messages that have not left."""

    __slots__ = ("arrives_s", "cuts", "drawn", "losses", "slow", "waiting")

    def __init__(self) -> None:
        self.cuts = 0
        self.slow: list[SlowLink] = []
        self.losses: list[Lossy] = []
        self.drawn = 0
        self.waiting: deque[Parcel] = deque()
        self.arrives_s = 0.0

    @property
    def slowness(self) -> float:
        """How many times as long a byte takes to leave."""
        return prod(fault.slowdown for fault in self.slow)

    def retries(self, word: float) -> int:
        """Return how often a message is lost, given a uniform number: at least k times with probability loss**k."""
        loss = self.losses[-1].loss
        count, least = 0, loss
        while word < least:
            count, least = count + 1, least * loss
        return count


def backoff_s(timeout_s: float, count: int) -> float:
    """Return how many seconds pass until the ``count``-th repetition of a message is sent."""
    doubled = min(count, BACKOFFS_MAX + 1)
    return timeout_s * (2.0**doubled - 1.0) + timeout_s * 2.0**BACKOFFS_MAX * (count - doubled)


class Wires:
    """All directions of all links of a run that has faults of links."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._wires: dict[tuple[NodeId, NodeId], Wire] = {}

    def _wire(self, sender: NodeId, to: NodeId) -> Wire:
        return self._wires.setdefault((sender, to), Wire())

    def is_cut(self, sender: Machine, to: Machine) -> bool:
        """Tell whether nothing leaves a sender for a receiver."""
        wire = self._wires.get((sender.id, to.id))
        return wire is not None and wire.cuts > 0

    def latency_s(self, sender: Machine, to: Machine) -> float:
        """Return how many seconds a message that leaves now takes."""
        extra_s = sum(fault.latency_s for fault in self._wire(sender.id, to.id).slow)
        return self._emulator.mail.latency_s(sender.id, to.id) + extra_s

    def send(self, parcel: Parcel) -> None:
        """Let a message leave when those before it have left."""
        emulator, sender = self._emulator, parcel.origin[0]
        wire, bandwidth_bps = self._wire(sender.id, parcel.to.id), emulator.mail.bandwidth_bps
        if bandwidth_bps is not None:
            parcel.work_s = 8 * parcel.size_bytes / bandwidth_bps
        if wire.losses:
            key = stream_key(emulator.roster.seed, "", f"loss/{sender.id}/{parcel.to.id}")
            parcel.late_s += backoff_s(wire.losses[-1].timeout_s, wire.retries(uniform(key, wire.drawn)))
            wire.drawn += 1
        if emulator.mail.shares and not wire.cuts:
            self._carry(wire, parcel)
            return
        self._drop_left(wire)
        before = wire.waiting[-1] if wire.waiting else None
        wire.waiting.append(parcel)
        if not wire.cuts:
            self._leave(wire, parcel, before)

    def _carry(self, wire: Wire, parcel: Parcel) -> None:
        """Let a message leave on links that are shared: when it has left, others have a say in."""
        parcel.late_s += sum(fault.latency_s for fault in wire.slow)
        self._emulator.mail.carry(parcel, self._carried)

    def _carried(self, parcel: Parcel, arrives_s: float, left_s: float) -> None:
        wire = self._wire(parcel.origin[0].id, parcel.to.id)
        parcel.left_s = left_s
        wire.arrives_s = max(arrives_s + parcel.late_s, wire.arrives_s)
        self._emulator.mail.arrive_at(wire.arrives_s, parcel)

    def _drop_left(self, wire: Wire) -> None:
        now = self._emulator.env._now
        while wire.waiting and wire.waiting[0].call is not None and wire.waiting[0].left_s <= now:
            wire.arrives_s = wire.waiting.popleft().arrives_s

    def _leave(self, wire: Wire, parcel: Parcel, before: Parcel | None) -> None:
        """Let a message leave when the one before has left, or now, and arrive after that one."""
        begins_s = self._emulator.env._now if before is None else before.left_s
        parcel.since_s, parcel.left_s = begins_s, begins_s + parcel.work_s * wire.slowness
        arrives_s = parcel.left_s + self.latency_s(parcel.origin[0], parcel.to) + parcel.late_s
        parcel.arrives_s = max(arrives_s, wire.arrives_s if before is None else before.arrives_s)
        parcel.call = self._emulator.mail.arrive_at(parcel.arrives_s, parcel)

    def _hold(self, wire: Wire) -> None:
        """Take off what has left by now; what has not, has no time of arrival any more."""
        self._drop_left(wire)
        now = self._emulator.env._now
        for parcel in wire.waiting:
            if parcel.call is not None:
                parcel.work_s -= max(now - parcel.since_s, 0.0) / wire.slowness
                self._emulator.env.cancel(parcel.call)
                parcel.call = None

    def _go_on(self, wire: Wire) -> None:
        """Let what has not left leave from now on."""
        if self._emulator.mail.shares:
            while wire.waiting and not wire.cuts:
                self._carry(wire, wire.waiting.popleft())
            return
        before: Parcel | None = None
        for parcel in wire.waiting if not wire.cuts else ():
            self._leave(wire, parcel, before)
            before = parcel

    def cut(self, sender: Machine, to: Machine) -> None:
        """Let nothing leave any more."""
        wire = self._wire(sender.id, to.id)
        self._hold(wire)
        wire.cuts += 1

    def uncut(self, sender: Machine, to: Machine) -> None:
        """Take one cut away; :meth:`release` lets go of what has waited."""
        self._wire(sender.id, to.id).cuts -= 1

    def release(self, sender: Machine, to: Machine) -> None:
        """Let what has waited leave, unless the link is still cut."""
        wire = self._wire(sender.id, to.id)
        self._hold(wire)
        self._go_on(wire)

    def change(self, sender: Machine, to: Machine, fault: SlowLink | Lossy, begins: bool) -> None:
        """Let a fault of a link begin or end."""
        wire = self._wire(sender.id, to.id)
        self._hold(wire)
        faults: list[SlowLink] | list[Lossy] = wire.slow if isinstance(fault, SlowLink) else wire.losses
        if begins:
            faults.append(fault)  # type: ignore[arg-type]
        else:
            faults.remove(fault)  # type: ignore[arg-type]
        self._go_on(wire)

    def forget(self, sender: NodeId, to: NodeId) -> None:
        """Begin a new session: what the old one had not sent is lost, and what it had holds nothing up."""
        wire = self._wires.get((sender, to))
        if wire is not None:
            self._clear(wire)
            wire.arrives_s = 0.0

    def _clear(self, wire: Wire) -> None:
        self._drop_left(wire)
        for parcel in wire.waiting:
            if parcel.call is not None:
                self._emulator.env.cancel(parcel.call)
        wire.waiting.clear()
