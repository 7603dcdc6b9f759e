# Twin: emuml/context.py, which also serves what is rare or wrong
"""The context of a handler: effects are checked at the call and recorded, to be executed after it has returned.

Whatever is not plainly right is left to the Python context, which says what is wrong with it, or records it.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE

from emuml._kernels.lives cimport BROADCAST, CANCEL, CANCEL_TIMER, COMPUTE, SEND, SET_TIMER, Desk, Machine, tools
from emuml._kernels.messages cimport Plan, known_plan

cdef double INFINITE = float("inf")


cdef class Context:
    """Handed to a handler and valid until it returns; see ``emuml.context.Context``."""

    @property
    def role(self):
        """Role of the node."""
        return self.id.role

    @property
    def incarnation(self):
        """Which life of this node id, from 1."""
        return self.life_number

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
        return (<Life>self._live("peers")).peers(role)

    def send(self, to, message):
        """Send a message; never blocks."""
        cdef Desk post
        cdef Plan plan
        cdef Machine target
        cdef PyObject* found
        cdef Py_ssize_t size
        if self.life is None:
            raise tools().StaleContext(str(self.id), "send")
        post = self.life.machine.post
        plan = known_plan(message)
        found = PyDict_GetItem(post.machines, to)
        if plan is None or found == NULL:
            return tools().Plain.send(self, to, message)
        target = <Machine>found
        if not post.linked[self.life.machine.role * post.roles + target.role] and target is not self.life.machine:
            return tools().Plain.send(self, to, message)
        message = frozen(plan, message)
        size = plan.size(message)
        if size < 0 or size > post.message_bytes_max:
            return tools().Plain.send(self, to, message)
        self.life.count(plan.index, True, 1)
        post.record(SEND, size, 0.0, <PyObject*>target, <PyObject*>message, <PyObject*>plan)

    def broadcast(self, role, message):
        """Send to all of ``peers(role)``, in that order."""
        cdef Desk post
        cdef Plan plan
        cdef Py_ssize_t size
        cdef tuple machines
        if self.life is None:
            raise tools().StaleContext(str(self.id), "broadcast")
        post = self.life.machine.post
        plan = known_plan(message)
        machines = post.by_role.get(role)
        if plan is None or machines is None or role == self.id.role:
            return tools().Plain.broadcast(self, role, message)
        if not post.linked[self.life.machine.role * post.roles + (<Machine>machines[0]).role]:
            return tools().Plain.broadcast(self, role, message)
        message = frozen(plan, message)
        size = plan.size(message)
        if size < 0 or size > post.message_bytes_max:
            return tools().Plain.broadcast(self, role, message)
        self.life.count(plan.index, True, PyTuple_GET_SIZE(machines))
        post.record(BROADCAST, size, 0.0, <PyObject*>machines, <PyObject*>message, <PyObject*>plan)

    def set_timer(self, name, after_s):
        """Fire ``on_timer(name)`` at or after ``now + after_s``, once."""
        cdef Life life = self.life
        if life is None or type(name) is not str or type(after_s) is not float or not 0 <= <double>after_s < INFINITE:
            self._live("set_timer")
            return tools().Plain.set_timer(self, name, after_s)
        life.machine.post.record(
            SET_TIMER, life.arm(name), PyFloat_AS_DOUBLE(after_s), <PyObject*>name, NULL, NULL
        )

    def cancel_timer(self, name):
        """Disarm a timer, also if its expiry is queued; unknown names are ignored."""
        cdef Life life = self._live("cancel_timer")
        if life.named is not None and life.named.pop(name, None) is not None:
            life.machine.post.record(CANCEL_TIMER, 0, 0.0, <PyObject*>name, NULL, NULL)

    def compute(self, tag, task):
        """Queue a task for one of this node's slots."""
        cdef Life life = self.life
        cdef Desk post
        if life is None:
            raise tools().StaleContext(str(self.id), "compute")
        post = life.machine.post
        if type(task) is not post.task_class or (type(tag) is not str and tools().checked_tag(tag) is None):
            return tools().Plain.compute(self, tag, task)
        if life.has_task(tag):
            return tools().Plain.compute(self, tag, task)
        if task.inputs:
            task = tools().frozen_task(task)
        draw = task.draw
        if draw is None:
            draw = life.started
        post.record(COMPUTE, life.begin(tag), 0.0, <PyObject*>tag, <PyObject*>task, <PyObject*>draw)

    def cancel(self, tag):
        """Stop a task: nothing is ever delivered for it; unknown tags are ignored."""
        cdef Life life = self._live("cancel")
        cdef int64_t generation = life.end_task(tag)
        if generation:
            life.machine.post.record(CANCEL, generation, 0.0, <PyObject*>tag, NULL, NULL)


cdef inline object frozen(Plan plan, object message):
    return tools().freeze(message) if plan.freezes else message
