"""The queue of events in C: what an environment needs, and calls at absolute times that can be cancelled.

A 4-ary heap of (time, key, entry) beside a ring for what is scheduled for this very instant; both are ordered by time,
then key, and a key is (priority, schedule number), so the order is that of SimPy's queue. Nothing here knows SimPy:
its exceptions are handed in by :func:`bind`, and foreign events are wrapped.

The pure counterpart is ``emuml.des.pure``; the same tests hold for both.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyTypeObject, inquiry, traverseproc, visitproc
from cpython.ref cimport Py_DECREF, Py_INCREF

cdef object EmptySchedule = IndexError
cdef object StopSimulation = StopIteration
cdef object Infinity = float("inf")

cdef enum:
    NORMAL = 1
    BOUND = 32768  # priorities have 16 bits
    SHIFT = 48  # of a priority in a key
    CALL = 2  # bits of a key
    WHOLE = 1

cdef double INFINITE = float("inf")
cdef int64_t PRIORITY = <int64_t>1 << SHIFT
cdef double WHOLE_LIMIT = 2.0**53  # beyond it, doubles skip integers


def bind(empty, stop, infinity):
    """Hand in SimPy's ``EmptySchedule``, ``StopSimulation`` and ``Infinity``."""
    global EmptySchedule, StopSimulation, Infinity
    EmptySchedule, StopSimulation, Infinity = empty, stop, infinity


cdef int64_t key_of(int priority, int64_t number, bint call, bint whole) noexcept:
    return <int64_t>priority * PRIORITY + number * 4 + (CALL if call else 0) + (WHOLE if whole else 0)


cdef inline bint precedes(Place *one, Place *other) noexcept:
    # No branches: which one precedes cannot be predicted.
    return (one.at < other.at) | ((not one.at > other.at) & (one.key < other.key))


cdef class Entry:
    """What the queue holds; ``fire`` is called when its time has come."""

    @property
    def callbacks(self):
        """As of a SimPy event: nothing once it is cancelled, ``None`` when it has happened."""
        if self.dead:
            return ()
        return (type(self),) if self.bits & QUEUED else None

    cdef int fire(self) except -1:
        return 0


cdef class Call(Entry):
    """A function call in the event queue; duck-typed as a SimPy event.

    Calls of one ``lane`` happen in schedule order, also where ties are permuted: those of one link, or of one disk.
    Without a lane a call is free. ``name`` says in a tie what it is; given where an explorer is asked.
    """

    cdef readonly object function
    cdef readonly tuple args
    cdef public object lane, name

    _ok = True
    _value = None

    def __repr__(self):
        return f"<{self.function.__name__}>"

    @property
    def callbacks(self):
        """What runs when it happens: nothing once it is cancelled, ``None`` afterwards, as of a SimPy event."""
        if self.dead:
            return ()
        return (self.function,) if self.bits & QUEUED else None

    cdef int fire(self) except -1:
        self.function(*self.args)
        return 0


cdef class Foreign(Entry):
    """An event that is not ours: any object with SimPy's attributes."""

    cdef Core env
    cdef object event

    cdef int fire(self) except -1:
        process(self.env, self.event)
        return 0


cdef process(Core env, event):
    """Process an event as SimPy's ``Environment.step`` does."""
    callbacks, event.callbacks = event.callbacks, None
    callback = None
    try:
        for callback in callbacks:
            callback(event)
    except StopSimulation:
        event.callbacks = callbacks[callbacks.index(callback) + 1:]
        env.schedule(event, -1)
        raise
    if not event._ok and not hasattr(event, "_defused"):
        raise again(event._value)


cdef object again(error):
    """Return a copy of an exception with the original as its cause, as SimPy makes it."""
    copy = type(error)(*error.args)
    copy.__cause__ = error
    return copy


cdef class Numbers:
    """The schedule numbers of an environment: ``next`` takes one."""

    cdef Core env

    def __iter__(self):
        return self

    def __next__(self):
        self.env.number += 1
        return self.env.number - 1


