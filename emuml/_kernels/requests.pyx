"""Requests to resources in C, which wait in line until they can be served.

A resource serves its requests in C as long as nobody has replaced a part of it: subclasses with their own queues or
their own ``_do_put`` and ``_do_get`` are asked through Python, as SimPy does. A line is made into a list when a second
request waits or Python code asks for it.
"""

from emuml._kernels.events cimport Core
from emuml._kernels.occurrences cimport Event

cdef object PENDING = None


def bind(pending):
    """Hand in SimPy's ``PENDING``."""
    global PENDING
    PENDING = pending


cdef class BaseRequest(Event):
    """A request to a resource: it happens when it is served."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.cancel()
        return None


cdef class Put(BaseRequest):
    """A request to put something into a resource."""

    def __init__(self, BaseResource resource not None):
        place(self, resource)
        resource.putting(self)

    def cancel(self):
        """Leave the line, if it is still in it."""
        if self.value is PENDING:
            self.resource.put_queue.remove(self)

    cdef list own(self):
        return [self.resource._trigger_get]

    cdef int before(self) except -1:
        if self.resource.plain:
            return self.resource.serve_gets()
        self.resource._trigger_get(self)
        return 0


cdef class Get(BaseRequest):
    """A request to get something from a resource."""

    def __init__(self, BaseResource resource not None):
        place(self, resource)
        resource.getting(self)

    def cancel(self):
        """Leave the line, if it is still in it."""
        if self.value is PENDING:
            self.resource.get_queue.remove(self)

    cdef list own(self):
        return [self.resource._trigger_put]

    cdef int before(self) except -1:
        if self.resource.plain:
            return self.resource.serve_puts()
        self.resource._trigger_put(self)
        return 0


cdef int grant(Event request, value) except -1:
    if request.value is not PENDING:
        request.succeed()  # raises: somebody else has triggered it
    return request.settle(value, True)


cdef class BaseResource:
    """Something that is put and got by requests, each kind in a line."""

    def __init__(self, Core env not None, capacity):
        self._env = env
        self._capacity = capacity
        kind = type(self)
        self.plain = (
            kind.PutQueue is list and kind.GetQueue is list
            and kind._trigger_put is BaseResource._trigger_put and kind._trigger_get is BaseResource._trigger_get
            and self.is_plain(kind)
        )
        if not self.plain:
            self.puts, self.gets = self.PutQueue(), self.GetQueue()

    @property
    def _capacity(self):
        return self.capacity_given

    @_capacity.setter
    def _capacity(self, capacity):
        self.limit = capacity
        self.capacity_given = capacity

    @property
    def capacity(self):
        """How much fits into the resource."""
        return self.capacity_given

    @property
    def put_queue(self):
        """The requests to put that wait."""
        self.puts = line_of(self.puts)
        return self.puts

    @put_queue.setter
    def put_queue(self, queue):
        self.puts, self.plain = queue, False

    @property
    def get_queue(self):
        """The requests to get that wait."""
        self.gets = line_of(self.gets)
        return self.gets

    @get_queue.setter
    def get_queue(self, queue):
        self.gets, self.plain = queue, False

    def _do_put(self, event):
        raise NotImplementedError(self)

    def _do_get(self, event):
        raise NotImplementedError(self)

    def _trigger_put(self, get_event):
        self.serve_puts()

    def _trigger_get(self, put_event):
        self.serve_gets()

    cdef bint is_plain(self, kind) except -1:
        return False

    cdef bint can_put(self, Put request) except -1:
        """Serve a request to put, if that is possible."""
        return False

    cdef bint can_get(self, Get request) except -1:
        """Serve a request to get, if that is possible."""
        return False

    cdef int putting(self, Put request) except -1:
        if self.plain and waits_nobody(self.puts):
            if not self.can_put(request):
                self.puts = joined(self.puts, request)
            return 0
        self.puts = joined(self.puts, request)
        return self.ask_put()

    cdef int getting(self, Get request) except -1:
        if self.plain and waits_nobody(self.gets):
            if not self.can_get(request):
                self.gets = joined(self.gets, request)
            return 0
        self.gets = joined(self.gets, request)
        return self.ask_get()

    cdef int ask_put(self) except -1:
        """Serve who waits, through Python if it was replaced there."""
        if self.plain:
            return self.serve_puts()
        self._trigger_put(None)
        return 0

    cdef int ask_get(self) except -1:
        if self.plain:
            return self.serve_gets()
        self._trigger_get(None)
        return 0

    cdef int serve_puts(self) except -1:
        if not self.plain:
            return serve(self.put_queue, self._do_put, "Put queue invariant violated")
        while not waits_nobody(self.puts):
            first = first_of(self.puts)
            if not isinstance(first, Put):
                return serve(self.put_queue, self._do_put, "Put queue invariant violated")
            if not self.can_put(<Put>first):
                break
            self.puts = without_first(self.puts)
            if not self.several:
                break
        return 0

    cdef int serve_gets(self) except -1:
        if not self.plain:
            return serve(self.get_queue, self._do_get, "Get queue invariant violated")
        while not waits_nobody(self.gets):
            first = first_of(self.gets)
            if not isinstance(first, Get):
                return serve(self.get_queue, self._do_get, "Get queue invariant violated")
            if not self.can_get(<Get>first):
                break
            self.gets = without_first(self.gets)
            if not self.several:
                break
        return 0


cdef int serve(queue, do, violated) except -1:
    """Serve a line as SimPy does, through what a subclass has put in place of the parts in C."""
    cdef Py_ssize_t index = 0
    while index < len(queue):
        request = queue[index]
        proceed = do(request)
        if not request.triggered:
            index += 1
        elif queue.pop(index) != request:
            raise RuntimeError(violated)
        if not proceed:
            break
    return 0


cdef inline bint waits_nobody(line) except -1:
    if line is None:
        return True
    return type(line) is list and not <list>line


cdef inline object first_of(line):
    return (<list>line)[0] if type(line) is list else line


cdef inline object without_first(line):
    if type(line) is not list:
        return None
    (<list>line).pop(0)
    return line


cdef object joined(line, request):
    """Return a line with one more request at its end."""
    if line is None:
        return request
    line = line_of(line)
    line.append(request)
    return line


cdef object line_of(line):
    if line is None:
        return []
    return [line] if isinstance(line, BaseRequest) else line
