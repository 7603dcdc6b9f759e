"""SR-SGC, selective repetition: each job with one gradient code, and again a burst later where too few delivered.

Source: Krishnan, Ebrahimi and Khisti, arXiv:2211.13802. With ``s = ceil(B lambda / (W - 1 + B))`` a worker's load is
``s + 1`` instead of the ``lambda + 1`` that a gradient code needs for the same stragglers, and jobs take up to ``B``
rounds longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from emuml.errors import UserError
from emuml.protocols.sequential_coding.inner import Inner, check_model, decoded, tolerant_code
from emuml.protocols.sequential_coding.patterns import Bursts
from emuml.protocols.sequential_coding.seam import Chunk, Flags, Schedule, Sequence, Sum, Timing
from emuml.spec import check


@dataclass(frozen=True)
class SelectiveRepetition:
    """SR-SGC: a gradient code in every round, whose missing results are computed again ``burst`` rounds later.

    Parameters
    ----------
    burst : int
        ``B``: rounds that a burst of one worker spans at most; a job is decoded after ``B`` more rounds at the latest.
    window : int
        ``W``: rounds in a row over which stragglers are counted, with ``W - 1`` a multiple of ``B``.
    stragglers : int
        ``lambda``: distinct stragglers in any ``W`` rounds in a row at most.

    Examples
    --------
    >>> SelectiveRepetition(burst=2, window=3, stragglers=23).sequence(256).load
    13.0
    """

    burst: Annotated[int, Ge(1)]
    window: Annotated[int, Ge(2)]
    stragglers: Annotated[int, Ge(0)]

    def __post_init__(self) -> None:
        check(self)
        check_model(self.burst, self.window)
        if (self.window - 1) % self.burst:
            nearest = 1 + self.burst * max(1, round((self.window - 1) / self.burst))
            raise UserError(
                f"window - 1 = {self.window - 1} is no multiple of burst = {self.burst}",
                "SelectiveRepetition.window",
                f"1 plus a multiple of {self.burst}",
                f"the nearest is {nearest}",
            )

    @property
    def tolerance(self) -> int:
        """``s``: stragglers that the gradient code of each round tolerates."""
        return -(-self.burst * self.stragglers // (self.window - 1 + self.burst))

    def sequence(self, workers: int, seed: int = 0) -> Selective:
        """Return the code for so many workers.

        Raises
        ------
        UserError
            If there are no more workers than stragglers that each round's code must tolerate.
        """
        if self.tolerance >= workers:
            most = (workers - 1) * (self.window - 1 + self.burst) // self.burst
            where, allowed = "SelectiveRepetition.stragglers", f"an integer in 0..{most}"
            raise UserError(f"got {self.stragglers} of {workers} workers", where, allowed, f"the nearest is {most}")
        return Selective(self, workers, seed)


class Selective(Sequence):
    """Selective repetition for a known number of workers; a worker does one chunk in a round."""

    def __init__(self, code: SelectiveRepetition, workers: int, seed: int) -> None:
        self.code, self.workers, self._seed = code, workers, seed
        self.tolerance, self.delay = code.tolerance, code.burst
        self.partitions = workers

    @cached_property
    def inner(self) -> Inner:
        """The gradient code of each job."""
        return tolerant_code(self.workers, self.tolerance, self._seed)

    @property
    def timing(self) -> Timing:
        """See :class:`Sequence`."""
        code = self.code
        return Timing("sr-sgc", code.burst, code.window, code.stragglers, self.tolerance, 1, self.chunk_load)

    @property
    def chunk_load(self) -> float:
        """See :class:`Sequence`."""
        return self.tolerance + 1.0

    @property
    def slots(self) -> int:
        """See :class:`Sequence`."""
        return 1

    def schedule(self, jobs: int) -> SelectiveSchedule:
        """See :class:`Sequence`."""
        return SelectiveSchedule(self, jobs)

    def piece(self, worker: int, part: int) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
        """See :class:`Sequence`."""
        return self.inner.assignment(worker), self.inner.coefficients(worker)

    def decode(self, results: Mapping[tuple[int, int], Any]) -> Sum:
        """See :class:`Sequence`."""
        return decoded(self.inner, 0, results)


class SelectiveSchedule(Schedule):
    """Who works on the new job, and who on that of a burst before."""

    def __init__(self, code: Selective, jobs: int) -> None:
        super().__init__(jobs)
        self._code, self._model = code, Bursts(code.workers, code.delay, code.code.window, code.code.stragglers)
        self._enough = code.workers - code.tolerance
        self._delivered: dict[int, Flags] = {}  # who has delivered a job that is not decoded
        self._repeats = self._chosen()

    def _chosen(self) -> Flags:
        """Return who repeats the job of a burst before: of those who did not deliver it, the first that are needed."""
        repeats = np.zeros(self._code.workers, np.bool_)
        delivered = self._delivered.get(self.round - self._code.delay)
        if delivered is not None:
            n_needed = self._enough - np.count_nonzero(delivered)
            repeats[np.flatnonzero(~delivered)[:n_needed]] = True
        return repeats

    def work(self) -> list[tuple[Chunk, ...]]:
        """See :class:`Schedule`."""
        new = (Chunk(self.round, 0),) if self.round < self.jobs else ()
        old = (Chunk(self.round - self._code.delay, 0),)
        return [old if repeats else new for repeats in self._repeats.tolist()]

    def _is_exempt(self, late: Flags) -> bool:
        """Tell whether the code of this round's job stands these stragglers by itself: they do not count."""
        return not self._repeats.any() and int(np.count_nonzero(late)) <= self._code.tolerance

    def tolerates(self, late: Flags) -> bool:
        """See :class:`Schedule`."""
        return self._is_exempt(late) or self._model.tolerates(late)

    def _take(self, late: Flags) -> list[int]:
        self._model.note(np.zeros_like(late) if self._is_exempt(late) else late)
        old = self.round - self._code.delay
        if old in self._delivered:
            self._delivered[old] |= self._repeats & ~late
        if self.round < self.jobs:
            self._delivered[self.round] = ~self._repeats & ~late
        found = [job for job in (old, self.round) if self._is_enough(job)]
        for job in found:
            del self._delivered[job]
        self._repeats = np.zeros_like(late)
        return found

    def close(self, late: Flags) -> list[int]:
        """See :class:`Schedule`."""
        found = super().close(late)
        self._repeats = self._chosen()
        return found

    def _is_enough(self, job: int) -> bool:
        return job in self._delivered and int(np.count_nonzero(self._delivered[job])) >= self._enough
