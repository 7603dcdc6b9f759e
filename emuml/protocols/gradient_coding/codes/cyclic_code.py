"""What cyclic codes have in common once they are built: rows that are shifts of one support, decoded exactly.

The worker at position ``i`` of the code's order holds the partitions ``i..i+s`` modulo ``n``. A round closes at
``n - s`` answers, or at ``collect``; where so many answers may drown in rounding, it waits for more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.linear import LinearCode
from emuml.protocols.gradient_coding.codes.seam import check_collect, check_workers
from emuml.protocols.gradient_coding.decoders.conditioning import DOUBTED, Unsound, relative_error, remark
from emuml.protocols.gradient_coding.decoders.null_space import NullSpace
from emuml.protocols.gradient_coding.decoders.seam import Decoder, Floats, Indices, Rows
from emuml.shapes import All, Count, StopRule, Tracker

LONG_FROM = 1000
"""Workers whose null space takes about a second, on a machine of 2024; the time grows with their cube."""


@dataclass(frozen=True, eq=False)
class CyclicCode(LinearCode):
    """A cyclic code for a known number of workers.

    Parameters
    ----------
    stragglers : int
        How many may be missing for an exact decoding.
    contiguous_gain : float
        Largest noise gain without so many neighbours in the order of the code, the worst case that is known.
    order : ndarray of int64, shape (workers,)
        Position of each worker in the order of the code.
    """

    stragglers: int = 0
    contiguous_gain: float = 1.0
    order: Indices = field(default_factory=lambda: np.zeros(0, np.int64))

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.rows, self.rule, self.decoder, self.collect
        return type(self), (*given, self.stragglers, self.contiguous_gain, self.order)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What there is to know of its conditioning and of its decoder, for plans and reports."""
        said: tuple[str, ...] = (remark(self.contiguous_gain, self.stragglers),) if self.stragglers else ()
        if self.stragglers > 1 and isinstance(self.decoder, NullSpace):
            said = (f"{said[0]}; scattered ones may amplify it far more: random factors have no known worst case",)
        if self.workers >= LONG_FROM and isinstance(self.decoder, NullSpace):
            seconds = (self.workers / LONG_FROM) ** 3
            said += (f"before the first step the server prepares its decoder: about {seconds:.2g} s of real time",)
        return said


@dataclass(frozen=True)
class CountSound(StopRule):
    """Close at the first ``count`` distinct workers whose answers give the sum without drowning it in rounding.

    Closed forms take it for the count: that more answers are needed is rare.

    Parameters
    ----------
    workers, count : int
        As for :class:`Count`.
    decoder : Decoder
        Which sets of answers it decodes.
    """

    workers: int
    count: int
    decoder: Decoder

    def parts(self) -> tuple[int | None, None]:
        """Return count and groups (see :class:`StopRule`)."""
        return self.count, None

    def tracker(self) -> Tracker:
        """Return a tracker that decodes as soon as there are enough answers."""
        return _SoundTracker(self.workers, self.count, self.decoder)


class _SoundTracker(Tracker):
    def __init__(self, workers: int, count: int, decoder: Decoder) -> None:
        super().__init__(workers, count, None)
        self._decoder, self._judged, self._is_sound = decoder, -1, False

    @property
    def closed(self) -> bool:
        """Whether the round may close."""
        if not super().closed:
            return False
        if self._judged != self.n_arrived:
            self._judged = self.n_arrived
            try:
                self._decoder.weights(np.array(self.arrived_workers, np.int64))
                self._is_sound = True
            except Unsound:
                self._is_sound = False
        return self._is_sound


def rule_of(workers: int, stragglers: int, collect: int | None, decoder: Decoder, gain: float) -> StopRule:
    """Return when a round closes: at enough answers, or at ``collect`` if that is fewer."""
    enough = workers - stragglers
    if collect is not None and collect < enough:
        return Count(workers, collect)
    if enough == workers:
        return All(workers)
    return Count(workers, enough) if relative_error(gain) <= DOUBTED else CountSound(workers, enough, decoder)


def cyclic_rows(factors: Floats, order: Indices) -> Rows:
    """Return the matrix of a cyclic code by rows.

    Parameters
    ----------
    factors : ndarray of float64, shape (workers, stragglers + 1)
        Of the worker at position ``i``, for the partitions ``i, i+1, ..`` modulo ``workers``.
    order : ndarray of int64, shape (workers,)
        Position of each worker.
    """
    workers, held = factors.shape
    partitions = (order[:, None] + np.arange(held)) % workers
    ascending = np.argsort(partitions, axis=1)
    return Rows(
        workers,
        np.arange(workers + 1) * held,
        np.take_along_axis(partitions, ascending, axis=1).ravel(),
        np.take_along_axis(factors[order], ascending, axis=1).ravel(),
    )


def check_stragglers(stragglers: int, workers: int, collect: int | None, where: str) -> None:
    """Refuse numbers that are no cyclic code.

    Raises
    ------
    UserError
        If not ``stragglers < workers``, there is no worker, or ``collect`` is not in ``1..workers``.
    """
    check_workers(workers)
    check_collect(collect, workers)
    if stragglers >= workers:
        raise UserError(
            f"{workers} workers cannot stand {stragglers} stragglers",
            f"{where}.stragglers",
            f"an integer in 0..{workers - 1}",
            f"the nearest is {workers - 1}",
        )
