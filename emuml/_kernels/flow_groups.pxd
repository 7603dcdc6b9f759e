# Groups of flows that share channels; see the twin, reference_flow_groups.py.

from emuml._kernels.flow_parts cimport Group
from emuml._kernels.flow_store cimport FlowStore


cdef class FlowGroups(FlowStore):
    cdef int join(self, int slot) except -1 nogil
    cdef int leave(self, int slot) except -1 nogil
    cdef int merged(self, int first, int second) except -1 nogil
    cdef void settle(self, Group* group) noexcept nogil
    cdef void release(self, Group* group) noexcept nogil
    cdef double peak(self, Group* group) noexcept nogil
    cdef int list_ends(self, Group* group) except -1 nogil
    cdef bint tend(self, Group* group) except -1 nogil
