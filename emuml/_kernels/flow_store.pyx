# Twin: emuml/_kernels/reference_flows.py, reference_flow_groups.py
"""The tables of a system of flows: channels, flows, groups, and the memory that they take and give back."""

from libc.math cimport INFINITY
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from emuml._kernels.flow_parts cimport append, enter, grown

import numpy as np


cdef class FlowStore:
    """What the tables hold, and how room is made in them; decides nothing."""

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
        free(self.queue)
        free(self.pending.entries)
        free(self.rooms)
        free(self.words)
        free(self.ended)

    def __len__(self):
        return self.slots - self.unused_count

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

    cdef int discard(self, int at) except -1 nogil:
        self.groups[at].stamp = 0
        self.groups[at].anchor, self.groups[at].ends_count = -1, 0
        return append(&self.unused_groups, &self.unused_groups_count, &self.unused_groups_size, at)

    cdef int enlist(self, int at, int slot) except -1 nogil:
        """Put a flow into a group."""
        self.flows[slot].group, self.flows[slot].place = at, self.groups[at].count
        return append(&self.groups[at].flows, &self.groups[at].count, &self.groups[at].size, slot)

    cdef int enlist_channel(self, int at, int channel) except -1 nogil:
        cdef Group* group = &self.groups[at]
        self.channels[channel].group, self.channels[channel].place = at, group.channel_count
        return append(&group.channels, &group.channel_count, &group.channel_size, channel)

    cdef int make_room(self, Channel* channel) except -1 nogil:
        """Double the room for members of a channel; the first two are in a block for all channels."""
        cdef bint is_first = channel.size == 2
        cdef Member* fresh = <Member*>grown(NULL if is_first else channel.members, 2 * channel.size, sizeof(Member))
        if is_first:
            memcpy(fresh, channel.members, channel.count * sizeof(Member))
        channel.members = fresh
        channel.size *= 2
        return 0

    cdef int touch(self, int at) except -1 nogil:
        if self.groups[at].changed:
            return 0
        self.groups[at].changed = True
        return append(&self.changed, &self.changed_count, &self.changed_size, at)
