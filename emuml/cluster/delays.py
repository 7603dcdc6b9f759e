"""Recorded delays as laws: replayed in their order, or drawn anew by whole rounds; and those of ErasureHead's program.

A recorded round is a row: what all workers took at one time. Drawing whole rows keeps what workers have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import ArrayLike, NDArray

from emuml import _kernels
from emuml.cluster.compute import LEAST_S, MOST_S, check_quantiles
from emuml.cluster.delay_files import Recording, read
from emuml.durations import Durations, Floats, Sampler
from emuml.errors import RunFailed, UserError
from emuml.memory import rebuilt, sealed
from emuml.node import NodeId
from emuml.spec import check
from emuml.streams import halves, stream_key

ERASUREHEAD_ENTRIES_MAX = 10_000_000
_WHERE = "delay-trace.array"
_ALLOWED = "seconds from 0 to 1e12, of shape (rounds, workers)"


@dataclass(frozen=True, eq=False)
class DelayTrace:
    """Recorded durations: draw k of worker w takes what was recorded of it in round k, or in a round drawn by the seed.

    Theory is answered as if durations were drawn independently from all entries with equal chance: it does not know
    that some worker is slower than others, or that rounds are slow for all.

    Parameters
    ----------
    array : ndarray of shape (rounds, workers), str or Path
        Seconds, from 0 to 1e12; copied. Text names a file: a table in text, a line for each round and a column for each
        worker (comma, semicolon, tab or blanks; a header may be there), ``.npy``, or ``.npz`` with one array. It is
        read at once; a run keeps the numbers.
    load : {"ignored", "scaled"}
        Whether the load multiplies the durations, which then are those of one share of the data. If it is ignored,
        three shares take no longer than one, and redundant work costs no time.
    order : {"recorded", "resampled"}
        Whether draw k is row k, or a row drawn with replacement by the seed, the same one for all workers. Resampled
        rounds never end, and seeds are replicates: a bootstrap over rounds.
    missing : {"refused", "drop-rounds"}
        Whether rounds with a missing value are an error or left out.

    Raises
    ------
    UserError
        If the array or file is not of that kind, with the place in it; by a sampler, if a worker lies outside the
        trace. A draw outside it raises :class:`~emuml.errors.RunFailed`.

    Examples
    --------
    >>> trace = DelayTrace(np.array([[0.5, 0.25], [1.0, 0.75]]), load="scaled")
    >>> trace.sampler(seed=0, node=NodeId("worker", 1))(1, 2.0)
    1.5
    """

    array: NDArray[np.float64] | str | Path
    load: Literal["ignored", "scaled"] = "ignored"
    order: Literal["recorded", "resampled"] = "recorded"
    missing: Literal["refused", "drop-rounds"] = "refused"
    source: str = field(default="", init=False, compare=False, repr=False)
    """Which file it was read from, and what was left out; for provenance."""

    def __post_init__(self) -> None:
        found = read(Path(self.array), _WHERE) if isinstance(self.array, str | Path) else None
        given = _numbers(self.array if found is None else found.array, found)
        drops = self.missing == "drop-rounds"
        _check(given, found, drops)
        delays = given[~np.isnan(given).any(axis=1)] if drops else given
        if not len(delays):
            raise UserError("every round has a missing value", _WHERE, _ALLOWED)
        object.__setattr__(self, "array", sealed(delays))
        if found is not None:
            object.__setattr__(self, "source", _source(found, len(given), delays))
        check(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DelayTrace):
            return NotImplemented
        return self._settings == other._settings and np.array_equal(self.delays, other.delays)

    def __hash__(self) -> int:
        return hash((self._settings, self.delays.shape, self.delays.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return *rebuilt(self), {"source": self.source}

    @property
    def _settings(self) -> tuple[str, ...]:
        return self.load, self.order, self.missing

    @property
    def delays(self) -> Floats:
        """The recorded seconds, shape (rounds, workers), read-only."""
        return cast("Floats", self.array)

    @property
    def extent(self) -> tuple[int | None, int]:
        """How many draws and how many workers there are durations for; None for draws without end."""
        rounds, workers = self.delays.shape
        return None if self.order == "resampled" else rounds, workers

    def sampler(self, seed: int, node: NodeId) -> Sampler:
        """See :class:`ComputeModel`; the column is the node's index, the seed is used for resampled rounds only."""
        row = self._row(seed, node)
        column = self.delays[:, node.index].tolist()
        if self.load == "scaled":
            return lambda draw, load: float(load * column[row(draw)])
        return lambda draw, load: float(column[row(draw)])

    def vector(self, seed: int, workers: int) -> Durations:
        """See :class:`~emuml.durations.VectorLaw`."""
        # The first worker that is not in the trace is the one to name; if all are, an error names the first of all.
        width = self.delays.shape[1]
        row = self._row(seed, NodeId("worker", width if workers > width else 0))
        delays = self.delays[:, :workers]

        def fill(draw: int, load: float, out: Floats) -> None:
            np.multiply(self._factor(load), delays[row(draw)], out=out)

        return fill

    def mean(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        return self._factor(load) * float(self.delays.mean())

    def variance(self, load: float = 1.0) -> float:
        """See :class:`ComputeModel`."""
        return self._factor(load) ** 2 * float(self.delays.var())

    def cdf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`ComputeModel`."""
        entries = self._entries(load)
        return np.asarray(np.searchsorted(entries, np.asarray(t, np.float64), side="right") / entries.size)

    def ppf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """See :class:`ComputeModel`."""
        entries = self._entries(load)
        levels = np.arange(1, entries.size + 1) / entries.size
        return np.asarray(entries[np.searchsorted(levels, check_quantiles(q), side="left")])

    def atoms(self, load: float = 1.0) -> Floats:
        """Return all durations in seconds, ascending, each once."""
        return np.unique(self._entries(load))

    def _row(self, seed: int, node: NodeId) -> Callable[[int], int]:
        """Return what gives the row of a draw, for a node that is in the trace."""
        rounds, workers = self.delays.shape
        if node.index >= workers:
            raise UserError(f"{node} is not in the delay trace", _WHERE, f"worker indices below {workers}")
        return _recorded(node, rounds) if self.order == "recorded" else _resampled(seed, rounds)

    def _entries(self, load: float) -> Floats:
        """Return all durations in seconds, ascending: the products that a sampler returns."""
        return self._factor(load) * np.sort(self.delays, axis=None)

    def _factor(self, load: float) -> float:
        return load if self.load == "scaled" else 1.0


def _recorded(node: NodeId, rounds: int) -> Callable[[int], int]:
    """Return what gives the row of a draw: its own."""

    def row(draw: int) -> int:
        if not 0 <= draw < rounds:
            raise RunFailed(f"{node} asks for draw {draw} of a delay trace that has draws 0 to {rounds - 1}")
        return draw

    return row


def _resampled(seed: int, rounds: int) -> Callable[[int], int]:
    """Return what draws the row of a draw by its position, for all workers alike and with equal chances."""
    low, high = halves(stream_key(seed, "", "compute/rounds"))
    # The high half of word * rounds: chances differ by no more than 2**-64.
    return lambda draw: (_kernels.word(low, high, draw) * rounds) >> 64


def _numbers(given: Any, found: Recording | None) -> Floats:
    """Return a copy of a table of numbers, of shape (rounds, workers)."""
    of = f" in {found.path}" if found else ""
    try:
        array = np.asarray(given)
        if array.dtype.kind == "c":
            raise ValueError("complex numbers")  # whose imaginary parts numpy would drop
        if array.dtype.kind in "SU":
            raise ValueError("text")  # which numpy would read as numbers
        delays = np.array(array, np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise UserError(f"not an array of numbers{of} ({error})", _WHERE, _ALLOWED) from None
    if delays.ndim != 2 or delays.size == 0:
        raise UserError(f"got shape {delays.shape}{of}", _WHERE, _ALLOWED)
    return delays


def _check(delays: Floats, found: Recording | None, drops: bool) -> None:
    """Refuse what is no delay; missing values pass if their rounds are dropped."""
    is_right = (delays >= 0) & (delays <= MOST_S)
    wrong = np.argwhere(~(is_right | np.isnan(delays)) if drops else ~is_right)
    if len(wrong):
        draw, worker = map(int, wrong[0])
        value = float(delays[draw, worker])
        place = found.place(draw, worker) if found else f"entry [{draw}, {worker}]"
        hint = "missing: drop-rounds leaves such rounds out" if np.isnan(value) else ""
        raise UserError(f"{place} is {'missing' if hint and found else value}", _WHERE, _ALLOWED, hint)


def _source(found: Recording, rounds: int, kept: Floats) -> str:
    dropped = f", {rounds - len(kept)} rounds with missing values left out" if len(kept) < rounds else ""
    return f"file {found.path} (SHA-256 {found.sha256}), {len(kept)} rounds x {kept.shape[1]} workers{dropped}"


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

    load: ClassVar[Literal["ignored", "scaled"]] = "ignored"

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

    def vector(self, seed: int, workers: int) -> Durations:
        """See :class:`~emuml.durations.VectorLaw`."""
        return self.trace.vector(seed, workers)

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
