"""SimPy's Resource and Container in C."""

from emuml._kernels.pools cimport emuml_make, pool
from emuml._kernels.requests cimport BaseResource, Get, Put, grant, place

cdef enum:
    REQUEST = 0  # numbers of pools
    RELEASE = 1
    CONTAINER_PUT = 2
    CONTAINER_GET = 3


def bind(request, release, container_put, container_get):
    """Hand in the classes of requests to make."""
    pool(REQUEST, request)
    pool(RELEASE, release)
    pool(CONTAINER_PUT, container_put)
    pool(CONTAINER_GET, container_get)


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
