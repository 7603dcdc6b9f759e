"""The event queue for other kernels: entries that it fires, and the environment that holds it.

A kernel's own events are cdef classes derived from :class:`Entry` with a ``fire`` of their own. ``Core.push`` puts one
into the queue, ``Core.drop`` cancels it, and the order is SimPy's: time, priority, schedule number.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t


cdef enum:
    QUEUED = 1  # bit of Entry.bits: in the queue, as a call
    FREE_BITS = 8  # bits from this one on belong to subclasses


cdef struct Place:
    # 24 bytes: a hold operation on the heap is bound by memory.
    double at
    int64_t key  # priority << 48 | schedule number << 2 | is a call << 1 | time is an integer; compared as signed
    PyObject *entry  # owned


cdef class Entry:
    cdef bint dead  # cancelled, and still in the queue
    cdef uint32_t bits
    cdef int fire(self) except -1


cdef class Core:
    cdef double now_s
    cdef bint whole  # the time was given as int, so it is told as int
    cdef bint halt  # set by an entry that ends run_calls
    cdef readonly Py_ssize_t live, dead  # calls that will happen; cancelled ones that are still in the queue
    cdef int64_t number  # the next schedule number
    cdef Place *heap
    cdef Py_ssize_t size, room
    cdef Place *ring  # what happens now and was scheduled for now, in schedule order
    cdef Py_ssize_t first, count, ring_room
    cdef public object _active_proc
    cdef bint watched  # schedule is somebody else's: a subclass's or an instance's

    # Calls: entries that can be cancelled.
    cdef int push(self, double at, int priority, Entry entry) except -1
    cdef int drop(self, Entry entry) except -1

    # Parts: a kernel that takes schedule numbers of its own (number, key_of) can put entries with them.
    cdef int put(self, double at, int64_t key, PyObject *entry) except -1
    cdef bint take(self, Place *place) noexcept
    cdef Place *head(self) noexcept

    # Events: entries that cannot be cancelled; ``delay`` is what ``after`` and ``whole`` were made from.
    cdef int due(self, Entry event, int priority) except -1
    cdef int later(self, Entry event, double after, bint whole, object delay) except -1

    # Loops.
    cdef double next_s(self)
    cdef int happen(self, Place place) except -1
    cdef int fire_next(self) except -1
    cdef int run_calls(self, double until) except -1


cdef int64_t key_of(int priority, int64_t number, bint call, bint whole) noexcept
cdef double number_of(number, bint *whole) except? -1
cdef object told(double time, bint whole)
cdef object again(error)
