"""Shortest paths through a network, the same on every machine: by latency, then by links, then by name or hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Literal, NamedTuple

from emuml.errors import UserError

_PER_SECOND = 10**15
"""Latencies are added as whole femtoseconds, so that equal sums are equal."""
_HOPS = 1 << 32
_SPREADS = 2**64


class Hop(NamedTuple):
    """A link on a path, and whether it is crossed from its first end to its second (``"up"``)."""

    link: str
    direction: Literal["up", "down"]


class _Step(NamedTuple):
    place: str
    link: str
    direction: Literal["up", "down"]
    cost: int


class Paths:
    """Paths over cables.

    Parameters
    ----------
    cables : iterable of (name, ends, latency_s)
    spreads : bool
        Whether one of several shortest paths is taken by a hash (equal-cost multipath), else by name.
    """

    def __init__(self, cables: Iterable[tuple[str, Sequence[str], float]], spreads: bool) -> None:
        self._spreads = spreads
        self._steps: dict[str, list[_Step]] = {}
        self._costs: dict[str, dict[str, int]] = {}
        for name, (first, second), latency_s in cables:
            cost = round(latency_s * _PER_SECOND) * _HOPS + 1
            self._steps.setdefault(first, []).append(_Step(second, name, "up", cost))
            self._steps.setdefault(second, []).append(_Step(first, name, "down", cost))
        for steps in self._steps.values():
            steps.sort()

    def path(self, source: str, destination: str) -> tuple[Hop, ...]:
        """Return the path between two different places.

        Raises
        ------
        UserError
            If there is none.
        """
        ends = (source, destination)
        hops: list[Hop] = []
        last: list[Hop] = []
        if self._is_leaf(source):
            step = self._steps[source][0]
            hops.append(Hop(step.link, step.direction))
            source = step.place
        if source != destination and self._is_leaf(destination):
            step = self._steps[destination][0]
            last.append(Hop(step.link, "down" if step.direction == "up" else "up"))
            destination = step.place
        costs = self._costs_to(destination)
        if source not in costs:
            raise UserError(f"there is no route from {ends[0]!r} to {ends[1]!r}", "Topology.routes")
        while source != destination:
            nearer = [step for step in self._steps[source] if costs.get(step.place) == costs[source] - step.cost]
            step = nearer[_spread(*ends, source, len(nearer)) if self._spreads else 0]
            hops.append(Hop(step.link, step.direction))
            source = step.place
        return (*hops, *last)

    def _is_leaf(self, place: str) -> bool:
        """Tell whether only one cable leads to a place: then no path between others crosses it."""
        return len(self._steps.get(place, ())) == 1

    def _costs_to(self, destination: str) -> dict[str, int]:
        """Return the cost of each place's shortest path to one (Dijkstra, Numerische Mathematik 1, 1959)."""
        if destination not in self._costs:
            found: dict[str, int] = {}
            ahead = [(0, destination)]
            while ahead:
                cost, place = heappop(ahead)
                if place not in found:
                    found[place] = cost
                    for step in self._steps.get(place, ()):
                        if step.place not in found and not self._is_leaf(step.place):
                            heappush(ahead, (cost + step.cost, step.place))
            self._costs[destination] = found
        return self._costs[destination]


def _spread(source: str, destination: str, place: str, count: int) -> int:
    if count == 1:
        return 0
    digest = hashlib.sha256("\0".join((source, destination, place)).encode()).digest()
    return int.from_bytes(digest[:8], "big") * count // _SPREADS
