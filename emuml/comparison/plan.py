"""What will be run and compared: contestants, seeds, metric, and what is common; refused here or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from emuml.comparison.contestants import Contestant, gather
from emuml.comparison.differences import Difference, Shared, comparable, what_differs, what_is_shared
from emuml.errors import UserError, did_you_mean
from emuml.experiment.config import ConfigError
from emuml.experiment.fitting import prepare
from emuml.protocol import Problem

SEEDS = 5


@dataclass(frozen=True, eq=False)
class Plan:
    """A comparison before its runs.

    Attributes
    ----------
    contestants : tuple of Contestant
    seeds : tuple of int
        Each contestant has a run of each.
    metric : str
        Whose target is to be reached.
    target : float or None
        Its value; ``None``: for each seed the worst final value of all, which everybody reaches.
    metrics : tuple of str
        Metrics that all workloads have.
    comparable : tuple of str
        Those of them that mean the same for all; without ``metric`` among them there is no target.
    baseline : Contestant
        Against whom all others are compared in pairs.
    differences : tuple of Difference
    shared : Shared
    """

    contestants: tuple[Contestant, ...]
    seeds: tuple[int, ...]
    metric: str
    target: float | None
    metrics: tuple[str, ...]
    comparable: tuple[str, ...]
    baseline: Contestant
    differences: tuple[Difference, ...]
    shared: Shared

    @property
    def has_target(self) -> bool:
        """Whether times to a value of the metric can be compared."""
        return self.metric in self.comparable

    @property
    def others(self) -> tuple[Contestant, ...]:
        """All but the baseline."""
        return tuple(one for one in self.contestants if one is not self.baseline)


def plan(
    paths: Sequence[Path],
    overrides: Iterable[str] = (),
    *,
    seeds: int | None = None,
    target: float | None = None,
    metric: str = "train_loss",
    engine: str | None = None,
    baseline: str | None = None,
) -> Plan:
    """Read and check everything; nothing is run.

    Parameters
    ----------
    paths : sequence of Path
        Experiment files and run directories.
    overrides : iterable of str
        ``key=value`` for every file.
    seeds : int, optional
        How many; default 5, or all that the run directories have in common.
    target : float, optional
        Value of the metric.
    metric : str
    engine : {"des", "tcp"}, optional
    baseline : str, optional
        Name of a contestant; default: the first one.

    Raises
    ------
    UserError
        With every problem.
    """
    if target is not None and not math.isfinite(target):
        raise UserError(f"got {target}", "--target", "a finite number")
    contestants = gather(paths, overrides, engine)
    reference = _baseline(contestants, baseline)
    chosen = _seeds(contestants, seeds)
    problems = _problems(contestants, chosen[0])
    metrics = _common_metrics(contestants, problems, metric)
    differences = what_differs(contestants, same_data=True)
    shared = what_is_shared(contestants, differences, chosen)
    meaningful = comparable(metrics, differences)
    if target is not None and metric not in meaningful:
        what = f"objectives differ, so {metric} {target:g} is not the same target for all"
        raise UserError(what, "--target", f"with --metric {', '.join(meaningful)}" if meaningful else "none")
    return Plan(contestants, chosen, metric, target, metrics, meaningful, reference, differences, shared)


def _baseline(contestants: Sequence[Contestant], name: str | None) -> Contestant:
    names = [one.name for one in contestants]
    if name is None:
        return contestants[0]
    if name not in names:
        raise UserError(f"got {name!r}", "--baseline", ", ".join(names), did_you_mean(name, names))
    return contestants[names.index(name)]


def _seeds(contestants: Sequence[Contestant], wanted: int | None) -> tuple[int, ...]:
    """Return the seeds: from the first file's on, or those that all run directories have."""
    done = [set(one.done) for one in contestants if one.done]
    if not done:
        first = contestants[0].loaded.experiment.seed
        seeds = range(first, first + (SEEDS if wanted is None else wanted))
        if seeds[-1] >= 2**64:
            raise UserError(f"got {first} and {len(seeds)} seeds", "seed", "seeds below 2**64")
        return tuple(seeds)
    common = sorted(set.intersection(*done))
    if not common:
        each = "; ".join(f"{one.name} has {', '.join(map(str, sorted(one.done)))}" for one in contestants if one.done)
        raise UserError("the run directories have no seed in common", "FILES", "runs of equal seeds", each)
    if wanted is not None and wanted > len(common):
        given = ", ".join(map(str, common))
        raise UserError(f"got {wanted}", "--seeds", f"at most {len(common)}: the run directories share {given}")
    return tuple(common[:wanted])


def _problems(contestants: Sequence[Contestant], seed: int) -> list[Problem]:
    """Return what each one trains, or refuse with all that is wrong; the data must be the same."""
    found: list[Problem] = []
    wrong: dict[str, None] = {}
    for one in contestants:
        try:
            with one.loaded.pointing():
                found.append(prepare(one.experiment(seed), one.loaded.engine))
        except ConfigError as error:
            wrong.update(dict.fromkeys(error.problems))
    if wrong:
        raise ConfigError(tuple(wrong))
    data = [(type(problem).__name__, getattr(problem, "model", ""), _digests(problem)) for problem in found]
    for one, its in zip(contestants, data, strict=True):
        if its != data[0]:
            first = contestants[0]
            what = f"{one.source} trains something else than {first.source}: losses and times to them mean nothing"
            kinds = f"{_trains(first)} and {_trains(one)}"
            wrong[str(UserError(what, "workload", "one model and one data set for all", f"here {kinds}"))] = None
    if wrong:
        raise ConfigError(tuple(wrong))
    return found


def _digests(problem: Problem) -> tuple[str, ...]:
    return tuple(getattr(problem, "inputs_sha256", ()))


def _trains(contestant: Contestant) -> str:
    workload = contestant.loaded.experiment.workload
    data = getattr(workload, "data", None)
    return f"{type(workload).__name__} on {data if isinstance(data, str) else 'arrays'}"


def _common_metrics(contestants: Sequence[Contestant], problems: Sequence[Problem], metric: str) -> tuple[str, ...]:
    names = [list(problem.metrics(problem.initial)) for problem in problems]
    common = tuple(name for name in names[0] if all(name in each for each in names))
    if metric not in common:
        lacking = [one.name for one, each in zip(contestants, names, strict=True) if metric not in each]
        what = f"{metric!r} is no metric of {', '.join(lacking)}"
        raise UserError(what, "--metric", ", ".join(common) or "none: nothing in common", did_you_mean(metric, common))
    return common
