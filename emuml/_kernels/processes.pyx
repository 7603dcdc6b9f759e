"""SimPy's events and processes in C, with SimPy's order of everything, on the queue of ``events``.

Of most events one process waits: so an event has one place for a waiter, and makes the list of callbacks only when
Python code asks for it or a second one waits. The classes that users see derive from these and from SimPy's
(``emuml.des.compiled``) and are handed in by :func:`bind`.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport Py_DECREF, PyObject

from libc.stdint cimport uint32_t

from emuml._kernels.events cimport Core, again
from emuml._kernels.queue cimport Entry, Place
from emuml._kernels.times cimport number_of
from emuml._kernels.pools cimport emuml_make, emuml_pool_class

cdef extern from "Python.h":
    int PyIter_Send(PyObject *, PyObject *, PyObject **) noexcept
    PyObject *PyObject_CallObject(PyObject *, PyObject *) noexcept
    PyObject *PyObject_CallMethodOneArg(PyObject *, PyObject *, PyObject *) noexcept
    void PyErr_Fetch(PyObject **, PyObject **, PyObject **) noexcept
    void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **) noexcept
    int PyException_SetTraceback(PyObject *, PyObject *) noexcept
    void Py_XDECREF(PyObject *) noexcept

cdef extern from *:
    """
    #define emuml_new(cls, nothing) ((PyTypeObject *)(cls))->tp_new((PyTypeObject *)(cls), nothing, NULL)
    #define emuml_drop_dict(event) Py_CLEAR((event)->__dict__)
    #define emuml_first_field(event) (&(event)->__dict__)
    """
    object emuml_new(object cls, tuple nothing)
    void emuml_drop_dict(Event event)
    void *emuml_first_field(Event event)

cdef enum:
    PLAIN = 0  # numbers of pools
    TIMEOUT = 1
    INITIALIZE = 2
    PROCESS = 3
    URGENT = 0
    NORMAL = 1
    WAITS = 1  # what PyIter_Send returns
    RETURNED = 0
    RAISED = -1
    ANY = 1  # what a condition waits for
    ALL = 2
    OTHER = 3

cdef object PENDING = None
cdef object StopSimulation, EmptySchedule, Interrupt, ConditionValue, describe_frame
cdef object AnyEvent, AnyCondition, all_events, any_events
cdef object PlainEvent, TimeoutClass, InitializeClass, ProcessClass, InterruptionClass
cdef object ConditionClass, AllOfClass, AnyOfClass
cdef tuple NOTHING = ()
cdef str THROW = "throw"


def bind(simpy_events, stop, empty, classes):
    """Hand in SimPy's module of events, its two exceptions of loops, and the classes to make, by name."""
    global PENDING, StopSimulation, EmptySchedule, Interrupt, ConditionValue, describe_frame
    global AnyEvent, AnyCondition, all_events, any_events
    global PlainEvent, TimeoutClass, InitializeClass, ProcessClass, InterruptionClass
    global ConditionClass, AllOfClass, AnyOfClass
    PENDING, Interrupt = simpy_events.PENDING, simpy_events.Interrupt
    ConditionValue, describe_frame = simpy_events.ConditionValue, simpy_events._describe_frame
    AnyEvent, AnyCondition = simpy_events.Event, simpy_events.Condition
    all_events, any_events = AnyCondition.all_events, AnyCondition.any_events
    StopSimulation, EmptySchedule = stop, empty
    PlainEvent, TimeoutClass, InitializeClass = classes["Event"], classes["Timeout"], classes["Initialize"]
    ProcessClass, InterruptionClass = classes["Process"], classes["Interruption"]
    ConditionClass, AllOfClass, AnyOfClass = classes["Condition"], classes["AllOf"], classes["AnyOf"]
    pool(PLAIN, PlainEvent)
    pool(TIMEOUT, TimeoutClass)
    pool(INITIALIZE, InitializeClass)
    pool(PROCESS, ProcessClass)


cdef int pool(int number, cls) except -1:
    cdef Event blank = emuml_new(cls, NOTHING)
    return emuml_pool_class(number, cls, blank, first_field(blank))


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
        return ConditionClass(self.env, all_events, [self, other])

    def __or__(self, other):
        return ConditionClass(self.env, any_events, [self, other])

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

    cdef object delay

    def __init__(self, Core env not None, delay, value=None):
        self.env = env
        begin(self, delay, value)

    @property
    def _delay(self):
        return self.delay

    def _desc(self):
        value = "" if self.value is None else f", value={self.value}"
        return f"{type(self).__name__}({self.delay}{value})"


