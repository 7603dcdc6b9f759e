"""Close a round as soon as the intervals of those who answered tile the partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from emuml import _kernels
from emuml.protocols.gradient_coding.rules.indexed import IndexedRule, IndexedTracker
from emuml.shapes import Tracker


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
class Tiled(IndexedRule):
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
        self._check_count()

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


class TilingTracker(IndexedTracker):
    """The arrivals of one round, and how far intervals tile the partitions from the first on.

    Every interval is looked at once when its start is reached: O(workers) a round.

    Parameters
    ----------
    rule : Tiled
    """

    def __init__(self, rule: Tiled) -> None:
        super().__init__(rule)
        self._rule = rule
        self._reached = bytearray(rule.partitions + 1)
        self._reached[0] = True
        self._stops_from: dict[int, list[int]] = {}  # of intervals that wait for their start to be reached

    def note(self, worker: int) -> None:
        """See :class:`IndexedTracker`."""
        start, stop = self._rule.bounds[worker]
        if not self._reached[start]:
            self._stops_from.setdefault(start, []).append(stop)
            return
        ends = [stop]
        while ends:
            stop = ends.pop()
            if not self._reached[stop]:
                self._reached[stop] = True
                ends += self._stops_from.pop(stop, ())
        self.is_enough = bool(self._reached[-1])
