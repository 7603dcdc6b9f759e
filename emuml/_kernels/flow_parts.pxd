# What the kernels of flows are made of: records, and binary heaps of entries ordered by (key, number).

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy, memmove

cdef extern from *:
    """
    #define EMUML_EPSILON 1e-10
    """
    const double EPSILON "EMUML_EPSILON"  # how much two levels may differ that are taken for one


cdef struct Member:
    int slot
    int hop


cdef struct Channel:
    double capacity
    double weight  # of its members
    int changes
    int count
    int size
    Member* members
    int group
    int place  # among the channels of the group


cdef struct Room:
    # Of a channel while its group is filled.
    double left
    double weight  # of the members without a rate
    int open  # how many those are


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
    return (a.key < b.key) | ((a.key == b.key) & (a.number < b.number))  # without branches, which nobody could predict


cdef inline void sift_down(Entry* heap, int count, int place) noexcept nogil:
    cdef Entry entry = heap[place]
    cdef int child = 2 * place + 1
    while child < count:
        if child + 1 < count:
            child += before(heap[child + 1], heap[child])
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


cdef inline uint64_t packed(double level, uint64_t index, uint64_t mask) noexcept nogil:
    """Return a level, rounded down, with an index in its last bits; positive levels are ordered as these words are."""
    cdef uint64_t word
    memcpy(&word, &level, sizeof(word))
    return word & ~mask | index


cdef inline double level_of(uint64_t word, uint64_t mask) noexcept nogil:
    cdef double level
    word &= ~mask
    memcpy(&level, &word, sizeof(word))
    return level


cdef inline void sink(uint64_t* words, int count, int place) noexcept nogil:
    """Move a word down to its place in a heap of different words; children are chosen without branches."""
    cdef uint64_t word = words[place]
    cdef int child = 2 * place + 1
    while child + 1 < count:
        child += words[child + 1] < words[child]
        if words[child] > word:
            words[place] = word
            return
        words[place] = words[child]
        place = child
        child = 2 * place + 1
    if child < count and words[child] < word:
        words[place] = words[child]
        place = child
    words[place] = word


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


cdef struct Agenda:
    # A heap that is a sorted list, read from `first` on, as long as entries come in their order.
    Entry* entries
    int first
    int count
    int size
    bint unsorted


cdef inline bint is_empty(Agenda* agenda) noexcept nogil:
    return agenda.first == agenda.count


cdef inline Entry* head(Agenda* agenda) noexcept nogil:
    return &agenda.entries[agenda.first]


cdef inline void drop_head(Agenda* agenda) noexcept nogil:
    if agenda.unsorted:
        drop_first(agenda.entries, &agenda.count)
    else:
        agenda.first += 1
    if agenda.first == agenda.count:
        agenda.first = agenda.count = 0
        agenda.unsorted = False


cdef inline int enter(Agenda* agenda, double key, int64_t number, int index) except -1 nogil:
    cdef bint late = not agenda.unsorted and agenda.count > 0 and key < agenda.entries[agenda.count - 1].key
    if agenda.first and (late or agenda.count == agenda.size):
        agenda.count -= agenda.first
        memmove(agenda.entries, &agenda.entries[agenda.first], agenda.count * sizeof(Entry))
        agenda.first = 0
    agenda.unsorted = agenda.unsorted or late
    if agenda.unsorted:
        return push(&agenda.entries, &agenda.count, &agenda.size, key, number, index)
    if agenda.count == agenda.size:
        agenda.entries = <Entry*>grown(agenda.entries, 2 * agenda.size + 16, sizeof(Entry))
        agenda.size = 2 * agenda.size + 16
    agenda.entries[agenda.count].key = key
    agenda.entries[agenda.count].number = number
    agenda.entries[agenda.count].index = index
    agenda.count += 1
    return 0


cdef inline int append(int** items, int* count, int* size, int item) except -1 nogil:
    if count[0] == size[0]:
        items[0] = <int*>grown(items[0], 2 * size[0] + 4, sizeof(int))
        size[0] = 2 * size[0] + 4
    items[0][count[0]] = item
    count[0] += 1
    return 0