cdef inline int begin(Timeout timeout, delay, value) except -1:
    cdef bint whole
    cdef double after = number_of(delay, &whole)
    timeout.value, timeout.delay = value, delay
    timeout.bits |= OK
    return timeout.env.later(timeout, after, whole, delay)


cdef class Initialize(Event):
    """The beginning of a process."""

    def __init__(self, Core env not None, Process process not None):
        self.env = env
        start(self, process)


cdef inline int start(Initialize event, Process process) except -1:
    event.calls, event.value = process, None
    event.bits |= OK
    return event.env.due(event, URGENT)


cdef class Process(Event):
    """A generator or coroutine that waits for the events it yields, and an event itself: its end."""

    cdef public object _generator, _target

    def __init__(self, Core env not None, generator):
        self.env = env
        run_generator(self, generator)

    def _desc(self):
        return f"{type(self).__name__}({self.name})"

    @property
    def target(self):
        """What the process waits for."""
        return self._target

    @property
    def name(self):
        """Name of the function of the generator."""
        return self._generator.__name__

    @property
    def is_alive(self):
        """Whether the generator has not ended."""
        return self.value is PENDING

    def interrupt(self, cause=None):
        """Throw an ``Interrupt`` into the process, at this instant."""
        InterruptionClass(self, cause)

    def _resume(self, event):
        if isinstance(event, Event):
            self.wake(event)
        else:
            if not event._ok:
                event._defused = True
            self.go_on(event._ok, event._value)

    cdef object callback(self):
        return self._resume

    cdef int wake(self, Event event) except -1:
        if event.bits & OK:
            return self.go_on(True, event.value)
        event.bits |= DEFUSED
        return self.go_on(False, event.value)

    cdef int go_on(self, bint ok, value) except -1:
        """Hand a value or an exception to the generator until it waits for something that is still to happen."""
        cdef int outcome
        cdef Event event
        self.env._active_proc = self
        while True:
            if ok:
                yielded = send(self._generator, value, &outcome)
            else:
                yielded = throw_copy(self._generator, value, &outcome)
            if outcome != WAITS:
                self.settle(yielded, outcome == RETURNED)
                self._target = None
                break
            if isinstance(yielded, Event):
                event = <Event>yielded
                if not event.bits & PROCESSED:
                    event.add(self)
                    self._target = event
                    break
                ok, value = event.bits & OK != 0, event.value
                if not ok:
                    event.bits |= DEFUSED
            elif waits_for(self, yielded):
                self._target = yielded
                break
            else:
                ok, value = yielded._ok, yielded._value
                if not ok:
                    yielded._defused = True
        self.env._active_proc = None
        return 0


cdef int run_generator(Process process, generator) except -1:
    cdef Initialize event
    if not hasattr(generator, "throw"):
        raise ValueError(f"{generator} is not a generator.")
    process._generator = generator
    event = emuml_make(INITIALIZE)
    event.env = process.env
    process._target = event
    return start(event, process)


cdef inline object send(generator, value, int *outcome):
    """Send a value to a generator and return what it yields, returns or raises."""
    cdef PyObject *result = NULL
    outcome[0] = PyIter_Send(<PyObject *>generator, <PyObject *>value, &result)
    return raised() if outcome[0] == RAISED else owned(result)


cdef object throw_copy(generator, error, int *outcome):
    """Throw a copy of an exception, with the original as its cause, as SimPy does; else as ``send``."""
    kind, args = type(error), error.args
    cdef PyObject *result = PyObject_CallObject(<PyObject *>kind, <PyObject *>args)
    outcome[0] = RAISED
    if result is NULL:
        return raised()
    copy = owned(result)
    copy.__cause__ = error
    result = PyObject_CallMethodOneArg(<PyObject *>generator, <PyObject *>THROW, <PyObject *>copy)
    if result is not NULL:
        outcome[0] = WAITS
        return owned(result)
    failure = raised()
    if not isinstance(failure, StopIteration):
        return failure
    outcome[0] = RETURNED
    return failure.args[0] if failure.args else None


