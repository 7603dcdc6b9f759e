"""Requests and what they wait for, for the kernels of stores and resources."""

from emuml._kernels.events cimport Core
from emuml._kernels.occurrences cimport Event


cdef class BaseRequest(Event):
    cdef readonly BaseResource resource
    cdef public object proc


cdef class Put(BaseRequest):
    pass


cdef class Get(BaseRequest):
    pass


cdef class BaseResource:
    cdef readonly Core _env
    cdef object capacity_given
    cdef double limit
    cdef object puts, gets  # a line: None, the one request that waits, or a queue
    cdef bint plain  # nothing was replaced: requests are served in C
    cdef bint several  # one who was served lets the next one try

    cdef bint is_plain(self, object kind) except -1
    cdef bint can_put(self, Put request) except -1
    cdef bint can_get(self, Get request) except -1
    cdef int putting(self, Put request) except -1
    cdef int getting(self, Get request) except -1
    cdef int ask_put(self) except -1
    cdef int ask_get(self) except -1
    cdef int serve_puts(self) except -1
    cdef int serve_gets(self) except -1


cdef int grant(Event request, value) except -1


cdef inline int place(BaseRequest request, BaseResource resource) except -1:
    request.env, request.resource, request.proc = resource._env, resource, resource._env._active_proc
    return 0
