"""Graphs that codes are made of: declarations by name, and their edges for a number of workers.

A graph code has a worker for each edge, an adjacency code one for each vertex; so a declaration names a family, and the
number of workers picks its member. Edges are pairs ``(u, v)`` with ``u < v``, in lexicographic order, without loops and
each once. Random graphs are drawn from a stream of their own by the seed of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Literal, Protocol

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.spec import check
from emuml.streams import stream_key, words_at

Edges = NDArray[np.int32]
"""Shape (edges, 2)."""

_REDRAWN_DEGREE, _REDRAWN_VERTICES = 4, 4096
"""Up to these whole graphs are drawn again: ``exp(-(degree^2 - 1) / 4)`` of all pairings are simple, 1 of 43."""

_PATIENCE = 10


class Graph(Protocol):
    """A family of graphs."""

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield the numbers of vertices and of edges of its members, ascending in both."""

    def edges(self, vertices: int, seed: int) -> Edges:
        """Return the edges of the member of so many vertices."""


@dataclass(frozen=True)
class Petersen:
    """The Petersen graph: 10 vertices, 15 edges, degree 3, no cycle shorter than 5.

    Examples
    --------
    >>> Petersen().edges(10, seed=0)[:4].tolist()
    [[0, 1], [0, 4], [0, 5], [1, 2]]
    """

    def sizes(self) -> Iterator[tuple[int, int]]:
        """See :class:`Graph`."""
        yield 10, 15

    def edges(self, vertices: int, seed: int) -> Edges:
        """See :class:`Graph`."""
        outer = [(i, (i + 1) % 5) for i in range(5)]
        return _sorted([*outer, *((i, i + 5) for i in range(5)), *((i + 5, (i + 2) % 5 + 5) for i in range(5))])