cdef inline object owned(PyObject *result):
    taken = <object>result
    Py_DECREF(taken)
    return taken


cdef object raised():
    """Take the exception that is set, with its traceback; no frame of ours is added to it."""
    cdef PyObject *kind = NULL
    cdef PyObject *error = NULL
    cdef PyObject *traceback = NULL
    PyErr_Fetch(&kind, &error, &traceback)
    PyErr_NormalizeException(&kind, &error, &traceback)
    if traceback is not NULL:
        PyException_SetTraceback(error, traceback)
    Py_XDECREF(kind)
    Py_XDECREF(traceback)
    return owned(error)


cdef bint waits_for(Process process, yielded) except -1:
    """Wait for an event that is not ours; False if it has happened already."""
    try:
        calls = yielded.callbacks
    except AttributeError:
        if hasattr(yielded, "callbacks"):
            raise
        generator = process._generator
        frame = getattr(generator, "gi_frame", None) or getattr(generator, "cr_frame", None)
        where = describe_frame(frame) if frame is not None else ""
        raise RuntimeError(f'\n{where}Invalid yield value "{yielded}"') from None
    if calls is None:
        return False
    calls.append(process._resume)
    return True


cdef class Interruption(Event):
    """An interrupt on its way to a process."""

    cdef readonly Process process

    def __init__(self, Process process not None, cause):
        self.env = process.env
        self.value = Interrupt(cause)
        self.bits |= FAILED | DEFUSED
        if process.value is not PENDING:
            raise RuntimeError(f"{process} has terminated and cannot be interrupted.")
        if process is self.env._active_proc:
            raise RuntimeError("A process is not allowed to interrupt itself.")
        self.process = process
        self.env.due(self, URGENT)

    cdef list own(self):
        return [self._interrupt]

    cdef int before(self) except -1:
        cdef Process process = self.process
        if process.value is not PENDING:
            return 0  # it ended while it handled another interrupt of this instant
        if isinstance(process._target, Event):
            (<Event>process._target).discard(process)
        else:
            process._target.callbacks.remove(process._resume)
        return process.wake(self)

    def _interrupt(self, event):
        self.before()


cdef class Condition(Event):
    """An event that happens when enough of others have happened, as ``evaluate(events, count)`` says."""

    cdef readonly object _evaluate
    cdef readonly tuple _events
    cdef readonly Py_ssize_t _count
    cdef int kind

    def __init__(self, Core env not None, evaluate, events):
        self.env = env
        watch(self, evaluate, events)

    def _desc(self):
        return f"{type(self).__name__}({self._evaluate.__name__}, {self._events})"

    def _populate_value(self, value):
        for event in self._events:
            if isinstance(event, AnyCondition):
                event._populate_value(value)
            elif event.callbacks is None:
                value.events.append(event)

    def _build_value(self, event):
        self.before()

    def _remove_check_callbacks(self):
        stop_watching(self)

    def _check(self, event):
        if isinstance(event, Event):
            self.wake(event)
        elif self.value is PENDING:
            self._count += 1
            if not event._ok:
                event._defused = True
                self.settle(event._value, False)
            else:
                decide(self)

    cdef object callback(self):
        return self._check

    cdef list own(self):
        return [self._build_value] if self._events else []

    cdef int wake(self, Event event) except -1:
        if self.value is not PENDING:
            return 0
        self._count += 1
        if event.bits & OK:
            return decide(self)
        event.bits |= DEFUSED
        if not isinstance(event.value, BaseException):
            raise TypeError(f"{event.value} is not an exception.")
        return self.settle(event.value, False)

    cdef int before(self) except -1:
        if not self._events:
            return 0
        stop_watching(self)
        if self.bits & OK:
            self.value = ConditionValue()
            collect(self, self.value.events)
        return 0


cdef int watch(Condition condition, evaluate, events) except -1:
    condition._evaluate, condition._events = evaluate, tuple(events)
    condition.kind = ANY if evaluate is any_events else ALL if evaluate is all_events else OTHER
    if not condition._events:
        return condition.settle(ConditionValue(), True)
    for event in condition._events:
        if condition.env is not event.env and condition.env != event.env:
            raise ValueError("It is not allowed to mix events from different environments")
    for event in condition._events:
        if not isinstance(event, Event):
            calls = event.callbacks
            if calls is None:
                condition._check(event)
            else:
                calls.append(condition._check)
        elif (<Event>event).bits & PROCESSED:
            condition.wake(<Event>event)
        elif condition.kind == OTHER:
            (<Event>event).list_calls().append(condition._check)  # it may raise StopSimulation
        else:
            (<Event>event).add(condition)
    return 0


