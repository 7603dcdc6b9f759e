# Twin: emuml/_kernels/reference_flows.py
"""Progressive filling: the weighted max-min fair rates of the flows of a group."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t

from emuml._kernels.flow_groups cimport FlowGroups
from emuml._kernels.flow_parts cimport EPSILON, Channel, Flow, Group, Room, grown, level_of, packed, sink

cdef double CANCELLED = 1e-6


cdef inline int index_bits(FlowFilling self) noexcept nogil:
    cdef int bits = 16
    while (<int64_t>self.channel_count + self.slots) >> bits:
        bits += 1
    return bits


cdef inline bint is_implied(FlowFilling self, int channel) noexcept nogil:
    """Tell whether the only flow of a channel crosses another one that limits it at least as much."""
    cdef int slot = self.channels[channel].members[0].slot, hop, other
    cdef double capacity = self.channels[channel].capacity
    for hop in range(self.flows[slot].hops):
        other = self.routes[slot * self.stride + hop]
        if other != channel and self.channels[other].capacity <= capacity:
            if self.channels[other].count > 1 or other < channel or self.channels[other].capacity < capacity:
                return True
    return False


cdef inline double fix(FlowFilling self, int slot, double level, double elapsed) noexcept nogil:
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


cdef class FlowFilling(FlowGroups):
    """See the twin."""

    cdef int fill(self, Group* group) except -1 nogil:
        cdef int i, count = 0, still = group.count, slot, m
        cdef uint64_t mask = (<uint64_t>1 << index_bits(self)) - 1, index
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
            if channel.count > 1 or not is_implied(self, group.channels[i]):
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
                    first_s = min(first_s, fix(self, slot, level, elapsed))
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
                        first_s = min(first_s, fix(self, slot, level, elapsed))
                        still -= 1
                if is_first and not still:
                    self.anchor(group, <int>index, level)
                    return 0
            count -= 1
            words[0] = words[count]
            sink(words, count, 0)
        group.next, group.settled = first_s, self.now
        return 0

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
