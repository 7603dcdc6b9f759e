"""Laws under which workers differ or have something in common: classes of speed, slow spells, shared draws.

Each changes the draws of another law, its ``base``. ``mean``, ``variance``, ``cdf`` and ``ppf`` are those of one draw
of a worker that one knows nothing of; ``dependence`` says what several draws have in common, and closed forms that take
workers to be independent and alike refuse such laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from numpy.typing import NDArray

from emuml import _kernels
from emuml.cluster.compute import ComputeModel
from emuml.cluster.mixtures import Mixed, Over, Part, chosen, dependence_of
from emuml.durations import Durations, Floats, Sampler, durations
from emuml.errors import UserError
from emuml.node import NodeId
from emuml.spec import check
from emuml.streams import halves, stream_key, stream_keys

Factor = Annotated[float, Ge(0.001), Le(1000)]
ALWAYS = "some workers are always slower than others"


def _stretched(base: Durations, factors: Floats) -> Durations:
    def fill(draw: int, load: float, out: Floats) -> None:
        base(draw, load, out)
        out *= factors

    return fill


@dataclass(frozen=True)
class WorkerFactors(Over, Mixed):
    """Workers that are slower than others for good, by their numbers: ``factor * base``.

    Parameters
    ----------
    base : declaration of a compute law
        What a worker of factor 1 takes.
    factors : list of float
        Worker ``w`` has factor number ``w`` of these, from 0.001 to 1000; they begin again where they end.

    Examples
    --------
    >>> from emuml.cluster import Constant
    >>> law = WorkerFactors(base=Constant(1.0), factors=(1.0, 1.0, 2.5))
    >>> [law.sampler(0, NodeId("worker", w))(0, 1.0) for w in range(4)], law.mean()
    ([1.0, 1.0, 2.5, 1.0], 1.5)
    """

    base: ComputeModel
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        check(self)
        if not self.factors:
            raise UserError("there is none", "WorkerFactors.factors", "at least one factor")

    @property
    def dependence(self) -> str:
        """Nothing but the base's if all factors are equal."""
        return ALWAYS if len(set(self.factors)) > 1 else dependence_of(self.base)

    def parts(self) -> Sequence[Part]:
        """Return the law of each factor, as if a worker were drawn from one turn of the list."""
        share = 1.0 / len(self.factors)
        return [Part(share * self.factors.count(factor), self.base, factor) for factor in sorted(set(self.factors))]

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        factor, of_base = self.factors[node.index % len(self.factors)], self.base.sampler(seed, node)
        return lambda draw, load: factor * of_base(draw, load)

    def vector(self, seed: int, workers: int) -> Durations:
        """See :class:`~emuml.durations.VectorLaw`."""
        return _stretched(durations(self.base, seed, workers), np.resize(np.array(self.factors), workers))


@dataclass(frozen=True)
class SpeedClasses(Over, Mixed):
    """Workers of several classes of speed, drawn once for each worker by the seed: ``factor * base``.

    Parameters
    ----------
    base : declaration of a compute law
        What a worker of factor 1 takes.
    factors : list of float
        One of each class, from 0.001 to 1000.
    shares : list of float
        Chance of each class, above 0; they sum to 1.

    Examples
    --------
    >>> from emuml.cluster import Constant
    >>> law = SpeedClasses(base=Constant(1.0), factors=(1.0, 3.0), shares=(0.75, 0.25))
    >>> [law.worker_factor(7, NodeId("worker", w)) for w in range(6)], law.mean()
    ([1.0, 1.0, 1.0, 3.0, 1.0, 3.0], 1.5)
    """

    base: ComputeModel
    factors: tuple[Factor, ...]
    shares: tuple[Annotated[float, Gt(0), Le(1)], ...]

    def __post_init__(self) -> None:
        check(self)
        if len(self.factors) != len(self.shares) or not self.factors:
            what = f"{len(self.factors)} factors and {len(self.shares)} shares"
            raise UserError(what, "SpeedClasses.shares", "a share for each factor")
        if abs(sum(self.shares) - 1.0) > 1e-9:
            raise UserError(f"they sum to {sum(self.shares):g}", "SpeedClasses.shares", "shares that sum to 1")

    @property
    def dependence(self) -> str:
        """Nothing but the base's if all factors are equal."""
        return ALWAYS if len(set(self.factors)) > 1 else dependence_of(self.base)

    def parts(self) -> Sequence[Part]:
        """See the base."""
        total = sum(self.shares)
        return [Part(share / total, self.base, factor) for share, factor in zip(self.shares, self.factors, strict=True)]

    def worker_factor(self, seed: int, node: NodeId) -> float:
        """Return the factor of a worker's class."""
        low, high = halves(stream_key(seed, "", f"speed/{node}"))
        return float(self._factors(np.array([_kernels.word(low, high, 0)], np.uint64))[0])

    def _factors(self, words: NDArray[np.uint64]) -> Floats:
        reached = [chosen(words, edge) for edge in accumulate(self.shares[:-1])]
        return np.asarray(np.select(reached, self.factors[:-1], self.factors[-1]), np.float64)

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        factor, of_base = self.worker_factor(seed, node), self.base.sampler(seed, node)
        return lambda draw, load: factor * of_base(draw, load)

    def vector(self, seed: int, workers: int) -> Durations:
        """See :class:`~emuml.durations.VectorLaw`."""
        words = np.empty(workers, np.uint64)
        _kernels.key_words(*stream_keys(seed, "", "speed/worker-", workers), 0, words)
        return _stretched(durations(self.base, seed, workers), self._factors(words))


