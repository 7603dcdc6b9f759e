"""Contexts, for the kernel that calls handlers."""

from libc.stdint cimport int64_t

from emuml._kernels.lives cimport Life


cdef class Context:
    cdef Life life
    cdef readonly object id
    cdef int64_t life_number
    cdef double now_s
