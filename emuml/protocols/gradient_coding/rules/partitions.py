"""Close a round once enough different partitions are in the answers that are there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from emuml.protocols.gradient_coding.rules.indexed import IndexedRule, IndexedTracker
from emuml.shapes import Tracker


@dataclass(frozen=True)
class Distinct(IndexedRule):
    """Close at ``needed`` distinct partitions, counting a worker's partitions when all of them have come.

    Parameters
    ----------
    held : tuple of tuple of int
        Partitions of each worker.
    needed : int
        How many different ones are enough.
    """

    held: tuple[tuple[int, ...], ...]
    needed: int
    count: int | None = field(init=False, default=None)
    workers: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", len(self.held))

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Worker and partition of each thing held, shape (2, held)."""
        found = [(worker, partition) for worker, held in enumerate(self.held) for partition in held]
        return np.array(found, np.int64).reshape(-1, 2).T

    def tracker(self) -> Tracker:
        """Return a tracker for one new round."""
        return DistinctTracker(self)

    def closing_index(self, order: NDArray[np.int64]) -> int:
        """See :meth:`StopRule.closing_index`."""
        never = self.workers + 1
        rank = np.full(self.workers, never)
        rank[order[::-1]] = np.arange(order.size, 0, -1)  # of a repeated worker the first arrival stays
        worker, partition = self.pairs
        first = np.full(int(partition.max(initial=-1)) + 1, never)
        np.minimum.at(first, partition, rank[worker])
        closing = int(np.partition(first, self.needed - 1)[self.needed - 1])
        return 0 if closing == never else closing


class DistinctTracker(IndexedTracker):
    """The arrivals of one round, and the partitions in them."""

    def __init__(self, rule: Distinct) -> None:
        super().__init__(rule)
        self._rule = rule
        self.partitions: set[int] = set()

    def note(self, worker: int) -> None:
        """See :class:`IndexedTracker`."""
        self.partitions.update(self._rule.held[worker])
        self.is_enough = len(self.partitions) >= self._rule.needed
