"""The stop rule of answers that must confirm each other: so many of every group, not one.

It is a rule of its own kind: arrays of whole rounds ask it for the ``stop_index`` of sorted arrivals.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.shapes import Cover, Groups, StopRule, Tracker


@dataclass(frozen=True)
class CoverTimes(StopRule):
    """Close once every group has ``times`` answers of different workers.

    Parameters
    ----------
    groups : tuple of tuple of int
        As for :class:`emuml.shapes.Cover`.
    times : int
        Answers that each group needs, at most as many as the smallest group has workers.

    Examples
    --------
    >>> CoverTimes(((0, 1, 2), (3, 4, 5)), times=2).stop_index(np.array([0, 3, 1, 2, 5, 4]))
    5
    """

    groups: Groups
    times: Annotated[int, Ge(1)]
    workers: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", self.cover.groups)
        object.__setattr__(self, "workers", self.cover.workers)
        least = min(map(len, self.groups))
        if not 1 <= self.times <= least:
            nearest = min(max(self.times, 1), least)
            raise UserError(
                f"got {self.times} with groups of {least}",
                "CoverTimes.times",
                f"an integer in 1..{least}",
                f"the nearest is {nearest}",
            )

    @cached_property
    def cover(self) -> Cover:
        """The rule that asks for one answer of each group."""
        return Cover(self.groups)

    def tracker(self) -> Tracker:
        """Return a tracker for one new round."""
        return _TimesTracker(self)

    def stop_index(self, order: NDArray[np.integer]) -> int:
        """Return how many arrivals of ``order`` the round uses; see :class:`emuml.shapes.StopRule`."""
        arrivals = np.asarray(order, dtype=np.int64)
        first = np.full(self.workers, arrivals.size, np.int64)
        first[arrivals[::-1]] = np.arange(arrivals.size - 1, -1, -1)  # of repeated indices the last assignment stays
        by_group = np.lexsort((first, self.cover.group_array))
        starts = np.cumsum([0, *map(len, self.groups[:-1])])
        latest = int(first[by_group[starts + self.times - 1]].max())
        return min(latest + 1, arrivals.size)


class _TimesTracker(Tracker):
    """The arrivals of one round; groups are counted up to ``times``."""

    def __init__(self, rule: CoverTimes) -> None:
        super().__init__(rule.workers, None, rule.cover)
        self._missing = [rule.times] * len(rule.groups)

    def hopeless(self, down: AbstractSet[int]) -> bool:
        """Return whether the round can never close if the workers in ``down`` stay silent; O(size of ``down``)."""
        cover = self._cover
        assert cover is not None
        if self.closed:
            return False
        left = {group: len(cover.groups[group]) - self._answered(group) for group in set(self._groups_of(down))}
        for group in self._groups_of(down):
            left[group] -= 1
        return any(left[group] < self._missing[group] for group in left)

    def _groups_of(self, down: AbstractSet[int]) -> list[int]:
        assert self._cover is not None
        silent = [worker for worker in down if 0 <= worker < self.workers and not self._has_arrived[worker]]
        return [self._cover.group_of[worker] for worker in silent]

    def _answered(self, group: int) -> int:
        assert self._cover is not None
        return sum(self._has_arrived[worker] for worker in self._cover.groups[group])

    def _note_group(self, group: int) -> None:
        self._missing[group] -= 1
        if self._missing[group] == 0:
            super()._note_group(group)
