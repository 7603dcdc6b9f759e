"""What a failing check prints: one line, the diagram, the oracle, the scenario, and a test that repeats it."""

from __future__ import annotations

from emuml.diagram import diagram
from emuml.testing.scenario import Scenario
from emuml.testing.trial import Trial, short_id


def headline(scenario: Scenario, runs: int | None = None, replay: str = "") -> str:
    """Return the line that says how long it took and how small it is."""
    explored = [] if runs is None else [f"explored {_counted(runs, 'run')}"]
    size = f"{_counted(len(scenario.faults), 'fault')} + {_counted(len(scenario.deviations), 'deviation')}"
    return ", ".join([*explored, size, *([f"replay: {replay}"] if replay else [])])


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def report(trial: Trial, runs: int | None = None, replay: str = "", test: str = "") -> str:
    """Return the whole report of a run that failed; of one that did not, its size.

    Parameters
    ----------
    runs : int, optional
        After how many explored runs it was found.
    replay : str
        The command that repeats it.
    test : str
        Name of the test that found it; then a test is printed that can be pasted beside it.
    """
    violation = trial.violation
    left_out = f"{trial.dropped} of the scenario's faults exceed the budget of the test and were left out"
    notes = [left_out] if trial.dropped else []
    if violation is None:
        return "\n".join([f"no oracle objects: {headline(trial.scenario)}, {trial.run.events} events", *notes])
    parts = [headline(trial.scenario, runs, replay), *notes, drawn(trial), f"scenario: {trial.scenario.to_json()}"]
    return "\n\n".join([*parts, *([ready_test(trial.scenario, test)] if test else [])])


def drawn(trial: Trial) -> str:
    """Return the diagram of a run that failed, and what the oracle says."""
    if trial.violation is None:
        raise ValueError("nothing is wrong with this run")
    found, marks = trial.violation, [item.name for item in trial.scenario.deviations]
    drawing = diagram(trial.run.trace.rows, marks, last=found.text, of=found.read)
    return f"{drawing}\n\n{found.signature.kind}: {found.text} (t = {found.time_s:.6g} s)"


def ready_test(scenario: Scenario, test: str) -> str:
    """Return a test to paste beside the one that found the scenario: it replays it."""
    return "\n".join(
        [
            f"def {test}_{short_id(scenario)}():",
            f"    {test}.replay('''{scenario.to_json()}''')",
        ]
    )
