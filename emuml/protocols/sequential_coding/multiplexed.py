"""M-SGC, multiplexed coding: small uncoded chunks first, which are repeated or followed by coded ones.

Source: Krishnan, Ebrahimi and Khisti, arXiv:2211.13802. A worker has ``W - 1 + B`` slots a round; slot ``q`` of round
``t`` serves job ``t - q``. The first ``W - 1`` slots are for the worker's own chunks of that job, the last ``B`` for
what is still missing of them, or, if nothing is, for a chunk of a gradient code that covers the rest of the data.
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
class MultiplexedCoding:
    """M-SGC: chunks of several jobs in every round, coded only where workers have delivered all that is their own.

    Parameters
    ----------
    burst : int
        ``B``: rounds that a burst of one worker spans at most.
    window : int
        ``W``: rounds in a row over which stragglers are counted, more than ``burst``; a job takes ``W - 1 + B`` rounds.
    stragglers : int
        ``lambda``: distinct stragglers in any ``W`` rounds in a row at most. As many as there are workers: nothing is
        coded, and missing chunks are repeated.

    Examples
    --------
    >>> round(MultiplexedCoding(burst=1, window=2, stragglers=27).sequence(256).load / 256, 8)
    0.0075431
    """

    burst: Annotated[int, Ge(1)]
    window: Annotated[int, Ge(2)]
    stragglers: Annotated[int, Ge(0)]

    def __post_init__(self) -> None:
        check(self)
        check_model(self.burst, self.window)

    def sequence(self, workers: int, seed: int = 0) -> Multiplexed:
        """Return the code for so many workers.

        Raises
        ------
        UserError
            If there are fewer workers than stragglers.
        """
        if not 0 <= self.stragglers <= workers:
            where, allowed = "MultiplexedCoding.stragglers", f"an integer in 0..{workers}"
            raise UserError(f"got {self.stragglers}", where, allowed, f"the nearest is {workers}")
        return Multiplexed(self, workers, seed)


class Multiplexed(Sequence):
    """Multiplexed coding for a known number of workers.

    The data of a job is cut into ``n (W-1) (lambda+1) + n B`` equal partitions: first each worker's own chunks of
    ``lambda + 1``, then ``n`` for each of the ``B`` coded groups. Without codes there are ``n (W-1)``, one a chunk.
    """

    def __init__(self, code: MultiplexedCoding, workers: int, seed: int) -> None:
        self.code, self.workers, self._seed = code, workers, seed
        self.delay, self.own = code.window - 2 + code.burst, code.window - 1
        self.is_coded = code.stragglers < workers
        self._size = code.stragglers + 1 if self.is_coded else 1  # partitions of an own chunk
        self._first_coded = workers * self.own * self._size
        self.partitions = self._first_coded + (workers * code.burst if self.is_coded else 0)

    @cached_property
    def inner(self) -> Inner:
        """The gradient code of each coded group."""
        return tolerant_code(self.workers, self.code.stragglers, self._seed)

    @property
    def slots(self) -> int:
        """See :class:`Sequence`."""
        return self.own + self.code.burst

    @property
    def chunk_load(self) -> float:
        """See :class:`Sequence`."""
        return self._size * self.workers / self.partitions

    @property
    def timing(self) -> Timing:
        """See :class:`Sequence`."""
        code = self.code
        return Timing("m-sgc", code.burst, code.window, code.stragglers, code.stragglers, self.slots, self.chunk_load)

    def schedule(self, jobs: int) -> MultiplexedSchedule:
        """See :class:`Sequence`."""
        return MultiplexedSchedule(self, jobs)

    def piece(self, worker: int, part: int) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
        """See :class:`Sequence`."""
        if part < self.own:
            first = (worker * self.own + part) * self._size
            return tuple(range(first, first + self._size)), None
        first = self._first_coded + (part - self.own) * self.workers
        return tuple(first + i for i in self.inner.assignment(worker)), self.inner.coefficients(worker)

    def decode(self, results: Mapping[tuple[int, int], Any]) -> Sum:
        """See :class:`Sequence`."""
        own = [((worker, part), 1.0) for worker in range(self.workers) for part in range(self.own)]
        parts = range(self.own, self.slots) if self.is_coded else ()
        coded = [decoded(self.inner, part, results) for part in parts]
        return Sum(own + [term for each in coded for term in each.terms], sum(each.error for each in coded))


class MultiplexedSchedule(Schedule):
    """What is delivered of each job that is not decoded: own chunks, and coded ones."""

    def __init__(self, code: Multiplexed, jobs: int) -> None:
        super().__init__(jobs)
        self._code, self._model = code, Bursts(code.workers, code.code.burst, code.code.window, code.code.stragglers)
        self._delivered: dict[int, Flags] = {}  # by job, shape (workers, slots)
        self._chunks = self._planned()

    def _planned(self) -> list[tuple[Chunk, ...]]:
        n, code, round = self._code.workers, self._code, self.round
        if round < self.jobs:
            self._delivered[round] = np.zeros((n, code.slots), np.bool_)
        found: list[list[Chunk]] = [[] for _ in range(n)]
        for slot in range(code.slots):
            job = round - slot
            if job not in self._delivered:
                continue
            for worker in range(n):
                part = slot if slot < code.own else self._part_after(job, worker, slot)
                if part is not None:
                    found[worker].append(Chunk(job, part))
        return [tuple(chunks) for chunks in found]

    def _part_after(self, job: int, worker: int, slot: int) -> int | None:
        """Return what a worker does in a late slot of a job: its first missing chunk, else a coded one if any."""
        own = self._delivered[job][worker, : self._code.own]
        if not own.all():
            return int(np.argmin(own))
        return slot if self._code.is_coded else None

    def work(self) -> list[tuple[Chunk, ...]]:
        """See :class:`Schedule`."""
        return self._chunks

    def tolerates(self, late: Flags) -> bool:
        """See :class:`Schedule`."""
        return self._model.tolerates(late)

    def _take(self, late: Flags) -> list[int]:
        self._model.note(late.copy())
        for worker in np.flatnonzero(~late).tolist():
            for job, part in self._chunks[worker]:
                self._delivered[job][worker, part] = True
        found = [job for job in sorted(self._delivered) if self._can_decode(self._delivered[job])]
        for job in found:
            del self._delivered[job]
        return found

    def close(self, late: Flags) -> list[int]:
        """See :class:`Schedule`."""
        found = super().close(late)
        self._chunks = self._planned()
        return found

    def _can_decode(self, delivered: Flags) -> bool:
        own = self._code.own
        if not delivered[:, :own].all():
            return False
        enough = self._code.workers - self._code.code.stragglers
        return not self._code.is_coded or bool(np.all(np.count_nonzero(delivered[:, own:], axis=0) >= enough))
