"""SimPy's Store in C."""

from cpython.list cimport PyList_SetSlice

from emuml._kernels.pools cimport emuml_make, pool
from emuml._kernels.requests cimport BaseResource, Get, Put, grant, place

cdef enum:
    STORE_PUT = 0  # numbers of pools
    STORE_GET = 1


def bind(store_put, store_get):
    """Hand in the classes of requests to make."""
    pool(STORE_PUT, store_put)
    pool(STORE_GET, store_get)


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
