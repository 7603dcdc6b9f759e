# Tables of channels, flows and groups; see the twin, reference_flows.py.

from libc.stdint cimport int64_t, uint64_t

from emuml._kernels.flow_parts cimport Agenda, Channel, Entry, Flow, Group, Member, Room


cdef class FlowStore:
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

    cdef int put(self, double start, const int* route, int hops, double weight, double most, double size) except -1 nogil
    cdef int lengthen(self, int size) except -1 nogil
    cdef int widen(self, int hops) except -1 nogil
    cdef int forget(self, int slot) except -1 nogil
    cdef int new_group(self, double settled) except -1 nogil
    cdef int discard(self, int at) except -1 nogil
    cdef int enlist(self, int at, int slot) except -1 nogil
    cdef int enlist_channel(self, int at, int channel) except -1 nogil
    cdef int make_room(self, Channel* channel) except -1 nogil
    cdef int touch(self, int at) except -1 nogil


cdef inline bint is_dead(FlowStore self, Entry* entry) noexcept nogil:
    return self.flows[entry.index].number != entry.number
