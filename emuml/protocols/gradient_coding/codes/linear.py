"""A built code given by its matrix ``B``, a stop rule and a decoder: what most codes without replicas are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from emuml.protocols.gradient_coding.codes.seam import BuiltCode, Decoding, checked
from emuml.protocols.gradient_coding.decoders.seam import Decoder, Rows, Weights
from emuml.shapes import StopRule

REMEMBERED = 256
"""Decodings that a code keeps: rounds with the same stragglers are decoded once."""


@dataclass(frozen=True, eq=False)
class LinearCode(BuiltCode):
    """A code for a known number of workers.

    Parameters
    ----------
    rows : Rows
        The matrix ``B``.
    rule : StopRule
        When a round closes.
    decoder : Decoder
        Gives the weights of answers.
    collect : int or None
        Answers at which a round closes at the latest; ``None`` for no such limit.
    """

    rows: Rows
    rule: StopRule
    decoder: Decoder
    collect: int | None = None
    _remembered: OrderedDict[bytes, Weights] = field(default_factory=OrderedDict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", self.rows.workers)

    def __reduce__(self) -> tuple[type[LinearCode], tuple[Rows, StopRule, Decoder, int | None]]:
        return type(self), (self.rows, self.rule, self.decoder, self.collect)

    @property
    def partitions(self) -> int:
        """Number of partitions ``k`` of the data."""
        return self.rows.partitions

    @cached_property
    def loads(self) -> NDArray[np.float64]:
        """Work of each worker, shape (workers,), in units of ``1/workers`` of the data."""
        return np.diff(self.rows.indptr) * (self.workers / self.partitions)

    @cached_property
    def load(self) -> float:
        """Work of the worker that has most, in units of ``1/workers`` of the data."""
        return float(self.loads.max())

    @cached_property
    def encode_matrix(self) -> NDArray[np.float64]:
        """The matrix ``B``, read-only, of shape (workers, partitions)."""
        matrix = self.rows.dense()
        matrix.flags.writeable = False
        return matrix

    def assignment(self, worker: int) -> tuple[int, ...]:
        """Return the partitions of a worker, ascending; there may be none."""
        return tuple(self.rows.indices[self._of(worker)].tolist())

    def coefficients(self, worker: int) -> tuple[float, ...]:
        """Return the factor of each of the worker's partitions in its answer."""
        return tuple(self.rows.values[self._of(worker)].tolist())

    def stop_rule(self) -> StopRule:
        """Return when a round of this code closes."""
        return self.rule

    def decode(self, received: Iterable[int]) -> Decoding:
        """Combine the answers of some workers; see :meth:`BuiltCode.decode`."""
        workers = checked(received, self.workers)
        order = np.argsort(workers)
        ascending = workers[order]
        found = self.decoder.weights(ascending) if self.decoder.is_cheap else self._recalled(ascending)
        weights = np.empty(workers.size)
        weights[order] = found.values
        return Decoding(weights, found.error, ascending, found.noise_gain)

    def _recalled(self, received: NDArray[np.int64]) -> Weights:
        flags = np.zeros(self.workers, np.bool_)
        flags[received] = True
        key, known = np.packbits(flags).tobytes(), self._remembered
        if key in known:
            known.move_to_end(key)
            return known[key]
        found = known[key] = self.decoder.weights(received)
        if len(known) > REMEMBERED:
            known.popitem(last=False)
        return found

    def _of(self, worker: int) -> slice:
        return slice(int(self.rows.indptr[worker]), int(self.rows.indptr[worker + 1]))