cdef class Core:
    """The queue and clock of an environment.

    Times are doubles. A time that was given as int is told as int again, while all delays are ints; other numbers than
    float and int (Decimal, Fraction) are refused, and so are times that are no number or lie in the past.
    """

    def __cinit__(self):
        self.whole = True

    def __init__(self, initial_time=0):
        self._now = initial_time
        self.watched = type(self).schedule is not Core.schedule

    def __dealloc__(self):
        drain(self)
        PyMem_Free(self.heap)
        PyMem_Free(self.ring)

    # Time.

    @property
    def now(self):
        """The current time, in the unit of the delays (seconds, for nodes)."""
        return told(self.now_s, self.whole)

    @property
    def _now(self):
        return told(self.now_s, self.whole)

    @_now.setter
    def _now(self, time):
        cdef bint whole
        self.now_s = number_of(time, &whole)
        self.whole = whole

    @property
    def active_process(self):
        """The process that runs now, if any."""
        return self._active_proc

    # The queue as SimPy shows it.

    @property
    def _eid(self):
        cdef Numbers numbers = Numbers.__new__(Numbers)
        numbers.env = self
        return numbers

    @property
    def _queue(self):
        """A sorted copy of the queue: (time, priority, schedule number, event)."""
        cdef Py_ssize_t index
        rows = [row_of(&self.heap[index]) for index in range(self.size)]
        rows += [row_of(in_ring(self, index)) for index in range(self.count)]
        rows.sort(key=_order)
        return rows

    def schedule(self, event, int priority=NORMAL, delay=0):
        """Schedule an event to be processed after ``delay``; among equal times, smaller priorities come first."""
        cdef bint whole
        cdef double after = number_of(delay, &whole)
        cdef Foreign foreign
        cdef PyObject *entry = <PyObject *>event
        refuse_backwards(after, delay)
        if not isinstance(event, Entry):
            foreign = Foreign.__new__(Foreign)
            foreign.env, foreign.event = self, event
            entry = <PyObject *>foreign
        whole = whole and self.whole
        self.put(checked(self.now_s + after, whole), next_key(self, priority, False, whole), entry)

    def peek(self):
        """Return the time of the next event, or infinity."""
        cdef Place *place = self.head()
        return Infinity if place is NULL else told(place.at, place.key & WHOLE)

    def step(self):
        """Process the next event; raise ``EmptySchedule`` if there is none."""
        self.fire_next()

    # Calls.

    def call_at(self, at, int priority, function, *args):
        """Call ``function(*args)`` at time ``at``; never before ``now``."""
        cdef Call call = Call.__new__(Call)
        cdef bint whole
        cdef double when = number_of(at, &whole)
        call.function, call.args, call.name = function, args, ""
        push_key(self, when, next_key(self, priority, True, whole), call)
        return call

    def cancel(self, Entry call not None):
        """Forget a call that has not happened; its entry leaves the queue later, with bounded delay."""
        self.drop(call)

    def next_time(self):
        """Drop dead entries at the head of the queue and return the time of the first living one, or infinity."""
        cdef double at = self.next_s()
        cdef Place *place = self.head()
        return at if place is NULL else told(place.at, place.key & WHOLE)

    def step_tie(self, choose):
        """Process one of the calls that are due first in one class, picked by ``choose("tie/NAME|NAME...", n)``."""
        cdef Place first, place
        cdef Place *head
        if not self.take(&first):
            raise EmptySchedule
        tied = [(first.key, owned(first.entry))]
        while True:
            head = self.head()
            if head is NULL or head.at != first.at or head.key >> SHIFT != first.key >> SHIFT:
                break
            self.take(&place)
            tied.append((place.key, owned(place.entry)))
        heads = {}
        for key, entry in tied:
            if is_call(entry):
                heads.setdefault(key if (<Call>entry).lane is None else (<Call>entry).lane, (key, entry))
        chosen = tied[0]
        if is_call(chosen[1]) and len(heads) > 1:
            entries = list(heads.values())
            names = "|".join([_named(entry) for _, entry in entries])
            chosen = entries[choose(f"tie/{names}", len(entries))]
        for other in tied:
            if other is not chosen and other[0] != chosen[0]:
                self.put(first.at, other[0], <PyObject *>other[1])
        place.at, place.key, place.entry = first.at, chosen[0], <PyObject *>chosen[1]
        Py_INCREF(chosen[1])
        self.happen(place)

    # For kernels.

    cdef int push(self, double at, int priority, Entry entry) except -1:
        """Put a call with the next schedule number into the queue; what is in it already cannot be put again."""
        return push_key(self, at, next_key(self, priority, True, False), entry)

    cdef int drop(self, Entry entry) except -1:
        """Cancel a call, unless it has happened or was cancelled."""
        if entry.bits & QUEUED and not entry.dead:
            entry.dead = True
            self.live -= 1
            self.dead += 1
            if self.dead > self.live + 64:
                compact(self)
        return 0

    cdef int due(self, Entry event, int priority) except -1:
        """Schedule an event for this instant."""
        if self.watched:
            self.schedule(event, priority)
            return 0
        return self.put(self.now_s, next_key(self, priority, False, self.whole), <PyObject *>event)

    cdef int later(self, Entry event, double after, bint whole, object delay) except -1:
        """Schedule an event, in the class of most events."""
        refuse_backwards(after, delay)
        if self.watched:
            self.schedule(event, NORMAL, delay)
            return 0
        whole = whole and self.whole
        return self.put(checked(self.now_s + after, whole), next_key(self, NORMAL, False, whole), <PyObject *>event)

    cdef int put(self, double at, int64_t key, PyObject *entry) except -1:
        """Own a reference to ``entry`` and put it where its time and key belong."""
        cdef Place place
        cdef Place *last
        place.at, place.key, place.entry = at, key, entry
        # What is due now, in the class of most events, comes after all that the ring holds.
        if at == self.now_s and key >> SHIFT == NORMAL:
            last = NULL if self.count == 0 else in_ring(self, self.count - 1)
            if last is NULL or precedes(last, &place):
                if self.count == self.ring_room:
                    widen_ring(self)
                self.count += 1
                in_ring(self, self.count - 1)[0] = place
                Py_INCREF(<object>entry)
                return 0
        if self.size == self.room:
            widen_heap(self)
        sift_up(self.heap, self.size, place)
        self.size += 1
        Py_INCREF(<object>entry)
        return 0

    cdef Place *head(self) noexcept:
        """Return the first entry's place, or NULL."""
        if self.count == 0:
            return NULL if self.size == 0 else self.heap
        if self.size == 0 or precedes(in_ring(self, 0), self.heap):
            return in_ring(self, 0)
        return self.heap

    cdef bint take(self, Place *place) noexcept:
        """Take the first entry out; its reference belongs to the caller. False if there is none."""
        if self.count and (self.size == 0 or precedes(in_ring(self, 0), self.heap)):
            place[0] = in_ring(self, 0)[0]
            self.first = (self.first + 1) & (self.ring_room - 1)
            self.count -= 1
            return True
        if self.size == 0:
            return False
        place[0] = self.heap[0]
        self.size -= 1
        if self.size:
            sift_down(self.heap, self.size, self.heap[self.size])
        return True

    cdef double next_s(self):
        """Drop dead entries at the head and return the time of the first living one, or infinity."""
        cdef Place place
        cdef Place *head
        while True:
            head = self.head()
            if head is NULL:
                return INFINITE
            if not (head.key & CALL and (<Entry>head.entry).dead):
                return head.at
            self.take(&place)
            forget(self, place)

    cdef int happen(self, Place place) except -1:
        """Set the clock and fire an entry that was taken; its reference is given up."""
        cdef Entry entry = <Entry>place.entry
        Py_DECREF(entry)
        self.now_s = place.at
        self.whole = place.key & WHOLE
        if place.key & CALL:
            entry.bits &= ~<uint32_t>QUEUED
            if entry.dead:
                self.dead -= 1
                return 0
            self.live -= 1
        return entry.fire()

    cdef int fire_next(self) except -1:
        cdef Place place
        if not self.take(&place):
            raise EmptySchedule
        return self.happen(place)

    cdef int run_calls(self, double until) except -1:
        """Fire what is due up to ``until``, included, or until ``halt`` is set; 1 if ``halt`` was set."""
        cdef Place place
        cdef Py_ssize_t turn = 0
        self.halt = False
        while not self.halt and self.next_s() <= until and self.take(&place):
            self.happen(place)
            turn += 1
            if turn & 1023 == 0:
                PyErr_CheckSignals()
        return self.halt

