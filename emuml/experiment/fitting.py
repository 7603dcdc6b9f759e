"""What must fit before a run starts: all of it is looked at before anything is refused, and before anything is written.

An experiment is checked when it is declared; here the data are loaded and the engine is asked what it can execute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from emuml.errors import UserError, did_you_mean
from emuml.protocol import Problem

if TYPE_CHECKING:
    from emuml.cluster.faults import Fault
    from emuml.experiment.experiment import Experiment

T = TypeVar("T")


class Misfit(NamedTuple):
    """What is wrong, and the part of the experiment (``"workload"``, ``"faults[2]"``) that was asked when it showed."""

    part: str
    error: UserError


class Unfit(UserError):
    """Parts of an experiment that do not fit each other, the data or the engine: all that were found.

    Parameters
    ----------
    misfits : tuple of Misfit
        At least one; the other attributes are those of the first.
    """

    def __init__(self, misfits: tuple[Misfit, ...]) -> None:
        Exception.__init__(self, misfits)
        self.misfits = misfits
        first = misfits[0].error
        self.what, self.where, self.allowed, self.hint = first.what, first.where, first.allowed, first.hint

    @property
    def problems(self) -> tuple[str, ...]:
        """A line for each."""
        return tuple(dict.fromkeys(str(misfit.error) for misfit in self.misfits))

    def __str__(self) -> str:
        return "\n".join(self.problems)


class Fitting:
    """Asks one question after the other, and refuses at the end."""

    def __init__(self) -> None:
        self._misfits: list[Misfit] = []

    def ask(self, part: str, question: Callable[..., T], *arguments: Any) -> T | None:
        """Return the answer, or None if it was refused, which is noted."""
        try:
            return question(*arguments)
        except UserError as error:
            self.note(part, error)
        except MemoryError as error:
            self.note(part, UserError(f"does not fit into memory{f' ({error})' if str(error) else ''}", part))
        return None

    def note(self, part: str, error: UserError) -> None:
        """Note what was refused."""
        self._misfits += error.misfits if isinstance(error, Unfit) else [Misfit(part, error)]

    def settle(self) -> None:
        """Refuse what was noted.

        Raises
        ------
        Unfit
            If there is anything.
        """
        if self._misfits:
            raise Unfit(tuple(self._misfits)) from self._misfits[0].error


def prepare(experiment: Experiment, engine: str = "des") -> Problem:
    """Return the problem of an experiment, with everything checked that can be before anything is written or started.

    Parameters
    ----------
    experiment : Experiment
    engine : {"des", "tcp"}

    Raises
    ------
    Unfit
        Naming everything that the engine, the data or the protocol refuse.
    """
    fitting = Fitting()
    problem: Problem | None = fitting.ask("workload", experiment.workload.problem, experiment.seed)
    for error in _fault_problems(experiment, engine):
        fitting.note(error.where.rpartition(".")[0], error)
    if problem is not None:
        fitting.ask("stop", _check_metrics, experiment, problem, fitting)
        fitting.ask("protocol", experiment.protocol.nodes, problem, experiment.roster())  # asks for the partitions
    fitting.settle()
    assert problem is not None
    return problem


def _fault_problems(experiment: Experiment, engine: str) -> list[UserError]:
    """Return what the plan of faults asks of nodes that are not there, or of an engine that cannot do it."""
    supported: tuple[type[Fault], ...]
    if engine == "des":
        from emuml.des.faults import SUPPORTED as supported
    else:
        from emuml.runtime.faults import SUPPORTED as supported
    return experiment.faults.problems(experiment.roster().ids, supported, engine)


def _check_metrics(experiment: Experiment, problem: Problem, fitting: Fitting) -> None:
    """Refuse a stop condition on a metric that this workload does not have: it would never be reached."""
    watched = experiment.stop_condition().watched()
    known = problem.metrics(problem.initial) if watched else {}
    for name in sorted(watched - known.keys()):
        hint = did_you_mean(name, known)
        fitting.note("stop", UserError(f"{name!r} is no metric here", "stop.metric", ", ".join(known), hint))