@dataclass(frozen=True)
class MarkovSlowness(Over, Mixed):
    """Workers that become slow for a while, and fast again: ``factor * base`` in slow spells, ``base`` outside.

    Between two draws a fast worker becomes slow with chance ``enter``, and a slow one fast with chance ``leave``; each
    starts as if that had always gone on. So a slow spell lasts ``1 / leave`` draws on average, and a share
    ``enter / (enter + leave)`` of all draws is slow.

    Parameters
    ----------
    base : declaration of a compute law
        What a worker takes outside slow spells.
    factor : float
        Of slow draws, from 0.001 to 1000.
    enter, leave : float
        Above 0, and together at most 1, where draws no longer remember the one before.

    Notes
    -----
    A draw's number ``u`` in [0, 1) makes it slow below ``enter``, fast from ``1 - leave`` on, and as it was in between:
    so the state at a draw is that of the last one that did not leave it as it was, and is found without those before.

    Examples
    --------
    >>> from emuml.cluster import Constant
    >>> law = MarkovSlowness(base=Constant(1.0), factor=5.0, enter=0.05, leave=0.2)
    >>> law.mean()
    1.8
    """

    base: ComputeModel
    factor: Factor
    enter: Annotated[float, Gt(0), Lt(1)]
    leave: Annotated[float, Gt(0), Lt(1)]

    def __post_init__(self) -> None:
        check(self)
        if self.enter + self.leave > 1.0:
            what = f"{self.enter:g} and {self.leave:g} sum to more than 1"
            raise UserError(what, "MarkovSlowness.leave", f"at most {1.0 - self.enter:g}")

    @property
    def slow_share(self) -> float:
        """Share of draws that are slow."""
        return self.enter / (self.enter + self.leave)

    @property
    def dependence(self) -> str:
        """Nothing but the base's if slow draws are no slower, or do not remember the one before."""
        is_none = self.factor == 1.0 or self.enter + self.leave == 1.0
        return dependence_of(self.base) if is_none else "slow workers stay slow for a while"

    def parts(self) -> Sequence[Part]:
        """See the base."""
        return Part(1.0 - self.slow_share, self.base), Part(self.slow_share, self.base, self.factor)

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        low, high = halves(stream_key(seed, "", f"slowness/{node}"))
        enter, stays, uniform, of_base = self.enter, 1.0 - self.leave, _kernels.uniform, self.base.sampler(seed, node)
        at_first = halves(stream_key(seed, "", f"slowness-start/{node}"))
        is_slow_at_first = uniform(*at_first, 0) < self.slow_share

        def is_slow(draw: int) -> bool:
            for earlier in range(draw, 0, -1):
                u = uniform(low, high, earlier)
                if u < enter or u >= stays:
                    return u < enter
            return is_slow_at_first

        return lambda draw, load: (self.factor if is_slow(draw) else 1.0) * of_base(draw, load)

    def vector(self, seed: int, workers: int) -> Durations:
        """See :class:`~emuml.durations.VectorLaw`."""
        of_base, lows_highs = durations(self.base, seed, workers), stream_keys(seed, "", "slowness/worker-", workers)
        words = np.empty(workers, np.uint64)
        _kernels.key_words(*stream_keys(seed, "", "slowness-start/worker-", workers), 0, words)
        at_first = chosen(words, self.slow_share)
        known, slow = 0, at_first  # the state at a draw, which the next one goes on from

        def numbers(draw: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
            """Return whom a draw makes slow, and whom it does not make fast."""
            _kernels.key_words(*lows_highs, draw, words)
            return chosen(words, self.enter), chosen(words, 1.0 - self.leave)

        def looked_up(draw: int) -> NDArray[np.bool_]:
            found, is_open = at_first.copy(), np.ones(workers, np.bool_)
            for earlier in range(draw, 0, -1):
                enters, stays = numbers(earlier)
                decides = is_open & (enters | ~stays)
                found[decides] = enters[decides]
                is_open &= ~decides
                if not is_open.any():
                    break
            return found

        def fill(draw: int, load: float, out: Floats) -> None:
            nonlocal known, slow
            if draw == known + 1:
                enters, stays = numbers(draw)
                slow = enters | (slow & stays)
            elif draw != known:
                slow = looked_up(draw)
            known = draw
            of_base(draw, load, out)
            out *= np.where(slow, self.factor, 1.0)

        return fill


@dataclass(frozen=True)
class SharedDraws(Over, Mixed):
    """Workers of a group that sometimes all take the same time: a rack whose members are slow together.

    With chance ``share`` a draw number of a group is common: all of its workers then take one draw of the base that
    belongs to the group. Otherwise each takes its own. A worker for itself has the base's law, and two draws of one
    number in a group are correlated by ``share``.

    Parameters
    ----------
    base : declaration of a compute law
        With independent draws of its own.
    group : int
        Workers in a group, at least 1: those of numbers 0 to ``group - 1``, and so on.
    share : float
        0 < share <= 1.

    Examples
    --------
    >>> from emuml.cluster import ShiftedExponential
    >>> law = SharedDraws(base=ShiftedExponential(0.05, 0.5), group=2, share=1.0)
    >>> seconds = [law.sampler(7, NodeId("worker", w))(0, 1.0) for w in range(3)]
    >>> seconds[0] == seconds[1] != seconds[2]
    True
    """

    base: ComputeModel
    group: Annotated[int, Ge(1)]
    share: Annotated[float, Gt(0), Le(1)]

    def __post_init__(self) -> None:
        check(self)
        why = dependence_of(self.base) or ("its delays are recorded" if hasattr(self.base, "extent") else "")
        if why:
            raise UserError(f"of its base, {why}", "SharedDraws.base", "a law of independent draws")

    @property
    def dependence(self) -> str:
        """Nothing if groups are single workers."""
        return "workers of a group are slow together" if self.group > 1 else ""

    def parts(self) -> Sequence[Part]:
        """Return the base alone."""
        return (Part(1.0, self.base),)

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`~emuml.cluster.compute.ComputeModel`."""
        group, uniform, share = node.index // self.group, _kernels.uniform, self.share
        low, high = halves(stream_key(seed, "", f"shared/group-{group}"))
        own, common = self.base.sampler(seed, node), self.base.sampler(_group_seed(seed), NodeId(node.role, group))
        return lambda draw, load: (common if uniform(low, high, draw) < share else own)(draw, load)

    def vector(self, seed: int, workers: int) -> Durations:
        """See :class:`~emuml.durations.VectorLaw`."""
        groups = -(-workers // self.group)
        own, common = durations(self.base, seed, workers), durations(self.base, _group_seed(seed), groups)
        lows, highs = stream_keys(seed, "", "shared/group-", groups)
        words, of_groups = np.empty(groups, np.uint64), np.empty(groups)
        group_of = np.arange(workers) // self.group

        def fill(draw: int, load: float, out: Floats) -> None:
            own(draw, load, out)
            common(draw, load, of_groups)
            _kernels.key_words(lows, highs, draw, words)
            np.copyto(out, of_groups[group_of], where=chosen(words, self.share)[group_of])

        return fill


def _group_seed(seed: int) -> int:
    """Return a seed for what groups draw, so that it is nobody's own."""
    return halves(stream_key(seed, "", "shared"))[0]
