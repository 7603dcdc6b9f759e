"""SimPy's events in C, for the kernels of processes, conditions and resources."""

from emuml._kernels.events cimport Core
from emuml._kernels.queue cimport Entry


cdef enum:
    # Bits of an event; the first ones are Entry's.
    OK = 8  # it succeeded
    FAILED = 16
    DEFUSED = 32
    PROCESSED = 64
    LISTED = 128  # calls is the list that Python code sees


cdef class Event(Entry):
    # Here, so that the classes which derive from this one and SimPy's need not add them: theirs cost twice as much.
    cdef dict __dict__
    cdef object __weakref__
    cdef readonly Core env
    cdef object value
    cdef object calls  # None, one event whose wake is called, or the list of callbacks

    cdef list own(self)
    cdef int before(self) except -1
    cdef int wake(self, Event event) except -1
    cdef object callback(self)
    cdef list list_calls(self)
    cdef int add(self, Event waiter) except -1
    cdef int discard(self, Event waiter) except -1
    cdef int settle(self, object value, bint ok) except -1


cdef class Timeout(Event):
    cdef object delay


cdef object PENDING
cdef void *first_field(Event event) noexcept
cdef int begin(Timeout timeout, delay, value) except -1
