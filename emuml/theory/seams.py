"""What theory needs to know of codes and compute laws, as the questions that they answer.

Theory imports neither protocols nor clusters: it takes any object that answers these, and raises
:class:`NoClosedForm` for what it cannot answer. Nothing here computes.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emuml.errors import UserError
from emuml.shapes import StopRule


class NoClosedForm(UserError):
    """A question of theory that nobody has answered in closed form, as far as we know."""


class ComputeLaw(Protocol):
    """The law of one worker's time for one answer; workers and rounds are independent."""

    def cdf(self, t: ArrayLike, load: float = 1.0) -> NDArray[np.float64]:
        """Return the chance of a time of at most ``t`` seconds, in the shape of ``t``."""
        ...

    def ppf(self, q: ArrayLike, load: float = 1.0) -> NDArray[np.float64]:
        """Return quantiles in seconds, in the shape of ``q``, for a load in units of ``1/workers`` of the data."""
        ...


@runtime_checkable
class AtomicLaw(Protocol):
    """A law that may say that its times are finitely many values: recorded or constant ones, with exact moments."""

    def cdf(self, t: ArrayLike, load: float = 1.0) -> NDArray[np.float64]:
        """Return the chance of a time of at most ``t`` seconds, in the shape of ``t``."""
        ...

    def atoms(self, load: float = 1.0) -> NDArray[np.float64] | None:
        """Return all possible times in seconds, ascending, each once; None if the law is not of that kind."""
        ...


@runtime_checkable
class ShiftedExponentialLaw(Protocol):
    """A law with closed forms: a fixed part ``load * shift_s`` and an exponential tail of mean ``mean_s``.

    ``tail`` is ``"fixed"`` when the load does not scale the tail (model A) and ``"scaled"`` when it does (model B).
    """

    @property
    def shift_s(self) -> float:
        """Seconds per unit of load that always pass."""
        ...

    @property
    def mean_s(self) -> float:
        """Mean of the tail in seconds."""
        ...

    @property
    def tail(self) -> str:
        """Whether the load scales the tail."""
        ...


@runtime_checkable
class HeavyLaw(Protocol):
    """A law whose tail is a power of time, so that a moment may be infinite; its quantiles are told far out, too."""

    @property
    def tail_index(self) -> float:
        """The ``a`` of a chance that falls like ``t ** -a``: powers of a time below ``a`` have a mean."""
        ...

    def isf(self, q: ArrayLike, load: float = 1.0) -> NDArray[np.float64]:
        """Return the seconds that are exceeded with chance ``q``, in the shape of ``q``, also for tiny chances."""
        ...


@runtime_checkable
class DependentLaw(Protocol):
    """A law under which workers, or the draws of one, have something to do with each other.

    Its ``mean``, ``variance``, ``cdf`` and ``ppf`` are those of one draw of a worker that one knows nothing of. What
    several draws have in common is for :mod:`emuml.theory.sample`, or for a run.
    """

    @property
    def dependence(self) -> str:
        """What they have in common, as the end of a sentence; empty if draws are independent and alike after all."""
        ...


def check_independent(law: object) -> None:
    """Refuse a law that is not that of independent and equal workers and rounds.

    Raises
    ------
    NoClosedForm
        Which says what is in the way.
    """
    dependence = law.dependence if isinstance(law, DependentLaw) else ""
    if dependence:
        hint = "emuml.theory.sample draws times without a run"
        raise NoClosedForm(f"no closed form is known where {dependence}", "compute", "a law of independent draws", hint)


class BuiltCode(Protocol):
    """A code for a known number of workers; all of them carry the same load."""

    @property
    def load(self) -> float:
        """Work of each worker, in units of ``1/workers`` of the data."""
        ...

    def stop_rule(self) -> StopRule:
        """Return when a round closes."""
        ...


def check_equal_loads(built: BuiltCode) -> None:
    """Refuse a code of which some workers compute more than others.

    Raises
    ------
    NoClosedForm
        Which says how much they compute.
    """
    loads = getattr(built, "loads", None)
    if loads is not None and loads.min() < loads.max():
        raise NoClosedForm(
            f"no closed form is known where workers have loads from {loads.min():g} to {loads.max():g}",
            "code",
            "codes of which all workers compute equally much",
            "plans and runs take each worker at its load",
        )


@runtime_checkable
class GroupedCode(Protocol):
    """A built code of disjoint groups of workers, any answer of a group standing for its block of the data."""

    @property
    def workers(self) -> int:
        """Number of workers."""
        ...

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Workers in each group."""
        ...

    @property
    def block(self) -> int:
        """Partitions that each group holds."""
        ...

    @property
    def scale(self) -> str:
        """Factor on the sum of the groups that answered: ``"none"``, ``"unbiased"`` or ``"covered"``."""
        ...

    @property
    def collect(self) -> int | None:
        """Answers at which a round closes at the latest."""
        ...


@runtime_checkable
class OneStepDecoder(Protocol):
    """A decoder that gives every answer the same weight."""

    def weight(self, responders: int) -> float:
        """Return the weight of each answer if there are so many."""
        ...


class Code(Protocol):
    """A declaration of a code."""

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> BuiltCode:
        """Return the code for so many workers."""
        ...


@runtime_checkable
class ExactCode(Protocol):
    """A built code that gives the gradient exactly as long as no more than so many answers are missing."""

    @property
    def workers(self) -> int:
        """Number of workers."""
        ...

    @property
    def stragglers(self) -> int:
        """How many answers may be missing."""
        ...

    def stop_rule(self) -> StopRule:
        """Return when a round closes."""
        ...


class StartBarrier(Protocol):
    """When workers may begin their iterations, and whether updates are steps of all workers."""

    @property
    def slack(self) -> int | None:
        """How many iterations a worker may be ahead of the slowest when it starts one; ``None``: any number."""
        ...

    @property
    def in_step(self) -> bool:
        """Whether the pushes of one iteration are one update."""
        ...
