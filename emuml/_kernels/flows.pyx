# Twin: emuml/_kernels/reference_flows.py, reference_flow_groups.py
"""Weighted max-min fair sharing of channels by flows, event by event: see the twin for the method and its sources.

Nothing is checked here: callers hand over channels that exist, and positive numbers.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport qsort

from emuml._kernels.flow_filling cimport FlowFilling
from emuml._kernels.flow_parts cimport Entry, Flow, Group, append, drop_first, drop_head, grown, head, heapify, is_empty, push
from emuml._kernels.flow_store cimport is_dead

import numpy as np

cdef double TIE = 1e-14


cdef int by_number(const void* a, const void* b) noexcept nogil:
    cdef int64_t first = (<const Entry*>a).number, second = (<const Entry*>b).number
    return (first > second) - (first < second)


cdef class FlowSystem(FlowFilling):
    """See the twin."""

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

    cdef double next(self) except? -1 nogil:
        cdef double at = INFINITY
        self.update()
        while not is_empty(&self.pending) and is_dead(self, head(&self.pending)):
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
            if not is_dead(self, &first):
                self.join(first.index)
        for i in range(self.ended_count):
            self.forget(self.ended[i].index)
        return 0

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
            if not is_dead(self, group.ends):
                self.is_over(group.ends[0].index)
            drop_first(group.ends, &group.ends_count)
        return 0

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
