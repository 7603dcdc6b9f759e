"""From runs to pairs: targets found, times to them, and each contestant against the baseline seed by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from emuml.comparison.contestants import Contestant
from emuml.comparison.dependence import dependence
from emuml.comparison.measures import FINAL, ROUND, TARGET, Run, higher_is_better, order
from emuml.comparison.plan import Plan
from emuml.comparison.race import Runs
from emuml.comparison.statistics import Paired, paired, paired_rounds
from emuml.report.view import View


@dataclass(frozen=True)
class Pair:
    """One contestant against another, the baseline or the leader, in one measure.

    Attributes
    ----------
    contestant, measure : str
    paired : Paired or None
        ``None`` where somebody has no number.
    missing : str
        Who has none.
    dependence : str
        Why rounds that are paired are not taken as independent.
    """

    contestant: str
    measure: str
    paired: Paired | None
    missing: str = ""
    dependence: str = ""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What came out.

    Attributes
    ----------
    plan : Plan
    seeds : tuple of int
        Those of which every contestant has its run.
    targets : dict
        By seed: the value of the metric that is to be reached; ``None`` where nobody had a finite one.
    runs : dict
        By contestant, then seed; ``target_s`` is among the values of those that reached the target.
    views : dict
        Of each contestant the first run, whole.
    pairs : tuple of Pair
        All against the baseline, in all measures that mean the same for all.
    expected_round_s : dict
        By contestant: seconds per round in closed form, where there is one.
    """

    plan: Plan
    seeds: tuple[int, ...]
    targets: dict[int, float | None]
    runs: dict[str, dict[int, Run]]
    views: dict[str, View]
    pairs: tuple[Pair, ...]
    expected_round_s: dict[str, float | None]

    def values(self, name: str, measure: str) -> list[float | None]:
        """Return a measure of a contestant, one for each seed."""
        return [_finite(self.runs[name][seed].values.get(measure)) for seed in self.seeds]

    def mean(self, name: str, measure: str) -> float | None:
        """Return the mean over the seeds, if every seed has a number."""
        return _mean(self.values(name, measure))

    def pair(self, name: str, measure: str) -> Pair | None:
        """Return one comparison with the baseline."""
        return next((pair for pair in self.pairs if (pair.contestant, pair.measure) == (name, measure)), None)

    @property
    def measures(self) -> list[str]:
        """What was measured, in the order in which it is shown."""
        return _order(self.plan, self.runs, self.seeds)

    def against(self, name: str, other: str, measure: str) -> Pair:
        """Compare two contestants."""
        by_name = {one.name: one for one in self.plan.contestants}
        return _pair(self.runs, self.seeds, by_name[name], by_name[other], measure)


def analyse(plan: Plan, runs: Runs) -> Comparison:
    """Compare what is done: the seeds of which every contestant has its run; at least one.

    Parameters
    ----------
    plan : Plan
    runs : Runs
    """
    seeds, done = runs.seeds(plan), runs.by_contestant
    targets = {seed: _target(plan, [done[one.name][seed] for one in plan.contestants]) for seed in seeds}
    for its_runs in done.values():
        for seed, target in targets.items():
            _note_target(its_runs[seed], target, higher_is_better(plan.metric))
    measures = [name for name in _order(plan, done, seeds) if _is_comparable(plan, name)]
    pairs = tuple(_pair(done, seeds, one, plan.baseline, name) for one in plan.others for name in measures)
    expected_s = {one.name: runs.views[one.name].expected_round_s() for one in plan.contestants}
    return Comparison(plan, seeds, targets, done, runs.views, pairs, expected_s)


def _target(plan: Plan, runs: Sequence[Run]) -> float | None:
    """Return the value asked for, or the worst of the final ones, which everybody reaches that did not diverge."""
    if not plan.has_target:
        return None
    if plan.target is not None:
        return plan.target
    finals = [value for run in runs if (value := _finite(run.values.get(FINAL + plan.metric))) is not None]
    worst = min if higher_is_better(plan.metric) else max
    return worst(finals, default=None)


def _note_target(run: Run, target: float | None, higher: bool) -> None:
    run.values.pop(TARGET, None)
    reached_s = None if target is None else run.seconds_to(target, higher)
    if reached_s is not None:
        run.values[TARGET] = reached_s


def _order(plan: Plan, runs: dict[str, dict[int, Run]], seeds: Sequence[int]) -> list[str]:
    """Return what was measured, in the order in which it is shown."""
    names = {name for each in runs.values() for seed in seeds for name in each[seed].values}
    return order(names | {TARGET} if plan.has_target else names - {TARGET})


def _is_comparable(plan: Plan, measure: str) -> bool:
    return not measure.startswith(FINAL) or measure.removeprefix(FINAL) in plan.comparable


def _pair(
    runs: dict[str, dict[int, Run]], seeds: Sequence[int], one: Contestant, other: Contestant, measure: str
) -> Pair:
    both = (one, other)
    sides = [[_finite(runs[side.name][seed].values.get(measure)) for seed in seeds] for side in both]
    lacking = [
        f"{side.name} on {len(values) - len(there)} of {len(values)} seeds" if there else side.name
        for side, values in zip(both, sides, strict=True)
        if len(there := [value for value in values if value is not None]) < len(values)
    ]
    if lacking:
        what = "not reached by" if measure == TARGET else "no number of"
        return Pair(one.name, measure, None, f"{what} {' and '.join(lacking)}")
    if len(seeds) == 1 and measure == ROUND:
        first, second = (runs[side.name][seeds[0]].round_times_s for side in both)
        why = dependence(both, first, second)
        return Pair(one.name, measure, paired_rounds(first, second, independent=not why), dependence=why)
    first_values, second_values = ([value for value in side if value is not None] for side in sides)
    return Pair(one.name, measure, paired(first_values, second_values))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there and len(there) == len(values) else None
