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


class Range(NamedTuple):
    """A figure with a 95 % interval; both ends are the figure when it is certain."""

    mean: float
    low: float
    high: float

    @classmethod
    def certain(cls, value: float) -> Range:
        """Return a figure without doubt."""
        return cls(value, value, value)

    def times(self, factor: float) -> Range:
        """Return the figure in another unit."""
        return Range(self.mean * factor, self.low * factor, self.high * factor)


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
        return float(np.sum(self._travel_s(self.shape.broadcast) + self._travel_s(self.shape.answer)))

    def sizes_bytes(self, first: int) -> Floats:
        """Return the bytes of a message in each round, shape (rounds,), from those in the first.

        Messages carry the number of their round, which takes more bytes from 128 on (msgpack).
        """
        numbers = np.arange(self.rounds)
        return first + np.select([numbers < 1 << 7, numbers < 1 << 8, numbers < 1 << 16], [0.0, 1.0, 2.0], 4.0)

    def _travel_s(self, first_bytes: int) -> Floats:
        rate = self.network.bandwidth_bps
        sending_s = np.zeros(self.rounds) if rate is None else 8 * self.sizes_bytes(first_bytes) / rate
        return sending_s + self.network.latency_s

    @property
    def starts_afresh(self) -> bool:
        """Whether no round has to do with work on an earlier one."""
        needs_all = answers_needed(self.shape.stop_rule) == self.workers
        return needs_all or self.shape.stragglers in ("cancel", "wait-all")

    def ends(self, delays: ArrayLike) -> RoundEnds:
        """Return when rounds end on given delays, of as many rounds or fewer."""
        shape, rounds = self.shape, len(np.asarray(delays))
        question_s, answer_s = self._travel_s(shape.broadcast)[:rounds], self._travel_s(shape.answer)[:rounds]
        return round_ends(delays, shape.stop_rule, shape.stragglers, question_s, answer_s)
