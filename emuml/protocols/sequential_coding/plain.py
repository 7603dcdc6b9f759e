"""A gradient code used in every round by itself: no job outlives its round. The measure of all sequential codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from emuml.protocols.sequential_coding.inner import decoded_weights
from emuml.protocols.sequential_coding.seam import Chunk, Flags, Schedule, Sequence, Timing


class Plain(Sequence):
    """A built gradient code, such as ``Uncoded().build(30)``, as the sequential code that waits for its stop rule."""

    def __init__(self, code: Any) -> None:
        self.inner, self.workers, self.partitions, self.delay = code, code.workers, code.partitions, 0

    @property
    def timing(self) -> Timing | None:
        """See :class:`Sequence`."""
        count, cover = self.inner.stop_rule().parts()
        if count is None or cover is not None:
            return None
        return Timing("plain", 1, 2, 0, self.workers - count, 1, self.chunk_load)

    @property
    def chunk_load(self) -> float:
        """See :class:`Sequence`."""
        return float(self.inner.load)

    @property
    def slots(self) -> int:
        """See :class:`Sequence`."""
        return 1

    def schedule(self, jobs: int) -> PlainSchedule:
        """See :class:`Sequence`."""
        return PlainSchedule(self, jobs)

    def piece(self, worker: int, part: int) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
        """See :class:`Sequence`."""
        return self.inner.assignment(worker), self.inner.coefficients(worker)

    def weights(self, results: Mapping[tuple[int, int], Any]) -> list[tuple[tuple[int, int], float]]:
        """See :class:`Sequence`."""
        return decoded_weights(self.inner, 0, results)


class PlainSchedule(Schedule):
    """Everybody works on the job of the round, which is decoded at its end."""

    def __init__(self, code: Plain, jobs: int) -> None:
        super().__init__(jobs)
        self._code, self._rule = code, code.inner.stop_rule()

    def work(self) -> list[tuple[Chunk, ...]]:
        """See :class:`Schedule`."""
        return [(Chunk(self.round, 0),)] * self._code.workers

    def tolerates(self, late: Flags) -> bool:
        """See :class:`Schedule`."""
        tracker = self._rule.tracker()
        return any(tracker.arrived(worker) for worker in np.flatnonzero(~late).tolist())

    def _take(self, late: Flags) -> list[int]:
        return [self.round]
