"""Close a round as soon as the intervals of those who answered tile the partitions."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from emuml import _kernels
from emuml.errors import UserError
from emuml.shapes import StopRule, Tracker


class Intervals(NamedTuple):
    """Intervals ``starts[w]..stops[w]`` of workers, as kernels take them, each of shape (workers,)."""

    starts: NDArray[np.int32]
    stops: NDArray[np.int32]
    by_stop: NDArray[np.int32]
    """Workers in the order of their stops."""

    @classmethod
    def of(cls, starts: NDArray[np.integer], stops: NDArray[np.integer]) -> Intervals:
        """Return intervals with their order."""
        by_stop = np.argsort(stops, kind="stable").astype(np.int32)
        return cls(starts.astype(np.int32), stops.astype(np.int32), by_stop)


@dataclass(frozen=True)
class Tiled(StopRule):
    """Close once some of the intervals of those who answered cover every partition and do not overlap.

    Parameters
    ----------
    bounds : tuple of (int, int)
        First partition of each worker, and one past its last.
    partitions : int
        How many there are.
    count : int, optional
        Answers that close a round anyhow.
    """

    bounds: tuple[tuple[int, int], ...]
    partitions: int
    count: int | None = None
    workers: int = field(init=False)

    def __post_init__(self) -> None:
        # No generic check: it visits every item, which takes long with 100,000 workers.
        object.__setattr__(self, "workers", len(self.bounds))
        if self.count is not None and not 1 <= self.count <= self.workers:
            raise UserError(f"got {self.count}", "Tiled.count", f"an integer in 1..{self.workers}")

    @cached_property
    def intervals(self) -> Intervals:
        """The intervals as arrays."""
        return Intervals.of(*np.array(self.bounds, np.int64).reshape(-1, 2).T)

    def tracker(self) -> Tracker:
        """Return a tracker for one new round."""
        return TilingTracker(self)

    def closing_index(self, order: NDArray[np.int64]) -> int:
        """See :meth:`StopRule.closing_index`."""
        return _kernels.tiling_index(*self.intervals, self.partitions, order, self.count or 0)


class TilingTracker(Tracker):
    """The arrivals of one round, and how far intervals tile the partitions from the first on.

    Every interval is looked at once when its start is reached: O(workers) a round.

    Parameters
    ----------
    rule : Tiled
    """

    def __init__(self, rule: Tiled) -> None:
        super().__init__(rule.workers, rule.count, None)
        self._rule = rule
        self._reached = bytearray(rule.partitions + 1)
        self._reached[0] = True
        self._stops_from: dict[int, list[int]] = {}  # of intervals that wait for their start to be reached

    @property
    def closed(self) -> bool:
        """Whether the round may close."""
        return bool(self._reached[-1]) or super().closed

    def arrived(self, worker: int) -> bool:
        """Note an answer and return whether the round may close; see :meth:`Tracker.arrived`."""
        before = self.n_arrived
        super().arrived(worker)
        if self.n_arrived > before:
            start, stop = self._rule.bounds[worker]
            self._stops_from.setdefault(start, []).append(stop)
            if self._reached[start]:
                self._go_on(start)
        return self.closed

    def _go_on(self, start: int) -> None:
        """Mark what is reached now, from a place that is."""
        ends = self._stops_from.pop(start)
        while ends:
            stop = ends.pop()
            if not self._reached[stop]:
                self._reached[stop] = True
                ends += self._stops_from.pop(stop, ())

    def hopeless(self, down: AbstractSet[int]) -> bool:
        """Return whether the round can never close by its rule if the workers in ``down`` stay silent; O(workers)."""
        if self.closed:
            return False
        others = np.array([w for w in range(self.workers) if w not in down and not self._has_arrived[w]], np.int64)
        order = np.concatenate([np.array(self.arrived_workers, np.int64), others])
        return self._rule.closing_index(order) == 0
