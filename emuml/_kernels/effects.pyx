# Twins: emuml/des/mail.py and emuml/des/slots.py, which serve runs that are out of the ordinary
"""What messages, timers and tasks become in the queue: entries that hand them over when their time has come.

Schedule numbers are taken in the order of the Python path, so that ties fall equally on both.
"""

from cpython.list cimport PyList_Append
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

cimport cython


cdef extern from "Python.h":
    int PyObject_IS_GC(PyObject* object) noexcept
    void PyObject_GC_UnTrack(PyObject* object) noexcept
    Py_ssize_t Py_REFCNT(PyObject* object) noexcept
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1


from emuml._kernels.events cimport QUEUED, Place, key_of
from emuml._kernels.queue cimport head_of
from emuml._kernels.messages cimport offset_of, plan_for, slot

cdef enum:
    NORMAL = 1
    TIMER = 2
    SPARE_MOST = 16384  # entries of a kind that are kept to be used again

cdef int64_t NUMBER_MOST = <int64_t>1 << 62


cdef inline int lay_down(Pile* pile, Entry entry) except -1:
    """Keep an entry that has happened, unless there are many or somebody else has it."""
    cdef PyObject** wider
    if Py_REFCNT(<PyObject*>entry) != 1 or pile.used == SPARE_MOST:
        return 0
    if pile.used == pile.room:
        wider = <PyObject**>PyMem_Realloc(pile.rows, (2 * pile.room + 64) * sizeof(PyObject*))
        if wider == NULL:
            raise MemoryError
        pile.rows, pile.room = wider, 2 * pile.room + 64
    Py_INCREF(entry)
    pile.rows[pile.used] = <PyObject*>entry
    pile.used += 1
    return 0


cdef inline object picked(Pile* pile):
    """Take an entry from a pile that has one."""
    pile.used -= 1
    entry = <object>pile.rows[pile.used]
    Py_DECREF(entry)
    return entry


cdef int drop_pile(Pile* pile) except -1:
    while pile.used:
        picked(pile)
    PyMem_Free(pile.rows)
    pile.rows, pile.room = NULL, 0
    return 0


@cython.no_gc
cdef class Letter(Entry):
    """A message on its way; the one with number 0 of a broadcast stands for all of it."""

    cdef int fire(self) except -1:
        cdef Hands post = <Hands>self.sender.post
        post.arrive(self.sender, self.to, self.message, self.plan, self.size, self.left_s, self.life)
        self.message = None
        return lay_down(&post.letters, self)


@cython.no_gc
cdef class Burst(Entry):
    """A message to many that arrives at all of them at one time: one entry that keeps the places of many.

    Its receivers have successive schedule numbers. Before each of them it looks whether something has come in between.
    """

    cdef int fire(self) except -1:
        cdef Hands post = <Hands>self.sender.post
        cdef Core core = post.core
        cdef Place* head
        cdef Machine to
        cdef int64_t key
        cdef Py_ssize_t total = PyTuple_GET_SIZE(self.to)
        while True:
            to = <Machine>PyTuple_GET_ITEM(self.to, self.next)
            self.next += 1
            post.arrive(self.sender, to, self.message, self.plan, self.size, self.left_s, self.life)
            if self.next == total or core.halt:
                return 0
            head = head_of(core)
            if head == NULL:
                continue
            key = key_of(NORMAL, self.number + self.next, True, False)
            if head.at < self.at_s or (head.at == self.at_s and head.key < key):
                core.put(self.at_s, key, <PyObject*>self)
                self.bits |= QUEUED
                core.live += 1
                return 0


@cython.no_gc
cdef class Timer(Entry):
    """A timer that was armed."""

    cdef int fire(self) except -1:
        return (<Hands>self.machine.post).expire(self)


@cython.no_gc
cdef class Job(Entry):
    """A task in a slot, or one that waits for a slot."""

    cdef int fire(self) except -1:
        cdef Hands post = <Hands>self.machine.post
        post.finish(self)
        self.tag = None
        self.task = None
        self.draw = None
        return lay_down(&post.jobs, self)

    cdef object drawn(self):
        """Return the draw: the place of its duration among the node's."""
        return self.number if self.draw is None else self.draw


