"""How long workers compute: laws for the emulator to draw from, which also answer theory's questions.

A law gives the duration of draw number k of a worker by position, so durations depend on nothing but (seed, worker,
k): engines, batching and laziness cannot move them. Durations are built from IEEE ``+ - * /`` on raw draws, in one
fixed order; ``cdf`` and ``ppf`` serve theory and calibration and may use the platform's ``exp`` and ``log``.

``load`` is dimensionless: the cost of a task over the cost of a worker's equal share of one full pass over the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import ArrayLike

from emuml import _kernels
from emuml.durations import Durations, Floats, Sampler, Words
from emuml.durations import durations as durations
from emuml.errors import UserError
from emuml.node import NodeId
from emuml.spec import check
from emuml.streams import halves, stream_key, stream_keys

if TYPE_CHECKING:
    from emuml.cluster.delays import DelayTrace as DelayTrace
    from emuml.cluster.delays import ErasureHeadDelays as ErasureHeadDelays
    from emuml.cluster.delays import erasurehead_delays as erasurehead_delays

LEAST_S, MOST_S = 1e-12, 1e12
"""Bounds of declared times in seconds: beyond them the sums and squares that theory takes are no numbers any more."""


class ComputeModel(Protocol):
    """What every compute law answers; times are in seconds, ``load`` is dimensionless and positive.

    A law of finitely many durations may answer ``atoms(load)``, too: all of them in seconds, ascending, each once. Its
    moments in theory are exact then. A law that can draw for many workers at once answers ``vector(seed, workers)``:
    see :func:`~emuml.durations.durations`, which is found here, too.
    """

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """Return the function that gives this node's durations by (draw, load)."""
        ...

    def mean(self, load: float = 1.0) -> float:
        """Return the mean duration in seconds."""
        ...

    def variance(self, load: float = 1.0) -> float:
        """Return the variance of the duration in seconds squared."""
        ...

    def cdf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """Return the probability of a duration of at most ``t`` seconds, in the shape of ``t``."""
        ...

    def ppf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """Return the shortest time in seconds with ``cdf >= q`` for 0 <= q <= 1 (0 gives the least possible time)."""
        ...


def check_quantiles(q: ArrayLike) -> Floats:
    """Return quantile levels as an array, refusing what lies outside [0, 1]."""
    levels = np.asarray(q, np.float64)
    if not np.all((levels >= 0) & (levels <= 1)):
        raise UserError(f"got {q!r}", "quantile", "numbers from 0 to 1")
    return levels


class _Certain:
    """What laws without chance have in common: the duration is the mean."""

    def mean(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        raise NotImplementedError

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`ComputeModel`."""
        return lambda draw, load: self.mean(load)

    def vector(self, seed: int, workers: int) -> Durations:
        """See :class:`~emuml.durations.VectorLaw`."""
        return lambda draw, load, out: out.fill(self.mean(load))

    def variance(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        return 0.0

    def cdf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`ComputeModel`."""
        return np.asarray(np.asarray(t, np.float64) >= self.mean(load), np.float64)

    def ppf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`ComputeModel`."""
        return np.full(check_quantiles(q).shape, self.mean(load))

    def atoms(self, load: float = 1.0) -> Floats:
        """Return the one possible duration in seconds."""
        return np.array([self.mean(load)])


@dataclass(frozen=True)
class Instant(_Certain):
    """Computing takes no time, said on purpose: such runs are all communication."""

    def mean(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        return 0.0


@dataclass(frozen=True)
class Constant(_Certain):
    """Every unit of load takes the same time: ``load * seconds``.

    Parameters
    ----------
    seconds : float
        Seconds per unit of load, from 1e-12 to 1e12; :class:`Instant` is the law for no time at all.

    Examples
    --------
    >>> Constant(seconds=0.5).mean(load=3.0)
    1.5
    """

    seconds: Annotated[float, Ge(LEAST_S), Le(MOST_S)]

    def __post_init__(self) -> None:
        check(self)

    def mean(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        return load * self.seconds


@dataclass(frozen=True)
class ShiftedExponential:
    """A fixed part and an exponential tail, independent of the load or scaled by it.

    The duration is ``shift + scale * e`` with ``e`` a unit exponential, ``shift = load * shift_s``, and ``scale =
    mean_s`` for ``tail="fixed"`` (model A) or ``scale = load * mean_s`` for ``tail="scaled"`` (model B). Exactly these
    operations in this order are evaluated, each rounded once.

    Parameters
    ----------
    shift_s : float
        Seconds per unit of load that always pass, from 0 to 1e12.
    mean_s : float
        Mean of the tail in seconds (per unit of load when scaled), from 1e-12 to 1e12.
    tail : {"fixed", "scaled"}
        Whether the load scales the tail.

    References
    ----------
    Model A: what the program of ErasureHead (arXiv:1901.09671) emulates. Model B: Lee et al., arXiv:1512.02673.

    Examples
    --------
    >>> law = ShiftedExponential(shift_s=0.05, mean_s=0.5)
    >>> law.mean(load=3.0)
    0.65
    >>> duration = law.sampler(7, NodeId("worker", 3))
    >>> duration(0, 3.0) == 3.0 * 0.05 + 0.5 * 1.1800254737167317
    True
    """

    shift_s: Annotated[float, Ge(0), Le(MOST_S)]
    mean_s: Annotated[float, Ge(LEAST_S), Le(MOST_S)]
    tail: Literal["fixed", "scaled"] = "fixed"

    def __post_init__(self) -> None:
        check(self)

    def scale_s(self, load: float) -> float:
        """Return the mean of the tail in seconds for a load."""
        return self.mean_s if self.tail == "fixed" else load * self.mean_s

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`ComputeModel`."""
        shift_s, mean_s, draw_at = self.shift_s, self.mean_s, _kernels.unit_exponential
        low, high = halves(stream_key(seed, "", f"compute/{node}"))
        if self.tail == "fixed":
            return lambda draw, load: load * shift_s + mean_s * draw_at(low, high, draw)
        return lambda draw, load: load * shift_s + (load * mean_s) * draw_at(low, high, draw)

    def vector(self, seed: int, workers: int) -> Durations:
        """See :class:`~emuml.durations.VectorLaw`."""
        lows, highs = self.keys(seed, workers)

        def fill(draw: int, load: float, out: Floats) -> None:
            _kernels.key_exponentials(lows, highs, draw, *self.line(load), out)

        return fill

    def keys(self, seed: int, workers: int) -> tuple[Words, Words]:
        """See :class:`~emuml.durations.ExponentialDraws`."""
        return stream_keys(seed, "", "compute/worker-", workers)

    def line(self, load: float) -> tuple[float, float]:
        """See :class:`~emuml.durations.ExponentialDraws`."""
        return load * self.shift_s, self.scale_s(load)

    def mean(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        return load * self.shift_s + self.scale_s(load)

    def variance(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        return self.scale_s(load) ** 2

    def cdf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`ComputeModel`."""
        excess = (np.asarray(t, np.float64) - load * self.shift_s) / self.scale_s(load)
        return np.asarray(-np.expm1(-np.maximum(excess, 0.0)), np.float64)

    def ppf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`ComputeModel`."""
        with np.errstate(divide="ignore"):
            tail = -np.log1p(-check_quantiles(q))
        return np.asarray(load * self.shift_s + self.scale_s(load) * tail, np.float64)


def __getattr__(name: str) -> object:
    """Return what stands in :mod:`emuml.cluster.delays`, under the name that it had here."""
    if name in ("DelayTrace", "ErasureHeadDelays", "erasurehead_delays"):
        return getattr(import_module("emuml.cluster.delays"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
