"""Groups of flows that share channels, and the virtual time of those with one bottleneck; see ``reference_flows``."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import inf

EPSILON = 1e-10
"""Levels that differ by less, relatively, are one: channels that fill together."""
TIE = 1e-14
"""Ends that differ by less, relative to the time, are one instant."""


class Flow:
    """A flow and what is known of its rate."""

    def __init__(self, number: int, route: tuple[int, ...], weight: float, most: float, size: float) -> None:
        self.number, self.route, self.weight, self.most, self.size = number, route, weight, most, size
        self.left = size  # bytes; in an anchored group the virtual time of the end
        self.rate = 0.0
        self.filled = 0  # which filling fixed the rate
        self.group: Group | None = None
        self.places = [0] * len(route)  # where the flow stands among the members of each channel


class Group:
    """Flows that share channels. ``anchor`` is -1 where rates have to be computed by filling."""

    def __init__(self, now: float) -> None:
        self.flows: dict[int, int] = {}  # slot -> number of the flow; of insertion order nothing depends
        self.anchor = -1
        self.virtual = self.level = self.peak = 0.0
        self.settled_s = now
        self.next_s = inf
        self.gone = self.changes = 0
        self.is_changed = False
        self.ends: list[tuple[float, int, int]] = []  # (virtual end, number, slot) of an anchored group


class Groups:
    """Who shares channels with whom; rates of groups that changed are computed by a subclass."""

    def __init__(self, capacities: Sequence[float]) -> None:
        self.now = 0.0
        self._capacity = [float(capacity) for capacity in capacities]
        count = len(self._capacity)
        self._members: list[list[tuple[int, int]]] = [[] for _ in range(count)]  # (slot, hop)
        self._weight_on = [0.0] * count
        self._changes_on = [0] * count
        self._group_on: list[Group | None] = [None] * count
        self._flows: list[Flow | None] = []
        self._groups: list[Group] = []
        self._changed: list[Group] = []

    def _flow(self, slot: int) -> Flow:
        flow = self._flows[slot]
        assert flow is not None
        return flow

    # Membership

    def _join(self, slot: int) -> None:
        flow = self._flow(slot)
        group: Group | None = None
        for channel in flow.route:
            other = self._group_on[channel]
            if other is not None and other is not group:
                group = other if group is None else self._merged(group, other)
        if group is None:
            group = Group(self.now)
            self._groups.append(group)
        crossings = flow.route.count(group.anchor)
        if group.anchor >= 0 and not crossings:
            self._release(group)
        flow.group = group
        group.flows[slot] = flow.number
        for hop, channel in enumerate(flow.route):
            self._group_on[channel] = group
            flow.places[hop] = len(self._members[channel])
            self._members[channel].append((slot, hop))
            self._weigh(channel, flow.weight)
        if group.anchor >= 0:
            self._forward(group)
            flow.left = group.virtual + flow.size / flow.weight
            heappush(group.ends, (flow.left, flow.number, slot))
            group.peak = max(group.peak, self._pressure_of(flow, group.anchor))
        self._touch(group)

    def _leave(self, slot: int) -> None:
        flow = self._flow(slot)
        group = flow.group
        assert group is not None
        if group.anchor >= 0:
            self._forward(group)
        for hop, channel in enumerate(flow.route):
            members = self._members[channel]
            last = members.pop()
            if last != (slot, hop):
                place = flow.places[hop]
                members[place] = last
                self._flow(last[0]).places[last[1]] = place
            if members:
                self._weigh(channel, -flow.weight)
            else:
                self._weight_on[channel], self._changes_on[channel], self._group_on[channel] = 0.0, 0, None
        del group.flows[slot]
        flow.group = None
        group.gone += 1
        self._touch(group)
        if not group.flows:
            self._groups.remove(group)
            group.next_s = inf

    def _touch(self, group: Group) -> None:
        if not group.is_changed:
            group.is_changed = True
            self._changed.append(group)

    def _weigh(self, channel: int, weight: float) -> None:
        """Add to the weight on a channel; it is summed anew often enough to have no drift."""
        self._weight_on[channel] += weight
        self._changes_on[channel] += 1
        if self._changes_on[channel] > len(self._members[channel]) + 8:
            self._changes_on[channel] = 0
            total = 0.0
            for slot, _ in self._members[channel]:
                total += self._flow(slot).weight
            self._weight_on[channel] = total

    def _merged(self, first: Group, second: Group) -> Group:
        """Make one group of two."""
        for group in (first, second):
            self._settle(group)
        into, other = (first, second) if len(first.flows) >= len(second.flows) else (second, first)
        for slot, number in other.flows.items():
            flow = self._flow(slot)
            flow.group = into
            into.flows[slot] = number
            for channel in flow.route:
                self._group_on[channel] = into
        into.gone += other.gone
        other.flows = {}
        other.next_s = inf
        self._groups.remove(other)
        return into

    # Groups with an anchor

    def _forward(self, group: Group) -> None:
        """Bring the virtual time up to now."""
        if self.now > group.settled_s:
            group.virtual += group.level * (self.now - group.settled_s)
            group.settled_s = self.now

    def _settle(self, group: Group) -> None:
        """Make each flow know how much of it is left now; an anchored group has no anchor any more."""
        if group.anchor >= 0:
            self._release(group)
            return
        elapsed = self.now - group.settled_s
        for slot in group.flows:
            flow = self._flow(slot)
            flow.left = max(flow.left - flow.rate * elapsed, 0.0)
        group.settled_s = self.now

    def _release(self, group: Group) -> None:
        self._forward(group)
        for slot in group.flows:
            flow = self._flow(slot)
            flow.left = max((flow.left - group.virtual) * flow.weight, 0.0)
            flow.rate = flow.weight * group.level
        group.anchor, group.ends = -1, []

    def _pressure_of(self, flow: Flow, anchor: int) -> float:
        """Return the largest weight per capacity beside the anchor: its inverse is the level that fills it."""
        pressure = flow.weight / flow.most
        for channel in flow.route:
            if channel != anchor:
                pressure = max(pressure, self._weight_on[channel] / self._capacity[channel])
        return pressure

    def _tend(self, group: Group) -> bool:
        """Compute the level of an anchored group, and tell whether its anchor is still the bottleneck of all."""
        self._forward(group)
        group.changes += 1
        if group.changes > len(group.flows) + 8:  # begin a new virtual time, before it loses digits
            group.changes = 0
            for slot in group.flows:
                self._flow(slot).left -= group.virtual
            group.virtual = 0.0
            group.ends = [(self._flow(slot).left, number, slot) for slot, number in group.flows.items()]
            heapify(group.ends)
        pressure = self._weight_on[group.anchor] / self._capacity[group.anchor]
        if group.peak > pressure * (1 + EPSILON):
            group.peak = self._peak(group)  # it only grew until now
            if group.peak > pressure * (1 + EPSILON):
                return False
        group.level = self._capacity[group.anchor] / self._weight_on[group.anchor]
        while group.flows.get(group.ends[0][2]) != group.ends[0][1]:
            heappop(group.ends)
        group.next_s = self.now + max(group.ends[0][0] - group.virtual, 0.0) * pressure
        return True

    def _peak(self, group: Group) -> float:
        peak = 0.0
        for slot in group.flows:
            peak = max(peak, self._pressure_of(self._flow(slot), group.anchor))
        return peak

    def _due(self, group: Group) -> list[int]:
        """Return the flows that end now."""
        window = TIE * self.now
        if group.anchor < 0:
            elapsed, due = self.now - group.settled_s, []
            for slot in group.flows:
                flow = self._flow(slot)
                if flow.left - flow.rate * elapsed <= flow.rate * window:
                    due.append(slot)
            return due
        group.virtual, group.settled_s = max(group.ends[0][0], group.virtual), self.now
        due, limit = [], group.virtual + group.level * window
        while group.ends and group.ends[0][0] <= limit:
            _, number, slot = heappop(group.ends)
            if group.flows.get(slot) == number:
                due.append(slot)
        return due
