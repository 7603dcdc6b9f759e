"""What the protocol and theory ask of a sequential code: chunks of work, a schedule of rounds, and sums of jobs.

A job is one gradient. A new job begins in each round, and rounds go on until every job is decoded. In a round each
worker has slots for chunks of several jobs; what it does not deliver before the round ends is not delivered.

A schedule is a state machine of one run, without values or times: it says who does what, whether a round may end
without those who are late, and which jobs can be decoded then. The protocol's server and theory's recursion both
follow it, so they agree on every decision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


class Chunk(NamedTuple):
    """Work for one slot: a part of a job."""

    job: int
    part: int


class Timing(NamedTuple):
    """What a compiled recursion of round times needs to know: a kind of schedule and its numbers.

    ``tolerance`` is ``s`` of the code that all workers of a job share; ``slots`` are chunks that a worker does in a
    round at most, each of load ``slot_load`` in units of ``1/workers`` of the data.
    """

    kind: str
    burst: int
    window: int
    stragglers: int
    tolerance: int
    slots: int
    slot_load: float


class Sum(NamedTuple):
    """How delivered parts of a job add up: (worker, part) and weight of each, in order, and the error of that.

    The error is ``||a^T B - 1||^2`` in partitions, 0 up to rounding for codes that are exact.
    """

    terms: list[tuple[tuple[int, int], float]]
    error: float


class Schedule(ABC):
    """One run of a sequential code: rounds are asked for, closed, and lead to decoded jobs.

    Attributes
    ----------
    round : int
        The open round, from 0.
    jobs : int
        How many jobs there are; job ``t`` begins in round ``t``.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs, self.round, self.decoded = jobs, 0, 0

    @property
    def is_done(self) -> bool:
        """Whether all jobs are decoded."""
        return self.decoded == self.jobs

    @abstractmethod
    def work(self) -> list[tuple[Chunk, ...]]:
        """Return the chunks of each worker in the open round; who has none is not asked."""

    @abstractmethod
    def tolerates(self, late: Flags) -> bool:
        """Tell whether the round may end without these workers, and every job still be decoded in time."""

    @abstractmethod
    def _take(self, late: Flags) -> list[int]:
        """Note who did not deliver in the open round, and return the jobs that can be decoded now, ascending."""

    def close(self, late: Flags) -> list[int]:
        """End the open round without these workers, shape (workers,).

        Returns
        -------
        list of int
            The jobs that can be decoded now and could not be before, ascending.
        """
        found = self._take(late)
        self.decoded += len(found)
        self.round += 1
        return found


class Sequence(ABC):
    """A sequential code for a known number of workers.

    Attributes
    ----------
    workers, partitions : int
        Workers, and equal partitions that the data of every job is cut into.
    delay : int
        ``T``: job ``t`` is decoded by the end of round ``t + delay`` at the latest.
    """

    workers: int
    partitions: int
    delay: int

    @property
    @abstractmethod
    def timing(self) -> Timing | None:
        """What a compiled recursion needs; None where only the schedule itself knows."""

    @property
    @abstractmethod
    def chunk_load(self) -> float:
        """Load of a chunk, in units of ``1/workers`` of the data."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """Chunks that a worker does in a round at most."""

    @property
    def load(self) -> float:
        """Work of a worker in a full round, in units of ``1/workers`` of the data."""
        return self.slots * self.chunk_load

    @abstractmethod
    def schedule(self, jobs: int) -> Schedule:
        """Return the schedule of a new run of so many jobs."""

    @abstractmethod
    def piece(self, worker: int, part: int) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
        """Return partitions and their coefficients (None: ones) whose sum is this part of any job for this worker."""

    @abstractmethod
    def decode(self, results: Mapping[tuple[int, int], Any]) -> Sum:
        """Return how the delivered parts of a job add up to its gradient.

        Parameters
        ----------
        results : mapping
            Keys are (worker, part).
        """


@runtime_checkable
class SequentialCode(Protocol):
    """A declaration of a sequential code."""

    def sequence(self, workers: int, seed: int = 0) -> Sequence:
        """Return the code for so many workers."""
        ...
