# Twins: emuml/des/machine.py and emuml/life.py
"""Machines and lives, with what few of them have made only when it is asked for, and the records of effects.

A worker that waits costs a few hundred bytes: the node object, its machine and its life.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.ref cimport Py_DECREF
from libc.string cimport memset

cdef object above = None  # emuml.des.delivery


def configure(module):
    """Hand in ``emuml.des.delivery``, which has what is taken from the floors above."""
    global above
    above = module


cdef object tools():
    """Return ``emuml.des.delivery``."""
    return above


cdef class Desk:
    """Where effects are recorded, as a stack, and what their checks look up: part of ``Post``.

    Parameters
    ----------
    emulator : Emulator
        Whose Python methods serve what is rare.
    roles : list of str
        All of them.
    linked : bytearray
        Whether one role, by its number, is linked to another: a matrix, row by row.
    """

    def __init__(self, emulator, roles, linked):
        self.emulator, self.directory = emulator, emulator.directory
        self.role_numbers = {role: number for number, role in enumerate(roles)}
        self.roles, self.linked = len(roles), linked
        self.task_class = tools().Task
        self.message_bytes_max = tools().MESSAGE_BYTES_MAX

    def __dealloc__(self):
        self.drop_records(0)
        PyMem_Free(self.records)

    def enrol(self, dict nodes):
        """Return the machines of all nodes, which are given by their ids."""
        cdef Machine machine
        cdef dict machines = {}
        for id, node in nodes.items():
            role = id.role
            machine = Machine.__new__(Machine)
            machine.post, machine.id, machine.node = self, id, node
            machine.role, machine.place = self.role_numbers[role], len(machines)
            machine.worker = id.index if role == "worker" else -1
            machines[id] = machine
        return machines

    cdef int widen(self) except -1:
        """Make room for more records."""
        cdef Record* wider = <Record*>PyMem_Realloc(self.records, (2 * self.room + 64) * sizeof(Record))
        if wider == NULL:
            raise MemoryError
        self.records, self.room = wider, 2 * self.room + 64
        return 0

    def append(self, effect):
        """Record a rare effect, or one that needed Python."""
        record(self, OTHER, effect, 0)

    cdef int drop_records(self, Py_ssize_t begin) except -1:
        while self.used > begin:
            self.used -= 1
            Py_DECREF(<object>self.records[self.used].what)
        return 0


cdef class Machine:
    """Everything that the emulator knows of one node id; what few nodes have is made when it is first asked for."""

    @property
    def name(self):
        """The printed id."""
        if self.text is None:
            self.text = str(self.id)
        return self.text

    @property
    def timers(self):
        """Armed timers: name -> entry."""
        if self.armed is None:
            self.armed = {}
        return self.armed

    @property
    def running(self):
        """Tasks in slots: generation -> entry."""
        jobs = {} if self.jobs is None else dict(self.jobs)
        if self.job is not None:
            jobs[self.job_generation] = self.job
        return jobs

    cdef object rare(self):
        """Return the plain machine that holds what few have: store, links, pending saves, stalls."""
        if self.rest is None:
            self.rest = tools().rest(self)
        return self.rest

    def __getattr__(self, name):
        return getattr(self.rare(), name)

    def __setattr__(self, name, value):
        if name == "life":
            self.life = value
        elif name == "journal":
            self.journal = value
        elif name == "incarnation":
            self.incarnation = value
        else:
            setattr(self.rare(), name, value)

    def born(self):
        """Return a fresh node object."""
        node, self.node = self.node, None
        return self.post.emulator.nodes[self.id][1]() if node is None else node

    def reset(self):
        """Forget what one incarnation had running; entries must have been cancelled before."""
        self.busy, self.job, self.jobs, self.waiting, self.armed = 0, None, None, None, None
        if self.rest is not None:
            self.rest.reset()

    def lives(self, incarnation):
        """Tell whether this incarnation is the one that lives now."""
        return self.life is not None and self.incarnation == incarnation

    def describe(self, absent):
        """Return a line for reports."""
        return tools().describe(self, absent)


cdef class Handlers:
    """Functions of a class of nodes that serve each of them as long as it lives."""

    def __init__(self, on_message, on_computed, on_timer):
        self.on_message, self.on_computed, self.on_timer = on_message, on_computed, on_timer


cdef class Life:
    """One incarnation: the node object, its live timers and tasks, and what it has been through."""

    def __init__(self, Machine machine, node, int64_t incarnation):
        self.machine, self.node, self.incarnation = machine, node, incarnation

    def __dealloc__(self):
        PyMem_Free(self.counts)

    cdef int widen(self, Py_ssize_t index) except -1:
        """Make room for the counts of a message class."""
        cdef uint32_t* wider = <uint32_t*>PyMem_Realloc(self.counts, 2 * (index + 1) * sizeof(uint32_t))
        if wider == NULL:
            raise MemoryError
        memset(wider + 2 * self.counted, 0, 2 * (index + 1 - self.counted) * sizeof(uint32_t))
        self.counts, self.counted = wider, index + 1
        return 0

    # What the Python code of contexts and reports asks for.

    @property
    def id(self):
        """The node's id."""
        return self.machine.id

    @property
    def directory(self):
        """Who is linked to whom."""
        return self.machine.post.directory

    @property
    def checker(self):
        """None: checked runs take the Python path."""
        return None

    @property
    def opened_streams(self):
        """None: checked runs take the Python path."""
        return None

    @property
    def effects(self):
        """What rare effects are appended to."""
        return self.machine.post

    @property
    def timers(self):
        """Live timers: name -> generation."""
        if self.named is None:
            self.named = {}
        return self.named

    @property
    def tasks(self):
        """Live tasks: tag -> generation."""
        tasks = {} if self.tags is None else dict(self.tags)
        if self.tag is not None:
            tasks[self.tag] = self.tag_generation
        return dict(sorted(tasks.items(), key=_second))

    @property
    def received(self):
        """Messages received by class, as far as Python counted them."""
        if self.rare_received is None:
            self.rare_received = {}
        return self.rare_received

    @property
    def sent(self):
        """Messages sent by class, as far as Python counted them."""
        if self.rare_sent is None:
            self.rare_sent = {}
        return self.rare_sent

    def _messages(self):
        return ("received", self.counted_messages(False)), ("sent", self.counted_messages(True))

    cdef dict counted_messages(self, bint sent):
        counts = dict((self.rare_sent if sent else self.rare_received) or {})
        for name, index in tools().message_classes():
            if index < self.counted and self.counts[2 * <Py_ssize_t>index + sent]:
                counts[name] = counts.get(name, 0) + self.counts[2 * <Py_ssize_t>index + sent]
        return counts

    @property
    def last_now(self):
        """Time of the last event, in seconds."""
        return self.last_s

    @property
    def last_event(self):
        """The last event, in words."""
        if self.last_kind == MESSAGE:
            return f"on_message({self.last_one}, {self.last_two})"
        if self.last_kind == COMPUTED:
            return f"on_computed({self.last_one!r})"
        if self.last_kind == TIMED:
            return f"on_timer({self.last_one!r})"
        return self.last_one or ""

    @last_event.setter
    def last_event(self, text):
        self.last_kind, self.last_one = TOLD, text

    def peers(self, role):
        """Return the ids of a role without this node."""
        if role != self.machine.id.role:
            return self.machine.post.directory.peers(self.machine.id, role)
        if self.own_peers is None:
            self.own_peers = {role: self.machine.post.directory.peers(self.machine.id, role)}
        return self.own_peers[role]

    def why_not(self, peer):
        """Return why this node cannot send to ``peer``, or an empty string."""
        return self.machine.post.directory.why_not(self.machine.id, peer)

    def arm(self, name):
        """Give a timer a new generation."""
        return self.armed(name)

    def begin(self, tag):
        """Register a live task and return its generation."""
        return self.begun(tag)

    cdef int64_t armed(self, object name) except -1:
        if self.named is None:
            self.named = {}
        self.generation += 1
        self.named[name] = self.generation
        return self.generation

    cdef int64_t begun(self, object tag) except -1:
        self.generation += 1
        self.started += 1
        if self.tag is None:
            self.tag, self.tag_generation = tag, self.generation
        else:
            if self.tags is None:
                self.tags = {}
            self.tags[tag] = self.generation
        return self.generation

    cdef bint has_task(self, object tag) except -1:
        if self.tag is not None and (self.tag is tag or self.tag == tag):
            return True
        return self.tags is not None and tag in self.tags

    cdef int64_t end_task(self, object tag) except -1:
        """Forget a task; return its generation, or 0 if there is none."""
        cdef int64_t generation
        if self.tag is not None and (self.tag is tag or self.tag == tag):
            self.tag = None
            return self.tag_generation
        if self.tags is None:
            return 0
        generation = self.tags.pop(tag, 0)
        return generation

    def describe(self):
        """Return one line on what this life was doing, for deadlock reports."""
        return tools().describe_life(self)


def _second(pair):
    return pair[1]
