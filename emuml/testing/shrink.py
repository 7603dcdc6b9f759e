"""Make a failing scenario small, on its structure: fewer nodes, rounds, faults and deviations, then smaller ones.

A step is accepted only if the same signature fails, so that the failure that was found is the one that is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

from emuml.errors import UserError
from emuml.testing.oracles import OracleError
from emuml.testing.scenario import CrashFault, CutFault, Deviation, Scenario, base_of, tenths
from emuml.testing.trial import Trial, Trier, differs

REPLAYS_MAX = 400
SECONDS_MAX = 2.0
SHIFT_S, SHIFTS = 0.3, 15
SHORT_S = 0.5
"""Crashes are shortened towards it."""


@dataclass(frozen=True)
class Shrunk:
    """A failure, as it was found and made small.

    Attributes
    ----------
    trial : Trial
        The smallest run that fails in the same way, from a scenario alone.
    found : Trial
        The run that was explored.
    replays : int
        How many runs shrinking took.
    found_after : int
        Number of the run that failed, from 1.
    nondeterministic : bool
        The recorded scenario did not fail in the same way: nothing was shrunk.
    difference : str
        Where two runs of the smallest scenario part; nothing if they are equal.
    """

    trial: Trial
    found: Trial
    replays: int
    found_after: int = 0
    nondeterministic: bool = False
    difference: str = ""

    @property
    def scenario(self) -> Scenario:
        """The smallest scenario."""
        return self.trial.scenario


class Shrinker:
    """Tries smaller scenarios while the budget lasts."""

    def __init__(self, trier: Trier, found: Trial) -> None:
        self._trier, self._signature = trier, found.signature
        self.replays, self._spent_s = 0, 0.0
        self.best = found

    @property
    def spent(self) -> bool:
        """Whether the budget is used up."""
        return self.replays >= REPLAYS_MAX or self._spent_s >= SECONDS_MAX

    def fails(self, scenario: Scenario) -> bool:
        """Replay a scenario; keep it if it fails in the same way."""
        if self.spent:
            return False
        self.replays += 1
        try:
            trial = self._trier.run(scenario)
        except (UserError, OracleError):
            return False
        self._spent_s += trial.run.wall_s
        if trial.signature != self._signature:
            return False
        self.best = trial
        return True

    def to_fixed_point(self) -> None:
        """Apply all passes until none makes the scenario smaller."""
        size: object = None
        while not self.spent and size != (size := self.best.scenario.size()):
            for step in PASSES:
                self._exhaust(step)

    def _exhaust(self, step: Callable[[Scenario], Iterator[Scenario]]) -> None:
        """Take the first smaller scenario that a pass proposes and that fails, and ask the pass again."""
        progress = True
        while progress and not self.spent:
            now = self.best.scenario
            progress = any(smaller.size() < now.size() and self.fails(smaller) for smaller in step(now))


def shrink(trier: Trier, found: Trial) -> Shrunk:
    """Return the failure in its smallest form within the budget of replays and seconds."""
    shrinker = Shrinker(trier, found)
    recorded = found.recorded()
    if not shrinker.fails(recorded):
        return Shrunk(found, found, 1, nondeterministic=True, difference=differs(trier, found))
    for none in ({"faults": (), "deviations": ()}, {"deviations": ()}):  # long runs may leave no time for more
        if shrinker.fails(recorded.model_copy(update=none)):
            break
    shrinker.to_fixed_point()
    return Shrunk(shrinker.best, found, shrinker.replays, difference=differs(trier, shrinker.best))


def fewer_workers(now: Scenario) -> Iterator[Scenario]:
    """Drop workers, most of them first, and renumber the others."""
    return _fewer(now, "worker", now.workers)


def fewer_servers(now: Scenario) -> Iterator[Scenario]:
    """Drop servers in the same way; what a protocol cannot have does not fail in the same way either."""
    return _fewer(now, "server", now.servers)


def _fewer(now: Scenario, role: str, of: int) -> Iterator[Scenario]:
    for count in range(of - 1, 0, -1):
        for first in range(of - count, -1, -1):
            yield without(now, role, first, count)


def without(now: Scenario, role: str, first: int, count: int) -> Scenario:
    """Return the scenario without some nodes of a role, ``"worker"`` or ``"server"``, and all that names them."""
    gone = {f"{role}-{first + i}" for i in range(count)}
    kept = now.model_copy(
        update={
            f"{role}s": getattr(now, f"{role}s") - count,
            "faults": tuple(left for fault in now.faults if (left := fault.without(gone)) is not None),
            "deviations": tuple(item for item in now.deviations if not gone & set(re.split(r"[/|]", item.name))),
        }
    )

    def renumber(match: re.Match[str]) -> str:
        index = int(match[1])
        return f'"{role}-{index - count if index > first else index}"'

    return Scenario.model_validate_json(re.sub(rf'"{role}-(\d+)"', renumber, kept.to_json()))


def fewer_rounds(now: Scenario) -> Iterator[Scenario]:
    """Half as many, then one less."""
    for rounds in dict.fromkeys((1, now.rounds // 2, now.rounds - 1)):
        if 1 <= rounds < now.rounds:
            yield now.model_copy(update={"rounds": rounds})


def fewer_faults(now: Scenario) -> Iterator[Scenario]:
    """Drop faults one by one, then pairs."""
    for count in (1, 2):
        for dropped in combinations(now.faults, count):
            yield now.model_copy(update={"faults": tuple(fault for fault in now.faults if fault not in dropped)})


def earlier_without_a_fault(now: Scenario) -> Iterator[Scenario]:
    """Drop a fault, and let the later ones come earlier: what they met need not wait for its end any more."""
    if len(now.faults) not in (2, 3):
        return
    for dropped in now.faults:
        left = [fault for fault in now.faults if fault is not dropped]
        for shift in range(1, SHIFTS + 1):
            earlier = (tenths(max(0.0, fault.at_s - shift * SHIFT_S)) for fault in left)
            moved = [
                fault if fault.at_s < dropped.at_s else fault.model_copy(update={"at_s": at_s})
                for fault, at_s in zip(left, earlier, strict=True)
            ]
            yield now.model_copy(update={"faults": tuple(moved)})


def shorter_faults(now: Scenario) -> Iterator[Scenario]:
    """Shorten faults towards half a second, keep no pending saves, cut fewer nodes off, and both ways."""
    for i, fault in enumerate(now.faults):
        if isinstance(fault, CrashFault):
            for kept in fault.keep:
                yield _with_fault(now, i, keep=tuple(name for name in fault.keep if name != kept))
        if fault.lasts_s is not None and fault.lasts_s > SHORT_S:
            field = "restart_after_s" if isinstance(fault, CrashFault) else "for_s"
            for short_s in (SHORT_S, fault.lasts_s / 2):
                yield _with_fault(now, i, **{field: round(short_s, 1)})
        if isinstance(fault, CutFault):
            yield _with_fault(now, i, one_way=False)
            yield from (_with_fault(now, i, between=smaller) for smaller in _smaller_cuts(fault))


def _smaller_cuts(fault: CutFault) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield groups of one node less, or of everybody else."""
    first, second = fault.between
    if second:
        yield first, ()
    for i in range(len(first) if len(first) > 1 else 0):
        yield first[:i] + first[i + 1 :], second
    for i in range(len(second) if len(second) > 1 else 0):
        yield first, second[:i] + second[i + 1 :]


