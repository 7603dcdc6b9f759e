"""SimPy's Store, Resource and Container in C: requests that wait in line until they can be served.

A resource serves its requests in C as long as nobody has replaced a part of it: subclasses with their own queues or
their own ``_do_put`` and ``_do_get`` are asked through Python, as SimPy does. A line is made into a list when a second
request waits or Python code asks for it. The classes that users see are handed in by :func:`bind`.
"""

from cpython.list cimport PyList_SetSlice

from emuml._kernels.events cimport Core
from emuml._kernels.pools cimport emuml_make, emuml_pool_class
from emuml._kernels.processes cimport PENDING, Event, first_field

cdef enum:
    STORE_PUT = 0  # numbers of pools
    STORE_GET = 1
    REQUEST = 2
    RELEASE = 3
    CONTAINER_PUT = 4
    CONTAINER_GET = 5


def bind(classes):
    """Hand in the classes of requests to make, by name."""
    pool(STORE_PUT, classes["StorePut"])
    pool(STORE_GET, classes["StoreGet"])
    pool(REQUEST, classes["Request"])
    pool(RELEASE, classes["Release"])
    pool(CONTAINER_PUT, classes["ContainerPut"])
    pool(CONTAINER_GET, classes["ContainerGet"])


cdef int pool(int number, cls) except -1:
    cdef Event blank = cls.__new__(cls)
    return emuml_pool_class(number, cls, blank, first_field(blank))


cdef class BaseRequest(Event):
    """A request to a resource: it happens when it is served."""

    cdef readonly BaseResource resource
    cdef public object proc

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


cdef inline int place(BaseRequest request, BaseResource resource) except -1:
    request.env, request.resource, request.proc = resource._env, resource, resource._env._active_proc
    return 0


cdef int grant(Event request, value) except -1:
    if request.value is not PENDING:
        request.succeed()  # raises: somebody else has triggered it
    return request.settle(value, True)


cdef class BaseResource:
    """Something that is put and got by requests, each kind in a line."""

    cdef readonly Core _env
    cdef object capacity_given
    cdef double limit
    cdef object puts, gets  # a line: None, the one request that waits, or a queue
    cdef bint plain  # nothing was replaced: requests are served in C
    cdef bint several  # one who was served lets the next one try

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


# Stores.

cdef class StorePut(Put):
    """A request to put an item into a store."""

    cdef public object item

    def __init__(self, Store store not None, item):
        place(self, store)
        self.item = item
        store.putting(self)


cdef class StoreGet(Get):
    """A request to get an item from a store."""


cdef class Store(BaseResource):
    """A resource that holds things, first in, first out."""

    cdef list held
    cdef Py_ssize_t begin  # what lies before it was taken; the list is told to nobody then
    cdef bint told

    def __init__(self, env, capacity=float("inf")):
        if capacity <= 0:
            raise ValueError('"capacity" must be > 0.')
        BaseResource.__init__(self, env, capacity)
        self.held = []

    cdef bint is_plain(self, kind) except -1:
        return kind._do_put is Store._do_put and kind._do_get is Store._do_get

    @property
    def items(self):
        """The things that are there."""
        if self.begin:
            del self.held[:self.begin]
            self.begin = 0
        self.told = True
        return self.held

    @items.setter
    def items(self, list items not None):
        self.held, self.begin, self.told = items, 0, True

    def put(self, item):
        """Return a request to put an item."""
        cdef StorePut request = emuml_make(STORE_PUT)
        place(request, self)
        request.item = item
        self.putting(request)
        return request

    def get(self):
        """Return a request to get an item."""
        cdef StoreGet request = emuml_make(STORE_GET)
        place(request, self)
        self.getting(request)
        return request

    def _do_put(self, event):
        if len(self.items) < self._capacity:
            self.items.append(event.item)
            event.succeed()

    def _do_get(self, event):
        if self.items:
            event.succeed(self.items.pop(0))

    cdef bint can_put(self, Put request) except -1:
        if len(self.held) - self.begin >= self.limit:
            return False
        self.held.append((<StorePut>request).item if isinstance(request, StorePut) else request.item)
        grant(request, None)
        return True

    cdef bint can_get(self, Get request) except -1:
        cdef Py_ssize_t held = len(self.held)
        if held == self.begin:
            return False
        if self.told:
            item = self.held.pop(0)
        else:
            # Taking the first one out moves all others: done for many of them at once.
            item, self.held[self.begin] = self.held[self.begin], None
            self.begin += 1
            if self.begin == held or (self.begin > 64 and 2 * self.begin > held):
                PyList_SetSlice(self.held, 0, self.begin, <object>NULL)
                self.begin = 0
        grant(request, item)
        return True


# Resources that are used and given back.