@dataclass(frozen=True)
class Complete:
    """Every vertex next to every other: ``v (v-1) / 2`` edges, degree ``v - 1``."""

    def sizes(self) -> Iterator[tuple[int, int]]:
        """See :class:`Graph`."""
        return ((v, v * (v - 1) // 2) for v in count(2))

    def edges(self, vertices: int, seed: int) -> Edges:
        """See :class:`Graph`."""
        return np.stack(np.triu_indices(vertices, 1), axis=1).astype(np.int32)


@dataclass(frozen=True)
class Cycle:
    """One cycle through all vertices: as many edges, degree 2."""

    def sizes(self) -> Iterator[tuple[int, int]]:
        """See :class:`Graph`."""
        return ((v, v) for v in count(3))

    def edges(self, vertices: int, seed: int) -> Edges:
        """See :class:`Graph`."""
        around = np.arange(vertices)
        return _sorted(np.stack([around, np.roll(around, -1)], axis=1))


@dataclass(frozen=True)
class Hypercube:
    """Corners of a cube of ``d`` dimensions: ``2**d`` vertices, ``d 2**(d-1)`` edges, degree ``d``."""

    def sizes(self) -> Iterator[tuple[int, int]]:
        """See :class:`Graph`."""
        return ((1 << d, d << (d - 1)) for d in count(1))

    def edges(self, vertices: int, seed: int) -> Edges:
        """See :class:`Graph`."""
        axes = [1 << d for d in range(vertices.bit_length() - 1)]
        return _sorted([(corner, corner | axis) for axis in axes for corner in range(vertices) if not corner & axis])


@dataclass(frozen=True)
class RandomRegular:
    """A random simple graph in which every vertex has the same degree: ``v degree / 2`` edges.

    Parameters
    ----------
    degree : int
        Below the number of vertices, one of them even.

    Notes
    -----
    Ends of edges are paired at random. Up to degree 4 and 4096 vertices this is repeated until the graph is simple, so
    that all graphs are equally likely. Beyond, only pairs that do not fit are drawn again: graphs are equally likely as
    the number of vertices grows. Of a degree of half the vertices or more, the complement is drawn.

    References
    ----------
    Bollobás, "A probabilistic proof of an asymptotic formula for the number of labelled regular graphs", European
    Journal of Combinatorics 1, 1980; Steger and Wormald, "Generating random regular graphs quickly", Combinatorics,
    Probability and Computing 8, 1999.
    """

    degree: Annotated[int, Ge(1)]

    def __post_init__(self) -> None:
        check(self)

    def sizes(self) -> Iterator[tuple[int, int]]:
        """See :class:`Graph`."""
        return ((v, v * self.degree // 2) for v in count(self.degree + 1) if v * self.degree % 2 == 0)

    def edges(self, vertices: int, seed: int) -> Edges:
        """See :class:`Graph`."""
        if 2 * self.degree >= vertices:  # few pairs are left out, and those are found sooner
            missing = np.zeros((vertices, vertices), np.bool_)
            left_out = vertices - 1 - self.degree
            if left_out:
                missing[tuple(RandomRegular(left_out).edges(vertices, seed).T)] = True
            return np.argwhere(np.triu(~missing, 1)).astype(np.int32)
        for attempt in count():
            found = _paired(vertices, self.degree, stream_key(seed, "", f"code/random-regular/{attempt}"))
            if found is not None:
                return found
        raise AssertionError("unreachable")


@dataclass(frozen=True)
class EdgeList:
    """A graph of given edges; its vertices are ``0..v-1``, and each of them has an edge.

    Parameters
    ----------
    pairs : tuple of (int, int)
        Pairs of different vertices, none of them twice.
    """

    pairs: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        check(self)
        where, known = "EdgeList.pairs", set[tuple[int, int]]()
        for u, v in self.pairs:
            pair = min(u, v), max(u, v)
            if u == v or pair[0] < 0:
                raise UserError(f"got edge ({u}, {v})", where, "pairs of different vertices, from 0")
            if pair in known:
                raise UserError(f"edge ({u}, {v}) is given twice", where, "each edge once")
            known.add(pair)
        met = {vertex for pair in known for vertex in pair}
        lonely = next((vertex for vertex in range(len(met)) if vertex not in met), None)
        if not known or lonely is not None:
            raise UserError(f"vertex {lonely or 0} has no edge", where, "vertices 0, 1, ..., each at an edge")

    def sizes(self) -> Iterator[tuple[int, int]]:
        """See :class:`Graph`."""
        yield max(map(max, self.pairs)) + 1, len(self.pairs)

    def edges(self, vertices: int, seed: int) -> Edges:
        """See :class:`Graph`."""
        return _sorted(self.pairs)


def vertices_of(graph: Graph, workers: int, workers_are: Literal["edges", "vertices"]) -> int:
    """Return the number of vertices of the member of a family that has a worker for each edge, or each vertex.

    Raises
    ------
    UserError
        If there is none; with the nearest numbers of workers for which there is one.
    """
    which, below = ("vertices", "edges").index(workers_are), None
    above: int | None = None
    for size in graph.sizes():
        if size[which] == workers:
            return size[0]
        if size[which] > workers:
            above = size[which]
            break
        below = size[which]
    nearest = " and ".join(str(size) for size in (below, above) if size is not None)
    raise UserError(
        f"no {graph!r} has {workers} {workers_are}, one for each worker",
        "workers",
        f"a number of {workers_are} that such a graph has",
        f"the nearest {'are' if ' and ' in nearest else 'is'} {nearest}",
    )


def unbalanced(edges: Edges, vertices: int) -> tuple[list[int], list[int]] | None:
    """Return the sides of a component that has no odd cycle and sides of different sizes, the larger one first."""
    beside: list[list[int]] = [[] for _ in range(vertices)]
    for u, v in edges.tolist():
        beside[u].append(v)
        beside[v].append(u)
    side: dict[int, int] = {}
    for root in range(vertices):
        if root in side:
            continue
        side[root], order, is_odd = 0, [root], False
        for vertex in order:  # grows meanwhile
            for other in beside[vertex]:
                if other not in side:
                    side[other] = 1 - side[vertex]
                    order.append(other)
                is_odd |= side[other] == side[vertex]
        sides = [v for v in order if side[v] == 0], [v for v in order if side[v] == 1]
        if not is_odd and len(sides[0]) != len(sides[1]):
            return max(sides, key=len), min(sides, key=len)
    return None


def _paired(vertices: int, degree: int, key: int) -> Edges | None:
    """Pair the ends of edges at random, and those that do not fit once more; ``None`` if that fails."""
    ends = np.repeat(np.arange(vertices), degree)
    taken, drawn, idle = np.empty(0, np.int64), 0, 0
    is_redrawn = degree <= _REDRAWN_DEGREE and vertices <= _REDRAWN_VERTICES
    while ends.size:
        order = np.argsort(words_at(key, np.arange(drawn, drawn + ends.size)), kind="stable")
        drawn += ends.size
        pairs = np.sort(ends[order].reshape(-1, 2), axis=1)
        fits = pairs[:, 0] != pairs[:, 1]
        if is_redrawn and not fits.all():
            return None
        names = pairs[:, 0] * vertices + pairs[:, 1]
        is_first = np.zeros(len(pairs), np.bool_)
        is_first[np.unique(names, return_index=True)[1]] = True
        fits &= is_first & ~np.isin(names, taken)
        if is_redrawn and not fits.all():
            return None
        taken, ends = np.concatenate([taken, names[fits]]), pairs[~fits].ravel()
        idle = 0 if fits.any() else idle + 1
        if idle == _PATIENCE:
            return None
    return np.stack(np.divmod(np.sort(taken), vertices), axis=1).astype(np.int32)


def _sorted(pairs: object) -> Edges:
    """Return edges in their canonical order."""
    found = np.sort(np.array(pairs, np.int32).reshape(-1, 2), axis=1)
    return found[np.lexsort((found[:, 1], found[:, 0]))]
