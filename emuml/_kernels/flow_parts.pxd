# What the kernel ``flows`` is made of: records, and binary heaps of entries ordered by (key, number).

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc


cdef struct Member:
    int slot
    int hop


cdef struct Channel:
    double capacity
    double weight  # of its members
    double room  # while a group is filled
    double loose  # weight of the members without a rate, while a group is filled
    int open  # how many those are
    int changes
    int count
    int size
    Member* members
    int group
    int place  # among the channels of the group


cdef struct Flow:
    double weight
    double most
    double bytes
    double left  # bytes; in an anchored group the virtual time of the end
    double rate
    int64_t number  # 0: the slot is free
    int64_t filled
    int group
    int place  # among the flows of the group
    int hops


cdef struct Group:
    double virtual
    double level
    double peak
    double settled
    double next
    int64_t stamp  # of the entry in the queue that says when something happens next
    Entry* ends  # of an anchored group
    int* flows
    int* channels
    int count
    int size
    int channel_count
    int channel_size
    int ends_count
    int ends_size
    int anchor
    int gone
    int changes
    bint changed


cdef struct Entry:
    double key
    int64_t number
    int index


cdef inline void* grown(void* block, Py_ssize_t items, Py_ssize_t size) except NULL nogil:
    """Return the block with room for so many items."""
    cdef void* fresh = realloc(block, max(items, 1) * size)
    if fresh == NULL:
        with gil:
            raise MemoryError
    return fresh


cdef inline bint before(Entry a, Entry b) noexcept nogil:
    return a.key < b.key or a.key == b.key and a.number < b.number


cdef inline void sift_down(Entry* heap, int count, int place) noexcept nogil:
    cdef Entry entry = heap[place]
    cdef int child = 2 * place + 1
    while child < count:
        if child + 1 < count and before(heap[child + 1], heap[child]):
            child += 1
        if not before(heap[child], entry):
            break
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = entry


cdef inline void sift_up(Entry* heap, int place) noexcept nogil:
    cdef Entry entry = heap[place]
    cdef int parent
    while place:
        parent = (place - 1) >> 1
        if not before(entry, heap[parent]):
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = entry


cdef inline void heapify(Entry* heap, int count) noexcept nogil:
    cdef int place
    for place in range(count // 2 - 1, -1, -1):
        sift_down(heap, count, place)


cdef inline void drop_first(Entry* heap, int* count) noexcept nogil:
    count[0] -= 1
    if count[0]:
        heap[0] = heap[count[0]]
        sift_down(heap, count[0], 0)


cdef inline int push(Entry** heap, int* count, int* size, double key, int64_t number, int index) except -1 nogil:
    cdef Entry* entry
    if count[0] == size[0]:
        heap[0] = <Entry*>grown(heap[0], 2 * size[0] + 16, sizeof(Entry))
        size[0] = 2 * size[0] + 16
    entry = &heap[0][count[0]]
    entry.key, entry.number, entry.index = key, number, index
    count[0] += 1
    sift_up(heap[0], count[0] - 1)
    return 0


cdef inline int append(int** items, int* count, int* size, int item) except -1 nogil:
    if count[0] == size[0]:
        items[0] = <int*>grown(items[0], 2 * size[0] + 4, sizeof(int))
        size[0] = 2 * size[0] + 4
    items[0][count[0]] = item
    count[0] += 1
    return 0
