"""SimPy's processes in C: generators that wait for events, and interrupts."""

from cpython.ref cimport Py_DECREF, PyObject

from emuml._kernels.events cimport Core
from emuml._kernels.occurrences cimport DEFUSED, FAILED, OK, PROCESSED, Event
from emuml._kernels.pools cimport emuml_make, pool

cdef extern from "Python.h":
    int PyIter_Send(PyObject *, PyObject *, PyObject **) noexcept
    PyObject *PyObject_CallObject(PyObject *, PyObject *) noexcept
    PyObject *PyObject_CallMethodOneArg(PyObject *, PyObject *, PyObject *) noexcept
    void PyErr_Fetch(PyObject **, PyObject **, PyObject **) noexcept
    void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **) noexcept
    int PyException_SetTraceback(PyObject *, PyObject *) noexcept
    void Py_XDECREF(PyObject *) noexcept

cdef enum:
    PROCESS = 0  # numbers of pools
    INITIALIZE = 1
    URGENT = 0
    WAITS = 1  # what PyIter_Send returns
    RETURNED = 0
    RAISED = -1

cdef object PENDING, Interrupt, describe_frame, InterruptionClass
cdef str THROW = "throw"


def bind(simpy_events, process, initialize, interruption):
    """Hand in SimPy's module of events, and the classes to make."""
    global PENDING, Interrupt, describe_frame, InterruptionClass
    PENDING, Interrupt, describe_frame = simpy_events.PENDING, simpy_events.Interrupt, simpy_events._describe_frame
    InterruptionClass = interruption
    pool(PROCESS, process)
    pool(INITIALIZE, initialize)


cdef Process new_process(Core env, generator):
    """Return a process that begins at this instant."""
    cdef Process process = emuml_make(PROCESS)
    process.env = env
    run_generator(process, generator)
    return process


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

    cdef int go_on(self, bint ok, object value) except -1:
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
