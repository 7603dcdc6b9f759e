"""What an environment needs of C: SimPy's queue and clock, and calls at absolute times that can be cancelled.

Nothing here knows SimPy: its exceptions are handed in by :func:`bind`, and foreign events are wrapped. The pure
counterpart is ``emuml.des.pure``; the same tests hold for both.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport uint32_t

from emuml._kernels.queue cimport CALL, QUEUED, SHIFT, WHOLE, Entry, Place, Queue, head_of, key_of
from emuml._kernels.times cimport checked, number_of, refuse_backwards, told

cdef object EmptySchedule = IndexError
cdef object StopSimulation = StopIteration
cdef object Infinity = float("inf")

cdef enum:
    NORMAL = 1
    BOUND = 32768  # priorities have 16 bits

cdef int64_t PRIORITY = <int64_t>1 << SHIFT


def bind(empty, stop, infinity):
    """Hand in SimPy's ``EmptySchedule``, ``StopSimulation`` and ``Infinity``."""
    global EmptySchedule, StopSimulation, Infinity
    EmptySchedule, StopSimulation, Infinity = empty, stop, infinity


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


cdef class Core(Queue):
    """The queue and clock of an environment.

    Times are doubles. A time that was given as int is told as int again, while all delays are ints; other numbers than
    float and int (Decimal, Fraction) are refused, and so are times that are no number or lie in the past.
    """

    def __cinit__(self):
        self.whole = True

    def __init__(self, initial_time=0):
        self._now = initial_time
        self.watched = type(self).schedule is not Core.schedule

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
        return [row_of(at, key, entry) for at, key, entry in self.rows()]

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
        cdef Place *place = head_of(self)
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
        push_key(self, when, next_key(self, priority, True, whole), call, False)
        return call

    def cancel(self, Entry call not None):
        """Forget a call that has not happened; its entry leaves the queue later, with bounded delay."""
        self.drop(call)

    def next_time(self):
        """Drop dead entries at the head of the queue and return the time of the first living one, or infinity."""
        cdef double at = self.next_s()
        cdef Place *place = head_of(self)
        return at if place is NULL else told(place.at, place.key & WHOLE)

    def step_tie(self, choose):
        """Process one of the calls that are due first in one class, picked by ``choose("tie/NAME|NAME...", n)``."""
        cdef Place first, place
        cdef Place *head
        if not self.take(&first):
            raise EmptySchedule
        tied = [(first.key, owned(first.entry))]
        while True:
            head = head_of(self)
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
        return push_key(self, at, next_key(self, priority, True, False), entry, False)

    cdef int push_behind(self, double at, int priority, Entry entry) except -1:
        """Do as ``push`` with one of many calls that are due in the order in which they are pushed."""
        return push_key(self, at, next_key(self, priority, True, False), entry, True)

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

    cdef int happen(self, Place place) except -1:
        """Set the clock and fire an entry that was taken; its reference is given up."""
        return happened(self, &place)

    cdef int fire_next(self) except -1:
        cdef Place place
        if not self.take(&place):
            raise EmptySchedule
        return self.happen(place)

    cdef int run_calls(self, double until) except -1:
        """Fire what is due up to ``until``, included, or until ``halt`` is set; 1 if ``halt`` was set."""
        cdef Place place
        cdef Place *head
        cdef Py_ssize_t turn = 0
        self.halt = False
        while not self.halt:
            head = head_of(self)
            if head is NULL or not head.at <= until:
                break
            if head.key & CALL and (<Entry>head.entry).dead:
                self.next_s()
                continue
            if head is self.heap:
                self.take(&place)
            else:
                place = head[0]
                self.first = (self.first + 1) & (self.ring_room - 1)
                self.count -= 1
            happened(self, &place)
            turn += 1
            if turn & 1023 == 0:
                PyErr_CheckSignals()
        return self.halt


cdef inline int happened(Core core, Place *place) except -1:
    cdef Entry entry = <Entry>place.entry
    Py_DECREF(entry)
    core.now_s = place.at
    core.whole = place.key & WHOLE
    if place.key & CALL:
        entry.bits &= ~<uint32_t>QUEUED
        if entry.dead:
            core.dead -= 1
            return 0
        core.live -= 1
    return entry.fire()


cdef inline int64_t next_key(Core core, int priority, bint call, bint whole) except? -1:
    cdef int64_t number = core.number
    if not -BOUND <= priority < BOUND:
        raise ValueError(f"a priority must be from {-BOUND} to {BOUND - 1}, not {priority}")
    core.number = number + 1
    return key_of(priority, number, call, whole)


cdef inline int push_key(Core core, double at, int64_t key, Entry entry, bint behind) except -1:
    if entry.bits & QUEUED:
        raise RuntimeError(f"{entry!r} is in the queue already")
    if not at >= core.now_s:
        raise ValueError(f"a call at {at}, which is not at or after the time {core.now_s}")
    if behind:
        core.put_behind(at, key, <PyObject *>entry)
    else:
        core.put(at, key, <PyObject *>entry)
    entry.bits |= QUEUED
    entry.dead = False
    core.live += 1
    return 0


cdef inline object owned(PyObject *entry):
    """Turn a reference that is owned into an object."""
    taken = <object>entry
    Py_DECREF(taken)
    return taken


cdef row_of(double at, int64_t key, event):
    """Return what SimPy's queue holds in this place: (time, priority, schedule number, event)."""
    cdef int64_t number = (key - (key >> SHIFT) * PRIORITY) >> 2
    if isinstance(event, Foreign):
        event = (<Foreign>event).event
    return told(at, key & WHOLE), key >> SHIFT, number, event


def _named(Call call):
    return (call.name or call.function.__name__).replace("|", ":")


def is_call(event):
    """Tell whether an object is a call that will happen."""
    return isinstance(event, Call) and not (<Call>event).dead and (<Call>event).bits & QUEUED != 0


def is_dead(event):
    """Tell whether an object is a call that was cancelled."""
    return isinstance(event, Call) and (<Call>event).dead
