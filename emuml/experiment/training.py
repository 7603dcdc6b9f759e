"""What forecasts of a synchronous training know of it, and the form of a figure with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emuml.cluster.cluster import Network
from emuml.cluster.compute import ComputeModel
from emuml.protocol import TrainingProtocol
from emuml.roster import Roster
from emuml.shapes import Round
from emuml.theory import RoundEnds, round_ends
from emuml.theory.stragglers import answers_needed

Floats = NDArray[np.float64]

_LONGER_FROM = ((1 << 7, 1), (1 << 8, 1), (1 << 16, 2), (1 << 32, 4))
"""Messages carry the number of their round: from which numbers on that takes so many bytes more (msgpack)."""


def bytes_longer(numbers: ArrayLike) -> Floats:
    """Return how many bytes more numbers take in a message than 0 does, in their shape.

    Examples
    --------
    >>> bytes_longer([0, 127, 128, 256, 65536]).tolist()
    [0.0, 0.0, 1.0, 2.0, 4.0]
    """
    given = np.asarray(numbers)
    longer = np.zeros(given.shape)
    for at, more in _LONGER_FROM:
        longer[given >= at] += more
    return longer


class Range(NamedTuple):
    """A figure with a 95 % interval; both ends are the figure when it is certain."""

    mean: float
    low: float
    high: float

    @classmethod
    def certain(cls, value: float) -> Range:
        """Return a figure without doubt."""
        return cls(value, value, value)

    def within(self, least: float, most: float) -> Range:
        """Return the figure with its interval cut to what is possible."""
        return Range(self.mean, min(max(self.low, least), self.mean), max(min(self.high, most), self.mean))

    def times(self, factor: float) -> Range:
        """Return the figure in another unit."""
        return Range(self.mean * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, eq=False)
class Traffic:
    """Messages of one kind in a run.

    Attributes
    ----------
    count : Range
    known : ndarray of float64, shape (some rounds,)
        Of each of the first rounds, on average.
    later : float
        Of each round after them.
    """

    count: Range
    known: Floats
    later: float = 0.0


@dataclass(frozen=True)
class Training:
    """What a forecast needs to know.

    Attributes
    ----------
    protocol : TrainingProtocol
    shape : Round
        Its rounds, with the load that its promises are about.
    law : ComputeModel
    loads : ndarray of float64, shape (workers,)
        Load of each worker as its tasks have it, in units of ``1/workers`` of a full pass.
    network : Network
        What messages take; they are taken not to wait for each other.
    rounds : int
    roster : Roster
    """

    protocol: TrainingProtocol
    shape: Round
    law: ComputeModel
    loads: Floats
    network: Network
    rounds: int
    roster: Roster

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.loads)

    @property
    def travel_s(self) -> float:
        """Seconds that the questions and answers of a run travel, one of each per round."""
        sizes = self.bytes_between(self.shape.broadcast, 0, self.rounds)
        sizes += self.bytes_between(self.shape.answer, 0, self.rounds)
        rate = self.network.bandwidth_bps
        return 2 * self.rounds * self.network.latency_s + (0.0 if rate is None else 8 * sizes / rate)

    @property
    def least_s(self) -> float:
        """Seconds that a run takes at least, if everybody is as fast as the law allows."""
        least_s = min(float(self.law.ppf(0.0, load)) for load in set(self.loads.tolist()))
        return self.travel_s + self.rounds * least_s

    @staticmethod
    def sizes_bytes(first: int, rounds: int) -> Floats:
        """Return the bytes of a message in each of the first rounds, from those in the very first."""
        return first + bytes_longer(np.arange(rounds))

    @staticmethod
    def bytes_between(first: int, start: int, stop: int) -> float:
        """Return the bytes of a message in each of the rounds ``start <= number < stop``, in all."""
        longer = sum(more * max(stop - max(at, start), 0) for at, more in _LONGER_FROM)
        return float(first * max(stop - start, 0) + longer)

    def _travel_s(self, first_bytes: int, rounds: int) -> Floats:
        rate = self.network.bandwidth_bps
        sending_s = np.zeros(rounds) if rate is None else 8 * self.sizes_bytes(first_bytes, rounds) / rate
        return sending_s + self.network.latency_s

    @property
    def starts_afresh(self) -> bool:
        """Whether no round has to do with work on an earlier one."""
        needs_all = answers_needed(self.shape.stop_rule) == self.workers and not self.shape.deadline
        return needs_all or self.shape.stragglers in ("cancel", "wait-all")

    def ends(self, delays: ArrayLike) -> RoundEnds:
        """Return when rounds end on given delays."""
        shape, rounds = self.shape, len(np.asarray(delays))
        question_s, answer_s = self._travel_s(shape.broadcast, rounds), self._travel_s(shape.answer, rounds)
        return round_ends(delays, shape.stop_rule, shape.stragglers, question_s, answer_s, shape.deadline)
