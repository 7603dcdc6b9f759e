"""Laws with other tails than the exponential one: Weibull, lognormal and Pareto, each with a part that always passes.

The duration is ``shift + scale * g`` with ``shift = load * shift_s``, ``scale`` the law's own or ``load`` times it, and
``g`` made of one raw draw by operations that give the same bits everywhere (``emuml/_kernels/reference_tails.py``).
Exactly these operations are evaluated in this order, each rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp, expm1, gamma, inf, sqrt
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import ArrayLike

from emuml import _kernels
from emuml._kernels.reference_tails import GROWTH, NORMAL, POWER, normal_quantile
from emuml.cluster.compute import LEAST_S, MOST_S, check_quantiles
from emuml.durations import Durations, Floats, Sampler
from emuml.node import NodeId
from emuml.spec import check
from emuml.streams import halves, stream_key, stream_keys

Seconds = Annotated[float, Ge(LEAST_S), Le(MOST_S)]
Shift = Annotated[float, Ge(0), Le(MOST_S)]
Tail = Literal["fixed", "scaled"]


class _Tailed:
    """What these laws have in common: a shift, a scale, and draws of one kind with one parameter.

    A law says kind and parameter of its draws ``g``, its scale for load 1, and moments, chances and quantiles of ``g``.
    """

    shift_s: float
    tail: Tail
    kind: ClassVar[int]

    @property
    def parameter(self) -> float:
        """What the draws of this kind depend on."""
        raise NotImplementedError

    @property
    def unit_s(self) -> float:
        """Seconds that a draw of 1 stands for at load 1."""
        raise NotImplementedError

    def unit_moments(self) -> tuple[float, float]:
        """Return mean and variance of the draws; infinite where there are none."""
        raise NotImplementedError

    def chances(self, x: Floats, is_above: bool) -> Floats:
        """Return the chance of a draw of at most ``x >= 0``, or of a larger one, each right where it is small."""
        raise NotImplementedError

    def quantiles(self, chance: Floats, is_above: bool) -> Floats:
        """Return the draws with a chance of at most them, or of larger ones."""
        raise NotImplementedError

    def line(self, load: float) -> tuple[float, float]:
        """Return shift and scale in seconds for a load."""
        return load * self.shift_s, self.unit_s if self.tail == "fixed" else load * self.unit_s

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        low, high = halves(stream_key(seed, "", f"compute/{node}"))
        kind, parameter, line, draw_at = self.kind, self.parameter, self.line, _kernels.unit_tail

        def duration(draw: int, load: float) -> float:
            shift, scale = line(load)
            return shift + scale * draw_at(kind, parameter, low, high, draw)

        return duration

    def vector(self, seed: int, workers: int) -> Durations:
        """See :class:`~emuml.durations.VectorLaw`."""
        lows, highs = stream_keys(seed, "", "compute/worker-", workers)

        def fill(draw: int, load: float, out: Floats) -> None:
            _kernels.key_tails(self.kind, self.parameter, lows, highs, draw, *self.line(load), out)

        return fill

    def mean(self, load: float = 1.0) -> float:
        """See :class:`~emuml.cluster.compute.ComputeModel`; infinite if the law has no mean."""
        shift, scale = self.line(load)
        return shift + scale * self.unit_moments()[0]

    def variance(self, load: float = 1.0) -> float:
        """See :class:`~emuml.cluster.compute.ComputeModel`; infinite if the law has no variance."""
        return self.line(load)[1] ** 2 * self.unit_moments()[1]

    def cdf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        return self.chances(self._draws(t, load), is_above=False)

    def sf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """Return the probability of a duration above ``t`` seconds, in the shape of ``t``."""
        return self.chances(self._draws(t, load), is_above=True)

    def ppf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        return self._seconds(self.quantiles(check_quantiles(q), is_above=False), load)

    def isf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """Return the seconds that are exceeded with chance ``q``; see :class:`~emuml.theory.seams.HeavyLaw`."""
        return self._seconds(self.quantiles(check_quantiles(q), is_above=True), load)

    def _draws(self, t: ArrayLike, load: float) -> Floats:
        shift, scale = self.line(load)
        return np.maximum((np.asarray(t, np.float64) - shift) / scale, 0.0)

    def _seconds(self, draws: Floats, load: float) -> Floats:
        shift, scale = self.line(load)
        return np.asarray(shift + scale * draws)


class _OfExponential(_Tailed):
    """Draws that rise with a unit exponential, which is how a law's hazard is distributed."""

    def hazard(self, x: Floats) -> Floats:
        """Return ``-log`` of the chance of a draw above ``x >= 0``."""
        raise NotImplementedError

    def at_hazard(self, hazard: Floats) -> Floats:
        """Return the draw with this hazard."""
        raise NotImplementedError

    def chances(self, x: Floats, is_above: bool) -> Floats:
        """See the base."""
        hazard = self.hazard(x)
        return np.asarray(np.exp(-hazard) if is_above else -np.expm1(-hazard))

    def quantiles(self, chance: Floats, is_above: bool) -> Floats:
        """See the base."""
        with np.errstate(divide="ignore"):
            return self.at_hazard(-np.log(chance) if is_above else -np.log1p(-chance))


