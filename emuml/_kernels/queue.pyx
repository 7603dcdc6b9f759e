"""The queue of events: a 4-ary heap of (time, key, entry) beside a ring for what comes in the order of scheduling.

The ring takes what is due at this very instant, and messages, which take equally long. Both are ordered by time, then key, and a key is (priority, schedule number): so the order is that of SimPy's queue.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyTypeObject, inquiry, traverseproc, visitproc
from cpython.ref cimport Py_DECREF, Py_INCREF

cdef enum:
    NORMAL = 1  # the class of most events

cdef double INFINITE = float("inf")


cdef class Entry:
    """What the queue holds; ``fire`` is called when its time has come."""

    @property
    def callbacks(self):
        """As of a SimPy event: nothing once it is cancelled, ``None`` when it has happened."""
        if self.dead:
            return ()
        return (type(self),) if self.bits & QUEUED else None

    cdef int fire(self) except -1:
        return 0


cdef class Queue:
    """What is to happen, and the present."""

    def __dealloc__(self):
        drain(self)
        PyMem_Free(self.heap)
        PyMem_Free(self.ring)

    cdef int drop(self, Entry entry) except -1:
        """Cancel a call, unless it has happened or was cancelled."""
        if entry.bits & QUEUED and not entry.dead:
            entry.dead = True
            self.live -= 1
            self.dead += 1
            if self.dead > self.live + 64:
                compact(self)
        return 0

    cdef int put(self, double at, int64_t key, PyObject *entry) except -1:
        """Own a reference to ``entry`` and put it where its time and key belong."""
        cdef Place place
        # What is due now, in the class of most events, comes after all that the ring holds, unless that is later.
        if at == self.now_s and key >> SHIFT == NORMAL:
            return self.put_behind(at, key, entry)
        place.at, place.key, place.entry = at, key, entry
        return into_heap(self, place)

    cdef int put_behind(self, double at, int64_t key, PyObject *entry) except -1:
        """Do as ``put`` with what probably comes after all that the ring holds: it takes no search there."""
        cdef Place place
        place.at, place.key, place.entry = at, key, entry
        if self.count and not precedes(in_ring(self, self.count - 1), &place):
            return into_heap(self, place)
        if self.count == self.ring_room:
            widen_ring(self)
        self.count += 1
        in_ring(self, self.count - 1)[0] = place
        Py_INCREF(<object>entry)
        return 0

    cdef bint take(self, Place *place) noexcept:
        """Take the first entry out; its reference belongs to the caller. False if there is none."""
        if self.count and (self.size == 0 or precedes(in_ring(self, 0), self.heap)):
            place[0] = in_ring(self, 0)[0]
            self.first = (self.first + 1) & (self.ring_room - 1)
            self.count -= 1
            return True
        if self.size == 0:
            return False
        place[0] = self.heap[0]
        self.size -= 1
        if self.size:
            sift_down(self.heap, self.size, self.heap[self.size])
        return True

    cdef double next_s(self):
        """Drop dead entries at the head and return the time of the first living one, or infinity."""
        cdef Place place
        cdef Place *head
        while True:
            head = head_of(self)
            if head is NULL:
                return INFINITE
            if not (head.key & CALL and (<Entry>head.entry).dead):
                return head.at
            self.take(&place)
            forget(self, place)

    cdef list rows(self):
        """Return (time, key, entry) of everything in the queue, in order."""
        cdef Py_ssize_t index
        found = [row_of(&self.heap[index]) for index in range(self.size)]
        found += [row_of(in_ring(self, index)) for index in range(self.count)]
        found.sort(key=_order)
        return found


cdef inline object owned(PyObject *entry):
    """Turn a reference that is owned into an object."""
    taken = <object>entry
    Py_DECREF(taken)
    return taken


cdef tuple row_of(Place *place):
    return place.at, place.key, <object>place.entry


def _order(row):
    return row[:2]


cdef int forget(Queue queue, Place place):
    cdef Entry entry = owned(place.entry)
    entry.bits &= ~<uint32_t>QUEUED
    queue.dead -= 1
    return 0


cdef int compact(Queue queue) except -1:
    """Take all dead entries out."""
    cdef Py_ssize_t index, kept = 0, total = queue.count
    cdef Place place
    gone = []
    for index in range(queue.size):
        place = queue.heap[index]
        if place.key & CALL and (<Entry>place.entry).dead:
            gone.append(owned(place.entry))
        else:
            queue.heap[kept] = place
            kept += 1
    queue.size = kept
    for index in range(kept // 4, -1, -1):
        if index < kept:
            sift_down_from(queue.heap, kept, index)
    queue.count = 0
    for index in range(total):
        place = in_ring(queue, index)[0]
        if place.key & CALL and (<Entry>place.entry).dead:
            gone.append(owned(place.entry))
        else:
            in_ring(queue, queue.count)[0] = place
            queue.count += 1
    for entry in gone:
        (<Entry>entry).bits &= ~<uint32_t>QUEUED
    queue.dead = 0
    return 0


cdef inline int into_heap(Queue queue, Place place) except -1:
    if queue.size == queue.room:
        widen_heap(queue)
    sift_up(queue.heap, queue.size, place)
    queue.size += 1
    Py_INCREF(<object>place.entry)
    return 0


cdef int widen_heap(Queue queue) except -1:
    cdef Py_ssize_t room = max(64, 2 * queue.room)
    cdef Place *heap = <Place *>PyMem_Realloc(queue.heap, room * sizeof(Place))
    if heap is NULL:
        raise MemoryError
    queue.heap, queue.room = heap, room
    return 0


cdef int widen_ring(Queue queue) except -1:
    cdef Py_ssize_t index, room = max(64, 2 * queue.ring_room), old = queue.ring_room
    cdef Place *ring = <Place *>PyMem_Realloc(queue.ring, room * sizeof(Place))
    if ring is NULL:
        raise MemoryError
    queue.ring, queue.ring_room = ring, room
    # It was full: what had wrapped around to the front goes behind the rest.
    for index in range(queue.first):
        ring[old + index] = ring[index]
    return 0


cdef inline void sift_up(Place *heap, Py_ssize_t index, Place place) noexcept:
    cdef Py_ssize_t above
    while index:
        above = (index - 1) >> 2
        if not precedes(&place, &heap[above]):
            break
        heap[index] = heap[above]
        index = above
    heap[index] = place


cdef inline void sift_down_from(Place *heap, Py_ssize_t size, Py_ssize_t index) noexcept:
    cdef Place place = heap[index]
    cdef Py_ssize_t least, other, below, child = 4 * index + 1
    while child + 4 <= size:
        # Two pairs, then their winners: the first two comparisons do not wait for each other.
        least = child + precedes(&heap[child + 1], &heap[child])
        other = child + 2 + precedes(&heap[child + 3], &heap[child + 2])
        least += (other - least) * precedes(&heap[other], &heap[least])
        if not precedes(&heap[least], &place):
            heap[index] = place
            return
        heap[index] = heap[least]
        index, child = least, 4 * least + 1
    if child < size:
        least = child
        for below in range(child + 1, size):
            least = below if precedes(&heap[below], &heap[least]) else least
        if precedes(&heap[least], &place):
            heap[index] = heap[least]
            index = least
    heap[index] = place


cdef inline void sift_down(Place *heap, Py_ssize_t size, Place place) noexcept:
    heap[0] = place
    sift_down_from(heap, size, 0)


# The collector must see the references in the queue, which Cython does not know of.

cdef traverseproc plain_traverse = (<PyTypeObject *>Queue).tp_traverse
cdef inquiry plain_clear = (<PyTypeObject *>Queue).tp_clear


cdef int traverse(PyObject *self, visitproc visit, void *argument) except -1:
    cdef Queue queue = <Queue>self
    cdef Py_ssize_t index
    cdef int told
    for index in range(queue.size):
        told = visit(queue.heap[index].entry, argument)
        if told:
            return told
    for index in range(queue.count):
        told = visit(in_ring(queue, index).entry, argument)
        if told:
            return told
    return plain_traverse(self, visit, argument)


cdef int clear(object self) except -1:
    drain(self)
    return plain_clear(self)


cdef int drain(Queue queue) except -1:
    """Give up all references; what they lead to may schedule more, which is given up as well."""
    cdef Place place
    while queue.take(&place):
        Py_DECREF(<object>place.entry)
    return 0


(<PyTypeObject *>Queue).tp_traverse = traverse
(<PyTypeObject *>Queue).tp_clear = clear
