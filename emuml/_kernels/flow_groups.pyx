# Twin: emuml/_kernels/reference_flows.py, reference_flow_groups.py
"""Which flows share channels, and the virtual time of groups whose flows are all limited by one channel, the anchor."""

from emuml._kernels.flow_parts cimport EPSILON, Channel, Entry, Flow, Group, Member, append, drop_first, grown, heapify, push
from emuml._kernels.flow_store cimport FlowStore, is_dead


cdef inline void weigh(FlowGroups self, Channel* channel, double weight) noexcept nogil:
    cdef int i
    channel.weight += weight
    channel.changes += 1
    if channel.changes > channel.count + 8:
        channel.changes = 0
        channel.weight = 0.0
        for i in range(channel.count):
            channel.weight += self.flows[channel.members[i].slot].weight


cdef inline void forward(FlowGroups self, Group* group) noexcept nogil:
    if self.now > group.settled:
        group.virtual += group.level * (self.now - group.settled)
        group.settled = self.now


cdef inline double pressure_of(FlowGroups self, int slot, int anchor) noexcept nogil:
    cdef double most = self.flows[slot].weight / self.flows[slot].most
    cdef int hop, channel
    for hop in range(self.flows[slot].hops):
        channel = self.routes[slot * self.stride + hop]
        if channel != anchor:
            most = max(most, self.channels[channel].weight / self.channels[channel].capacity)
    return most


cdef class FlowGroups(FlowStore):
    """See the twin."""

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
            weigh(self, channel, flow.weight)
        if group.anchor >= 0:
            forward(self, group)
            flow.left = group.virtual + flow.bytes / flow.weight
            push(&group.ends, &group.ends_count, &group.ends_size, flow.left, flow.number, slot)
            group.peak = max(group.peak, pressure_of(self, slot, group.anchor))
        return self.touch(at)

    cdef int leave(self, int slot) except -1 nogil:
        cdef Flow* flow = &self.flows[slot]
        cdef Group* group = &self.groups[flow.group]
        cdef Channel* channel
        cdef Member last
        cdef int hop, place, other, at = flow.group
        if group.anchor >= 0:
            forward(self, group)
        for hop in range(flow.hops):
            channel = &self.channels[self.routes[slot * self.stride + hop]]
            channel.count -= 1
            last = channel.members[channel.count]
            if last.slot != slot or last.hop != hop:
                place = self.places[slot * self.stride + hop]
                channel.members[place] = last
                self.places[last.slot * self.stride + last.hop] = place
            if channel.count:
                weigh(self, channel, -flow.weight)
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
        forward(self, group)
        for i in range(group.count):
            flow = &self.flows[group.flows[i]]
            flow.left = max((flow.left - group.virtual) * flow.weight, 0.0)
            flow.rate = flow.weight * group.level
        group.anchor, group.ends_count = -1, 0

    cdef double peak(self, Group* group) noexcept nogil:
        cdef double most = 0.0
        cdef int i
        for i in range(group.count):
            most = max(most, pressure_of(self, group.flows[i], group.anchor))
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
        forward(self, group)
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
        while is_dead(self, group.ends):
            drop_first(group.ends, &group.ends_count)
        group.next = self.now + max(group.ends[0].key - group.virtual, 0.0) * pressure
        return True
