"""Readable twins of the kernels behind graph codes and tilings; a twin and its kernel give the same bits.

Sources: Glasgow and Wootters, "Approximate gradient coding with optimal decoding" (weights by components); Tarjan,
"Efficiency of a good but not linear set union algorithm", JACM 22(2), 1975 (union-find).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]


def component_weights(
    starts: Ints, neighbours: Ints, workers: Ints, received: NDArray[np.int64], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """Write the optimal weights of those who answered; return their error and the sum of their squares.

    The weights at the edges of a vertex add up to 1 in a component with an odd cycle, and in one with sides ``L`` and
    ``R`` to ``2|R|/(|L|+|R|)`` on ``L`` and the reverse on ``R``. A tree of shortest paths is weighed from its leaves
    up; the other edges get 0, but for one that closes an odd cycle: it carries half of what one colour has more.
    """
    weights[:] = 0.0
    place = {worker: position for position, worker in enumerate(received.tolist())}
    colour = [0] * (len(starts) - 1)
    error = 0.0
    for root in range(len(colour)):
        if not colour[root]:
            error += _component(root, colour, (starts, neighbours, workers), place, weights)
    squares = 0.0
    for weight in weights.tolist():
        squares += weight * weight
    return error, squares


def _component(
    root: int,
    colour: list[int],
    graph: tuple[Ints, Ints, Ints],
    place: dict[int, int],
    weights: NDArray[np.float64],
) -> float:
    """Weigh the edges of one component, colour it, and return its error."""
    order, up, odd = _searched(root, colour, graph, place)
    side = [0, 0, 0]
    for vertex in order:
        side[colour[vertex]] += 1
    need = {vertex: 2 if odd else 2 * side[3 - colour[vertex]] for vertex in order}
    if odd:
        position, a, b = odd
        more = side[colour[a]] - side[3 - colour[a]]
        weights[position] = more / 2
        need[a] -= more
        need[b] -= more
    for vertex in order[:0:-1]:
        parent, position = up[vertex]
        weights[position] = need[vertex] / (2 if odd else len(order))
        need[parent] -= need[vertex]
    return 0.0 if odd else (side[1] - side[2]) ** 2 / len(order)


def _searched(
    root: int, colour: list[int], graph: tuple[Ints, Ints, Ints], place: dict[int, int]
) -> tuple[list[int], dict[int, tuple[int, int]], tuple[int, int, int] | None]:
    """Return vertices breadth first, the parent of each and the edge to it, and an edge within one colour."""
    starts, neighbours, workers = graph
    order, up, odd = [root], {}, None
    colour[root] = 1
    for vertex in order:  # grows meanwhile
        for i in range(starts[vertex], starts[vertex + 1]):
            position, other = place.get(int(workers[i])), int(neighbours[i])
            if position is None:
                continue
            if not colour[other]:
                colour[other] = 3 - colour[vertex]
                up[other] = vertex, position
                order.append(other)
            elif colour[other] == colour[vertex] and odd is None:
                odd = position, vertex, other
    return order, up, odd


class Components:
    """The components of a graph to which edges are added, and the error of its code after each.

    Union-find with parities: near O(1) an edge. The error is ``sum (|L|-|R|)^2/(|L|+|R|)`` over the components without
    odd cycles, each term rounded to a whole number of units, so that the sum is the same in every order.

    Parameters
    ----------
    vertices : int
    shift : int
        A unit is ``2**-shift``.
    """

    def __init__(self, vertices: int, shift: int) -> None:
        self.shift, self.error = shift, vertices << shift
        self._parent = list(range(vertices))
        self._other_side = [False] * vertices  # than the parent
        self._size, self._same = [1] * vertices, [1] * vertices  # of a root: all vertices, those on its side
        self._is_odd = [False] * vertices

    def add(self, a: int, b: int) -> None:
        """Take an edge in."""
        a, side_a = self._find(a)
        b, side_b = self._find(b)
        apart = side_a == side_b  # the ends are on different sides, hence the roots are not or are
        if a == b:
            self.error -= self._term(a)
            self._is_odd[a] |= apart
            self.error += self._term(a)
            return
        if self._size[a] < self._size[b]:
            a, b = b, a
        self.error -= self._term(a) + self._term(b)
        self._parent[b], self._other_side[b] = a, apart
        self._same[a] += self._size[b] - self._same[b] if apart else self._same[b]
        self._size[a] += self._size[b]
        self._is_odd[a] |= self._is_odd[b]
        self.error += self._term(a)

    def _find(self, vertex: int) -> tuple[int, bool]:
        parents, sides, other = self._parent, self._other_side, False
        while parents[vertex] != vertex:
            parent = parents[vertex]
            sides[vertex] ^= sides[parent]
            parents[vertex] = parents[parent]
            other ^= sides[vertex]
            vertex = parents[vertex]
        return vertex, other

    def _term(self, root: int) -> int:
        size = self._size[root]
        if self._is_odd[root]:
            return 0
        return (((2 * self._same[root] - size) ** 2 << self.shift) + size // 2) // size


def error_index(edges: Ints, vertices: int, order: NDArray[np.int64], shift: int, limit: int, count: int) -> int:
    """Return after how many arrivals the error is at most ``limit`` or ``count`` have answered; 0 if neither comes."""
    components, arrived = Components(vertices, shift), set[int]()
    for used, worker in enumerate(order.tolist(), 1):
        if worker not in arrived:
            arrived.add(worker)
            components.add(*edges[worker].tolist())
        if components.error <= limit or len(arrived) == count:
            return used
    return 0


def tiling(
    starts: Ints,
    stops: Ints,
    by_stop: Ints,
    length: int,
    received: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> int:
    """Write weight 1 for intervals that do not overlap and cover most of ``0..length``, else 0; return how much.

    ``best[x] = max(best[x-1], best[a] + x - a for each interval [a, x))``; of equal ones the lowest worker's counts.
    """
    weights[:] = 0.0
    place = {worker: position for position, worker in enumerate(received.tolist())}
    ending = _ending(stops, (worker for worker in by_stop.tolist() if worker in place), length)
    best, choice = [0] * (length + 1), [-1] * (length + 1)
    for x in range(1, length + 1):
        best[x] = best[x - 1]
        for worker in ending[x]:
            start = int(starts[worker])
            if best[start] + x - start > best[x]:
                best[x], choice[x] = best[start] + x - start, worker
    x = length
    while x > 0:
        worker = choice[x]
        if worker >= 0:
            weights[place[worker]] = 1.0
        x = x - 1 if worker < 0 else int(starts[worker])
    return best[length]


def tiling_index(starts: Ints, stops: Ints, by_stop: Ints, length: int, order: NDArray[np.int64], count: int) -> int:
    """Return after how many arrivals intervals tile ``0..length`` or ``count`` have answered; 0 if neither comes.

    ``0..x`` is tiled once ``0..a`` is and an interval ``[a, x)`` has come, for the first such.
    """
    rank: dict[int, int] = {}
    for used, worker in enumerate(order.tolist(), 1):
        rank.setdefault(worker, used)
    tiled = {0: 0}
    for worker in by_stop.tolist():
        start, stop = int(starts[worker]), int(stops[worker])
        if worker in rank and start in tiled:
            through = max(tiled[start], rank[worker])
            tiled[stop] = min(tiled.get(stop, through), through)
    found = [tiled[length]] if length in tiled else []
    if 0 < count <= len(rank):
        found.append(sorted(rank.values())[count - 1])
    return min(found, default=0)


def _ending(stops: Ints, workers: Iterable[int], length: int) -> list[list[int]]:
    """Return the given workers by the end of their intervals."""
    found: list[list[int]] = [[] for _ in range(length + 1)]
    for worker in workers:
        found[int(stops[worker])].append(worker)
    return found
