"""One explored run: the emulator under a scenario, an explorer and oracles, and what came of it."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from emuml.blas import single_threaded
from emuml.des.environment import Choose
from emuml.errors import UserError, did_you_mean
from emuml.outcome import Run
from emuml.testing.budget import DEFAULT_BUDGET, Budget
from emuml.testing.coverage import Coverage, Point
from emuml.testing.oracles import Description, Judge, Signature, Violation
from emuml.testing.picks import Picks, Recorded
from emuml.testing.scenario import Scenario
from emuml.testing.subject import Built, Subject
from emuml.testing.views import Finished, Nodes
from emuml.testing.watched import Watched

EVENTS_MAX = 50_000
"""More events make no explored run but one that does not end."""
VIOLATED = "violated"
_OBJECTS = 50_000
"""Between two collections of garbage: some ten runs, a few megabytes."""


@dataclass
class Trial:
    """What came of one run.

    Attributes
    ----------
    scenario : Scenario
        What was given; :meth:`recorded` has the explorer's picks in it.
    run : Run
        The engine's record; a run that was ended by an oracle has ``stopped == "violated"``.
    violation : Violation or None
    reached : set of str
        Which *sometimes* were reached.
    dropped : int
        Faults that exceeded the budget.
    points : set of Point
        What was covered, where that was asked for; see :mod:`emuml.testing.coverage`.
    """

    scenario: Scenario
    run: Run
    violation: Violation | None = None
    reached: set[str] = field(default_factory=set)
    picks: Recorded = field(default_factory=list)
    dropped: int = 0
    points: set[Point] = field(default_factory=set)

    @property
    def ok(self) -> bool:
        """Whether all oracles were content."""
        return self.violation is None

    @property
    def signature(self) -> Signature | None:
        """What failed."""
        return None if self.violation is None else self.violation.signature

    def recorded(self) -> Scenario:
        """Return the scenario that repeats this run without an explorer."""
        return self.scenario.with_picks(self.picks)

    def digest(self) -> str:
        """Return the digest of the trace: equal runs have equal digests."""
        return self.run.trace.digest()

    def report(self) -> str:
        """Return what went wrong, drawn, with a test that repeats it."""
        from emuml.testing.report import report

        return report(self)


@dataclass(frozen=True)
class Trier:
    """Runs scenarios of one subject under one description and budget."""

    subject: Subject
    description: Description
    budget: Budget = DEFAULT_BUDGET

    def check(self, scenario: Scenario) -> None:
        """Refuse oracles, rules and faults that name nobody.

        Raises
        ------
        UserError
            Naming what is misspelt and who there is.
        """
        ids = self.subject.build(scenario).roster.ids
        self.budget.check_names(ids)
        self.description.check_roles({id.role for id in ids})
        names = [str(id) for id in ids]
        for _, name in (named for fault in scenario.faults for named in fault.as_fault().named()):
            if name not in names:
                hint = did_you_mean(name, names)
                raise UserError(f"there is no {name}", "scenario.faults", ", ".join(names), hint)

    def legal(self, scenario: Scenario, built: Built) -> tuple[Scenario, int]:
        """Return the scenario without the faults that exceed the budget, and how many these were."""
        if not scenario.faults:
            return scenario, 0
        survives = self.subject.survives(built.protocol)
        legal, dropped = self.budget.applied(scenario.faults, built.roster.ids, survives)
        return (scenario.model_copy(update={"faults": legal}) if legal != scenario.faults else scenario), dropped

    def run(self, scenario: Scenario, explore: Choose | None = None, asks: bool = True, covers: bool = False) -> Trial:
        """Run one scenario.

        Parameters
        ----------
        explore : callable, optional
            ``choose(name, n)``, for what the scenario does not name.
        asks : bool
            False: the emulator runs without any explorer, as if untested.
        covers : bool
            Whether coverage points are collected.

        Raises
        ------
        OracleError
            If a predicate raised.
        UserError
            If the scenario does not fit the protocol.
        """
        built = self.subject.build(scenario)
        scenario, dropped = self.legal(scenario, built)
        picks = Picks(scenario, explore, self.budget.heal_s)
        emulator = Watched(
            built.nodes,
            scenario.cluster(),
            built.roster,
            _plan(scenario),
            built.unit_cost,
            choose=picks if asks else None,
        )
        env = emulator.env
        picks.now = lambda: env._now
        judge, coverage = Judge(self.description), Coverage()
        judge.calm_s = max((fault.at_s + (fault.lasts_s or 0.0) for fault in scenario.faults), default=0.0)
        nodes = Nodes(emulator.machines, emulator.trace)
        emulator.after_step = watch(emulator, judge, nodes, self.budget.heal_s.__le__)
        if covers:
            emulator.cover = coverage.after_step
        run = emulator.run(self.budget.heal_s + self.description.within_s)
        judge.at_end(Finished(scenario, built.protocol, built.problem, run), waiting(emulator))
        return Trial(scenario, run, judge.violation, judge.reached, picks.recorded, dropped, coverage.points)


def _plan(scenario: Scenario) -> Any:
    return scenario.fault_plan() if scenario.faults else None


def watch(emulator: Watched, judge: Judge, nodes: Nodes, healed: Callable[[float], bool]) -> Callable[..., str | None]:
    """Return what lets a judge see every step, and ends the run once he objects; ``healed`` is asked with the time."""
    env = emulator.env

    def after_step(id: Any, effects: list[Any]) -> str | None:
        now = float(env._now)
        if emulator.result.events > EVENTS_MAX:
            text = f"{EVENTS_MAX} events until {now:.6g} s"
            judge.violation = Violation(Signature("Livelock"), text, now, str(id))
        else:
            judge.after_step(nodes, id, now, effects, healed(now))
        return None if judge.violation is None else VIOLATED

    return after_step


def waiting(emulator: Watched) -> dict[str, str]:
    """Return what each living node says that it waits for."""
    lives = ((machine.name, machine.life) for machine in emulator.machines.values())
    said = {name: life.node.waiting_for() for name, life in lives if life is not None and life.events}
    return {name: text for name, text in said.items() if text}


@contextmanager
def prepared() -> Iterator[None]:
    """Set up once what all runs of a campaign need.

    A finished run is garbage in cycles: to collect it every 700 objects, as by default, takes a tenth of a campaign.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(max(_OBJECTS, thresholds[0]) if thresholds[0] else 0, *thresholds[1:])
    try:
        with single_threaded():
            yield
    finally:
        gc.set_threshold(*thresholds)


def short_id(scenario: Scenario) -> str:
    """Return four hexadecimal digits that name a scenario."""
    return hashlib.sha256(scenario.to_json().encode()).hexdigest()[:4]


def differs(trier: Trier, trial: Trial) -> str:
    """Run the recorded scenario of a run, and say where the traces part; nothing if they are equal."""
    again = trier.run(trial.recorded())
    if again.digest() == trial.digest():
        return ""
    for one, other in zip_longest(trial.run.trace.rows, again.run.trace.rows):
        if one != other:
            return f"first {_row(one)}, then {_row(other)}"
    return "the same records, of other content"


def _row(row: tuple[Any, ...] | None) -> str:
    if row is None:
        return "the end"
    time_s, node, kind, *details = row
    return " ".join(map(str, (f"at {time_s:.6g} s", node, kind, *details)))


def fits(subject: Subject, scenario: Scenario) -> bool:
    """Tell whether the nodes of a scenario can be built."""
    try:
        subject.build(scenario)
    except UserError:
        return False
    return True
