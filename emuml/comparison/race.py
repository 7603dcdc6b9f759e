"""The runs of a comparison, seed by seed, so that whatever ends it early leaves whole seeds behind."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emuml.comparison.contestants import Contestant, plain
from emuml.comparison.measures import Run, run_of
from emuml.comparison.plan import Plan
from emuml.errors import EmumlError, UserError
from emuml.experiment.run import run
from emuml.report.view import View

Progress = Callable[[dict[str, Any]], None]


@dataclass(eq=False)
class Runs:
    """What is done so far; it grows while :func:`race` goes on.

    Attributes
    ----------
    by_contestant : dict
        Runs by contestant's name, then seed.
    views : dict
        Of each contestant the first run, whole, for the page.
    """

    by_contestant: dict[str, dict[int, Run]] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.by_contestant.values()))

    def seeds(self, plan: Plan) -> tuple[int, ...]:
        """Return the seeds of which every contestant has its run."""
        done = [self.by_contestant.get(one.name, {}) for one in plan.contestants]
        return tuple(seed for seed in plan.seeds if all(seed in each for each in done))


def make_folder(folder: Path) -> Path:
    """Make a folder and return it; one that is there must be empty.

    Raises
    ------
    UserError
        If it is not, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError("the folder is not empty", str(folder), "a new folder")
    except OSError as error:
        raise UserError(f"cannot be made: {error.strerror}", str(folder), "a new folder") from None
    return folder


def race(plan: Plan, folder: Path, runs: Runs, progress: Progress | None = None) -> None:
    """Run what is to be run and read what is done, and note each run in ``runs`` as soon as it ends.

    Parameters
    ----------
    plan : Plan
    folder : Path
        Each run has its directory ``contestant/seed-N`` in it.
    runs : Runs
        Where runs are noted.
    progress : callable, optional
        Takes each row of metrics; ``round`` and ``events`` count over all runs, ``run`` says which it is.

    Raises
    ------
    RunFailed
        If a run fails.
    """
    to_run = sum(not one.done for one in plan.contestants) * len(plan.seeds)
    counter = _Counter(progress, to_run)
    for seed, one in ((seed, one) for seed in plan.seeds for one in plan.contestants):
        if one.done:
            view = View.of_folder(one.done[seed], one.name)
        else:
            counter.begin(f"{one.name}, seed {seed}")
            view = _run(one, seed, folder / plain(one.name) / f"seed-{seed}", counter.row if progress else None)
            counter.end()
        runs.by_contestant.setdefault(one.name, {})[seed] = run_of(view, plan.metric, plan.metrics)
        runs.views.setdefault(one.name, view)


def rounds_to_run(plan: Plan) -> int | None:
    """Return how many rounds there will be in all, if that is known."""
    limits = [one.loaded.experiment.stop_condition().steps_max() for one in plan.contestants if not one.done]
    known = [limit for limit in limits if limit is not None]
    return len(plan.seeds) * sum(known) if len(known) == len(limits) else None


def _run(one: Contestant, seed: int, folder: Path, progress: Progress | None) -> View:
    experiment, loaded = one.experiment(seed), one.loaded
    try:
        result = run(experiment, loaded.engine, out=folder, runtime=loaded.runtime, progress=progress)
    except EmumlError as error:
        error.add_note(f"that was {one.name} with seed {seed}: emuml report {shlex.quote(str(folder))}")
        raise
    return View.of_result(result, one.name)


class _Counter:
    """Counts rounds and events over several runs."""

    def __init__(self, progress: Progress | None, to_run: int) -> None:
        self._progress, self._to_run = progress, to_run
        self._run, self._label = 0, ""
        self._rounds = self._events = 0
        self._last: dict[str, Any] = {}

    def begin(self, label: str) -> None:
        self._run, self._label, self._last = self._run + 1, label, {}

    def row(self, row: dict[str, Any]) -> None:
        assert self._progress is not None
        self._last = row
        shown = {**row, "run": f"run {self._run} of {self._to_run}: {self._label}"}
        shown["round"] = self._rounds + int(row.get("round", 0))
        shown["events"] = self._events + int(row.get("events", 0))
        self._progress(shown)

    def end(self) -> None:
        self._rounds += int(self._last.get("round", 0))
        self._events += int(self._last.get("events", 0))
