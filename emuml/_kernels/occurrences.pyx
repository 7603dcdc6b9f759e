"""SimPy's events and timeouts in C, on the queue of ``events``.

Of most events one process waits: so an event has one place for a waiter, and makes the list of callbacks only when
Python code asks for it or a second one waits. The classes that users see derive from these and from SimPy's
(``emuml.des.compiled``).
"""

from libc.stdint cimport uint32_t

from emuml._kernels.events cimport Core, again
from emuml._kernels.queue cimport Entry
from emuml._kernels.times cimport number_of

cdef extern from *:
    """
    #define emuml_drop_dict(event) Py_CLEAR((event)->__dict__)
    #define emuml_first_field(event) (&(event)->__dict__)
    """
    void emuml_drop_dict(Event event)
    void *emuml_first_field(Event event)

cdef enum:
    NORMAL = 1

cdef object PENDING = None
cdef object StopSimulation, Condition, all_events, any_events


def bind(pending, stop, condition):
    """Hand in SimPy's ``PENDING`` and ``StopSimulation``, and the class that ``&`` and ``|`` make."""
    global PENDING, StopSimulation, Condition, all_events, any_events
    PENDING, StopSimulation, Condition = pending, stop, condition
    all_events, any_events = condition.all_events, condition.any_events


cdef void *first_field(Event event) noexcept:
    return emuml_first_field(event)


cdef class Event(Entry):
    """Something that may happen once."""

    def __cinit__(self):
        self.value = PENDING
        emuml_drop_dict(self)  # made when it is needed

    def __init__(self, Core env not None):
        self.env = env

    def __repr__(self):
        return f"<{self._desc()} object at {id(self):#x}>"

    def _desc(self):
        return f"{type(self).__name__}()"

    @property
    def callbacks(self):
        """The functions that are called when the event is processed; ``None`` from then on."""
        return None if self.bits & PROCESSED else self.list_calls()

    @callbacks.setter
    def callbacks(self, calls):
        self.calls = calls
        if calls is None:
            self.bits |= PROCESSED
        else:
            self.bits = self.bits & ~<uint32_t>PROCESSED | LISTED

    @property
    def _value(self):
        return self.value

    @_value.setter
    def _value(self, value):
        self.value = value

    @property
    def value(self):
        """The value, once there is one."""
        if self.value is PENDING:
            raise AttributeError(f"Value of {self} is not yet available")
        return self.value

    @property
    def _ok(self):
        if not self.bits & (OK | FAILED):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute '_ok'")
        return self.bits & OK != 0

    @_ok.setter
    def _ok(self, ok):
        self.bits = self.bits & ~<uint32_t>(OK | FAILED) | (OK if ok else FAILED)

    @property
    def ok(self):
        """Whether it succeeded; an ``AttributeError`` before it is triggered."""
        return self._ok

    @property
    def _defused(self):
        # SimPy asks whether the attribute is there.
        if not self.bits & DEFUSED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute '_defused'")
        return True

    @_defused.setter
    def _defused(self, _):
        self.bits |= DEFUSED

    @property
    def defused(self):
        """Whether somebody took care of the failure; setting it, to whatever, says so."""
        return self.bits & DEFUSED != 0

    @defused.setter
    def defused(self, _):
        self.bits |= DEFUSED

    @property
    def triggered(self):
        """Whether it has a value."""
        return self.value is not PENDING

    @property
    def processed(self):
        """Whether its callbacks were called."""
        return self.bits & PROCESSED != 0

    def trigger(self, event):
        """Take over the state of another event, and happen now."""
        self.settle(event._value, event._ok)

    def succeed(self, value=None):
        """Happen now, with a value."""
        if self.value is not PENDING:
            raise RuntimeError(f"{self} has already been triggered")
        self.settle(value, True)
        return self

    def fail(self, exception):
        """Happen now, as a failure."""
        if self.value is not PENDING:
            raise RuntimeError(f"{self} has already been triggered")
        if not isinstance(exception, BaseException):
            raise TypeError(f"{exception} is not an exception.")
        self.settle(exception, False)
        return self

    def __and__(self, other):
        return Condition(self.env, all_events, [self, other])

    def __or__(self, other):
        return Condition(self.env, any_events, [self, other])

    cdef int settle(self, object value, bint ok) except -1:
        self.value = value
        self.bits = self.bits & ~<uint32_t>(OK | FAILED) | (OK if ok else FAILED)
        return self.env.due(self, NORMAL)

    # Who waits.

    cdef list own(self):
        """Return the callbacks that this kind of event begins with."""
        return []

    cdef int before(self) except -1:
        """Do what the callbacks of ``own`` would do."""
        return 0

    cdef int wake(self, Event event) except -1:
        """Go on, because an event that this one waited for was processed."""
        return 0

    cdef object callback(self):
        """Return ``wake`` as Python code sees it among the callbacks."""
        raise NotImplementedError

    cdef list list_calls(self):
        if not self.bits & LISTED:
            calls = self.own()
            if self.calls is not None:
                calls.append((<Event>self.calls).callback())
            self.calls = calls
            self.bits |= LISTED
        return self.calls

    cdef int add(self, Event waiter) except -1:
        """Wake ``waiter`` when this event is processed."""
        if self.calls is None and not self.bits & LISTED:
            self.calls = waiter
        else:
            self.list_calls().append(waiter.callback())
        return 0

    cdef int discard(self, Event waiter) except -1:
        """Wake ``waiter`` no more; raise as ``list.remove`` if it does not wait."""
        if self.calls is waiter:
            self.calls = None
        else:
            self.callbacks.remove(waiter.callback())
        return 0

    cdef int fire(self) except -1:
        calls, self.calls = self.calls, None
        cdef int bits = self.bits
        self.bits = bits | PROCESSED
        if bits & LISTED:
            call_all(self, calls)
        else:
            self.before()
            if calls is not None:
                (<Event>calls).wake(self)
        if self.bits & (OK | DEFUSED) == 0:
            fail_run(self)
        return 0


cdef int call_all(Event event, calls) except -1:
    callback = None
    try:
        for callback in calls:
            callback(event)
    except StopSimulation:
        # What was not called yet is called when the simulation is resumed.
        event.callbacks = calls[calls.index(callback) + 1:]
        event.env.schedule(event, -1)
        raise
    return 0


cdef int fail_run(Event event) except -1:
    raise again(event.value)


cdef class Timeout(Event):
    """An event that happens after a delay."""

    def __init__(self, Core env not None, delay, value=None):
        self.env = env
        begin(self, delay, value)

    @property
    def _delay(self):
        return self.delay

    def _desc(self):
        value = "" if self.value is None else f", value={self.value}"
        return f"{type(self).__name__}({self.delay}{value})"


cdef int begin(Timeout timeout, delay, value) except -1:
    cdef bint whole
    cdef double after = number_of(delay, &whole)
    timeout.value, timeout.delay = value, delay
    timeout.bits |= OK
    return timeout.env.later(timeout, after, whole, delay)
