# Twin: emuml/des/pool.py (Pool)
"""Workers that read, compute and push, without nodes: the times of all of them in one heap.

A 4-ary heap of (time, number, kind, worker) beside a ring for what happens at this very instant; both are ordered by
time, then number. Python is called once for each push, and once for all workers' durations of an iteration.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stdint cimport int64_t
from libc.string cimport memmove

cdef enum:
    READ = 0  # a read reaches the server
    VIEW = 1  # parameters reach a worker
    END = 2  # it ends an iteration
    GOES_ON = 3  # its push reaches the server, and it goes on meanwhile
    READS = 4  # its push reaches the server, and it waits for parameters
    KINDS = 8

cdef struct Happening:
    double at_s
    int64_t key  # schedule number * KINDS + kind
    int64_t worker


cdef inline bint precedes(const Happening* one, const Happening* other) noexcept nogil:
    return one.at_s < other.at_s or (one.at_s == other.at_s and one.key < other.key)


cdef class Pool:
    """See :class:`emuml.des.pool.Pool`."""

    cdef readonly double now_s
    cdef readonly int64_t still
    cdef readonly bint is_stuck
    cdef int64_t still_max
    cdef object rows, up, down, starter
    cdef double latency_s, bandwidth_bps
    cdef Py_ssize_t workers
    cdef int64_t* clock
    cdef int64_t* last
    cdef double* up_free_s
    cdef double* down_free_s
    cdef Happening* heap
    cdef Py_ssize_t size, room
    cdef Happening* ring
    cdef Py_ssize_t head, length, ring_room  # a power of two
    cdef int64_t number
    # Drawn durations, from iteration `first` on.
    cdef list held
    cdef const double** drawn
    cdef int64_t* left
    cdef int64_t first, count, most

    def __cinit__(self, Py_ssize_t workers, rows, double latency_s, double bandwidth_bps, up, down, int64_t still_max):
        cdef Py_ssize_t worker
        self.workers, self.rows, self.up, self.down = workers, rows, up, down
        self.latency_s, self.bandwidth_bps = latency_s, bandwidth_bps
        self.held, self.most, self.still_max = [], rows.most, still_max
        self.room, self.ring_room = workers + 64, 64
        self.clock = <int64_t*>PyMem_Malloc(workers * sizeof(int64_t))
        self.last = <int64_t*>PyMem_Malloc(workers * sizeof(int64_t))
        self.up_free_s = <double*>PyMem_Malloc((workers if bandwidth_bps else 1) * sizeof(double))
        self.down_free_s = <double*>PyMem_Malloc((workers if bandwidth_bps else 1) * sizeof(double))
        self.heap = <Happening*>PyMem_Malloc(self.room * sizeof(Happening))
        self.ring = <Happening*>PyMem_Malloc(self.ring_room * sizeof(Happening))
        self.drawn = <const double**>PyMem_Malloc(self.most * sizeof(double*))
        self.left = <int64_t*>PyMem_Malloc(self.most * sizeof(int64_t))
        if not (self.clock and self.last and self.up_free_s and self.down_free_s and self.heap and self.ring
                and self.drawn and self.left):
            raise MemoryError
        for worker in range(workers):
            self.clock[worker] = self.last[worker] = 0
            if bandwidth_bps:
                self.up_free_s[worker] = self.down_free_s[worker] = 0.0

    def __dealloc__(self):
        PyMem_Free(self.clock)
        PyMem_Free(self.last)
        PyMem_Free(self.up_free_s)
        PyMem_Free(self.down_free_s)
        PyMem_Free(self.heap)
        PyMem_Free(self.ring)
        PyMem_Free(self.drawn)
        PyMem_Free(self.left)

    def ask(self):
        """See :meth:`emuml.des.pool.Pool.ask`."""
        cdef Py_ssize_t worker
        for worker in range(self.workers):
            self.send_up(READ, worker, -1, True)

    def start(self, Py_ssize_t worker, int64_t clock, int64_t last):
        """See :meth:`emuml.des.pool.Pool.start`."""
        cdef double left_s = self.now_s
        if not 0 <= worker < self.workers:
            raise IndexError(f"there is no worker {worker}")
        self.clock[worker], self.last[worker] = clock, last
        if self.bandwidth_bps:
            left_s = max(left_s, self.down_free_s[worker])
            left_s += <double>(8 * <int64_t>self.down(worker, clock)) / self.bandwidth_bps
            self.down_free_s[worker] = left_s
        self.schedule(left_s + self.latency_s, VIEW, worker)

    def run(self, ctx, list effects, asked, pushed, drain):
        """See :meth:`emuml.des.pool.Pool.run`."""
        cdef Happening now
        cdef int64_t kind
        cdef double last_s = -1.0
        start = self.start
        while self.take(&now):
            self.still = self.still + 1 if now.at_s == last_s else 0
            if self.still > self.still_max:
                self.is_stuck = True
                return
            last_s = now.at_s
            self.now_s = now.at_s
            kind = now.key & (KINDS - 1)
            if kind == VIEW:
                self.begin(now.worker)
            elif kind == END:
                self.end(now.worker)
            else:
                ctx.now = self.now_s
                if kind == READ:
                    asked(ctx, now.worker, start)
                else:
                    pushed(ctx, now.worker, kind == READS, start)
                if len(effects) and drain():
                    return

    cdef int begin(self, int64_t worker) except -1:
        return self.schedule(self.now_s + self.seconds(worker, self.clock[worker]), END, worker)

    cdef int end(self, int64_t worker) except -1:
        cdef int64_t clock = self.clock[worker]
        cdef bint reads = clock >= self.last[worker]
        self.send_up(READS if reads else GOES_ON, worker, clock, reads)
        if not reads:
            self.clock[worker] = clock + 1
            self.begin(worker)
        return 0

    cdef int send_up(self, int kind, int64_t worker, int64_t clock, bint reads) except -1:
        cdef double left_s = self.now_s
        if self.bandwidth_bps:
            left_s = max(left_s, self.up_free_s[worker])
            left_s += <double>(8 * <int64_t>self.up(worker, clock, reads)) / self.bandwidth_bps
            self.up_free_s[worker] = left_s
        return self.schedule(left_s + self.latency_s, kind, worker)

    cdef double seconds(self, int64_t worker, int64_t clock) except? -1:
        cdef int64_t index = clock - self.first
        cdef double found
        if not 0 <= index < self.most:
            return self.rows.alone(worker, clock)
        while index >= self.count:
            self.draw()
        found = self.drawn[index][worker]
        self.left[index] -= 1
        while self.count and self.left[0] == 0:
            self.forget()
        return found

    cdef int draw(self) except -1:
        cdef const double[::1] row
        array, left = self.rows.draw(self.first + self.count)
        row = array
        if row.shape[0] != self.workers:
            raise ValueError(f"got {row.shape[0]} durations for {self.workers} workers")
        self.held.append(array)
        self.drawn[self.count] = &row[0]
        self.left[self.count] = left
        self.count += 1
        return 0

    cdef int forget(self) except -1:
        self.count -= 1
        memmove(self.drawn, self.drawn + 1, self.count * sizeof(double*))
        memmove(self.left, self.left + 1, self.count * sizeof(int64_t))
        del self.held[0]
        self.first += 1
        return 0

    cdef int schedule(self, double at_s, int kind, int64_t worker) except -1:
        cdef Happening new
        new.at_s, new.key, new.worker = at_s, self.number * KINDS + kind, worker
        self.number += 1
        return self.push_now(&new) if at_s == self.now_s else self.push(&new)

    cdef int push_now(self, const Happening* new) except -1:
        cdef Happening* larger
        cdef Py_ssize_t i
        if self.length == self.ring_room:
            larger = <Happening*>PyMem_Malloc(2 * self.ring_room * sizeof(Happening))
            if not larger:
                raise MemoryError
            for i in range(self.length):
                larger[i] = self.ring[(self.head + i) & (self.ring_room - 1)]
            PyMem_Free(self.ring)
            self.ring, self.head, self.ring_room = larger, 0, 2 * self.ring_room
        self.ring[(self.head + self.length) & (self.ring_room - 1)] = new[0]
        self.length += 1
        return 0

    cdef int push(self, const Happening* new) except -1:
        cdef Happening* larger
        cdef Py_ssize_t place, parent
        if self.size == self.room:
            larger = <Happening*>PyMem_Realloc(self.heap, 2 * self.room * sizeof(Happening))
            if not larger:
                raise MemoryError
            self.heap, self.room = larger, 2 * self.room
        place = self.size
        self.size += 1
        while place:
            parent = (place - 1) >> 2
            if not precedes(new, &self.heap[parent]):
                break
            self.heap[place] = self.heap[parent]
            place = parent
        self.heap[place] = new[0]
        return 0

    cdef bint take(self, Happening* out) noexcept:
        """Take what comes first; what is in the ring was scheduled at this instant, after all of it in the heap."""
        if self.length and not (self.size and self.heap[0].at_s <= self.now_s):
            out[0] = self.ring[self.head]
            self.head = (self.head + 1) & (self.ring_room - 1)
            self.length -= 1
            return True
        if not self.size:
            return False
        out[0] = self.heap[0]
        self.size -= 1
        if self.size:
            self.sink(&self.heap[self.size])
        return True

    cdef void sink(self, const Happening* moved) noexcept:
        """Put what was last into the hole at the top."""
        cdef Happening* heap = self.heap
        cdef Happening it = moved[0]
        cdef Py_ssize_t place = 0, child, other, stop
        while True:
            child = 4 * place + 1
            if child >= self.size:
                break
            stop = min(child + 4, self.size)
            for other in range(child + 1, stop):
                if precedes(&heap[other], &heap[child]):
                    child = other
            if not precedes(&heap[child], &it):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = it
