"""What must fit before a run starts: all of it is looked at before anything is refused, and before anything is written.

An experiment is checked when it is declared; here the data are loaded and the engine is asked what it can execute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from emuml.errors import UserError, did_you_mean
from emuml.protocol import Problem

if TYPE_CHECKING:
    from collections.abc import Collection

    from emuml.cluster.faults import Fault, FaultPlan
    from emuml.experiment.experiment import Experiment
    from emuml.roster import Roster

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
    for error in fitting.ask("faults", _fault_problems, experiment, engine) or ():
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
    plan, roster = experiment.fault_plan(), experiment.roster()
    found = plan.problems(roster.ids, supported, engine)
    if engine == "des" and not experiment.cluster.shares_nothing:
        from emuml.des.faults import problems_where_shared

        found += problems_where_shared(plan)
    if plan is experiment.faults:  # what is drawn may go on after the end
        found += _after_the_end(plan, experiment.stop_condition().seconds_max())
    return found + _without_survivors(plan, roster, getattr(experiment.protocol, "survives", None))


def _after_the_end(plan: FaultPlan, limit_s: float | None) -> list[UserError]:
    """Return faults at times at which the run is over, for certain."""
    if limit_s is None:
        return []
    late = [(i, getattr(fault, "at_s", None) or 0.0) for i, fault in enumerate(plan.faults)]
    allowed = f"at most {limit_s:g} s, when the run stops"
    return [UserError(f"got {at_s:g}", f"faults[{i}].at_s", allowed) for i, at_s in late if at_s > limit_s]


def _without_survivors(plan: FaultPlan, roster: Roster, survives: Collection[str] | None) -> list[UserError]:
    """Return roles that a protocol needs, as it says, and that the plan ends for good."""
    gone = plan.gone_for_good()
    found = []
    for role in roster.roles:
        ids = roster.of(role)
        if survives is not None and role not in survives and all(str(id) in gone for id in ids):
            index, allowed = max(gone[str(id)] for id in ids), f"restarts, or losses of {', '.join(sorted(survives))}"
            what = f"nobody of role {role} is left after it, and the protocol needs one"
            found.append(UserError(what, f"faults[{index}].node", allowed))
    return found


def _check_metrics(experiment: Experiment, problem: Problem, fitting: Fitting) -> None:
    """Refuse a stop condition on a metric that this workload does not have: it would never be reached."""
    watched = experiment.stop_condition().watched()
    known = problem.metrics(problem.initial) if watched else {}
    for name in sorted(watched - known.keys()):
        hint = did_you_mean(name, known)
        fitting.note("stop", UserError(f"{name!r} is no metric here", "stop.metric", ", ".join(known), hint))