cdef inline Place *in_ring(Core core, Py_ssize_t index) noexcept:
    return &core.ring[(core.first + index) & (core.ring_room - 1)]


cdef inline int64_t next_key(Core core, int priority, bint call, bint whole) except? -1:
    cdef int64_t number = core.number
    if not -BOUND <= priority < BOUND:
        raise ValueError(f"a priority must be from {-BOUND} to {BOUND - 1}, not {priority}")
    core.number = number + 1
    return key_of(priority, number, call, whole)


cdef inline int push_key(Core core, double at, int64_t key, Entry entry) except -1:
    if entry.bits & QUEUED:
        raise RuntimeError(f"{entry!r} is in the queue already")
    if not at >= core.now_s:
        raise ValueError(f"a call at {at}, which is not at or after the time {core.now_s}")
    core.put(at, key, <PyObject *>entry)
    entry.bits |= QUEUED
    entry.dead = False
    core.live += 1
    return 0


cdef int forget(Core core, Place place):
    cdef Entry entry = owned(place.entry)
    entry.bits &= ~<uint32_t>QUEUED
    core.dead -= 1
    return 0


cdef int compact(Core core) except -1:
    """Take all dead entries out."""
    cdef Py_ssize_t index, kept = 0, total = core.count
    cdef Place place
    gone = []
    for index in range(core.size):
        place = core.heap[index]
        if place.key & CALL and (<Entry>place.entry).dead:
            gone.append(owned(place.entry))
        else:
            core.heap[kept] = place
            kept += 1
    core.size = kept
    for index in range(kept // 4, -1, -1):
        if index < kept:
            sift_down_from(core.heap, kept, index)
    core.count = 0
    for index in range(total):
        place = in_ring(core, index)[0]
        if place.key & CALL and (<Entry>place.entry).dead:
            gone.append(owned(place.entry))
        else:
            in_ring(core, core.count)[0] = place
            core.count += 1
    for entry in gone:
        (<Entry>entry).bits &= ~<uint32_t>QUEUED
    core.dead = 0
    return 0


cdef int widen_heap(Core core) except -1:
    cdef Py_ssize_t room = max(64, 2 * core.room)
    cdef Place *heap = <Place *>PyMem_Realloc(core.heap, room * sizeof(Place))
    if heap is NULL:
        raise MemoryError
    core.heap, core.room = heap, room
    return 0


cdef int widen_ring(Core core) except -1:
    cdef Py_ssize_t index, room = max(64, 2 * core.ring_room), old = core.ring_room
    cdef Place *ring = <Place *>PyMem_Realloc(core.ring, room * sizeof(Place))
    if ring is NULL:
        raise MemoryError
    core.ring, core.ring_room = ring, room
    # It was full: what had wrapped around to the front goes behind the rest.
    for index in range(core.first):
        ring[old + index] = ring[index]
    return 0


cdef inline void sift_up(Place *heap, Py_ssize_t index, Place place) noexcept:
    cdef Py_ssize_t above
    while index:
        above = (index - 1) >> 2
        if not precedes(&place, &heap[above]):
            break
        heap[index] = heap[above]
        index = above
    heap[index] = place


cdef inline void sift_down_from(Place *heap, Py_ssize_t size, Py_ssize_t index) noexcept:
    cdef Place place = heap[index]
    cdef Py_ssize_t least, other, below, child = 4 * index + 1
    while child + 4 <= size:
        # Two pairs, then their winners: the first two comparisons do not wait for each other.
        least = child + precedes(&heap[child + 1], &heap[child])
        other = child + 2 + precedes(&heap[child + 3], &heap[child + 2])
        least += (other - least) * precedes(&heap[other], &heap[least])
        if not precedes(&heap[least], &place):
            heap[index] = place
            return
        heap[index] = heap[least]
        index, child = least, 4 * least + 1
    if child < size:
        least = child
        for below in range(child + 1, size):
            least = below if precedes(&heap[below], &heap[least]) else least
        if precedes(&heap[least], &place):
            heap[index] = heap[least]
            index = least
    heap[index] = place


cdef inline void sift_down(Place *heap, Py_ssize_t size, Place place) noexcept:
    heap[0] = place
    sift_down_from(heap, size, 0)


cdef inline object owned(PyObject *entry):
    """Turn a reference that is owned into an object."""
    taken = <object>entry
    Py_DECREF(taken)
    return taken


cdef object told(double time, bint whole):
    return <long long>time if whole else time


cdef inline double checked(double time, bint whole) except? -1:
    if whole and not -WHOLE_LIMIT < time < WHOLE_LIMIT:
        raise OverflowError(f"an integer time must lie within 2**53 of 0, not at {time:.0f}; use floats")
    return time


cdef inline int refuse_backwards(double after, delay) except -1:
    if not after >= 0:
        raise ValueError(f"Negative delay {delay}" if after < 0 else f"a delay must be a number, not {delay}")
    return 0


cdef double number_of(number, bint *whole) except? -1:
    """Return a time or delay as a double, and whether it is an integer."""
    cdef int beyond = 0
    cdef long long integer
    whole[0] = False
    if type(number) is float:
        return PyFloat_AS_DOUBLE(number)
    if isinstance(number, int):
        whole[0] = True
        integer = PyLong_AsLongLongAndOverflow(number, &beyond)
        return checked(beyond * INFINITE if beyond else <double>integer, True)
    return other_number_of(number, whole)


cdef double other_number_of(number, bint *whole) except? -1:
    from numbers import Integral, Rational, Real

    if isinstance(number, float):
        return float(number)
    if isinstance(number, Integral):
        return number_of(int(number), whole)
    if isinstance(number, Real) and not isinstance(number, Rational):
        return float(number)
    raise TypeError(f"a time or delay must be an int or a float, not {number!r} ({type(number).__name__})")


cdef row_of(Place *place):
    event = <object>place.entry
    if isinstance(event, Foreign):
        event = (<Foreign>event).event
    cdef int64_t number = (place.key & (PRIORITY - 1)) >> 2
    return told(place.at, place.key & WHOLE), place.key >> SHIFT, number, event


def _order(row):
    return row[:3]


def _named(Call call):
    return (call.name or call.function.__name__).replace("|", ":")


def is_call(event):
    """Tell whether an object is a call that will happen."""
    return isinstance(event, Call) and not (<Call>event).dead and (<Call>event).bits & QUEUED != 0


def is_dead(event):
    """Tell whether an object is a call that was cancelled."""
    return isinstance(event, Call) and (<Call>event).dead


# The collector must see the references in the queue, which Cython does not know of.

cdef traverseproc plain_traverse = (<PyTypeObject *>Core).tp_traverse
cdef inquiry plain_clear = (<PyTypeObject *>Core).tp_clear


cdef int traverse(PyObject *self, visitproc visit, void *argument) except -1:
    cdef Core core = <Core>self
    cdef Py_ssize_t index
    cdef int told
    for index in range(core.size):
        told = visit(core.heap[index].entry, argument)
        if told:
            return told
    for index in range(core.count):
        told = visit(in_ring(core, index).entry, argument)
        if told:
            return told
    return plain_traverse(self, visit, argument)


cdef int clear(object self) except -1:
    drain(self)
    return plain_clear(self)


cdef int drain(Core core) except -1:
    """Give up all references; what they lead to may schedule more, which is given up as well."""
    cdef Place place
    while core.take(&place):
        Py_DECREF(<object>place.entry)
    return 0


(<PyTypeObject *>Core).tp_traverse = traverse
(<PyTypeObject *>Core).tp_clear = clear