cdef int decide(Condition condition) except -1:
    if condition.kind == ANY:
        met = condition._count > 0
    elif condition.kind == ALL:
        met = condition._count == len(condition._events)
    else:
        met = condition._evaluate(condition._events, condition._count)
        if met and condition.value is not PENDING:
            condition.succeed()  # raises: it was triggered meanwhile
    return condition.settle(None, True) if met else 0


cdef int collect(Condition condition, list found) except -1:
    """List what has happened of a condition's events and of the conditions among them."""
    for event in condition._events:
        if isinstance(event, Condition):
            collect(<Condition>event, found)
        elif isinstance(event, Event):
            if (<Event>event).bits & PROCESSED:
                found.append(event)
        elif isinstance(event, AnyCondition):
            value = ConditionValue()
            event._populate_value(value)
            found.extend(value.events)
        elif event.callbacks is None:
            found.append(event)
    return 0


cdef int stop_watching(Condition condition) except -1:
    """Take the condition's checks out of its events, so that they do not keep each other alive."""
    cdef Event own
    for event in condition._events:
        if isinstance(event, Event):
            own = <Event>event
            if own.calls is condition:
                own.calls = None
            elif own.bits & LISTED and own.calls and condition._check in own.calls:
                own.calls.remove(condition._check)
        elif event.callbacks and condition._check in event.callbacks:
            event.callbacks.remove(condition._check)
        if isinstance(event, Condition):
            stop_watching(<Condition>event)
        elif isinstance(event, AnyCondition):
            event._remove_check_callbacks()
    return 0


cdef class AllOf(Condition):
    """A condition that waits for all of its events."""

    def __init__(self, Core env not None, events):
        self.env = env
        watch(self, all_events, events)


cdef class AnyOf(Condition):
    """A condition that waits for one of its events."""

    def __init__(self, Core env not None, events):
        self.env = env
        watch(self, any_events, events)


cdef class Environment(Core):
    """The queue with SimPy's ways to make events, and its loop."""

    def event(self):
        """Return a new event."""
        cdef Event event = emuml_make(PLAIN)
        event.env = self
        return event

    def timeout(self, delay=0, value=None):
        """Return an event that happens after ``delay``."""
        cdef Timeout event = emuml_make(TIMEOUT)
        event.env = self
        begin(event, delay, value)
        return event

    def process(self, generator):
        """Run a generator as a process."""
        cdef Process process = emuml_make(PROCESS)
        process.env = self
        run_generator(process, generator)
        return process

    def all_of(self, events):
        """Return an event that happens when all ``events`` have happened."""
        return AllOfClass(self, events)

    def any_of(self, events):
        """Return an event that happens when one of ``events`` has happened."""
        return AnyOfClass(self, events)

    def run(self, until=None):
        """Process events until a time, an event, or the end of the schedule; return the event's value."""
        cdef Event stop
        self.watched = type(self).schedule is not Core.schedule or "schedule" in self.__dict__
        if until is not None:
            if not isinstance(until, AnyEvent):
                at = until if isinstance(until, int) else float(until)
                if at <= self.now:
                    raise ValueError(f"until ({at}) must be greater than the current simulation time")
                until = stop = emuml_make(PLAIN)
                stop.env, stop.value = self, None
                stop.bits |= OK
                self.schedule(stop, URGENT, at - self.now)
            elif until.callbacks is None:
                return until.value
            until.callbacks.append(StopSimulation.callback)
        try:
            if type(self).step is Core.step and "step" not in self.__dict__:
                self.run_all()
            else:
                while True:
                    self.step()
        except StopSimulation as stopped:
            return stopped.args[0]
        except EmptySchedule:
            if until is not None:
                assert not until.triggered
                raise RuntimeError(f'No scheduled events left but "until" event was not triggered: {until}') from None
        return None

    cdef int run_all(self) except -1:
        cdef Place place
        cdef unsigned int turn = 0
        while self.take(&place):
            self.happen(place)
            turn += 1
            if turn & 4095 == 0:
                PyErr_CheckSignals()
        raise EmptySchedule
