# Twin: emuml/_kernels/reference_codes.py (the functions of the same names)
"""Decoding weights of graph codes and tilings, and when their rounds close.

Weights of a graph code are quotients of integers that are formed exactly and divided once, so that they are the same
everywhere. Errors that close a round are integers, in units of ``2**-shift`` partitions: their sum is the same in every
order of arrival. ``shift + bit_length(vertices)`` is at most 62.

Nothing is checked here: callers hand over contiguous arrays of fitting lengths, and workers that exist.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset


cdef void *room(Py_ssize_t count, Py_ssize_t size) except NULL:
    """Return memory that is all 0."""
    cdef void *found = calloc(count + 1, size)
    if found == NULL:
        raise MemoryError
    return found


# Components of a graph

cdef struct Forest:
    const int32_t *starts  # where the neighbours of each vertex begin
    const int32_t *neighbours
    const int32_t *workers  # the edge to each neighbour
    int32_t *place  # of each worker among those who answered, from 1; 0 for the others
    int32_t *order  # vertices as the search meets them
    int32_t *parent
    int32_t *edge  # to the parent: its place
    uint8_t *colour  # 0: not met; 1 and 2: distance from the root, even or odd
    int64_t *need  # what the edges of each vertex have to add up to, times the denominator


cdef double component(Forest *f, int32_t root, int32_t first, double *weights, int32_t *after) noexcept nogil:
    """Weigh the edges of the component of ``root``, write where its vertices end, and return its error."""
    cdef int32_t met = first + 1, at = first, vertex, other, edge, odd_edge = 0, odd_at = 0, odd_other = 0, i
    cdef int64_t side[3]
    cdef int64_t size, more
    side[1], side[2] = 1, 0
    f.order[first] = root
    f.colour[root] = 1
    while at < met:
        vertex = f.order[at]
        at += 1
        for i in range(f.starts[vertex], f.starts[vertex + 1]):
            edge = f.place[f.workers[i]]
            if edge == 0:
                continue
            other = f.neighbours[i]
            if f.colour[other] == 0:
                f.colour[other] = 3 - f.colour[vertex]
                side[f.colour[other]] += 1
                f.parent[other], f.edge[other] = vertex, edge
                f.order[met] = other
                met += 1
            elif f.colour[other] == f.colour[vertex] and odd_edge == 0:
                odd_edge, odd_at, odd_other = edge, vertex, other
    after[0] = met
    size = met - first
    if odd_edge:
        more = side[f.colour[odd_at]] - side[3 - f.colour[odd_at]]
        weights[odd_edge - 1] = more / 2.0
        for i in range(first, met):
            f.need[f.order[i]] = 2
        f.need[odd_at] -= more
        f.need[odd_other] -= more
    else:
        for i in range(first, met):
            f.need[f.order[i]] = 2 * side[3 - f.colour[f.order[i]]]
    for i in range(met - 1, first, -1):
        vertex = f.order[i]
        weights[f.edge[vertex] - 1] = f.need[vertex] / <double>(2 if odd_edge else size)
        f.need[f.parent[vertex]] -= f.need[vertex]
    more = side[1] - side[2]
    return 0.0 if odd_edge else <double>(more * more) / <double>size


def component_weights(
    const int32_t[::1] starts,
    const int32_t[::1] neighbours,
    const int32_t[::1] workers,
    const int64_t[::1] received,
    double[::1] weights,
):
    """Write the optimal weights of those who answered; return their error and the sum of their squares."""
    cdef Py_ssize_t vertices = starts.shape[0] - 1, n_received = received.shape[0], i
    cdef Forest f
    cdef double error = 0.0, squares = 0.0
    cdef int32_t root, met = 0
    if n_received == 0:
        return <double>vertices, 0.0
    f.starts, f.neighbours, f.workers = &starts[0], &neighbours[0], &workers[0]
    f.place = <int32_t *>room(neighbours.shape[0] // 2, sizeof(int32_t))
    f.need = <int64_t *>room(vertices, sizeof(int64_t) + 3 * sizeof(int32_t) + sizeof(uint8_t))
    f.order = <int32_t *>(f.need + vertices)
    f.parent, f.edge = f.order + vertices, f.order + 2 * vertices
    f.colour = <uint8_t *>(f.order + 3 * vertices)
    with nogil:
        memset(&weights[0], 0, n_received * sizeof(double))
        for i in range(n_received):
            f.place[received[i]] = <int32_t>(i + 1)
        for root in range(<int32_t>vertices):
            if f.colour[root] == 0:
                error += component(&f, root, met, &weights[0], &met)
        for i in range(n_received):
            squares += weights[i] * weights[i]
    free(f.place)
    free(f.need)
    return error, squares


# When the error of a graph code is small enough

cdef struct Union:
    int32_t *parent
    int32_t *size
    int32_t *same  # vertices on the side of the root
    uint8_t *side  # whether a vertex is on the other side than its parent
    uint8_t *odd  # whether the component of a root has an odd cycle


cdef inline int32_t find(Union *u, int32_t vertex, uint8_t *side) noexcept nogil:
    """Return the root of a vertex and write whether the vertex is on the other side; paths are halved."""
    cdef uint8_t other = 0
    cdef int32_t parent
    while u.parent[vertex] != vertex:
        parent = u.parent[vertex]
        u.side[vertex] ^= u.side[parent]
        u.parent[vertex] = u.parent[parent]
        other ^= u.side[vertex]
        vertex = u.parent[vertex]
    side[0] = other
    return vertex


cdef inline int64_t term(const Union *u, int32_t root, int shift) noexcept nogil:
    """Return the error of a component, rounded to whole units."""
    cdef int64_t size = u.size[root], apart, square
    if u.odd[root]:
        return 0
    apart = 2 * <int64_t>u.same[root] - size
    square = apart * apart
    return ((square // size) << shift) + (((square % size) << shift) + size // 2) // size


cdef inline int64_t joined(Union *u, int32_t a, int32_t b, int shift) noexcept nogil:
    """Take an edge in and return by how much the error falls."""
    cdef uint8_t side_a = 0, side_b = 0, apart
    cdef int32_t held
    cdef int64_t before
    a = find(u, a, &side_a)
    b = find(u, b, &side_b)
    apart = side_a ^ side_b ^ 1  # whether the roots are on different sides
    if a == b:
        before = term(u, a, shift)
        u.odd[a] |= apart
        return before - term(u, a, shift)
    if u.size[a] < u.size[b]:
        held = a
        a = b
        b = held
    before = term(u, a, shift) + term(u, b, shift)
    u.parent[b], u.side[b] = a, apart
    u.same[a] += u.size[b] - u.same[b] if apart else u.same[b]
    u.size[a] += u.size[b]
    u.odd[a] |= u.odd[b]
    return before - term(u, a, shift)


def error_index(
    const int32_t[:, ::1] edges,
    Py_ssize_t vertices,
    const int64_t[::1] order,
    int shift,
    int64_t limit,
    Py_ssize_t count,
):
    """Return after how many arrivals the error is at most ``limit`` or ``count`` have answered; 0 if neither comes."""
    cdef Union u
    cdef int64_t error = <int64_t>vertices << shift
    cdef Py_ssize_t i, distinct = 0, found = 0
    cdef int64_t worker
    cdef uint8_t *arrived = <uint8_t *>room(edges.shape[0], sizeof(uint8_t))
    u.parent = <int32_t *>room(vertices, 3 * sizeof(int32_t) + 2 * sizeof(uint8_t))
    u.size, u.same = u.parent + vertices, u.parent + 2 * vertices
    u.side = <uint8_t *>(u.parent + 3 * vertices)
    u.odd = u.side + vertices
    with nogil:
        for i in range(vertices):
            u.parent[i], u.size[i], u.same[i] = <int32_t>i, 1, 1
        for i in range(order.shape[0]):
            worker = order[i]
            if not arrived[worker]:
                arrived[worker] = 1
                distinct += 1
                error -= joined(&u, edges[worker, 0], edges[worker, 1], shift)
            if error <= limit or distinct == count:
                found = i + 1
                break
    free(arrived)
    free(u.parent)
    return found


# Intervals that tile a line

def tiling(
    const int32_t[::1] starts,
    const int32_t[::1] stops,
    const int32_t[::1] by_stop,
    int32_t length,
    const int64_t[::1] received,
    double[::1] weights,
):
    """Write weight 1 for intervals that do not overlap and cover most of ``0..length``, else 0; return how much."""
    cdef Py_ssize_t workers = starts.shape[0], n_received = received.shape[0], next = 0, i
    cdef int32_t x, worker, covered
    cdef int32_t *best
    cdef int32_t *choice
    cdef int32_t *place
    if n_received == 0:
        return 0
    best = <int32_t *>room(2 * (length + 1) + workers, sizeof(int32_t))
    choice, place = best + length + 1, best + 2 * (length + 1)
    with nogil:
        memset(&weights[0], 0, n_received * sizeof(double))
        for i in range(n_received):
            place[received[i]] = <int32_t>(i + 1)
        for x in range(1, length + 1):
            best[x] = best[x - 1]
            while next < workers and stops[by_stop[next]] == x:
                worker = by_stop[next]
                next += 1
                covered = best[starts[worker]] + x - starts[worker]
                if place[worker] and covered > best[x]:
                    best[x], choice[x] = covered, worker + 1
        covered = best[length]
        x = length
        while x > 0:
            if choice[x]:
                worker = choice[x] - 1
                weights[place[worker] - 1] = 1.0
                x = starts[worker]
            else:
                x -= 1
    free(best)
    return covered


def tiling_index(
    const int32_t[::1] starts,
    const int32_t[::1] stops,
    const int32_t[::1] by_stop,
    int32_t length,
    const int64_t[::1] order,
    Py_ssize_t count,
):
    """Return after how many arrivals intervals tile ``0..length`` or ``count`` have answered; 0 if neither comes."""
    cdef Py_ssize_t workers = starts.shape[0], arrivals = order.shape[0], distinct = 0, last = arrivals + 1, i
    cdef int64_t worker
    cdef int64_t *rank = <int64_t *>room(workers + length + 1, sizeof(int64_t))
    cdef int64_t *tiled = rank + workers  # after how many arrivals intervals tile 0..x; 0 for never
    cdef int64_t through
    with nogil:
        for i in range(arrivals):
            if rank[order[i]] == 0:
                rank[order[i]] = i + 1
                distinct += 1
                if distinct == count:
                    last = i + 1
        for i in range(workers):
            worker = by_stop[i]
            through = max(tiled[starts[worker]], rank[worker])
            if rank[worker] and (starts[worker] == 0 or tiled[starts[worker]]):
                if tiled[stops[worker]] == 0 or through < tiled[stops[worker]]:
                    tiled[stops[worker]] = through
        if tiled[length]:
            last = min(last, <Py_ssize_t>tiled[length])
    free(rank)
    return last if last <= arrivals else 0
