"""Laws made of other laws: with rare outliers, and with a part that does not depend on the load.

Also what mixtures have in common: moments, chances and quantiles of a draw that is one of several, each stretched by a
factor. Laws under which workers differ answer so, too, for a worker that one knows nothing of (``workers.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from numpy.typing import ArrayLike, NDArray

from emuml import _kernels
from emuml.cluster.compute import MOST_S, ComputeModel, check_quantiles
from emuml.durations import Durations, Floats, Sampler, durations
from emuml.node import NodeId
from emuml.spec import check
from emuml.streams import halves, stream_key, stream_keys

STEP = 2.0**-53


class Part(NamedTuple):
    """One law of a mixture: how often it is drawn, and what its draws are multiplied by."""

    share: float
    law: ComputeModel
    factor: float = 1.0

    def mean(self, load: float) -> float:
        """Return the mean in seconds."""
        return self.factor * self.law.mean(load)

    def atoms(self, load: float) -> Floats | None:
        """Return the possible seconds, if they are finitely many."""
        found = atoms_of(self.law, load)
        return None if found is None else self.factor * found

    def cdf(self, t: Floats, load: float) -> Floats:
        """Return the chance of at most ``t`` seconds; products of finitely many times jump where samplers have them."""
        values = self.atoms(load)
        if values is None or self.factor == 1.0:
            return self.law.cdf(t / self.factor, load)
        return of_atoms(self.law, values, t, load)

    def sf(self, t: Floats, load: float) -> Floats:
        """Return the chance of more than ``t`` seconds."""
        if hasattr(self.law, "sf"):
            return np.asarray(self.law.sf(t / self.factor, load))
        return 1.0 - self.cdf(t, load)


def atoms_of(law: ComputeModel, load: float) -> Floats | None:
    """Return the possible seconds of a law that says that they are finitely many."""
    answer: Callable[[float], Floats | None] | None = getattr(law, "atoms", None)
    return None if answer is None else answer(load)


def of_atoms(law: Any, values: Floats, t: Floats, load: float) -> Floats:
    """Return the chance of at most ``t`` seconds where ``values`` are what became of the atoms of a law, in order."""
    levels = np.append(0.0, law.cdf(law.atoms(load), load))
    return np.asarray(levels[np.searchsorted(values, t, side="right")])


def dependence_of(*laws: ComputeModel) -> str:
    """Return what draws have in common under the first law that says so; see ``emuml.theory.seams.DependentLaw``."""
    return next(filter(None, (getattr(law, "dependence", "") for law in laws)), "")


class Mixed:
    """What laws answer whose draws are one of several parts."""

    def parts(self) -> Sequence[Part]:
        """Return the parts, whose shares sum to 1."""
        raise NotImplementedError

    @property
    def dependence(self) -> str:
        """What draws have in common; empty where they are independent and alike."""
        return dependence_of(*(part.law for part in self.parts()))

    @property
    def tail_index(self) -> float:
        """The least of the parts': the heaviest tail is felt however rare it is. Infinite without heavy tails."""
        return min(getattr(part.law, "tail_index", inf) for part in self.parts())

    def mean(self, load: float = 1.0) -> float:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        return sum(part.share * part.mean(load) for part in self.parts())

    def variance(self, load: float = 1.0) -> float:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        mean = self.mean(load)
        if not isfinite(mean):
            return inf
        parts = [(p.share, p.factor**2 * p.law.variance(load) + (p.mean(load) - mean) ** 2) for p in self.parts()]
        return sum(share * square for share, square in parts)

    def cdf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        times = np.asarray(t, np.float64)
        return np.minimum(sum(part.share * part.cdf(times, load) for part in self.parts()), 1.0)

    def sf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """Return the probability of a duration above ``t`` seconds, in the shape of ``t``."""
        times = np.asarray(t, np.float64)
        return np.minimum(sum(part.share * part.sf(times, load) for part in self.parts()), 1.0)

    def ppf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        given = check_quantiles(q)
        levels = given.ravel()
        ends = np.array([part.factor * part.law.ppf(levels, load) for part in self.parts()])
        # A sum of shares may miss 1 by a rounding or two, and what they say of a level, too.
        found = _least(lambda t, those: self.cdf(t, load) >= levels[those] - STEP, ends.min(axis=0), ends.max(axis=0))
        return found.reshape(given.shape)

    def isf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """Return the seconds that are exceeded with chance ``q``; see :class:`~emuml.theory.seams.HeavyLaw`."""
        given = check_quantiles(q)
        chances = given.ravel()
        ends = np.array([part.factor * _isf(part.law, chances, load) for part in self.parts()])
        found = _least(lambda t, those: self.sf(t, load) <= chances[those], ends.min(axis=0), ends.max(axis=0))
        return found.reshape(given.shape)

    def atoms(self, load: float = 1.0) -> Floats | None:
        """Return all durations in seconds, ascending, each once; None if they are not finitely many."""
        found = [part.atoms(load) for part in self.parts()]
        return None if any(one is None for one in found) else np.unique(np.concatenate(cast("list[Floats]", found)))