@dataclass(frozen=True)
class Weibull(_OfExponential):
    """A fixed part and a Weibull tail: ``shift + scale * e ** (1 / shape)`` with ``e`` a unit exponential.

    Below shape 1 the tail is heavier than exponential, as between failures; above it is lighter.

    Parameters
    ----------
    scale_s : float
        Seconds that a share ``1/e`` of the draws exceeds (per unit of load when scaled), from 1e-12 to 1e12.
    shape : float
        From 0.1 to 100; 1 is exponential.
    shift_s : float
        Seconds per unit of load that always pass, from 0 to 1e12.
    tail : {"fixed", "scaled"}
        Whether the load scales the tail.

    Examples
    --------
    >>> law = Weibull(scale_s=2.0, shape=0.5)
    >>> law.mean(), law.variance()
    (4.0, 80.0)
    """

    scale_s: Seconds
    shape: Annotated[float, Ge(0.1), Le(100)]
    shift_s: Shift = 0.0
    tail: Tail = "fixed"

    kind: ClassVar[int] = POWER

    def __post_init__(self) -> None:
        check(self)

    @property
    def parameter(self) -> float:
        """The power of the exponential."""
        return 1.0 / self.shape

    @property
    def unit_s(self) -> float:
        """See the base."""
        return self.scale_s

    def unit_moments(self) -> tuple[float, float]:
        """Return ``G(1 + 1/k)`` and ``G(1 + 2/k) - G(1 + 1/k)**2``, with ``G`` the gamma function."""
        mean = gamma(1.0 + 1.0 / self.shape)
        return mean, gamma(1.0 + 2.0 / self.shape) - mean**2

    def hazard(self, x: Floats) -> Floats:
        """Return ``x ** k``."""
        return np.asarray(x**self.shape)

    def at_hazard(self, hazard: Floats) -> Floats:
        """Return ``h ** (1/k)``."""
        return np.asarray(hazard**self.parameter)


@dataclass(frozen=True)
class LogNormal(_Tailed):
    """A fixed part and a time whose logarithm is normal: ``shift + median * exp(sigma * z)``.

    Parameters
    ----------
    median_s : float
        Seconds that half of the draws exceed (per unit of load when scaled), from 1e-12 to 1e12.
    sigma : float
        Standard deviation of the natural logarithm, from 0.001 to 5.
    shift_s : float
        Seconds per unit of load that always pass, from 0 to 1e12.
    tail : {"fixed", "scaled"}
        Whether the load scales the tail.

    Examples
    --------
    >>> float(LogNormal(median_s=2.0, sigma=0.5).ppf(0.5))
    2.0
    """

    median_s: Seconds
    sigma: Annotated[float, Ge(0.001), Le(5)]
    shift_s: Shift = 0.0
    tail: Tail = "fixed"

    kind: ClassVar[int] = NORMAL

    def __post_init__(self) -> None:
        check(self)

    @property
    def parameter(self) -> float:
        """The standard deviation of the logarithm."""
        return self.sigma

    @property
    def unit_s(self) -> float:
        """See the base."""
        return self.median_s

    def unit_moments(self) -> tuple[float, float]:
        """Return ``exp(s**2 / 2)`` and ``exp(s**2) (exp(s**2) - 1)``."""
        return exp(self.sigma**2 / 2), exp(self.sigma**2) * expm1(self.sigma**2)

    def chances(self, x: Floats, is_above: bool) -> Floats:
        """Return half the complementary error function of ``log(x) / (s sqrt 2)``, or of minus that."""
        with np.errstate(divide="ignore"):
            z = np.log(x) / (self.sigma * sqrt(2.0) * (1.0 if is_above else -1.0))
        return np.array([erfc(one) / 2 for one in z.ravel().tolist()], np.float64).reshape(z.shape)

    def quantiles(self, chance: Floats, is_above: bool) -> Floats:
        """Return ``exp(s z)`` with ``z`` the normal quantile."""
        z = normal_quantile(chance)
        return np.asarray(np.exp(self.sigma * (-z if is_above else z)))


@dataclass(frozen=True)
class Pareto(_OfExponential):
    """A fixed part and a Pareto tail: ``shift + scale * exp(e / shape)``, never below ``shift + scale``.

    The chance of more than ``x`` scales is ``x ** -shape``: without a mean for shapes up to 1, and without a variance
    up to 2, which then are infinite. The fastest of several workers may have both (``emuml.theory`` tells).

    Parameters
    ----------
    scale_s : float
        Least seconds of the tail (per unit of load when scaled), from 1e-12 to 1e12.
    shape : float
        From 0.5 to 100: the smaller, the heavier the tail.
    shift_s : float
        Seconds per unit of load that always pass, from 0 to 1e12.
    tail : {"fixed", "scaled"}
        Whether the load scales the tail.

    Examples
    --------
    >>> Pareto(scale_s=1.0, shape=2.0).mean(), Pareto(scale_s=1.0, shape=2.0).variance()
    (2.0, inf)
    """

    scale_s: Seconds
    shape: Annotated[float, Ge(0.5), Le(100)]
    shift_s: Shift = 0.0
    tail: Tail = "fixed"

    kind: ClassVar[int] = GROWTH

    def __post_init__(self) -> None:
        check(self)

    @property
    def parameter(self) -> float:
        """The growth with the exponential."""
        return 1.0 / self.shape

    @property
    def unit_s(self) -> float:
        """See the base."""
        return self.scale_s

    @property
    def tail_index(self) -> float:
        """The power of time with which the chance of a longer one falls; see :class:`~emuml.theory.seams.HeavyLaw`."""
        return self.shape

    def unit_moments(self) -> tuple[float, float]:
        """Return ``a / (a-1)`` and ``a / ((a-1)**2 (a-2))``, or infinity for shapes ``a`` up to 1 and 2."""
        a = self.shape
        return a / (a - 1) if a > 1 else inf, a / ((a - 1) ** 2 * (a - 2)) if a > 2 else inf

    def hazard(self, x: Floats) -> Floats:
        """Return ``a log x`` above 1."""
        return np.asarray(self.shape * np.log(np.maximum(x, 1.0)))

    def at_hazard(self, hazard: Floats) -> Floats:
        """Return ``exp(h / a)``."""
        return np.asarray(np.exp(hazard * self.parameter))
