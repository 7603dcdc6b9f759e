"""Durations of tasks by (draw, load), for the kernel that runs them."""

from libc.stdint cimport int64_t


cdef enum:
    VECTORS = 8  # draws whose durations are kept for all workers


cdef class Durations:
    cdef object fill, empty
    cdef dict asked
    cdef list views
    cdef Py_ssize_t used, next, last, size
    cdef Py_ssize_t found  # durations that were taken from vectors since the last one was made
    cdef int64_t draws[VECTORS]
    cdef double loads[VECTORS]
    cdef double* values[VECTORS]
    cdef double find(self, int64_t draw, double load, Py_ssize_t worker) except? -1
