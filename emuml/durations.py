"""Durations of all workers at once, from what a compute law answers: by its own vectors, or one worker at a time.

Bit-equal to the law's samplers, so that tiers of emulation and theory's samples agree with the event-driven engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from emuml.node import NodeId

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

Sampler = Callable[[int, float], float]
"""Maps (draw, load) to seconds: pure, so that the same draw always takes the same time."""

Durations = Callable[[int, float, Floats], None]
"""Maps (draw, load, out) to nothing: ``out[w]`` becomes what worker ``w``'s sampler gives for (draw, load)."""


class DrawnLaw(Protocol):
    """A law whose durations can be drawn."""

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """Return the function that gives this node's durations by (draw, load)."""
        ...


@runtime_checkable
class VectorLaw(Protocol):
    """A law that draws for many workers at once, with the bits of its samplers."""

    def vector(self, seed: int, workers: int) -> Durations:
        """Return what writes the durations of workers ``0..workers-1`` for one (draw, load)."""
        ...


@runtime_checkable
class ExponentialDraws(Protocol):
    """A law whose every duration is ``shift + scale * e``, with ``e`` the unit exponential of a worker's key at a draw.

    Order statistics of such durations can be selected on the raw words of the draws.
    """

    def keys(self, seed: int, workers: int) -> tuple[Words, Words]:
        """Return the low and high halves of the keys of workers ``0..workers-1``; see ``streams.halves``."""
        ...

    def line(self, load: float) -> tuple[float, float]:
        """Return shift and scale in seconds for a load."""
        ...


def durations(law: DrawnLaw, seed: int, workers: int) -> Durations:
    """Return what draws the durations of all workers for one (draw, load) into an array.

    Parameters
    ----------
    law : DrawnLaw
        Any compute law; those that offer ``vector(seed, workers)`` are asked for it, others one worker at a time.
    seed : int
        Seed of the experiment.
    workers : int
        Number of workers.

    Returns
    -------
    callable
        ``fill(draw, load, out)`` writes ``law.sampler(seed, NodeId("worker", w))(draw, load)``, bit for bit, to
        ``out[w]`` of a contiguous array of float64 of shape (workers,): seconds.

    Raises
    ------
    UserError, RunFailed
        What the law's samplers raise.

    Examples
    --------
    >>> from emuml.cluster import ShiftedExponential
    >>> law, out = ShiftedExponential(shift_s=0.05, mean_s=0.5), np.empty(4)
    >>> durations(law, 7, 4)(0, 3.0, out)
    >>> bool(out[3] == law.sampler(7, NodeId("worker", 3))(0, 3.0))
    True
    """
    if isinstance(law, VectorLaw):
        return law.vector(seed, workers)
    samplers = [law.sampler(seed, NodeId("worker", worker)) for worker in range(workers)]

    def fill(draw: int, load: float, out: Floats) -> None:
        out[:] = [duration(draw, load) for duration in samplers]

    return fill
