"""Contexts, for the kernel that calls handlers."""

from libc.stdint cimport int64_t

from emuml._kernels.lives cimport Life


cdef class Context:
    cdef Life life
    cdef double now_s
    # Of a context that was kept, which has no life any more.
    cdef object kept_id
    cdef int64_t kept_number
    cdef int retire(self) except -1
