"""Stop rules that are told a whole order of arrivals: what those of single codes have in common."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.shapes import StopRule, Tracker


class IndexedRule(StopRule):
    """A rule whose ``closing_index`` a kernel computes, and whose tracker computes the same arrival by arrival."""

    count: int | None

    def stop_index(self, order: NDArray[np.integer]) -> int:
        """Return how many arrivals of ``order`` the round uses; see :meth:`StopRule.stop_index`."""
        arrivals = np.ascontiguousarray(order, np.int64)
        return self.closing_index(arrivals) or arrivals.size

    def _check_count(self) -> None:
        if self.count is not None and not 1 <= self.count <= self.workers:
            nearest = min(max(self.count, 1), self.workers)
            where, allowed = f"{type(self).__name__}.count", f"an integer in 1..{self.workers}"
            raise UserError(f"got {self.count}", where, allowed, f"the nearest is {nearest}")


class IndexedTracker(Tracker):
    """The arrivals of one round; a subclass says what a new one changes, in ``note``, and whether that is enough.

    Parameters
    ----------
    rule : IndexedRule
    """

    def __init__(self, rule: IndexedRule) -> None:
        super().__init__(rule.workers, rule.count, None)
        self._by_index = rule
        self.is_enough = False

    def note(self, worker: int) -> None:
        """Take in a worker that had not answered before."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether the round may close."""
        return self.is_enough or len(self._arrivals) >= self._count

    def arrived(self, worker: int) -> bool:
        """Note an answer and return whether the round may close; see :meth:`Tracker.arrived`."""
        before = len(self._arrivals)
        super().arrived(worker)
        if len(self._arrivals) > before:
            self.note(worker)
        return self.closed

    def hopeless(self, down: AbstractSet[int]) -> bool:
        """Return whether the round can never close by its rule if the workers in ``down`` stay silent; O(workers)."""
        if self.closed:
            return False
        living = [w for w in range(self.workers) if w not in down and not self._has_arrived[w]]
        return self._by_index.closing_index(np.array([*self._arrivals, *living], np.int64)) == 0