cdef class Hands(Desk):
    """Executes effects; what becomes of them is up to ``Post``, which is derived from it."""

    def take(self, dict machines, durations):
        """Take what was built after this object, before the run begins."""
        emulator = self.emulator
        cluster, network = emulator.cluster, emulator.cluster.network
        self.machines, self.durations = machines, durations
        self.core, self.mail, self.trace = emulator.env, emulator.mail, emulator.trace
        self.latency_s = network.latency_s
        self.bandwidth_bps = 0.0 if network.bandwidth_bps is None else network.bandwidth_bps
        self.cancel_lag_s, self.cores, self.unit_cost = cluster.cancel_lag_s, cluster.cores, emulator.unit_cost
        self.now_s = -1.0
        self.tracing = self.trace.on
        self.rows = self.trace.rows if self.trace.plain else None
        self.cost_at, self.whole_at = [offset_of(self.task_class, name) for name in ("cost", "whole")]
        self.inputs_at, self.draw_at = [offset_of(self.task_class, name) for name in ("inputs", "draw")]
        self.order = list(machines.values())
        self.by_role = {}
        for role in self.role_numbers:
            self.by_role[role] = tuple([machines[id] for id in self.directory.roster.of(role)])

    def __dealloc__(self):
        self.clear_away()

    cdef int clear_away(self) except -1:
        """Give up the entries that are kept, and with them what they lead to."""
        drop_pile(&self.letters)
        drop_pile(&self.jobs)
        self.order, self.receiver = [], None
        return 0

    cdef int arrive(
        self, Machine sender, Machine to, object message, Plan plan, Py_ssize_t size, double left_s, int64_t life
    ) except -1:
        raise NotImplementedError

    cdef int expire(self, Timer timer) except -1:
        raise NotImplementedError

    cdef int finish(self, Job job) except -1:
        raise NotImplementedError

    cdef int note(self, tuple row) except -1:
        """Append a row of the trace."""
        cdef Py_ssize_t place
        if self.rows is not None:
            # As the collector does when it first meets a tuple of plain values; a trace has millions.
            for place in range(PyTuple_GET_SIZE(row)):
                if PyObject_IS_GC(PyTuple_GET_ITEM(row, place)):
                    break
            else:
                PyObject_GC_UnTrack(<PyObject*>row)
            return PyList_Append(self.rows, row)
        self.trace.add(*row)
        return 0

    cdef object time(self):
        """Return the current time as an object, made once per instant."""
        if self.core.now_s != self.now_s:
            self.now_s = self.core.now_s
            self.now = self.now_s
        return self.now

    cdef Letter letter(self, Machine sender, Machine to, object message, Plan plan, Py_ssize_t size):
        cdef Letter letter = <Letter>picked(&self.letters) if self.letters.used else Letter.__new__(Letter)
        letter.sender = sender
        letter.to = to
        letter.message = message
        letter.plan = plan
        letter.size = size
        return letter

    cdef Burst burst(self, Machine sender, tuple to, object message, Plan plan, Py_ssize_t size):
        cdef Burst burst = Burst.__new__(Burst)
        burst.sender, burst.to, burst.message, burst.plan, burst.size = sender, to, message, plan, size
        return burst

    cdef Job job(self, Machine machine, object tag, object task, object draw, int64_t number, int64_t generation):
        """Return a task to be run; ``number`` counts where ``draw`` is None."""
        cdef Job job = <Job>picked(&self.jobs) if self.jobs.used else Job.__new__(Job)
        cdef int overflow = 0
        job.machine = machine
        job.tag = tag
        job.task = task
        job.draw = draw
        job.generation = generation
        if draw is not None:
            number = PyLong_AsLongLongAndOverflow(draw, &overflow) if type(draw) is int else -1
            if overflow or not 0 <= number < NUMBER_MOST:
                number = -1
        job.number = number
        return job

    cdef Timer timer(self, Machine machine, object name, double after_s, int64_t generation):
        cdef Timer timer = Timer.__new__(Timer)
        timer.machine, timer.name, timer.after_s, timer.generation = machine, name, after_s, generation
        return timer

    cdef int send(self, Letter letter) except -1:
        cdef Machine machine = letter.sender, to = letter.to
        cdef double at
        if self.aside:
            self.mail.send(machine, to.id, letter.message, letter.size)
            return 0
        if self.tracing:
            self.note((self.time(), machine.name, "send", to.name, letter.plan.name, letter.size))
        letter.life = machine.incarnation
        at = letter.left_s = self.core.now_s
        if to is not machine:
            if self.bandwidth_bps:
                at = letter.left_s = self.left(machine, to, letter.size)
            at += self.latency_s
        return self.core.push_behind(at, NORMAL, letter)

    cdef double left(self, Machine machine, Machine to, Py_ssize_t size) except? -1:
        """Return when a message has left its interface, and keep that."""
        link = (machine.id, to.id)
        free = self.mail._free_s
        cdef double begins = max(self.core.now_s, <double>free.get(link, 0.0))
        free[link] = begins = begins + <double>(8 * size) / self.bandwidth_bps
        return begins

    cdef int broadcast(self, Burst burst) except -1:
        cdef Machine machine = burst.sender, receiver
        if self.aside or self.bandwidth_bps:
            for receiver in burst.to:
                self.send(self.letter(machine, receiver, burst.message, burst.plan, burst.size))
            return 0
        if self.tracing:
            for receiver in burst.to:
                self.note((self.time(), machine.name, "send", receiver.name, burst.plan.name, burst.size))
        burst.life, burst.left_s, burst.number = machine.incarnation, self.core.now_s, self.core.number
        burst.at_s = self.core.now_s + self.latency_s
        self.core.push_behind(burst.at_s, NORMAL, burst)
        self.core.number += PyTuple_GET_SIZE(burst.to) - 1
        return 0

    cdef int set_timer(self, Timer timer) except -1:
        cdef Machine machine = timer.machine
        if self.tracing:
            self.note((self.time(), machine.name, "set_timer", timer.name, timer.after_s))
        timers = machine.timers
        old = timers.get(timer.name)
        if old is not None:
            self.core.drop(<Entry>old)
        timer.life = machine.incarnation
        timers[timer.name] = timer
        return self.core.push(self.core.now_s + timer.after_s, TIMER, timer)

    cdef int cancel_timer(self, Machine machine, object name) except -1:
        if self.tracing:
            self.note((self.time(), machine.name, "cancel_timer", name))
        return self.core.drop(<Entry>machine.armed.pop(name))

    cdef int compute(self, Job job) except -1:
        cdef Machine machine = job.machine
        cdef double cost = slot(job.task, self.cost_at, "cost")
        whole = slot(job.task, self.whole_at, "whole")
        job.load, job.part = cost / self.unit_cost, 1.0
        job.life = machine.incarnation
        if self.tracing:
            self.note((self.time(), machine.name, "compute", job.tag, job.drawn(), job.load))
        if whole is not None:  # a share takes its part of what the whole takes
            job.load, job.part = <double>whole / self.unit_cost, cost / <double>whole
        if machine.busy < self.cores and not machine.waiting:
            return self.occupy(machine, job)
        if machine.waiting is None:
            machine.waiting = []
        machine.waiting.append(job)
        return 0

    cdef int occupy(self, Machine machine, Job job) except -1:
        """Begin a task in a free slot."""
        cdef double seconds = 0.0
        machine.busy += 1
        if machine.worker >= 0:
            seconds = self.duration(machine, job) * job.part
        if self.tracing:
            self.note((self.time(), machine.name, "begin", job.tag, job.drawn()))
        if machine.job is None:
            machine.job, machine.job_generation = job, job.generation
        else:
            if machine.jobs is None:
                machine.jobs = {}
            machine.jobs[job.generation] = job
        return self.core.push(self.core.now_s + seconds, NORMAL, job)

    cdef double duration(self, Machine machine, Job job) except? -1:
        cdef double seconds
        if self.durations is not None and job.number >= 0:
            seconds = self.durations.find(job.number, job.load, machine.worker)
            if seconds >= 0:
                return seconds
        if machine.law is None:
            machine.law = self.emulator._law(machine.id)
        return machine.law(job.drawn(), job.load)

    cdef int fill(self, Machine machine) except -1:
        while machine.waiting and machine.busy < self.cores:
            self.occupy(machine, <Job>machine.waiting.pop(0))
        return 0

    cdef Job taken(self, Machine machine, int64_t generation):
        """Take a task out of its slot; None if it has none."""
        cdef Job job
        if machine.job is not None and machine.job_generation == generation:
            job = <Job>machine.job
            machine.job = None
            return job
        return None if machine.jobs is None else machine.jobs.pop(generation, None)

    cdef int cancel(self, Machine machine, object tag, int64_t generation) except -1:
        cdef Job job
        if self.tracing:
            self.note((self.time(), machine.name, "cancel", tag))
        job = self.taken(machine, generation)
        if job is None:
            machine.waiting = [job for job in machine.waiting or () if (<Job>job).generation != generation]
            return 0
        self.core.drop(job)
        if self.cancel_lag_s == 0:
            self.free(machine, machine.incarnation, tag)
        else:
            self.core.call_at(self.core.now_s + self.cancel_lag_s, NORMAL, self.free, machine, machine.incarnation, tag)
        return 0

    def free(self, Machine machine, incarnation, tag):
        """Give a slot back whose task was cancelled."""
        if machine.lives(incarnation):
            machine.busy -= 1
            if self.tracing:
                self.note((self.time(), machine.name, "freed", tag))
            self.fill(machine)

    def execute_send(self, Machine machine, effect):
        """Send as the Python effect says."""
        self.send_as(machine, effect, effect.to)

    def execute_broadcast(self, Machine machine, effect):
        """Send to several as the Python effect says."""
        for to in effect.to:
            self.send_as(machine, effect, to)

    cdef int send_as(self, Machine machine, object effect, object to) except -1:
        message = effect.message
        return self.send(self.letter(machine, <Machine>self.machines[to], message, plan_for(message), effect.size_bytes))

    def execute_set_timer(self, Machine machine, effect):
        """Arm a timer as the Python effect says."""
        self.set_timer(self.timer(machine, effect.name, effect.after_s, effect.generation))

    def execute_compute(self, Machine machine, effect):
        """Queue a task as the Python effect says."""
        self.compute(self.job(machine, effect.tag, effect.task, effect.draw, 0, effect.generation))
