# Twins: emuml/des/emulator.py and emuml/life.py, which also serve whatever is rare
"""Delivery of events to nodes in C: handlers called from the queue, and their effects executed after each of them.

It serves runs in which nothing has happened yet that is out of the ordinary; from a first fault on, messages take the
Python path (``aside``), and runs that are explored, checked or kept in journals take it altogether. Effects other than
messages, timers and tasks are recorded as the Python objects that they are there, and executed by the same code.

What a handler records stands on a stack of records, since an effect that is executed may hand over further events. A
context is used again only if nobody has kept it; one that was kept is stale for ever.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t

cimport cython

from emuml._kernels.contexts cimport Context
from emuml._kernels.effects cimport Burst, Hands, Job, Letter, Timer
from emuml._kernels.lives cimport (
    BROADCAST,
    CANCEL,
    CANCEL_TIMER,
    COMPUTE,
    COMPUTED,
    MESSAGE,
    SEND,
    SET_TIMER,
    TIMED,
    TOLD,
    Handlers,
    Life,
    Machine,
    Record,
    count,
    tools,
)
from emuml._kernels.messages cimport Plan, plan_for


cdef extern from "Python.h":
    PyObject* PyObject_VectorcallMethod(PyObject* name, PyObject** args, size_t count, PyObject* names) noexcept
    PyObject* PyObject_Vectorcall(object function, PyObject** args, size_t count, PyObject* names) noexcept
    bint PyMethod_Check(object method) noexcept
    PyObject* PyMethod_GET_FUNCTION(object method) noexcept
    Py_ssize_t Py_REFCNT(PyObject* object) noexcept


cdef object ON_MESSAGE = "on_message", ON_COMPUTED = "on_computed", ON_TIMER = "on_timer", ON_START = "on_start"


cdef class Post(Hands):
    """Hands events to the nodes of one run and executes what they record; parameters as of ``Desk``."""

    cdef object execute, result, last_task, last_result
    cdef dict by_class  # classes of nodes: handlers, or None
    cdef double last_s
    cdef Py_ssize_t still, still_most
    cdef readonly int64_t events
    cdef bint eager, looping
    cdef type context_class
    cdef Context spare

    def begin(self, machines, durations, still_most):
        """Take what was built after this object, before the run begins."""
        self.take(machines, durations)
        self.by_class = {}
        self.context_class, self.still_most = tools().Context, still_most
        self.execute, self.result, self.eager = self.emulator._execute, self.emulator.result, self.emulator.eager

    def end(self, bint many):
        """Give up what entries that are still queued must not keep alive, and all cycles of many machines.

        So these go at once: the collector would take a tenth of the run to find that nobody needs them.
        """
        cdef Machine machine
        for machine in self.machines.values():
            machine.post, machine.job, machine.jobs, machine.waiting, machine.armed = None, None, None, None, None
            if many:
                machine.life, machine.rest = None, None
        self.machines, self.by_role, self.last_task, self.last_result = {}, {}, None, None
        self.spare, self.by_class = None, {}
        self.clear_away()

    def stand_aside(self):
        """From now on, messages take the Python path, which knows sessions and faults."""
        self.aside = True

    def halt(self):
        """End :meth:`run` after what is handled now."""
        self.core.halt = True

    def start(self, list machines):
        """Begin the first lives of the run: all are there before the first ``on_start`` (contract 2.5)."""
        cdef Machine machine
        cdef Life life
        nothing = tools().Saved()
        for machine in machines:
            machine.incarnation += 1
            machine.life = self.new_life(machine)
        for machine in machines:
            if self.result.stopped is not None:
                return
            if machine.life is None or machine.incarnation != 1:
                continue
            if self.tracing:
                self.note((self.time(), machine.name, "start", machine.incarnation))
            life = <Life>machine.life
            life.last_kind, life.last_one = TOLD, "on_start"
            self.hand(machine, life, None, ON_START, <PyObject*>nothing, NULL)

    def life(self, Machine machine):
        """Return the life of a new incarnation."""
        return self.new_life(machine)

    cdef Life new_life(self, Machine machine):
        cdef Life life = Life(machine, machine.born(), machine.incarnation)
        cdef Handlers handlers
        cdef PyObject* found
        kind = type(life.node)
        found = PyDict_GetItem(self.by_class, kind)
        if found == NULL:
            self.by_class[kind] = tools().handlers(kind)
            found = PyDict_GetItem(self.by_class, kind)
        handlers = <Handlers>found
        if handlers is None:
            return life
        # Whoever made the node may have put functions into it.
        if (
            binds(life.node.on_message, handlers.on_message)
            and binds(life.node.on_computed, handlers.on_computed)
            and binds(life.node.on_timer, handlers.on_timer)
        ):
            life.handlers = handlers
        return life

    def run(self, double until):
        """Hand over events up to ``until``, or until the run is stopped."""
        self.looping = True
        self.core.run_calls(until)

    cdef int settle(self, Machine machine, Life life, Py_ssize_t begin) except -1:
        """Execute the records from ``begin`` on, in call order, unless the run stops or the node dies in between."""
        cdef Py_ssize_t place = begin, end = self.used
        cdef Record row
        try:
            while place < end:
                row = self.records[place]
                place += 1
                if row.kind == SEND:
                    self.send(<Letter>row.what)
                elif row.kind == COMPUTE:
                    self.compute(<Job>row.what)
                elif row.kind == BROADCAST:
                    self.broadcast(<Burst>row.what)
                elif row.kind == SET_TIMER:
                    self.set_timer(<Timer>row.what)
                elif row.kind == CANCEL_TIMER:
                    self.cancel_timer(machine, <object>row.what)
                elif row.kind == CANCEL:
                    self.cancel(machine, <object>row.what, row.number)
                else:
                    self.result.events = self.events
                    effect = <object>row.what
                    self.execute[type(effect)](machine, effect)
                    if self.result.stopped is not None:
                        self.core.halt = True
                        break
                    if machine.life is not life:
                        break
        finally:
            self.drop_records(begin)
        return 0

    # Events.

    @cython.final
    cdef inline int tick(self) except -1:
        """Count events of one instant: a million of them without progress end the run."""
        if self.core.now_s != self.last_s:
            self.last_s, self.still = self.core.now_s, 0
            return 0
        self.still += 1
        if self.still > self.still_most:
            self.emulator.stands_still(self.still)
        return 0

    cdef int arrive(
        self, Machine sender, Machine to, object message, Plan plan, Py_ssize_t size, double left_s, int64_t life
    ) except -1:
        """Hand a message over, unless there is nobody any more or its session has ended."""
        self.tick()
        if to.life is None:
            return 0
        if self.aside and not tools().passes(sender, to, left_s, life):
            return 0
        if plan.copied:
            message = tools().freeze(message)
        if self.tracing:
            self.note((self.time(), to.name, "receive", sender.name, plan.name, size))
        return self.receive(to, sender.id, message, plan)

    cdef int receive(self, Machine machine, object sender, object message, Plan plan) except -1:
        cdef Life life = <Life>machine.life
        count(life, plan.index, False, 1)
        life.last_kind = MESSAGE
        life.last_one = sender
        life.last_two = plan.name
        handler = None if life.handlers is None else life.handlers.on_message
        return self.hand(machine, life, handler, ON_MESSAGE, <PyObject*>sender, <PyObject*>message)

    cdef int expire(self, Timer timer) except -1:
        cdef Machine machine = timer.machine
        cdef Life life
        self.tick()
        if machine.life is None or machine.incarnation != timer.life:
            return 0
        life = <Life>machine.life
        if life.named is None or life.named.get(timer.name) != timer.generation:
            return 0
        del machine.armed[timer.name]
        if self.tracing:
            self.note((self.time(), machine.name, "timer", timer.name))
        return self.timed(machine, timer.name)

    cdef int timed(self, Machine machine, object name) except -1:
        cdef Life life = <Life>machine.life
        life.last_kind, life.last_one = TIMED, name
        del life.named[name]
        handler = None if life.handlers is None else life.handlers.on_timer
        return self.hand(machine, life, handler, ON_TIMER, <PyObject*>name, NULL)

    cdef int finish(self, Job job) except -1:
        """End a task: its slot is given to the next one, and its result handed over."""
        cdef Machine machine = job.machine
        cdef Life life
        self.tick()
        if machine.life is None or machine.incarnation != job.life:
            return 0
        if machine.job is job:
            machine.job = None
        else:
            self.taken(machine, job.generation)
        machine.busy -= 1
        if machine.waiting is not None:
            self.fill(machine)
        if self.tracing:
            self.note((self.time(), machine.name, "computed", job.tag, job.drawn()))
        result = self.result_of(machine, job)
        life = <Life>machine.life
        life.last_kind = COMPUTED
        life.last_one = job.tag
        life.end_task(job.tag)
        handler = None if life.handlers is None else life.handlers.on_computed
        return self.hand(machine, life, handler, ON_COMPUTED, <PyObject*>job.tag, <PyObject*>result)

    cdef object result_of(self, Machine machine, Job job):
        """Return the result of a task; equal tasks share one, and so does one task that many are given."""
        if job.task is not self.last_task:
            self.last_task, self.last_result = job.task, None
            self.last_result = tools().result(self.emulator, machine, job.tag, job.task)
        if self.eager:
            tools().evaluate(self.emulator, machine, job.tag, job.task, self.last_result)
        return self.last_result

    @cython.final
    cdef inline int hand(
        self, Machine machine, Life life, object handler, object name, PyObject* one, PyObject* two
    ) except -1:
        """Call a handler, which is looked up by its name unless it is given, and execute what it records."""
        cdef Context ctx = self.context(life)
        cdef Py_ssize_t begin = self.used, count = 3 if two == NULL else 4
        cdef PyObject* args[4]
        cdef PyObject* result
        args[0], args[1], args[2], args[3] = <PyObject*>life.node, <PyObject*>ctx, one, two
        if handler is None:
            result = PyObject_VectorcallMethod(<PyObject*>name, args, count, NULL)
        else:
            result = PyObject_Vectorcall(handler, args, count, NULL)
        return self.done(machine, life, ctx, begin, result)

    @cython.final
    cdef inline Context context(self, Life life):
        """Return a context for one handler call."""
        cdef Context ctx = self.spare
        if ctx is None:
            ctx = self.context_class.__new__(self.context_class)
        else:
            self.spare = None
        ctx.life = life
        ctx.now_s = self.core.now_s
        life.events += 1
        self.events += 1
        life.last_s = ctx.now_s
        return ctx

    @cython.final
    cdef inline int done(self, Machine machine, Life life, Context ctx, Py_ssize_t begin, PyObject* result) except -1:
        """Execute what a handler has recorded, which has returned; or say that it failed."""
        if Py_REFCNT(<PyObject*>ctx) == 1:
            self.spare = ctx
        else:
            ctx.retire()
        if result == NULL:
            self.drop_records(begin)
            return self.failed(machine, life)
        Py_DECREF(<object>result)
        if self.used > begin:
            return self.settle(machine, life, begin)
        return 0

    cdef int failed(self, Machine machine, Life life) except -1:
        try:
            reraise()
        except (Exception, SystemExit, GeneratorExit) as error:
            raise tools().NodeFailed(machine.name, life.incarnation, self.core.now_s, life.last_event) from error

    def step(self, Machine machine, event):
        """Hand over an event that comes from Python."""
        cdef Life life = <Life>machine.life
        cdef Context ctx
        cdef Py_ssize_t begin = self.used
        if self.looping:
            self.tick()
        if type(event) is tools().Received:
            self.receive(machine, event.sender, event.message, plan_for(event.message))
            return
        ctx = self.context(life)
        self.done(machine, life, ctx, begin, called(tools().dispatch, life, ctx, event))


cdef inline bint binds(object method, object function) noexcept:
    """Tell whether a handler of a node is the function of its class."""
    return PyMethod_Check(method) and PyMethod_GET_FUNCTION(method) == <PyObject*>function


cdef int reraise() except -1:
    return -1


cdef PyObject* called(object function, Life life, Context ctx, object event) noexcept:
    """Call a function; NULL, with the exception set, where it raises."""
    cdef PyObject* args[3]
    args[0], args[1], args[2] = <PyObject*>life, <PyObject*>ctx, <PyObject*>event
    return PyObject_Vectorcall(function, args, 3, NULL)
