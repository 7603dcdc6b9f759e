# Twin: emuml/context.py, which also serves what is rare or wrong
"""The context of a handler: effects are checked at the call and recorded, to be executed after it has returned.

Whatever is not plainly right is left to the Python context, which says what is wrong with it, or records it.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE

from emuml._kernels.effects cimport Hands, Job
from emuml._kernels.lives cimport (
    BROADCAST,
    CANCEL,
    CANCEL_TIMER,
    COMPUTE,
    SEND,
    SET_TIMER,
    Life,
    Machine,
    count,
    record,
    tools,
)
from emuml._kernels.messages cimport Plan, known_plan, slot

cdef double INFINITE = float("inf")


cdef class Context:
    """Handed to a handler and valid until it returns; see ``emuml.context.Context``."""

    cdef int retire(self) except -1:
        """End its use: whoever has kept it keeps nothing else alive."""
        self.kept_id, self.kept_number, self.life = self.life.machine.id, self.life.incarnation, None
        return 0

    @property
    def id(self):
        """The node's id."""
        return self.kept_id if self.life is None else self.life.machine.id

    @property
    def role(self):
        """Role of the node."""
        return self.id.role

    @property
    def incarnation(self):
        """Which life of this node id, from 1."""
        return self.kept_number if self.life is None else self.life.incarnation

    @property
    def now(self):
        """Seconds since the run began; constant during a handler."""
        return self.now_s

    def _live(self, effect):
        if self.life is None:
            raise tools().StaleContext(str(self.id), effect)
        return self.life

    def peers(self, role):
        """Return all ids of a role in roster order, without this node, whatever their state."""
        return tools().listed((<Life>self._live("peers")).peers(role))

    def send(self, to, message):
        """Send a message; never blocks."""
        cdef Life life = self.life
        cdef Hands post
        cdef Plan plan
        cdef Machine target
        cdef Py_ssize_t size
        if life is None:
            raise tools().StaleContext(str(self.id), "send")
        post = <Hands>life.machine.post
        plan = known_plan(message)
        target = receiver(post, to)
        if plan is None or target is None:
            return tools().Plain.send(self, to, message)
        if not post.linked[life.machine.role * post.roles + target.role] and target is not life.machine:
            return tools().Plain.send(self, to, message)
        if plan.freezes:
            message = tools().freeze(message)
        size = plan.size(message)
        if size < 0 or size > post.message_bytes_max:
            return tools().Plain.send(self, to, message)
        count(life, plan.index, True, 1)
        record(post, SEND, post.letter(life.machine, target, message, plan, size), 0)

    def broadcast(self, role, message):
        """Send to all of ``peers(role)``, in that order."""
        cdef Life life = self.life
        cdef Hands post
        cdef Plan plan
        cdef Py_ssize_t size
        cdef tuple machines
        if life is None:
            raise tools().StaleContext(str(self.id), "broadcast")
        post = <Hands>life.machine.post
        plan = known_plan(message)
        machines = post.by_role.get(role)
        if plan is None or machines is None or role == self.id.role:
            return tools().Plain.broadcast(self, role, message)
        if not post.linked[life.machine.role * post.roles + (<Machine>machines[0]).role]:
            return tools().Plain.broadcast(self, role, message)
        if plan.freezes:
            message = tools().freeze(message)
        size = plan.size(message)
        if size < 0 or size > post.message_bytes_max:
            return tools().Plain.broadcast(self, role, message)
        count(life, plan.index, True, PyTuple_GET_SIZE(machines))
        record(post, BROADCAST, post.burst(life.machine, machines, message, plan, size), 0)

    def set_timer(self, name, after_s):
        """Fire ``on_timer(name)`` at or after ``now + after_s``, once."""
        cdef Life life = self.life
        cdef Hands post
        if life is None or type(name) is not str or type(after_s) is not float or not 0 <= <double>after_s < INFINITE:
            self._live("set_timer")
            return tools().Plain.set_timer(self, name, after_s)
        post = <Hands>life.machine.post
        record(post, SET_TIMER, post.timer(life.machine, name, PyFloat_AS_DOUBLE(after_s), life.armed(name)), 0)

    def cancel_timer(self, name):
        """Disarm a timer, also if its expiry is queued; unknown names are ignored."""
        cdef Life life = self._live("cancel_timer")
        if life.named is not None and life.named.pop(name, None) is not None:
            record(life.machine.post, CANCEL_TIMER, name, 0)

    def compute(self, tag, task):
        """Queue a task for one of this node's slots."""
        cdef Life life = self.life
        cdef Hands post
        cdef Job job
        if life is None:
            raise tools().StaleContext(str(self.id), "compute")
        post = <Hands>life.machine.post
        if type(task) is not post.task_class or (type(tag) is not str and tools().checked_tag(tag) is None):
            return tools().Plain.compute(self, tag, task)
        if life.has_task(tag):
            return tools().Plain.compute(self, tag, task)
        if slot(task, post.inputs_at, "inputs"):
            task = tools().frozen_task(task)
        job = post.job(life.machine, tag, task, slot(task, post.draw_at, "draw"), life.started, 0)
        job.generation = life.begun(tag)
        record(post, COMPUTE, job, 0)

    def cancel(self, tag):
        """Stop a task: nothing is ever delivered for it; unknown tags are ignored."""
        cdef Life life = self._live("cancel")
        cdef int64_t generation = life.end_task(tag)
        if generation:
            record(life.machine.post, CANCEL, tag, generation)


cdef Machine receiver(Hands post, object to):
    """Return the machine of a node id, or None if there is none."""
    cdef Machine machine = post.receiver
    cdef PyObject* found
    # Many send to one, and one to many in their order.
    if machine is not None:
        if machine.id is to:
            return machine
        if machine.place + 1 < PyList_GET_SIZE(post.order):
            machine = <Machine>PyList_GET_ITEM(post.order, machine.place + 1)
            if machine.id is to:
                post.receiver = machine
                return machine
    found = PyDict_GetItem(post.machines, to)
    if found == NULL:
        return None
    post.receiver = <Machine>found
    return post.receiver
