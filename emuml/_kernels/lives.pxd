"""Machines, lives and the records of effects, for the kernels that hand over events and execute effects."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint32_t

from emuml._kernels.events cimport Entry


cdef enum:
    SEND, BROADCAST, SET_TIMER, CANCEL_TIMER, COMPUTE, CANCEL, OTHER  # kinds of records
    NOTHING, MESSAGE, COMPUTED, TIMED, TOLD  # kinds of last events


cdef struct Record:
    # One effect; the reference is owned.
    int kind
    int64_t number
    PyObject* what


cdef class Desk:
    cdef readonly object emulator, directory
    cdef dict machines, role_numbers, by_role
    cdef unsigned char[::1] linked
    cdef Py_ssize_t roles, message_bytes_max
    cdef object task_class
    cdef Record* records
    cdef Py_ssize_t used, room
    cdef int widen(self) except -1
    cdef int drop_records(self, Py_ssize_t begin) except -1


cdef class Machine:
    cdef readonly object id
    cdef readonly Desk post
    cdef public object life, journal
    cdef public int64_t incarnation
    cdef public Py_ssize_t busy
    cdef Py_ssize_t worker  # its index, or -1 of other roles
    cdef int role, place  # numbers: of its role, and among all
    cdef object text, law, rest, node
    cdef dict armed, jobs
    cdef list waiting
    cdef Entry job  # the only task in a slot, as most nodes have one at a time
    cdef int64_t job_generation
    cdef object rare(self)


cdef class Handlers:
    cdef object on_message, on_computed, on_timer


cdef class Life:
    cdef readonly object node
    cdef Handlers handlers  # None: they are looked up for each event
    cdef readonly Machine machine
    cdef readonly int64_t incarnation, events
    cdef public int64_t started
    cdef int64_t generation
    cdef double last_s
    cdef int last_kind
    cdef object last_one, last_two
    cdef dict named  # timers by name: generation
    cdef object tag  # of the only task, as most nodes have one at a time
    cdef int64_t tag_generation
    cdef dict tags  # of further tasks
    cdef dict own_peers, rare_received, rare_sent
    cdef uint32_t* counts  # received and sent, by message class
    cdef Py_ssize_t counted
    cdef int widen(self, Py_ssize_t index) except -1
    cdef int64_t armed(self, object name) except -1
    cdef int64_t begun(self, object tag) except -1
    cdef bint has_task(self, object tag) except -1
    cdef int64_t end_task(self, object tag) except -1
    cdef dict counted_messages(self, bint sent)


cdef object tools()


cdef inline int record(Desk desk, int kind, object what, int64_t number) except -1:
    """Record an effect, to be executed when the handler has returned."""
    cdef Record* row
    if desk.used == desk.room:
        desk.widen()
    row = &desk.records[desk.used]
    row.kind, row.what, row.number = kind, <PyObject*>what, number
    Py_INCREF(what)
    desk.used += 1
    return 0


cdef inline int count(Life life, Py_ssize_t index, bint sent, Py_ssize_t times) except -1:
    """Count messages of a class that were sent or received."""
    if index >= life.counted:
        life.widen(index)
    life.counts[2 * index + sent] += <uint32_t>times
    return 0
