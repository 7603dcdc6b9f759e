# Twin: emuml/_kernels/reference_flows.py, reference_flow_groups.py
"""Weighted max-min fair sharing of channels by flows, event by event: see the twin for the method and its sources.

Nothing is checked here: callers hand over channels that exist, and positive numbers.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy, memset

from emuml._kernels.flow_parts cimport Agenda, Channel, Entry, Flow, Group, Member, Room
from emuml._kernels.flow_parts cimport append, drop_first, drop_head, enter, grown, head, heapify, is_empty, level_of, packed, push, sink

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
    cdef Agenda pending
    cdef Member* few  # room for two members of each channel
    cdef Room* rooms
    cdef uint64_t* words  # heap of a filling
    cdef int words_size
    cdef Entry* ended
    cdef int ended_count, ended_size
    cdef int64_t number, stamps

    def __cinit__(self, capacities):
        cdef const double[::1] given = np.ascontiguousarray(capacities, np.float64)
        cdef int i
        self.channel_count = <int>given.shape[0]
        self.channels = <Channel*>grown(NULL, self.channel_count, sizeof(Channel))
        self.few = <Member*>grown(NULL, 2 * <Py_ssize_t>self.channel_count, sizeof(Member))
        self.rooms = <Room*>grown(NULL, self.channel_count, sizeof(Room))
        memset(self.channels, 0, self.channel_count * sizeof(Channel))
        for i in range(self.channel_count):
            self.channels[i].capacity = given[i]
            self.channels[i].group = -1
            self.channels[i].members, self.channels[i].size = &self.few[2 * i], 2

    def __dealloc__(self):
        cdef int i
        for i in range(self.channel_count if self.channels != NULL else 0):
            if self.channels[i].size > 2:
                free(self.channels[i].members)
        free(self.few)
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
        free(self.pending.entries)
        free(self.rooms)
        free(self.words)
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
               const double[::1] most, const double[::1] sizes, double[::1] out, double until_s=INFINITY):
        """See the twin."""
        cdef int i, count = <int>starts.shape[0]
        cdef const int* channels = &route[0] if route.shape[0] else NULL
        cdef double at
        with nogil:
            for i in range(count):
                self.put(starts[i], channels + first[i], first[i + 1] - first[i], weights[i], most[i], sizes[i])
            while True:
                at = self.next()
                if at == INFINITY or at > until_s:
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
        enter(&self.pending, max(start, self.now), self.number, slot)
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
        while not is_empty(&self.pending) and self.is_dead(head(&self.pending)):
            drop_head(&self.pending)
        while self.queue_count and self.groups[self.queue[0].index].stamp != self.queue[0].number:
            drop_first(self.queue, &self.queue_count)
        if not is_empty(&self.pending):
            at = head(&self.pending).key
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
        if self.ended_count > 1:
            qsort(self.ended, self.ended_count, sizeof(Entry), by_number)
        for i in range(self.ended_count):
            self.leave(self.ended[i].index)
            self.flows[self.ended[i].index].number = 0
        while not is_empty(&self.pending) and head(&self.pending).key <= self.now:
            first = head(&self.pending)[0]
            drop_head(&self.pending)
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
                self.make_room(channel)
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

    cdef int make_room(self, Channel* channel) except -1 nogil:
        """Double the room for members of a channel; the first two are in a block for all channels."""
        cdef bint is_first = channel.size == 2
        cdef Member* fresh = <Member*>grown(NULL if is_first else channel.members, 2 * channel.size, sizeof(Member))
        if is_first:
            memcpy(fresh, channel.members, channel.count * sizeof(Member))
        channel.members = fresh
        channel.size *= 2
        return 0

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
        group.next = self.now + max(group.ends[0].key - group.virtual, 0.0) * pressure
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
        cdef int i, count = 0, still = group.count, slot, m
        cdef uint64_t mask = (<uint64_t>1 << self.index_bits()) - 1, index
        cdef double epsilon = max(EPSILON, (mask + 1) * 2.0**-50), level = 0.0, current, first_s = INFINITY
        cdef double elapsed = self.now - group.settled
        cdef bint is_first
        cdef Channel* channel
        cdef Room* room
        cdef uint64_t* words
        self.fillings += 1
        if self.words_size < group.channel_count + group.count:
            self.words_size = group.channel_count + group.count
            self.words = <uint64_t*>grown(self.words, self.words_size, sizeof(uint64_t))
        words = self.words
        for i in range(group.channel_count):
            channel, room = &self.channels[group.channels[i]], &self.rooms[group.channels[i]]
            room.left, room.weight, room.open = channel.capacity, channel.weight, channel.count
            if channel.count > 1 or not self.is_implied(group.channels[i]):
                words[count] = packed(channel.capacity / channel.weight, group.channels[i], mask)
                count += 1
        for i in range(group.count):
            slot = group.flows[i]
            if self.flows[slot].most < INFINITY:
                words[count] = packed(self.flows[slot].most / self.flows[slot].weight, self.channel_count + slot, mask)
                count += 1
        for i in range(count // 2 - 1, -1, -1):
            sink(words, count, i)
        while still:
            index = words[0] & mask
            if index >= <uint64_t>self.channel_count:
                slot = <int>index - self.channel_count
                if self.flows[slot].filled != self.fillings:
                    level = max(level, self.flows[slot].most / self.flows[slot].weight)
                    first_s = min(first_s, self.fix(slot, level, elapsed))
                    still -= 1
                count -= 1
                words[0] = words[count]
                sink(words, count, 0)
                continue
            channel, room = &self.channels[index], &self.rooms[index]
            if room.open:
                if room.weight < CANCELLED * channel.weight or room.left < CANCELLED * channel.capacity:
                    self.sum_again(channel, room)
                current = max(room.left, 0.0) / room.weight
                if current > level_of(words[0], mask) * (1 + epsilon):
                    words[0] = packed(current, index, mask)
                    sink(words, count, 0)
                    continue
                level = max(level, current)
                is_first = still == group.count
                for m in range(channel.count):
                    slot = channel.members[m].slot
                    if self.flows[slot].filled != self.fillings:
                        first_s = min(first_s, self.fix(slot, level, elapsed))
                        still -= 1
                if is_first and not still:
                    self.anchor(group, <int>index, level)
                    return 0
            count -= 1
            words[0] = words[count]
            sink(words, count, 0)
        group.next, group.settled = first_s, self.now
        return 0

    cdef inline int index_bits(self) noexcept nogil:
        cdef int bits = 16
        while (<int64_t>self.channel_count + self.slots) >> bits:
            bits += 1
        return bits

    cdef inline bint is_implied(self, int channel) noexcept nogil:
        """Tell whether the only flow of a channel crosses another one that limits it at least as much."""
        cdef int slot = self.channels[channel].members[0].slot, hop, other
        cdef double capacity = self.channels[channel].capacity
        for hop in range(self.flows[slot].hops):
            other = self.routes[slot * self.stride + hop]
            if other != channel and self.channels[other].capacity <= capacity:
                if self.channels[other].count > 1 or other < channel or self.channels[other].capacity < capacity:
                    return True
        return False

    cdef inline double fix(self, int slot, double level, double elapsed) noexcept nogil:
        """Give a flow its rate and return when it ends."""
        cdef Flow* flow = &self.flows[slot]
        cdef int* route = &self.routes[slot * self.stride]
        cdef Room* room
        cdef int hop, hops = flow.hops
        cdef double weight = flow.weight, rate = weight * level, left = max(flow.left - flow.rate * elapsed, 0.0)
        flow.filled, flow.left, flow.rate = self.fillings, left, rate
        for hop in range(hops):
            room = &self.rooms[route[hop]]
            room.left -= rate
            room.weight -= weight
            room.open -= 1
        return self.now + left / rate

    cdef void sum_again(self, Channel* channel, Room* room) noexcept nogil:
        """Compute what was left by subtractions that lost too many digits."""
        cdef double used = 0.0, weight = 0.0
        cdef Flow* flow
        cdef int m
        for m in range(channel.count):
            flow = &self.flows[channel.members[m].slot]
            if flow.filled == self.fillings:
                used += flow.rate
            else:
                weight += flow.weight
        room.left, room.weight = channel.capacity - used, weight

    cdef int anchor(self, Group* group, int channel, double level) except -1 nogil:
        cdef Flow* flow
        cdef int i
        group.anchor, group.level, group.virtual, group.changes = channel, level, 0.0, 0
        group.settled = self.now
        for i in range(group.count):
            flow = &self.flows[group.flows[i]]
            flow.left = flow.left / flow.weight
        # No other channel is pressed more now, or it would have been full before.
        group.peak = self.channels[channel].weight / self.channels[channel].capacity * (1 + EPSILON)
        self.list_ends(group)
        group.next = self.now + group.ends[0].key / level
        return 0
