# Twin: emuml/_kernels/reference_flows.py
"""Weighted max-min fair sharing of channels by flows, event by event: see the twin for the method and its sources.

Nothing is checked here: callers hand over channels that exist, and positive numbers.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy, memset

from emuml._kernels.flow_parts cimport Channel, Entry, Flow, Group, Member
from emuml._kernels.flow_parts cimport append, drop_first, grown, heapify, push, sift_down

import numpy as np

cdef double EPSILON = 1e-10
cdef double TIE = 1e-14
cdef double CANCELLED = 1e-6


cdef int by_number(const void* a, const void* b) noexcept nogil:
    cdef int64_t first = (<const Entry*>a).number, second = (<const Entry*>b).number
    return (first > second) - (first < second)


cdef class FlowSystem:
    """See the twin."""

    cdef readonly double now
    cdef readonly int64_t fillings  # how often rates of a group were computed
    cdef Channel* channels
    cdef int channel_count
    cdef Flow* flows
    cdef int* routes  # `stride` channels for each slot
    cdef int* places  # where each hop stands among the members of its channel
    cdef int stride, slots, slots_size
    cdef int* unused
    cdef int unused_count, unused_size
    cdef Group* groups
    cdef int group_count, group_size
    cdef int* unused_groups
    cdef int unused_groups_count, unused_groups_size
    cdef int* changed
    cdef int changed_count, changed_size
    cdef int* parts
    cdef int parts_count, parts_size
    cdef int* reached
    cdef int reached_count, reached_size
    cdef Entry* queue  # of groups, by what happens next
    cdef int queue_count, queue_size
    cdef Entry* pending
    cdef int pending_count, pending_size
    cdef Entry* heap  # of a filling
    cdef int heap_count, heap_size
    cdef Entry* ended
    cdef int ended_count, ended_size
    cdef int64_t number, stamps
    cdef int still
    cdef double level, elapsed, first_s

    def __cinit__(self, capacities):
        cdef const double[::1] given = np.ascontiguousarray(capacities, np.float64)
        cdef int i
        self.channel_count = <int>given.shape[0]
        self.channels = <Channel*>grown(NULL, self.channel_count, sizeof(Channel))
        memset(self.channels, 0, self.channel_count * sizeof(Channel))
        for i in range(self.channel_count):
            self.channels[i].capacity = given[i]
            self.channels[i].group = -1

    def __dealloc__(self):
        cdef int i
        for i in range(self.channel_count if self.channels != NULL else 0):
            free(self.channels[i].members)
        for i in range(self.group_count):
            free(self.groups[i].flows)
            free(self.groups[i].channels)
            free(self.groups[i].ends)
        free(self.channels)
        free(self.flows)
        free(self.routes)
        free(self.places)
        free(self.unused)
        free(self.groups)
        free(self.unused_groups)
        free(self.changed)
        free(self.parts)
        free(self.reached)
        free(self.queue)
        free(self.pending)
        free(self.heap)
        free(self.ended)

    def __len__(self):
        return self.slots - self.unused_count

    def add(self, double now, double start_s, route, double weight, double most, double size_bytes):
        """See the twin."""
        cdef const int[::1] channels = np.ascontiguousarray(route, np.intc)
        cdef int hops = <int>channels.shape[0]
        self.now = max(self.now, now)
        return self.put(start_s, &channels[0] if hops else NULL, hops, weight, most, size_bytes)

    def remove(self, double now, int slot):
        """See the twin."""
        self.now = max(self.now, now)
        if self.flows[slot].group >= 0:
            self.leave(slot)
        self.forget(slot)

    def rate(self, int slot):
        """See the twin."""
        self.update()
        cdef int group = self.flows[slot].group
        if group < 0:
            return 0.0
        if self.groups[group].anchor < 0:
            return self.flows[slot].rate
        return self.flows[slot].weight * self.groups[group].level

    def next_time(self):
        """See the twin."""
        return self.next()

    def advance(self, double to):
        """See the twin."""
        cdef int i
        self.step(to)
        return [self.ended[i].index for i in range(self.ended_count)]

    def finish(self, const double[::1] starts, const int[::1] first, const int[::1] route, const double[::1] weights,
               const double[::1] most, const double[::1] sizes, double[::1] out):
        """See the twin."""
        cdef int i, count = <int>starts.shape[0]
        cdef const int* channels = &route[0] if route.shape[0] else NULL
        cdef double at
        with nogil:
            for i in range(count):
                self.put(starts[i], channels + first[i], first[i + 1] - first[i], weights[i], most[i], sizes[i])
            while True:
                at = self.next()
                if at == INFINITY:
                    break
                self.step(at)
                for i in range(self.ended_count):
                    out[self.ended[i].index] = self.now

    # Flows

    cdef int put(self, double start, const int* route, int hops, double weight, double most, double size) except -1 nogil:
        cdef int slot
        cdef Flow* flow
        if hops > self.stride:
            self.widen(hops)
        if self.unused_count:
            self.unused_count -= 1
            slot = self.unused[self.unused_count]
        else:
            if self.slots == self.slots_size:
                self.lengthen(2 * self.slots_size + 16)
            slot = self.slots
            self.slots += 1
        self.number += 1
        flow = &self.flows[slot]
        flow.weight, flow.most, flow.bytes, flow.left, flow.rate = weight, most, size, size, 0.0
        flow.number, flow.filled, flow.group, flow.hops = self.number, 0, -1, hops
        if hops:
            memcpy(&self.routes[slot * self.stride], route, hops * sizeof(int))
        push(&self.pending, &self.pending_count, &self.pending_size, max(start, self.now), self.number, slot)
        return slot

    cdef int lengthen(self, int size) except -1 nogil:
        self.flows = <Flow*>grown(self.flows, size, sizeof(Flow))
        self.routes = <int*>grown(self.routes, <Py_ssize_t>size * self.stride, sizeof(int))
        self.places = <int*>grown(self.places, <Py_ssize_t>size * self.stride, sizeof(int))
        self.slots_size = size
        return 0

    cdef int widen(self, int hops) except -1 nogil:
        """Make room for longer routes."""
        cdef int slot, hop, old = self.stride
        self.stride = hops
        self.lengthen(self.slots_size)
        for slot in range(self.slots - 1, 0, -1):  # from the last one on, so that nothing is overwritten
            for hop in range(old - 1, -1, -1):
                self.routes[slot * hops + hop] = self.routes[slot * old + hop]
                self.places[slot * hops + hop] = self.places[slot * old + hop]
        return 0

    cdef int forget(self, int slot) except -1 nogil:
        self.flows[slot].number = 0
        return append(&self.unused, &self.unused_count, &self.unused_size, slot)

    cdef inline bint is_dead(self, Entry* entry) noexcept nogil:
        return self.flows[entry.index].number != entry.number

    cdef double next(self) except? -1 nogil:
        cdef double at = INFINITY
        self.update()
        while self.pending_count and self.is_dead(self.pending):
            drop_first(self.pending, &self.pending_count)
        while self.queue_count and self.groups[self.queue[0].index].stamp != self.queue[0].number:
            drop_first(self.queue, &self.queue_count)
        if self.pending_count:
            at = self.pending[0].key
        if self.queue_count:
            at = min(at, self.queue[0].key)
        return at

    cdef int step(self, double to) except -1 nogil:
        cdef int i
        cdef Entry first
        self.update()
        self.now = max(self.now, to)
        self.ended_count = 0
        while self.queue_count and self.queue[0].key <= self.now:
            first = self.queue[0]
            drop_first(self.queue, &self.queue_count)
            if self.groups[first.index].stamp == first.number:
                self.due(&self.groups[first.index])
        qsort(self.ended, self.ended_count, sizeof(Entry), by_number)
        for i in range(self.ended_count):
            self.leave(self.ended[i].index)
            self.flows[self.ended[i].index].number = 0
        while self.pending_count and self.pending[0].key <= self.now:
            first = self.pending[0]
            drop_first(self.pending, &self.pending_count)
            if not self.is_dead(&first):
                self.join(first.index)
        for i in range(self.ended_count):
            self.forget(self.ended[i].index)
        return 0

    # Membership

    cdef int new_group(self, double settled) except -1 nogil:
        cdef int at
        cdef Group* group
        if self.unused_groups_count:
            self.unused_groups_count -= 1
            at = self.unused_groups[self.unused_groups_count]
        else:
            at = self.group_count
            if at == self.group_size:
                self.groups = <Group*>grown(self.groups, 2 * at + 16, sizeof(Group))
                self.group_size = 2 * at + 16
            memset(&self.groups[at], 0, sizeof(Group))
            self.group_count += 1
        group = &self.groups[at]
        group.virtual = group.level = group.peak = 0.0
        group.settled, group.next, group.anchor = settled, INFINITY, -1
        group.gone = group.changes = 0
        return at

    cdef int enlist(self, int at, int slot) except -1 nogil:
        """Put a flow into a group."""
        self.flows[slot].group, self.flows[slot].place = at, self.groups[at].count
        return append(&self.groups[at].flows, &self.groups[at].count, &self.groups[at].size, slot)

    cdef int enlist_channel(self, int at, int channel) except -1 nogil:
        cdef Group* group = &self.groups[at]
        self.channels[channel].group, self.channels[channel].place = at, group.channel_count
        return append(&group.channels, &group.channel_count, &group.channel_size, channel)

    cdef int join(self, int slot) except -1 nogil:
        cdef Flow* flow = &self.flows[slot]
        cdef Channel* channel
        cdef Group* group
        cdef int* route = &self.routes[slot * self.stride]
        cdef int hop, other, crossings = 0, at = -1
        for hop in range(flow.hops):
            other = self.channels[route[hop]].group
            if other >= 0 and other != at:
                at = other if at < 0 else self.merged(at, other)
        if at < 0:
            at = self.new_group(self.now)
        group = &self.groups[at]
        if group.anchor >= 0:
            for hop in range(flow.hops):
                crossings += route[hop] == group.anchor
            if not crossings:
                self.release(group)
        self.enlist(at, slot)
        for hop in range(flow.hops):
            channel = &self.channels[route[hop]]
            if channel.group < 0:
                self.enlist_channel(at, route[hop])
            if channel.count == channel.size:
                channel.members = <Member*>grown(channel.members, 2 * channel.size + 4, sizeof(Member))
                channel.size = 2 * channel.size + 4
            self.places[slot * self.stride + hop] = channel.count
            channel.members[channel.count].slot = slot
            channel.members[channel.count].hop = hop
            channel.count += 1
            self.weigh(channel, flow.weight)
        if group.anchor >= 0:
            self.forward(group)
            flow.left = group.virtual + flow.bytes / flow.weight
            push(&group.ends, &group.ends_count, &group.ends_size, flow.left, flow.number, slot)
            group.peak = max(group.peak, self.pressure(slot, group.anchor))
        return self.touch(at)

    cdef int leave(self, int slot) except -1 nogil:
        cdef Flow* flow = &self.flows[slot]
        cdef Group* group = &self.groups[flow.group]
        cdef Channel* channel
        cdef Member last
        cdef int hop, place, other, at = flow.group
        if group.anchor >= 0:
            self.forward(group)
        for hop in range(flow.hops):
            channel = &self.channels[self.routes[slot * self.stride + hop]]
            channel.count -= 1
            last = channel.members[channel.count]
            if last.slot != slot or last.hop != hop:
                place = self.places[slot * self.stride + hop]
                channel.members[place] = last
                self.places[last.slot * self.stride + last.hop] = place
            if channel.count:
                self.weigh(channel, -flow.weight)
            else:
                group.channel_count -= 1
                other = group.channels[group.channel_count]
                group.channels[channel.place] = other
                self.channels[other].place = channel.place
                channel.weight, channel.changes, channel.group = 0.0, 0, -1
        group.count -= 1
        other = group.flows[group.count]
        group.flows[flow.place] = other
        self.flows[other].place = flow.place
        flow.group = -1
        group.gone += 1
        return self.touch(at)

    cdef int touch(self, int at) except -1 nogil:
        if self.groups[at].changed:
            return 0
        self.groups[at].changed = True
        return append(&self.changed, &self.changed_count, &self.changed_size, at)

    cdef inline void weigh(self, Channel* channel, double weight) noexcept nogil:
        cdef int i
        channel.weight += weight
        channel.changes += 1
        if channel.changes > channel.count + 8:
            channel.changes = 0
            channel.weight = 0.0
            for i in range(channel.count):
                channel.weight += self.flows[channel.members[i].slot].weight

    cdef int merged(self, int first, int second) except -1 nogil:
        cdef int i, into = first, other = second
        self.settle(&self.groups[first])
        self.settle(&self.groups[second])
        if self.groups[first].count < self.groups[second].count:
            into, other = second, first
        for i in range(self.groups[other].count):
            self.enlist(into, self.groups[other].flows[i])
        for i in range(self.groups[other].channel_count):
            self.enlist_channel(into, self.groups[other].channels[i])
        self.groups[into].gone += self.groups[other].gone
        self.groups[other].count = self.groups[other].channel_count = 0
        self.touch(other)  # which frees it
        return into

    # Groups with an anchor

    cdef inline void forward(self, Group* group) noexcept nogil:
        if self.now > group.settled:
            group.virtual += group.level * (self.now - group.settled)
            group.settled = self.now

    cdef void settle(self, Group* group) noexcept nogil:
        cdef double elapsed = self.now - group.settled
        cdef Flow* flow
        cdef int i
        if group.anchor >= 0:
            self.release(group)
            return
        for i in range(group.count):
            flow = &self.flows[group.flows[i]]
            flow.left = max(flow.left - flow.rate * elapsed, 0.0)
        group.settled = self.now

    cdef void release(self, Group* group) noexcept nogil:
        cdef Flow* flow
        cdef int i
        self.forward(group)
        for i in range(group.count):
            flow = &self.flows[group.flows[i]]
            flow.left = max((flow.left - group.virtual) * flow.weight, 0.0)
            flow.rate = flow.weight * group.level
        group.anchor, group.ends_count = -1, 0

    cdef inline double pressure(self, int slot, int anchor) noexcept nogil:
        cdef double most = self.flows[slot].weight / self.flows[slot].most
        cdef int hop, channel
        for hop in range(self.flows[slot].hops):
            channel = self.routes[slot * self.stride + hop]
            if channel != anchor:
                most = max(most, self.channels[channel].weight / self.channels[channel].capacity)
        return most

    cdef double peak(self, Group* group) noexcept nogil:
        cdef double most = 0.0
        cdef int i
        for i in range(group.count):
            most = max(most, self.pressure(group.flows[i], group.anchor))
        return most

    cdef int list_ends(self, Group* group) except -1 nogil:
        """Make the heap of ends anew."""
        cdef int i
        if group.ends_size < group.count:
            group.ends = <Entry*>grown(group.ends, group.count, sizeof(Entry))
            group.ends_size = group.count
        for i in range(group.count):
            group.ends[i].key = self.flows[group.flows[i]].left
            group.ends[i].number = self.flows[group.flows[i]].number
            group.ends[i].index = group.flows[i]
        group.ends_count = group.count
        heapify(group.ends, group.count)
        return 0

    cdef bint tend(self, Group* group) except -1 nogil:
        cdef Channel* anchor = &self.channels[group.anchor]
        cdef double pressure = anchor.weight / anchor.capacity
        cdef int i
        self.forward(group)
        group.changes += 1
        if group.changes > group.count + 8:
            group.changes = 0
            for i in range(group.count):
                self.flows[group.flows[i]].left -= group.virtual
            group.virtual = 0.0
            self.list_ends(group)
        if group.peak > pressure * (1 + EPSILON):
            group.peak = self.peak(group)
            if group.peak > pressure * (1 + EPSILON):
                return False
        group.level = anchor.capacity / anchor.weight
        while self.is_dead(group.ends):
            drop_first(group.ends, &group.ends_count)
        group.next = self.now + max(group.ends[0].key - group.virtual, 0.0) / group.level
        return True

    cdef int is_over(self, int slot) except -1 nogil:
        if self.ended_count == self.ended_size:
            self.ended = <Entry*>grown(self.ended, 2 * self.ended_size + 16, sizeof(Entry))
            self.ended_size = 2 * self.ended_size + 16
        self.ended[self.ended_count].number = self.flows[slot].number
        self.ended[self.ended_count].index = slot
        self.ended_count += 1
        return 0

    cdef int due(self, Group* group) except -1 nogil:
        cdef double window = TIE * self.now, limit, elapsed = self.now - group.settled
        cdef Flow* flow
        cdef int i
        if group.anchor < 0:
            for i in range(group.count):
                flow = &self.flows[group.flows[i]]
                if flow.left - flow.rate * elapsed <= flow.rate * window:
                    self.is_over(group.flows[i])
            return 0
        group.virtual, group.settled = max(group.ends[0].key, group.virtual), self.now
        limit = group.virtual + group.level * window
        while group.ends_count and group.ends[0].key <= limit:
            if not self.is_dead(group.ends):
                self.is_over(group.ends[0].index)
            drop_first(group.ends, &group.ends_count)
        return 0

    # Filling

    cdef int update(self) except -1 nogil:
        cdef int i, k, at
        for i in range(self.changed_count):
            at = self.changed[i]
            self.groups[at].changed = False
            if not self.groups[at].count:
                self.discard(at)
                continue
            if self.groups[at].anchor >= 0:
                if self.tend(&self.groups[at]):
                    self.schedule(at)
                    continue
                self.release(&self.groups[at])
            self.part(at)
            for k in range(self.parts_count):
                self.fill(&self.groups[self.parts[k]])
                self.schedule(self.parts[k])
        self.changed_count = 0
        return 0

    cdef int discard(self, int at) except -1 nogil:
        self.groups[at].stamp = 0
        self.groups[at].anchor, self.groups[at].ends_count = -1, 0
        return append(&self.unused_groups, &self.unused_groups_count, &self.unused_groups_size, at)

    cdef int schedule(self, int at) except -1 nogil:
        """Say in the queue when something happens next to a group; what was said before is void."""
        cdef int i, kept = 0
        self.stamps += 1
        self.groups[at].stamp = self.stamps
        if self.queue_count > 2 * self.group_count + 64:
            for i in range(self.queue_count):
                if self.groups[self.queue[i].index].stamp == self.queue[i].number:
                    self.queue[kept] = self.queue[i]
                    kept += 1
            self.queue_count = kept
            heapify(self.queue, kept)
        return push(&self.queue, &self.queue_count, &self.queue_size, self.groups[at].next, self.stamps, at)

    cdef int part(self, int at) except -1 nogil:
        """List the groups that a group has fallen into; looked at when half of its flows have gone."""
        cdef int i, k, m, hop, slot, channel, part
        self.parts_count = 0
        if 2 * self.groups[at].gone <= self.groups[at].count:
            return append(&self.parts, &self.parts_count, &self.parts_size, at)
        for i in range(self.groups[at].count):
            if self.flows[self.groups[at].flows[i]].group != at:
                continue
            part = self.new_group(self.groups[at].settled)
            append(&self.parts, &self.parts_count, &self.parts_size, part)
            self.enlist(part, self.groups[at].flows[i])
            k = 0
            while k < self.groups[part].count:
                slot = self.groups[part].flows[k]
                for hop in range(self.flows[slot].hops):
                    channel = self.routes[slot * self.stride + hop]
                    if self.channels[channel].group != part:
                        self.enlist_channel(part, channel)
                        for m in range(self.channels[channel].count):
                            if self.flows[self.channels[channel].members[m].slot].group == at:
                                self.enlist(part, self.channels[channel].members[m].slot)
                k += 1
        self.groups[at].count = self.groups[at].channel_count = 0
        return self.discard(at)

    cdef int fill(self, Group* group) except -1 nogil:
        cdef int i, index, slot, m
        cdef bint is_first
        cdef double current
        cdef Channel* channel
        self.fillings += 1
        self.elapsed, self.level, self.first_s, self.still = self.now - group.settled, 0.0, INFINITY, group.count
        self.heap_count = 0
        if self.heap_size < group.channel_count + group.count:
            self.heap_size = group.channel_count + group.count
            self.heap = <Entry*>grown(self.heap, self.heap_size, sizeof(Entry))
        for i in range(group.channel_count):
            channel = &self.channels[group.channels[i]]
            channel.room, channel.loose, channel.open = channel.capacity, channel.weight, channel.count
            self.candidate(channel.room / channel.loose, group.channels[i])
        for i in range(group.count):
            slot = group.flows[i]
            if self.flows[slot].most < INFINITY:
                self.candidate(self.flows[slot].most / self.flows[slot].weight, self.channel_count + slot)
        heapify(self.heap, self.heap_count)
        while self.still:
            index = self.heap[0].index
            if index >= self.channel_count:
                if self.flows[index - self.channel_count].filled != self.fillings:
                    self.level = max(self.level, self.heap[0].key)
                    self.fix(index - self.channel_count)
                drop_first(self.heap, &self.heap_count)
                continue
            channel = &self.channels[index]
            if not channel.open:
                drop_first(self.heap, &self.heap_count)
                continue
            if channel.loose < CANCELLED * channel.weight or channel.room < CANCELLED * channel.capacity:
                self.sum_again(channel)
            current = max(channel.room, 0.0) / channel.loose
            if current > self.heap[0].key * (1 + EPSILON):
                self.heap[0].key = current
                sift_down(self.heap, self.heap_count, 0)
                continue
            drop_first(self.heap, &self.heap_count)
            self.level = max(self.level, current)
            is_first = self.still == group.count
            for m in range(channel.count):
                slot = channel.members[m].slot
                if self.flows[slot].filled != self.fillings:
                    self.fix(slot)
            if is_first and not self.still:
                self.anchor(group, index)
        group.next, group.settled = self.first_s, self.now
        return 0

    cdef inline void candidate(self, double level, int index) noexcept nogil:
        cdef Entry* entry = &self.heap[self.heap_count]
        entry.key, entry.number, entry.index = level, index, index
        self.heap_count += 1

    cdef inline void fix(self, int slot) noexcept nogil:
        """Give a flow its rate."""
        cdef Flow* flow = &self.flows[slot]
        cdef int* route = &self.routes[slot * self.stride]
        cdef Channel* channel
        cdef int hop
        cdef double rate = flow.weight * self.level
        flow.filled = self.fillings
        flow.left = max(flow.left - flow.rate * self.elapsed, 0.0)
        flow.rate = rate
        self.first_s = min(self.first_s, self.now + flow.left / rate)
        self.still -= 1
        for hop in range(flow.hops):
            channel = &self.channels[route[hop]]
            channel.room -= rate
            channel.loose -= flow.weight
            channel.open -= 1

    cdef void sum_again(self, Channel* channel) noexcept nogil:
        """Compute what was left by subtractions that lost too many digits."""
        cdef double used = 0.0, loose = 0.0
        cdef Flow* flow
        cdef int m
        for m in range(channel.count):
            flow = &self.flows[channel.members[m].slot]
            if flow.filled == self.fillings:
                used += flow.rate
            else:
                loose += flow.weight
        channel.room, channel.loose = channel.capacity - used, loose

    cdef int anchor(self, Group* group, int channel) except -1 nogil:
        cdef Flow* flow
        cdef int i
        group.anchor, group.level, group.virtual, group.changes = channel, self.level, 0.0, 0
        for i in range(group.count):
            flow = &self.flows[group.flows[i]]
            flow.left = flow.left / flow.weight
        group.peak = self.peak(group)
        self.list_ends(group)
        self.first_s = self.now + group.ends[0].key / group.level
        return 0