def _isf(law: ComputeModel, chances: Floats, load: float) -> Floats:
    """Return the seconds that are exceeded with these chances, at least by what a law's quantiles tell."""
    if hasattr(law, "isf"):
        return np.asarray(law.isf(chances, load))
    return law.ppf(1.0 - chances, load)


def _least(holds: Callable[[Floats, NDArray[np.bool_]], NDArray[np.bool_]], low: Floats, high: Floats) -> Floats:
    """Return the least numbers between ``low`` and ``high`` at which something holds, which then goes on to hold."""
    low, high = np.array(low, np.float64), np.array(high, np.float64)
    everywhere = np.ones(low.shape, np.bool_)
    high = np.where(np.isfinite(high) & holds(low, everywhere), low, high)
    open_ = np.isfinite(high) & (low < high)
    while open_.any():
        middle = low[open_] + (high[open_] - low[open_]) / 2
        enough = holds(middle, open_)
        is_new = (low[open_] < middle) & (middle < high[open_])
        high[open_] = np.where(enough & is_new, middle, high[open_])
        low[open_] = np.where(enough, low[open_], middle)
        open_[open_] = is_new
    return high


class Over:
    """What laws have in common that change the draws of another one: its recorded extent, if it has one."""

    base: ComputeModel

    def __getattr__(self, name: str) -> Any:
        # Only laws of recorded delays have an extent, so that having one says what a law is.
        if name == "extent" and "base" in self.__dict__:
            return cast("Any", self.base).extent
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def chosen(words: NDArray[np.uint64], chance: float) -> NDArray[np.bool_]:
    """Return which words stand for uniform numbers below a chance."""
    return (words >> np.uint64(11)).astype(np.float64) * STEP < chance


