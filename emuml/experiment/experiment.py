"""The declaration of one experiment: workload, protocol, cluster, stop condition, seed, faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

from annotated_types import Ge, Gt

from emuml.cluster.cluster import Cluster
from emuml.cluster.failure_laws import FailureLaw
from emuml.cluster.faults import FaultPlan
from emuml.errors import UserError
from emuml.experiment.fitting import Fitting
from emuml.protocol import TrainingProtocol
from emuml.roster import Ids, Roster
from emuml.spec import Inputs, Spec, check, to_spec
from emuml.stopping import STEPS_MAX, Rounds, StopCondition


@dataclass(frozen=True)
class Experiment:
    """One training run, as data; engines take the very same object.

    Parameters
    ----------
    workload : declaration with ``problem(seed)``
        Such as ``LogisticRegression(data="breast-cancer")``.
    protocol : TrainingProtocol
        Such as ``GradientCoding(code=FractionalRepetition(replication=3), collect=15)``.
    cluster : Cluster
        How many nodes, and the laws that they follow.
    rounds : int, optional
        Shorthand for ``stop=Rounds(rounds)``, at most 10**12.
    seed : int
        Everything random derives from it through named streams.
    stop : StopCondition, optional
        Conditions combine with ``|``. One of ``rounds`` and ``stop`` is needed.
    faults : FaultPlan or FailureLaw
        What goes wrong: a plan, or a law that one is drawn from by the seed.
    name : str
        For folders and reports.

    Raises
    ------
    UserError
        If a part is of the wrong kind, out of bounds, or does not fit the others.
    """

    workload: Any
    protocol: Any
    cluster: Cluster
    rounds: Annotated[int, Gt(0)] | None = None
    seed: Annotated[int, Ge(0)] = 0
    stop: StopCondition | None = None
    faults: FaultPlan | FailureLaw = field(default_factory=FaultPlan)
    name: str = "experiment"

    def __post_init__(self) -> None:
        check(self)
        _ask((self._check_seed, self._check_protocol, self._check_workload, self._check_end))
        _ask((self._check_workers, self._check_rounds, self._check_shape, self._check_network))

    def _check_seed(self) -> None:
        if self.seed >= 2**64:
            raise UserError(f"got {self.seed}", "experiment.seed", "an integer below 2**64")

    def _check_protocol(self) -> None:
        if isinstance(self.protocol, type) or not isinstance(self.protocol, TrainingProtocol):
            raise UserError(f"{_name(self.protocol)} is no protocol", "experiment.protocol")

    def _check_workload(self) -> None:
        if isinstance(self.workload, type) or not hasattr(self.workload, "problem"):
            raise UserError(f"{_name(self.workload)} is no workload", "experiment.workload")

    def _check_end(self) -> None:
        if self.rounds is None and self.stop is None:
            raise UserError("nothing says when to stop", "experiment", "rounds=100, or stop=...")
        if self.rounds is not None and self.rounds > STEPS_MAX:
            raise UserError(f"got {self.rounds}", "experiment.rounds", f"an integer in 1..{STEPS_MAX}")

    def _check_shape(self) -> None:
        """Let codes and barriers refuse what does not fit the number of workers."""
        self.protocol.shape(self.roster())

    def _check_workers(self) -> None:
        """Refuse a recorded law that is too small for the cluster."""
        _, workers = self._extent()
        if workers is not None and self.cluster.workers > workers:
            raise UserError(
                f"{self._law} has durations for {workers} workers, got {self.cluster.workers}",
                "cluster.workers",
                f"an integer in 1..{workers}",
            )

    def _check_rounds(self) -> None:
        """Refuse a recorded law that is too short for the rounds asked for."""
        rounds, _ = self._extent()
        limit = self.stop_condition().steps_max()
        if rounds is not None and limit is not None and limit > rounds:
            raise UserError(f"{self._law} has {rounds} rounds, got {limit}", "rounds", f"an integer in 1..{rounds}")

    def _check_network(self) -> None:
        """Let networks refuse nodes that they have no place for."""
        if not self.cluster.shares_nothing:
            self.cluster.network.wires(self.roster().ids)

    def _extent(self) -> tuple[int | None, int | None]:
        return getattr(self.cluster.compute, "extent", (None, None))

    @property
    def _law(self) -> str:
        return type(self.cluster.compute).__name__

    def stop_condition(self) -> StopCondition:
        """Return when training ends: ``stop``, ``rounds``, or whichever comes first."""
        parts = [part for part in (self.stop, Rounds(self.rounds) if self.rounds else None) if part is not None]
        return parts[0] if len(parts) == 1 else parts[0] | parts[1]

    def roster(self) -> Roster:
        """Return the ids of the run."""
        return self._roster

    @cached_property
    def _roster(self) -> Roster:
        counts = {"server": self.cluster.servers, "worker": self.cluster.workers}
        return Roster(Ids(counts), self.seed, self.stop_condition())

    def fault_plan(self) -> FaultPlan:
        """Return the faults of a run with this seed."""
        return self.faults.plan(self.roster().ids, self.seed)

    def spec(self, inputs: Inputs) -> Spec:
        """Return the canonical spec; arrays go into ``inputs``."""
        spec = to_spec(self, inputs)
        spec.pop("kind")
        return dict(spec)


def _ask(questions: Iterable[Callable[[], None]]) -> None:
    """Ask all of them before anything is refused."""
    fitting = Fitting()
    for question in questions:
        fitting.ask("", question)
    fitting.settle()


def _name(given: object) -> str:
    """Return what a wrong part is called: a class is not an object of it."""
    return f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
