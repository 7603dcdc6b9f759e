"""SimPy's conditions in C: events that happen when enough of others have happened."""

from emuml._kernels.events cimport Core
from emuml._kernels.occurrences cimport DEFUSED, LISTED, OK, PROCESSED, Event

cdef enum:
    ANY = 1  # what a condition waits for
    ALL = 2
    OTHER = 3

cdef object PENDING, ConditionValue, AnyCondition, all_events, any_events


def bind(simpy_events):
    """Hand in SimPy's module of events."""
    global PENDING, ConditionValue, AnyCondition, all_events, any_events
    PENDING, ConditionValue, AnyCondition = simpy_events.PENDING, simpy_events.ConditionValue, simpy_events.Condition
    all_events, any_events = AnyCondition.all_events, AnyCondition.any_events


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