@dataclass(frozen=True)
class WithOutliers(Over, Mixed):
    """The draws of one law, and now and then that of another: a tight bulk with rare outliers.

    Parameters
    ----------
    base : declaration of a compute law
        What most draws are of.
    outlier : declaration of a compute law
        What the others are of, in place of the base's draw.
    chance : float
        How often, 0 < chance < 1: for each draw of each worker anew.

    Examples
    --------
    >>> from emuml.cluster import Constant
    >>> law = WithOutliers(base=Constant(1.0), outlier=Constant(20.0), chance=0.01)
    >>> round(law.mean(), 6), law.ppf([0.98, 0.995]).tolist()
    (1.19, [1.0, 20.0])
    """

    base: ComputeModel
    outlier: ComputeModel
    chance: Annotated[float, Gt(0), Lt(1)]

    def __post_init__(self) -> None:
        check(self)

    def parts(self) -> Sequence[Part]:
        """See the base."""
        return Part(1.0 - self.chance, self.base), Part(self.chance, self.outlier)

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`~emuml.cluster.compute.ComputeModel`; the choice has a stream of its own."""
        own, other, chance = self.base.sampler(seed, node), self.outlier.sampler(seed, node), self.chance
        low, high = halves(stream_key(seed, "", f"outlier/{node}"))
        uniform = _kernels.uniform
        return lambda draw, load: (other if uniform(low, high, draw) < chance else own)(draw, load)

    def vector(self, seed: int, workers: int) -> Durations:
        """See :class:`~emuml.durations.VectorLaw`."""
        own, other = durations(self.base, seed, workers), durations(self.outlier, seed, workers)
        lows, highs = stream_keys(seed, "", "outlier/worker-", workers)
        words, outliers = np.empty(workers, np.uint64), np.empty(workers)

        def fill(draw: int, load: float, out: Floats) -> None:
            own(draw, load, out)
            _kernels.key_words(lows, highs, draw, words)
            those = chosen(words, self.chance)
            if those.any():
                other(draw, load, outliers)
                np.copyto(out, outliers, where=those)

        return fill


@dataclass(frozen=True)
class AffineLoad(Over):
    """Seconds that pass whatever the load, and then the draws of another law: ``fixed_s + base``.

    With a base that the load scales, times are affine in the load, ``a + b * load``, as measured where a task has costs
    of its own beside those of its data.

    Parameters
    ----------
    base : declaration of a compute law
        What comes after that, and depends on the load.
    fixed_s : float
        Seconds before each of its draws, from 0 to 1e12.

    Examples
    --------
    >>> from emuml.cluster import Constant
    >>> law = AffineLoad(base=Constant(1.13), fixed_s=0.64)
    >>> law.mean(load=0.0), law.mean(load=1.0)
    (0.64, 1.77)
    """

    base: ComputeModel
    fixed_s: Annotated[float, Ge(0), Le(MOST_S)]

    def __post_init__(self) -> None:
        check(self)

    @property
    def dependence(self) -> str:
        """That of the base."""
        return dependence_of(self.base)

    @property
    def tail_index(self) -> float:
        """That of the base."""
        return float(getattr(self.base, "tail_index", inf))

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        fixed_s, of_base = self.fixed_s, self.base.sampler(seed, node)
        return lambda draw, load: fixed_s + of_base(draw, load)

    def vector(self, seed: int, workers: int) -> Durations:
        """See :class:`~emuml.durations.VectorLaw`."""
        of_base = durations(self.base, seed, workers)

        def fill(draw: int, load: float, out: Floats) -> None:
            of_base(draw, load, out)
            out += self.fixed_s

        return fill

    def mean(self, load: float = 1.0) -> float:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        return self.fixed_s + self.base.mean(load)

    def variance(self, load: float = 1.0) -> float:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        return self.base.variance(load)

    def cdf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        values = self.atoms(load)
        if values is None:
            return self.base.cdf(np.asarray(t, np.float64) - self.fixed_s, load)
        return of_atoms(self.base, values, np.asarray(t, np.float64), load)

    def sf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """Return the probability of a duration above ``t`` seconds, in the shape of ``t``."""
        if self.atoms(load) is not None:
            return 1.0 - self.cdf(t, load)
        return Part(1.0, self.base).sf(np.asarray(t, np.float64) - self.fixed_s, load)

    def ppf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        return self.fixed_s + self.base.ppf(q, load)

    def isf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """Return the seconds that are exceeded with chance ``q``; see :class:`~emuml.theory.seams.HeavyLaw`."""
        return self.fixed_s + _isf(self.base, check_quantiles(q), load)

    def atoms(self, load: float = 1.0) -> Floats | None:
        """Return all durations in seconds, ascending, each once; None if they are not finitely many."""
        found = atoms_of(self.base, load)
        return None if found is None else self.fixed_s + found
