"""The event queue for other kernels: entries that it fires, and the environment that holds it.

A kernel's own events are cdef classes derived from :class:`Entry` with a ``fire`` of their own. ``Core.push`` puts one
into the queue, ``Core.drop`` cancels it, and the order is SimPy's: time, priority, schedule number.
"""

from libc.stdint cimport int64_t

from emuml._kernels.queue cimport QUEUED, Entry, Place, Queue, key_of


cdef class Core(Queue):
    cdef bint whole  # the time was given as int, so it is told as int
    cdef bint halt  # set by an entry that ends run_calls
    cdef bint watched  # schedule is somebody else's: a subclass's or an instance's
    cdef int64_t number  # the next schedule number

    # Calls: entries that can be cancelled (drop). A kernel that takes schedule numbers of its own puts entries with
    # ``number`` and ``key_of``.
    cdef int push(self, double at, int priority, Entry entry) except -1
    cdef int push_behind(self, double at, int priority, Entry entry) except -1

    # Events: entries that cannot be cancelled; ``delay`` is what ``after`` and ``whole`` were made from.
    cdef int due(self, Entry event, int priority) except -1
    cdef int later(self, Entry event, double after, bint whole, object delay) except -1

    # Loops.
    cdef int happen(self, Place place) except -1
    cdef int fire_next(self) except -1
    cdef int run_calls(self, double until) except -1


cdef object again(error)
