"""Effects of messages, timers and tasks, for the kernel that hands over what comes of them."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from emuml._kernels.durations cimport Durations
from emuml._kernels.events cimport Core, Entry
from emuml._kernels.lives cimport Desk, Machine
from emuml._kernels.messages cimport Plan


cdef struct Pile:
    # Entries that have happened, to be used again; the references are owned.
    PyObject** rows
    Py_ssize_t used, room


cdef class Letter(Entry):
    cdef Machine sender, to
    cdef object message
    cdef Plan plan
    cdef Py_ssize_t size
    cdef double left_s
    cdef int64_t life


cdef class Burst(Entry):
    cdef Machine sender
    cdef tuple to
    cdef object message
    cdef Plan plan
    cdef Py_ssize_t size, next
    cdef double at_s, left_s
    cdef int64_t life, number


cdef class Timer(Entry):
    cdef Machine machine
    cdef object name
    cdef double after_s
    cdef int64_t life, generation


cdef class Job(Entry):
    cdef Machine machine
    cdef object tag, task, draw  # the draw as it was given; None: its number
    cdef double load, part  # of the whole that it is a part of
    cdef int64_t number, life, generation  # number: -1 if the draw is no number, or too large a one
    cdef object drawn(self)


cdef class Hands(Desk):
    cdef Core core
    cdef object trace, rows, mail, now
    cdef Durations durations
    cdef double now_s, latency_s, bandwidth_bps, cancel_lag_s, unit_cost
    cdef Py_ssize_t cores, cost_at, whole_at, inputs_at, draw_at
    cdef bint aside, tracing
    cdef Pile letters, jobs
    cdef list order  # all machines
    cdef Machine receiver  # the last one that was looked up

    cdef int clear_away(self) except -1
    cdef Letter letter(self, Machine sender, Machine to, object message, Plan plan, Py_ssize_t size)
    cdef Burst burst(self, Machine sender, tuple to, object message, Plan plan, Py_ssize_t size)
    cdef Job job(self, Machine machine, object tag, object task, object draw, int64_t number, int64_t generation)
    cdef Timer timer(self, Machine machine, object name, double after_s, int64_t generation)

    # What becomes of an effect later.
    cdef int arrive(
        self, Machine sender, Machine to, object message, Plan plan, Py_ssize_t size, double left_s, int64_t life
    ) except -1
    cdef int expire(self, Timer timer) except -1
    cdef int finish(self, Job job) except -1

    cdef int note(self, tuple row) except -1
    cdef object time(self)
    cdef int send(self, Letter letter) except -1
    cdef int send_as(self, Machine machine, object effect, object to) except -1
    cdef double left(self, Machine machine, Machine to, Py_ssize_t size) except? -1
    cdef int broadcast(self, Burst burst) except -1
    cdef int set_timer(self, Timer timer) except -1
    cdef int cancel_timer(self, Machine machine, object name) except -1
    cdef int compute(self, Job job) except -1
    cdef int occupy(self, Machine machine, Job job) except -1
    cdef double duration(self, Machine machine, Job job) except? -1
    cdef int fill(self, Machine machine) except -1
    cdef Job taken(self, Machine machine, int64_t generation)
    cdef int cancel(self, Machine machine, object tag, int64_t generation) except -1
