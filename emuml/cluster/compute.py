"""How long workers compute: laws for the emulator to draw from, which also answer theory's questions.

A law gives the duration of draw number k of a worker by position, so durations depend on nothing but (seed, worker,
k): engines, batching and laziness cannot move them. Durations are built from IEEE ``+ - * /`` on raw draws, in one
fixed order; ``cdf`` and ``ppf`` serve theory and calibration and may use the platform's ``exp`` and ``log``.

``load`` is dimensionless: the cost of a task over the cost of a worker's equal share of one full pass over the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, Protocol

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import ArrayLike, NDArray

from emuml import _kernels
from emuml.errors import RunFailed, UserError
from emuml.node import NodeId
from emuml.spec import check
from emuml.streams import halves, stream_key

Sampler = Callable[[int, float], float]
"""Maps (draw, load) to seconds: pure, so that the same draw always takes the same time."""

Floats = NDArray[np.float64]

LEAST_S, MOST_S = 1e-12, 1e12
"""Bounds of declared times in seconds: beyond them the sums and squares that theory takes are no numbers any more."""
ERASUREHEAD_ENTRIES_MAX = 10_000_000


class ComputeModel(Protocol):
    """What every compute law answers; times are in seconds, ``load`` is dimensionless and positive.

    A law of finitely many durations may answer ``atoms(load)``, too: all of them in seconds, ascending, each once. Its
    moments in theory are exact then.
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


@dataclass(frozen=True, eq=False)
class DelayTrace:
    """Replay of recorded durations: draw k of worker w takes ``array[k, w]`` seconds, whatever its load.

    Theory is answered as if durations were drawn independently from all entries with equal chance.

    Parameters
    ----------
    array : ndarray, shape (rounds, workers)
        Seconds, from 0 to 1e12; copied.

    Raises
    ------
    UserError
        If the array is not of that kind; by a sampler, if a draw or a worker lies outside the trace.

    Examples
    --------
    >>> trace = DelayTrace(np.array([[0.5, 0.25], [1.0, 0.75]]))
    >>> trace.sampler(seed=0, node=NodeId("worker", 1))(1, 1.0)
    0.75
    """

    array: NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "array", _delays(self.array))
        check(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DelayTrace):
            return NotImplemented
        return np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))

    def __reduce__(self) -> tuple[type[DelayTrace], tuple[Floats]]:
        # Arrays come out of a pickle writable; building anew makes them read-only again.
        return DelayTrace, (self.array,)

    @property
    def extent(self) -> tuple[int, int]:
        """How many draws and how many workers there are durations for."""
        return self.array.shape[0], self.array.shape[1]

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`ComputeModel`; the column is the node's index, the seed is not used."""
        rounds, workers = self.array.shape
        if node.index >= workers:
            raise UserError(f"{node} is not in the delay trace", "delay-trace.array", f"worker indices below {workers}")
        column = self.array[:, node.index].tolist()

        def duration_s(draw: int, load: float) -> float:
            if not 0 <= draw < rounds:
                raise RunFailed(f"{node} asks for draw {draw} of a delay trace that has draws 0 to {rounds - 1}")
            return float(column[draw])

        return duration_s

    def mean(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        return float(self.array.mean())

    def variance(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        return float(self.array.var())

    def cdf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`ComputeModel`."""
        entries = np.sort(self.array, axis=None)
        return np.asarray(np.searchsorted(entries, np.asarray(t, np.float64), side="right") / entries.size)

    def ppf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`ComputeModel`."""
        entries = np.sort(self.array, axis=None)
        levels = np.arange(1, entries.size + 1) / entries.size
        return np.asarray(entries[np.searchsorted(levels, check_quantiles(q), side="left")])

    def atoms(self, load: float = 1.0) -> Floats:
        """Return all recorded durations in seconds, ascending, each once."""
        return np.unique(self.array)


def _delays(given: ArrayLike) -> Floats:
    """Return a read-only copy of a delay trace, or say what is wrong with it."""
    where, allowed = "delay-trace.array", "seconds from 0 to 1e12, of shape (rounds, workers)"
    try:
        delays = np.array(given, np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise UserError(f"not an array of numbers ({error})", where, allowed) from None
    if delays.ndim != 2 or delays.size == 0:
        raise UserError(f"got shape {delays.shape}", where, allowed)
    wrong = np.argwhere(~((delays >= 0) & (delays <= MOST_S)))
    if len(wrong):
        draw, worker = (int(index) for index in wrong[0])
        raise UserError(f"entry [{draw}, {worker}] is {delays[draw, worker]}", where, allowed)
    delays.setflags(write=False)
    return delays


@dataclass(frozen=True)
class ErasureHeadDelays:
    """The delays that the program of ErasureHead has built in, as a law: see :func:`erasurehead_delays`.

    Parameters
    ----------
    rounds, workers : int
        Size of the trace, > 0; at most ten million delays in all.
    mean_s : float
        Mean delay in seconds, from 1e-12 to 1e12.
    """

    rounds: Annotated[int, Gt(0)] = 100
    workers: Annotated[int, Gt(0)] = 30
    mean_s: Annotated[float, Ge(LEAST_S), Le(MOST_S)] = 0.5

    def __post_init__(self) -> None:
        check(self)
        if self.rounds * self.workers > ERASUREHEAD_ENTRIES_MAX:
            most = max(ERASUREHEAD_ENTRIES_MAX // self.workers, 1)
            what = f"{self.rounds} rounds of {self.workers} workers are more than ten million delays"
            raise UserError(what, "ErasureHeadDelays.rounds", f"an integer in 1..{most}")

    @property
    def extent(self) -> tuple[int, int]:
        """How many draws and how many workers there are durations for."""
        return self.rounds, self.workers

    @cached_property
    def trace(self) -> DelayTrace:
        """The delays as a trace."""
        return DelayTrace(erasurehead_delays(self.rounds, self.workers, self.mean_s))

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`ComputeModel` and :class:`DelayTrace`."""
        return self.trace.sampler(seed, node)

    def mean(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        return self.trace.mean(load)

    def variance(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        return self.trace.variance(load)

    def cdf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`ComputeModel`."""
        return self.trace.cdf(t, load)

    def ppf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`ComputeModel`."""
        return self.trace.ppf(q, load)

    def atoms(self, load: float = 1.0) -> Floats:
        """See :class:`DelayTrace`."""
        return self.trace.atoms(load)


def erasurehead_delays(rounds: int = 100, workers: int = 30, mean_s: float = 0.5) -> Floats:
    """Return the delays that the program of ErasureHead makes its workers sleep.

    Round i seeds numpy's legacy generator with i and draws one exponential per worker. They are independent of the
    load and come after the gradient was computed.

    Parameters
    ----------
    rounds, workers : int
        Size of the trace.
    mean_s : float
        Mean delay in seconds.

    Returns
    -------
    ndarray of float64, shape (rounds, workers)
        Seconds.

    References
    ----------
    ErasureHead, arXiv:1901.09671, and its program (hwang595/ErasureHead).

    Examples
    --------
    >>> erasurehead_delays()[0, :2]
    array([0.39793725, 0.62796538])
    """
    # The legacy generator is frozen by numpy's promise of compatibility, which this trace depends on.
    return np.stack([np.random.RandomState(i).exponential(mean_s, workers) for i in range(rounds)])
