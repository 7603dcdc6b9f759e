"""The queue of events, and what it holds."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t


cdef enum:
    QUEUED = 1  # bit of Entry.bits: in the queue, as a call
    FREE_BITS = 8  # bits from this one on belong to subclasses

    WHOLE = 1  # bits of a key: the time is an integer
    CALL = 2
    NUMBER = 4  # the unit of schedule numbers
    SHIFT = 48  # of the priority


cdef struct Place:
    # 24 bytes: a hold operation on the heap is bound by memory.
    double at
    int64_t key  # priority << 48 | schedule number << 2 | is a call << 1 | time is an integer; compared as signed
    PyObject *entry  # owned


cdef class Entry:
    cdef bint dead  # cancelled, and still in the queue
    cdef uint32_t bits
    cdef int fire(self) except -1


cdef class Queue:
    cdef double now_s
    cdef readonly Py_ssize_t live, dead  # calls that will happen; cancelled ones that are still in the queue
    cdef Place *heap
    cdef Py_ssize_t size, room
    cdef Place *ring  # what comes in the order in which it was scheduled: what is due now, and messages
    cdef Py_ssize_t first, count, ring_room
    cdef public object _active_proc  # here, because only a class with references is looked into by the collector

    cdef int put(self, double at, int64_t key, PyObject *entry) except -1
    cdef int put_behind(self, double at, int64_t key, PyObject *entry) except -1
    cdef bint take(self, Place *place) noexcept
    cdef double next_s(self)
    cdef int drop(self, Entry entry) except -1
    cdef list rows(self)


cdef inline int64_t key_of(int priority, int64_t number, bint call, bint whole) noexcept:
    return <int64_t>priority * (<int64_t>1 << SHIFT) + number * NUMBER + (CALL if call else 0) + (WHOLE if whole else 0)


cdef inline bint precedes(Place *one, Place *other) noexcept:
    # No branches: which one precedes cannot be predicted.
    return (one.at < other.at) | ((not one.at > other.at) & (one.key < other.key))


cdef inline Place *in_ring(Queue queue, Py_ssize_t index) noexcept:
    return &queue.ring[(queue.first + index) & (queue.ring_room - 1)]


cdef inline Place *head_of(Queue queue) noexcept:
    """Return the first entry's place, or NULL."""
    if queue.count == 0:
        return NULL if queue.size == 0 else queue.heap
    if queue.size == 0 or precedes(in_ring(queue, 0), queue.heap):
        return in_ring(queue, 0)
    return queue.heap
