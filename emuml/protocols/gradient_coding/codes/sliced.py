"""A built code whose answers are shorter than a gradient: each worker mixes the slices of its gradients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emuml.protocols.gradient_coding.codes.cyclic_code import rule_of
from emuml.protocols.gradient_coding.codes.seam import BuiltCode, Decoding, checked
from emuml.protocols.gradient_coding.decoders.conditioning import remark, windows
from emuml.protocols.gradient_coding.decoders.interpolation import Interpolation
from emuml.protocols.gradient_coding.decoders.seam import Floats
from emuml.shapes import StopRule
from emuml.task import Cancelled, Task

if TYPE_CHECKING:
    from emuml.protocol import Problem
    from emuml.rounds import Answers


@dataclass(frozen=True, eq=False)
class SlicedDecoding(Decoding):
    """How the answers of a round combine.

    Attributes
    ----------
    slices : ndarray of float64, shape (blocks, n_received)
        The weights of each slice; ``weights`` are those of the first.
    """

    slices: Floats


@dataclass(frozen=True, eq=False)
class SlicedCode(BuiltCode):
    """A built code of Ye and Abbe.

    Parameters
    ----------
    decoder : Interpolation
    collect : int or None
        Answers at which a round closes at the latest; ``None`` for no such limit.
    shape : tuple of int, optional
        Of the parameters; without it, decoded gradients are flat, and end with zeros to whole slices.
    """

    decoder: Interpolation
    collect: int | None = None
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", self.decoder.nodes.size)

    @property
    def partitions(self) -> int:
        """Number of partitions ``k`` of the data: as many as workers."""
        return self.workers

    @property
    def stragglers(self) -> int:
        """How many answers may be missing."""
        return self.decoder.stragglers

    @property
    def blocks(self) -> int:
        """By how much answers are shorter than a gradient."""
        return self.decoder.blocks

    @property
    def load(self) -> float:
        """Work of each worker, in units of ``1/workers`` of the data."""
        return float(self.stragglers + self.blocks)

    def assignment(self, worker: int) -> tuple[int, ...]:
        """Return the partitions of a worker, ascending."""
        return tuple(sorted((worker + t) % self.workers for t in range(self.stragglers + self.blocks)))

    def coefficients(self, worker: int) -> tuple[float, ...]:
        """Return the factors of the first slices of the worker's partitions; ``decoder.tensor`` has all."""
        return tuple(self.encode_matrix[worker, list(self.assignment(worker))].tolist())

    @property
    def encode_matrix(self) -> Floats:
        """The factors of first slices, read-only, shape (workers, partitions)."""
        return self.decoder.tensor[:, :, 0]

    @cached_property
    def contiguous_gain(self) -> float:
        """Largest noise gain without so many neighbours as may be missing."""
        return max(self.decoder.judged(each).noise_gain for each in windows(self.workers, self.stragglers))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What there is to know of its conditioning, for plans and reports."""
        return (remark(self.contiguous_gain, self.stragglers),) if self.stragglers else ()

    def stop_rule(self) -> StopRule:
        """Return when a round of this code closes."""
        return rule_of(self.workers, self.stragglers, self.collect, self.decoder, self.contiguous_gain)

    def decode(self, received: Iterable[int]) -> SlicedDecoding:
        """Combine the answers of some workers; see :meth:`BuiltCode.decode` and :meth:`Interpolation.weights`."""
        workers = checked(received, self.workers)
        order = np.argsort(workers)
        ascending = workers[order]
        found = self.decoder.weights(ascending)
        slices = np.empty((self.blocks, workers.size))
        slices[:, order] = found.values
        return SlicedDecoding(slices[0], found.error, ascending, found.noise_gain, slices)

    def task(self, workload: Problem, parameters: NDArray[Any], worker: int, draw: int) -> Task:
        """Return what a worker computes: the gradient of each of its partitions once, and the mix of their slices."""
        owned = self.assignment(worker)
        whole: Task = workload.gradient(parameters, owned, self.partitions, None, draw=draw)
        factors = tuple(map(tuple, self.decoder.tensor[worker, list(owned)].tolist()))
        inputs = (workload, parameters, owned, self.partitions, factors, draw)
        shape = self.answer_shape(whole.shape)
        return Task(mixed_slices, inputs, whole.cost, shape, whole.dtype, draw=draw, cancellable=True)

    def answer_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of an answer: a slice, ``ceil(l/blocks)`` for ``l`` parameters."""
        return (-(-int(np.prod(shape)) // self.blocks),)

    def combine(self, answers: Answers, decoding: Decoding) -> NDArray[Any] | None:
        """Return the gradient: its slices one after the other, without what they were filled up with."""
        assert isinstance(decoding, SlicedDecoding)
        found = [answers.combine(weights) for weights in decoding.slices]
        known = [one for one in found if one is not None]
        if not known:
            return None
        flat = np.concatenate([np.zeros_like(known[0]) if one is None else one for one in found])
        return flat if self.shape is None else flat[: int(np.prod(self.shape))].reshape(self.shape)

    def of(self, shape: tuple[int, ...]) -> SlicedCode:
        """Return the code that knows the shape of the parameters, which the messages do not tell."""
        return replace(self, shape=shape)


def mixed_slices(
    workload: Problem,
    parameters: NDArray[Any],
    owned: tuple[int, ...],
    partitions: int,
    factors: tuple[tuple[float, ...], ...],
    draw: int,
    cancelled: Cancelled,
) -> NDArray[Any]:
    """Return ``sum_{i,u} factors[i][u] g_i[u]``, added by partition and slice.

    Parameters
    ----------
    workload, parameters, owned, partitions, draw
        As for the gradients of single partitions.
    factors : tuple of tuple of float
        For each owned partition, those of its slices; gradients are filled up with zeros to whole slices.
    cancelled : callable
        As for any task.
    """
    blocks = len(factors[0])
    total: NDArray[Any] | None = None
    for partition, of_slices in zip(owned, factors, strict=True):
        one: Task = workload.gradient(parameters, (partition,), partitions, None, draw=draw)
        flat = one.run(cancelled).ravel()
        slices = np.concatenate((flat, np.zeros(-len(flat) % blocks, flat.dtype))).reshape(blocks, -1)
        for factor, values in zip(of_slices, slices, strict=True):
            total = factor * values if total is None else total + factor * values
    assert total is not None
    return total
