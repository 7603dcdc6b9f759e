"""A gradient code used in every round by itself: no job outlives its round. The measure of all sequential codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from emuml.errors import UserError
from emuml.protocols.gradient_coding import BuiltCode
from emuml.protocols.gradient_coding.codes.groups import GroupCode
from emuml.protocols.sequential_coding.inner import decoded
from emuml.protocols.sequential_coding.seam import Chunk, Flags, Schedule, Sequence, Sum, Timing


class Plain(Sequence):
    """A built gradient code, such as ``Uncoded().build(30)``, as the sequential code that waits for its stop rule.

    Raises
    ------
    UserError
        If its answers are no sums of partitions, or a worker has none.
    """

    def __init__(self, code: BuiltCode) -> None:
        kind = type(code)
        # A group's replicas may share a task, which is the same for each of them.
        if kind.roles is not BuiltCode.roles or kind.task not in (BuiltCode.task, GroupCode.task):
            allowed = "a code whose answers are weighted sums of partitions, and SelectiveRepetition, MultiplexedCoding"
            raise UserError(
                f"answers of a {kind.__name__} are no such sums", "sequential-gradient-coding.code", allowed
            )
        idle = next((worker for worker in range(code.workers) if not code.assignment(worker)), None)
        if idle is not None:
            where = "sequential-gradient-coding.code"
            raise UserError(f"worker {idle} of it has no partition", where, "a code that gives everybody work")
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

    def decode(self, results: Mapping[tuple[int, int], Any]) -> Sum:
        """See :class:`Sequence`."""
        return decoded(self.inner, 0, results)


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
