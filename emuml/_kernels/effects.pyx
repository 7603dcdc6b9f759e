# Twins: emuml/des/mail.py and emuml/des/slots.py, which serve runs that are out of the ordinary
"""What messages, timers and tasks become in the queue: entries that hand them over when their time has come.

Schedule numbers are taken in the order of the Python path, so that ties fall equally on both.
"""

from cpython.list cimport PyList_Append
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

cimport cython


cdef extern from "Python.h":
    int PyObject_IS_GC(PyObject* object) noexcept
    void PyObject_GC_UnTrack(PyObject* object) noexcept


from emuml._kernels.events cimport QUEUED, Place, key_of
from emuml._kernels.messages cimport plan_for

cdef enum:
    NORMAL = 1
    TIMER = 2


@cython.no_gc
cdef class Letter(Entry):
    """A message on its way; the one with number 0 of a broadcast stands for all of it."""

    cdef int fire(self) except -1:
        return (<Hands>self.sender.post).arrive(self.sender, self.to, self.message, self.plan, self.size, self.left_s, self.life)


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
            head = core.head()
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
        return (<Hands>self.machine.post).finish(self)


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
        self.by_role = {}
        for role in self.role_numbers:
            self.by_role[role] = tuple([machines[id] for id in self.directory.roster.of(role)])

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

    cdef int send(self, Machine machine, Machine to, object message, Plan plan, Py_ssize_t size) except -1:
        cdef Letter letter
        cdef double at
        if self.aside:
            self.mail.send(machine, to.id, message, size)
            return 0
        if self.tracing:
            self.note((self.time(), machine.name, "send", to.name, plan.name, size))
        letter = Letter.__new__(Letter)
        letter.sender, letter.to, letter.message, letter.plan, letter.size = machine, to, message, plan, size
        letter.life = machine.incarnation
        at = letter.left_s = self.core.now_s
        if to is not machine:
            if self.bandwidth_bps:
                at = letter.left_s = self.left(machine, to, size)
            at += self.latency_s
        return self.core.push(at, NORMAL, letter)

    cdef double left(self, Machine machine, Machine to, Py_ssize_t size) except? -1:
        """Return when a message has left its interface, and keep that."""
        link = (machine.id, to.id)
        free = self.mail._free_s
        cdef double begins = max(self.core.now_s, <double>free.get(link, 0.0))
        free[link] = begins = begins + <double>(8 * size) / self.bandwidth_bps
        return begins

    cdef int broadcast(self, Machine machine, tuple to, object message, Plan plan, Py_ssize_t size) except -1:
        cdef Burst burst
        cdef Machine receiver
        if self.aside or self.bandwidth_bps:
            for receiver in to:
                self.send(machine, receiver, message, plan, size)
            return 0
        if self.tracing:
            for receiver in to:
                self.note((self.time(), machine.name, "send", receiver.name, plan.name, size))
        burst = Burst.__new__(Burst)
        burst.sender, burst.to, burst.message, burst.plan, burst.size = machine, to, message, plan, size
        burst.life, burst.left_s, burst.number = machine.incarnation, self.core.now_s, self.core.number
        burst.at_s = self.core.now_s + self.latency_s
        self.core.push(burst.at_s, NORMAL, burst)
        self.core.number += PyTuple_GET_SIZE(to) - 1
        return 0

    cdef int set_timer(self, Machine machine, object name, double after_s, int64_t generation) except -1:
        cdef Timer timer
        if self.tracing:
            self.note((self.time(), machine.name, "set_timer", name, after_s))
        timers = machine.timers
        old = timers.get(name)
        if old is not None:
            self.core.drop(<Entry>old)
        timer = Timer.__new__(Timer)
        timer.machine, timer.name, timer.life, timer.generation = machine, name, machine.incarnation, generation
        timers[name] = timer
        return self.core.push(self.core.now_s + after_s, TIMER, timer)

    cdef int cancel_timer(self, Machine machine, object name) except -1:
        if self.tracing:
            self.note((self.time(), machine.name, "cancel_timer", name))
        return self.core.drop(<Entry>machine.armed.pop(name))

    cdef int compute(self, Machine machine, object tag, object task, object draw, int64_t generation) except -1:
        cdef Job job = Job.__new__(Job)
        if self.tracing:
            self.note((self.time(), machine.name, "compute", tag, draw, <double>task.cost / self.unit_cost))
        job.machine, job.tag, job.task, job.draw = machine, tag, task, draw
        job.life, job.generation = machine.incarnation, generation
        if machine.busy < self.cores and not machine.waiting:
            return self.occupy(machine, job)
        if machine.waiting is None:
            machine.waiting = []
        machine.waiting.append(job)
        return 0

    cdef int occupy(self, Machine machine, Job job) except -1:
        """Begin a task in a free slot."""
        cdef double load = <double>job.task.cost / self.unit_cost, seconds = 0.0
        machine.busy += 1
        if machine.worker >= 0:
            seconds = self.duration(machine, job.draw, load)
        if self.tracing:
            self.note((self.time(), machine.name, "begin", job.tag, job.draw))
        if machine.job is None:
            machine.job, machine.job_generation = job, job.generation
        else:
            if machine.jobs is None:
                machine.jobs = {}
            machine.jobs[job.generation] = job
        return self.core.push(self.core.now_s + seconds, NORMAL, job)

    cdef double duration(self, Machine machine, object draw, double load) except? -1:
        cdef double seconds
        if self.durations is not None and type(draw) is int and 0 <= draw < 1 << 62:
            seconds = self.durations.find(draw, load, machine.worker)
            if seconds >= 0:
                return seconds
        if machine.law is None:
            machine.law = self.emulator._law(machine.id)
        return machine.law(draw, load)

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
        self.send(machine, self.machines[effect.to], effect.message, plan_for(effect.message), effect.size_bytes)

    def execute_broadcast(self, Machine machine, effect):
        """Send to several as the Python effect says."""
        for to in effect.to:
            self.send(machine, self.machines[to], effect.message, plan_for(effect.message), effect.size_bytes)

    def execute_set_timer(self, Machine machine, effect):
        """Arm a timer as the Python effect says."""
        self.set_timer(machine, effect.name, effect.after_s, effect.generation)

    def execute_compute(self, Machine machine, effect):
        """Queue a task as the Python effect says."""
        self.compute(machine, effect.tag, effect.task, effect.draw, effect.generation)
