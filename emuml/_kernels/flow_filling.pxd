# Rates of the flows of a group; see the twin, reference_flows.py.

from emuml._kernels.flow_groups cimport FlowGroups
from emuml._kernels.flow_parts cimport Channel, Group, Room


cdef class FlowFilling(FlowGroups):
    cdef int fill(self, Group* group) except -1 nogil
    cdef void sum_again(self, Channel* channel, Room* room) noexcept nogil
    cdef int anchor(self, Group* group, int channel, double level) except -1 nogil
