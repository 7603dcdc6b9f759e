"""Readable twin of the kernel ``flows``: weighted max-min fair sharing of channels by flows, event by event.

A channel is a capacity: one direction of a link, or a link that both directions share. A flow has a route of channels,
a weight, and perhaps a rate that it never exceeds. Progressive filling raises one level for all flows; a flow has the
rate ``weight * level`` until a channel of its route is full, which fixes it (Bertsekas and Gallager, Data Networks,
section 6.5.2). Flows that share channels, directly or through others, form a group, and only groups that changed are
filled anew, once for all changes of one instant.

Where one channel, the anchor, is the bottleneck of a whole group, all rates are proportional: in a virtual time that
runs at the common level, each flow ends at a time known when it begins, whatever comes and goes (Parekh and Gallager,
IEEE/ACM Trans. Networking 1(3), 1993). A heap of those ends makes an event cost the logarithm of the flows.

Every operation is in the order of the kernel, so that both give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from math import inf
from struct import pack, unpack

import numpy as np
from numpy.typing import NDArray

from emuml._kernels.reference_flow_groups import EPSILON, Flow, Group, Groups

Floats = NDArray[np.float64]

_CANCELLED = 1e-6
"""A difference that lost so many digits is computed anew."""


def _packed(level: float, index: int, mask: int) -> int:
    """Return a level, rounded down, with an index in its last bits; positive levels are ordered as these words are."""
    return int(unpack("<q", pack("<d", level))[0]) & ~mask | index


def _level_of(word: int, mask: int) -> float:
    return float(unpack("<d", pack("<q", word & ~mask))[0])


class FlowSystem(Groups):
    """Flows over channels of fixed capacity.

    Parameters
    ----------
    capacities : sequence of float
        Of each channel in bytes per second, > 0.
    """

    def __init__(self, capacities: Sequence[float]) -> None:
        super().__init__(capacities)
        self.fillings = 0  # how often rates of a group were computed
        self._free: list[int] = []
        self._pending: list[tuple[float, int, int]] = []  # (start, number, slot)
        self._number = 0

    def __len__(self) -> int:
        return len(self._flows) - len(self._free)

    def add(
        self, now: float, start_s: float, route: Iterable[int], weight: float, most: float, size_bytes: float
    ) -> int:
        """Add a flow that takes part from ``start_s`` on, and return its handle, which is free again after its end.

        Parameters
        ----------
        now, start_s : float
            Seconds, ``start_s >= now``; nothing may be due before ``now``.
        route : iterable of int
            Channels; one that is crossed twice is listed twice.
        weight : float
            Rates at one bottleneck are proportional to it, > 0.
        most : float
            Bytes per second that the flow never exceeds; infinity for no such limit, which needs a route.
        size_bytes : float
            > 0.
        """
        self.now = max(self.now, now)
        slot = self._free.pop() if self._free else len(self._flows)
        if slot == len(self._flows):
            self._flows.append(None)
        self._number += 1
        self._flows[slot] = Flow(self._number, tuple(route), weight, most, size_bytes)
        heappush(self._pending, (max(start_s, self.now), self._number, slot))
        return slot

    def remove(self, now: float, slot: int) -> None:
        """End a flow before its time; nothing may be due before ``now``."""
        self.now = max(self.now, now)
        if self._flow(slot).group is not None:
            self._leave(slot)
        self._flows[slot] = None  # its entry among the pending ones is dropped when it comes up
        self._free.append(slot)

    def rate(self, slot: int) -> float:
        """Return the rate of a flow in bytes per second, 0 before its start."""
        self._update()
        flow = self._flow(slot)
        group = flow.group
        if group is None:
            return 0.0
        return flow.rate if group.anchor < 0 else flow.weight * group.level

    def next_time(self) -> float:
        """Return when something happens next: a flow begins or ends; infinity if never."""
        self._update()
        while self._pending and not self._is(self._pending[0]):
            heappop(self._pending)
        first = self._pending[0][0] if self._pending else inf
        return min([first, *(group.next_s for group in self._groups)])

    def advance(self, to: float) -> list[int]:
        """Let everything happen that is due at ``to``, which nothing may precede.

        Returns
        -------
        list of int
            Handles of the flows that ended, in the order in which they were added.
        """
        self._update()
        self.now = max(self.now, to)
        ended: list[tuple[int, int]] = []
        for group in [group for group in self._groups if group.next_s <= self.now]:
            ended += [(self._flow(slot).number, slot) for slot in self._due(group)]
        ended.sort()
        for _, slot in ended:
            self._leave(slot)
            self._flows[slot] = None
        while self._pending and self._pending[0][0] <= self.now:
            entry = heappop(self._pending)
            if self._is(entry):
                self._join(entry[2])
        self._free += [slot for _, slot in ended]
        return [slot for _, slot in ended]

    def finish(
        self,
        starts: Floats,
        first: NDArray[np.intc],
        route: NDArray[np.intc],
        weights: Floats,
        most: Floats,
        sizes: Floats,
        out: Floats,
        until_s: float = inf,
    ) -> None:
        """Write when each of many flows ends to ``out``; flow i has the channels ``route[first[i] : first[i + 1]]``.

        The system must be new, so that handles are numbers of flows. Those that end after ``until_s`` are left out.
        """
        channels = route.tolist()
        for i in range(len(starts)):
            crossed = channels[first[i] : first[i + 1]]
            self.add(self.now, float(starts[i]), crossed, float(weights[i]), float(most[i]), float(sizes[i]))
        while (at := self.next_time()) <= until_s and at < inf:
            for slot in self.advance(at):
                out[slot] = self.now

    def _is(self, entry: tuple[float, int, int]) -> bool:
        flow = self._flows[entry[2]]
        return flow is not None and flow.number == entry[1]

    # Filling

    def _update(self) -> None:
        """Bring the groups that changed up to date."""
        changed, self._changed = self._changed, []
        for group in changed:
            group.is_changed = False
            if not group.flows:
                continue
            if group.anchor >= 0:
                if self._tend(group):
                    continue
                self._release(group)
            for part in self._parts(group):
                self._fill(part)

    def _parts(self, group: Group) -> list[Group]:
        """Return the groups that a group has fallen into; looked at when half of its flows have gone."""
        if 2 * group.gone <= len(group.flows):
            return [group]
        group.gone = 0
        found: list[Group] = []
        for first in list(group.flows):
            if self._flow(first).group is not group:
                continue
            part = Group(group.settled_s)
            found.append(part)
            self._flow(first).group = part
            reached = [first]
            for slot in reached:
                part.flows[slot] = self._flow(slot).number
                for channel in self._flow(slot).route:
                    if self._group_on[channel] is not part:
                        self._group_on[channel] = part
                        for other, _ in self._members[channel]:
                            if self._flow(other).group is group:
                                self._flow(other).group = part
                                reached.append(other)
        self._groups.remove(group)
        self._groups += found
        return found

    def _fill(self, group: Group) -> None:
        """Give every flow of a group its fair rate."""
        self.fillings += 1
        channels, elapsed, level = len(self._capacity), self.now - group.settled_s, 0.0
        mask = (1 << max(16, (channels + len(self._flows)).bit_length())) - 1
        epsilon = max(EPSILON, (mask + 1) * 2.0**-50)
        crossed = {channel for slot in group.flows for channel in self._flow(slot).route}
        room = {channel: self._capacity[channel] for channel in crossed}
        weight = {channel: self._weight_on[channel] for channel in crossed}
        still_on = {channel: len(self._members[channel]) for channel in crossed}
        heap = [
            _packed(room[channel] / weight[channel], channel, mask)
            for channel in crossed
            if still_on[channel] > 1 or not self._is_implied(channel)
        ]
        for slot in group.flows:
            if self._flow(slot).most < inf:
                heap.append(_packed(self._flow(slot).most / self._flow(slot).weight, channels + slot, mask))
        heapify(heap)
        still, group.next_s = len(group.flows), inf

        def fix(slot: int) -> None:
            nonlocal still
            flow = self._flow(slot)
            flow.filled = self.fillings
            flow.left = max(flow.left - flow.rate * elapsed, 0.0)
            flow.rate = flow.weight * level
            group.next_s = min(group.next_s, self.now + flow.left / flow.rate)
            still -= 1
            for channel in flow.route:
                room[channel] -= flow.rate
                weight[channel] -= flow.weight
                still_on[channel] -= 1

        while still:
            index = heap[0] & mask
            if index >= channels:
                heappop(heap)
                flow = self._flow(index - channels)
                if flow.filled != self.fillings:
                    level = max(level, flow.most / flow.weight)
                    fix(index - channels)
                continue
            if not still_on[index]:
                heappop(heap)
                continue
            total, capacity = self._weight_on[index], self._capacity[index]
            if weight[index] < _CANCELLED * total or room[index] < _CANCELLED * capacity:
                room[index], weight[index] = self._summed(index)
            current = max(room[index], 0.0) / weight[index]
            if current > _level_of(heap[0], mask) * (1 + epsilon):
                heapreplace(heap, _packed(current, index, mask))
                continue
            heappop(heap)
            level = max(level, current)
            is_first = still == len(group.flows)
            for slot, _ in self._members[index]:
                if self._flow(slot).filled != self.fillings:
                    fix(slot)
            if is_first and not still:
                self._anchor(group, index, level)
        group.settled_s = self.now

    def _is_implied(self, channel: int) -> bool:
        """Tell whether the only flow of a channel crosses another one that limits it at least as much."""
        ((slot, _),) = self._members[channel]
        capacity = self._capacity[channel]
        for other in self._flow(slot).route:
            if other != channel and self._capacity[other] <= capacity:
                is_shared = len(self._members[other]) > 1
                if is_shared or other < channel or self._capacity[other] < capacity:
                    return True
        return False

    def _summed(self, channel: int) -> tuple[float, float]:
        """Return the room and the weight of flows without a rate on a channel, summed anew."""
        used = weight = 0.0
        for slot, _ in self._members[channel]:
            flow = self._flow(slot)
            if flow.filled == self.fillings:
                used += flow.rate
            else:
                weight += flow.weight
        return self._capacity[channel] - used, weight

    def _anchor(self, group: Group, channel: int, level: float) -> None:
        """Begin a virtual time: one channel is the bottleneck of all flows of a group."""
        group.anchor, group.level, group.virtual, group.changes = channel, level, 0.0, 0
        for slot in group.flows:
            flow = self._flow(slot)
            flow.left = flow.left / flow.weight
        # No other channel is pressed more now, or it would have been full before.
        group.peak = self._weight_on[channel] / self._capacity[channel] * (1 + EPSILON)
        group.ends = [(self._flow(slot).left, number, slot) for slot, number in group.flows.items()]
        heapify(group.ends)
        group.next_s = self.now + group.ends[0][0] / group.level