cdef class Request(Put):
    """A request to use a resource."""

    cdef public object usage_since

    def __exit__(self, kind, error, traceback):
        self.cancel()
        if kind is not GeneratorExit:
            self.resource.release(self)
        return None


cdef class Release(Get):
    """Gives back what a request was granted."""

    cdef readonly object request

    def __init__(self, BaseResource resource not None, request):
        self.request = request
        place(self, resource)
        resource.getting(self)


cdef class Resource(BaseResource):
    """A resource that so many can use at once."""

    cdef public list users

    def __init__(self, env, capacity=1):
        if capacity <= 0:
            raise ValueError('"capacity" must be > 0.')
        BaseResource.__init__(self, env, capacity)
        self.users = []

    cdef bint is_plain(self, kind) except -1:
        return kind._do_put is Resource._do_put and kind._do_get is Resource._do_get

    @property
    def queue(self):
        """The requests that wait."""
        return self.put_queue

    @property
    def count(self):
        """How many use the resource."""
        return len(self.users)

    def request(self):
        """Return a request to use the resource."""
        cdef Request request = emuml_make(REQUEST)
        place(request, self)
        self.putting(request)
        return request

    def release(self, request):
        """Return the event that gives back what a request was granted."""
        cdef Release release = emuml_make(RELEASE)
        place(release, self)
        release.request = request
        self.getting(release)
        return release

    def _do_put(self, event):
        if len(self.users) < self.capacity:
            self.users.append(event)
            event.usage_since = self._env.now
            event.succeed()

    def _do_get(self, event):
        give_back(self.users, event.request)
        event.succeed()

    cdef bint can_put(self, Put request) except -1:
        if len(self.users) >= self.limit:
            return False
        self.users.append(request)
        if isinstance(request, Request):
            (<Request>request).usage_since = self._env.now
        else:
            request.usage_since = self._env.now
        grant(request, None)
        return True

    cdef bint can_get(self, Get request) except -1:
        give_back(self.users, (<Release>request).request if isinstance(request, Release) else request.request)
        grant(request, None)
        return True


cdef int give_back(list users, request) except -1:
    try:
        users.remove(request)
    except ValueError:
        pass  # it had not been granted, or was given back before
    return 0


# Containers of matter.

cdef class ContainerPut(Put):
    """A request to put an amount into a container."""

    cdef readonly object amount

    def __init__(self, BaseResource container not None, amount):
        self.amount = positive(amount)
        place(self, container)
        container.putting(self)


cdef class ContainerGet(Get):
    """A request to get an amount from a container."""

    cdef readonly object amount

    def __init__(self, BaseResource container not None, amount):
        self.amount = positive(amount)
        place(self, container)
        container.getting(self)


cdef object positive(amount):
    if amount <= 0:
        raise ValueError(f"amount(={amount}) must be > 0.")
    return amount


cdef class Container(BaseResource):
    """A resource that holds an amount of something."""

    cdef public object _level

    def __init__(self, env, capacity=float("inf"), init=0):
        if capacity <= 0:
            raise ValueError('"capacity" must be > 0.')
        if init < 0:
            raise ValueError('"init" must be >= 0.')
        if init > capacity:
            raise ValueError('"init" must be <= "capacity".')
        BaseResource.__init__(self, env, capacity)
        self._level = init
        self.several = True

    cdef bint is_plain(self, kind) except -1:
        return kind._do_put is Container._do_put and kind._do_get is Container._do_get

    @property
    def level(self):
        """The amount that is there."""
        return self._level

    def put(self, amount):
        """Return a request to put an amount."""
        cdef ContainerPut request = emuml_make(CONTAINER_PUT)
        request.amount = positive(amount)
        place(request, self)
        self.putting(request)
        return request

    def get(self, amount):
        """Return a request to get an amount."""
        cdef ContainerGet request = emuml_make(CONTAINER_GET)
        request.amount = positive(amount)
        place(request, self)
        self.getting(request)
        return request

    def _do_put(self, event):
        if self._capacity - self._level >= event.amount:
            self._level += event.amount
            event.succeed()
            return True
        return None

    def _do_get(self, event):
        if self._level >= event.amount:
            self._level -= event.amount
            event.succeed()
            return True
        return None

    cdef bint can_put(self, Put request) except -1:
        amount = (<ContainerPut>request).amount if isinstance(request, ContainerPut) else request.amount
        if not self.capacity_given - self._level >= amount:
            return False
        self._level += amount
        grant(request, None)
        return True

    cdef bint can_get(self, Get request) except -1:
        amount = (<ContainerGet>request).amount if isinstance(request, ContainerGet) else request.amount
        if not self._level >= amount:
            return False
        self._level -= amount
        grant(request, None)
        return True
