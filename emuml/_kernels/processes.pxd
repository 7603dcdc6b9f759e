"""SimPy's processes in C, for the kernel of environments."""

from emuml._kernels.events cimport Core
from emuml._kernels.occurrences cimport Event


cdef class Process(Event):
    cdef public object _generator, _target

    cdef int go_on(self, bint ok, object value) except -1


cdef Process new_process(Core env, generator)