def _with_fault(now: Scenario, index: int, **changes: object) -> Scenario:
    changed = type(now.faults[index]).model_validate({**now.faults[index].model_dump(), **changes})
    return now.model_copy(update={"faults": (*now.faults[:index], changed, *now.faults[index + 1 :])})


def fewer_deviations(now: Scenario) -> Iterator[Scenario]:
    """Drop all deviations, then halves, quarters and so on, last single ones."""
    size = len(now.deviations)
    while size:
        for start in range(0, len(now.deviations), size):
            left = now.deviations[:start] + now.deviations[start + size :]
            yield now.model_copy(update={"deviations": left})
        size //= 2


def earlier_without_delays(now: Scenario) -> Iterator[Scenario]:
    """Drop a delay, and let the crashes come earlier by as much: what they met may come earlier, too."""
    for i, item in enumerate(now.deviations):
        if item.late_s:
            faults = tuple(
                fault.model_copy(update={"at_s": tenths(max(0.0, fault.at_s - item.late_s))}) for fault in now.faults
            )
            left = now.deviations[:i] + now.deviations[i + 1 :]
            yield now.model_copy(update={"deviations": left, "faults": faults})


def smaller_deviations(now: Scenario) -> Iterator[Scenario]:
    """One level, then one less."""
    for i, item in enumerate(now.deviations):
        level = item.level(now.delays)
        for smaller in dict.fromkeys((1, level - 1)):
            if item.kind != "tie" and 1 <= smaller < level:
                left, right = now.deviations[:i], now.deviations[i + 1 :]
                yield now.model_copy(update={"deviations": (*left, _at_level(item, smaller, now), *right)})


def _at_level(item: Deviation, level: int, scenario: Scenario) -> Deviation:
    if item.kind == "lost":
        return Deviation.model_validate({"lost": item.lost, "count": level})
    late_s = level * base_of(item.kind, scenario.delays)
    return Deviation.model_validate({item.kind: getattr(item, item.kind), "late_s": late_s})


def earlier_faults(now: Scenario) -> Iterator[Scenario]:
    """Move crashes to half their time, then to whole seconds, then one step earlier."""
    for i, fault in enumerate(now.faults):
        for at_s in (round(fault.at_s / 2, 1), float(int(fault.at_s)), round(fault.at_s - 0.1, 1)):
            if 0 <= at_s < fault.at_s:
                yield _with_fault(now, i, at_s=at_s)


def least_seed(now: Scenario) -> Iterator[Scenario]:
    """Seed 0."""
    if now.seed:
        yield now.model_copy(update={"seed": 0})


PASSES = (
    fewer_workers,
    fewer_servers,
    fewer_rounds,
    fewer_faults,
    shorter_faults,
    fewer_deviations,
    earlier_without_delays,
    smaller_deviations,
    earlier_faults,
    least_seed,
    earlier_without_a_fault,
)
"""In this order, to a fixed point."""
