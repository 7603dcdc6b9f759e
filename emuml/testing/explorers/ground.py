"""What explorers stand on: a seed, ranges, a budget, and what a plain run looks like."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import product
from typing import Protocol

from emuml.des.environment import Choose
from emuml.errors import UserError
from emuml.streams import generator
from emuml.testing.budget import Clusters
from emuml.testing.mishaps import STEP_S, AnyMishap, CrashFault, CutFault, PauseFault, SlowFault
from emuml.testing.scenario import Scenario
from emuml.testing.trial import Trier

_BLOCK = 256


class Draws:
    """Uniform numbers of a named stream, drawn in blocks; no stream of a protocol is touched."""

    def __init__(self, seed: int, name: str) -> None:
        self._generator = generator(seed, "", f"explore/{name}")
        self._left: list[float] = []

    def uniform(self) -> float:
        """Return a number in [0, 1)."""
        if not self._left:
            self._left = self._generator.random(_BLOCK).tolist()
        return self._left.pop()

    def below(self, n: int) -> int:
        """Return an integer in [0, n)."""
        return int(self.uniform() * n)

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        return low + self.below(high - low + 1)


@dataclass(frozen=True)
class Plain:
    """What the run without any fault or deviation has: who may crash, when things happen, which choices there are."""

    nodes: list[str]
    may_crash: list[str]
    moments: list[float]
    asked: list[tuple[str, int]]
    duration_s: float


@dataclass
class Proposal:
    """One run to try: a scenario, and who picks what it does not name."""

    scenario: Scenario
    choose: Choose | None = None


class Explorer(Protocol):
    """Proposes runs, each a function of the seed and its index alone."""

    def propose(self, index: int) -> Proposal | None:
        """Return run number ``index``, or ``None`` if there are no more."""


def _around(first: int, ends: tuple[int, int]) -> list[int]:
    """Return the numbers of a range, both ends included, from one of them on, round about."""
    return [*range(first, ends[1] + 1), *range(ends[0], first)]


@dataclass
class Ground:
    """Shared by the explorers of a campaign."""

    trier: Trier
    clusters: Clusters
    seed: int
    _plain: dict[tuple[int, int, int], Plain] = field(default_factory=dict)
    _refused: set[tuple[int, int]] = field(default_factory=set)

    def plain(self, scenario: Scenario) -> Plain:
        """Return what the plain run of so many workers, servers and rounds has."""
        key = scenario.workers, scenario.servers, scenario.rounds
        if key not in self._plain:
            self._plain[key] = self._observed(*key)
        return self._plain[key]

    def _observed(self, workers: int, servers: int, rounds: int) -> Plain:
        asked: list[tuple[str, int]] = []

        def note(name: str, n: int) -> int:
            asked.append((name, n))
            return 0

        scenario = Scenario(workers=workers, servers=servers, rounds=rounds)
        built = self.trier.subject.build(scenario)
        survives: Collection[str] = self.trier.subject.survives(built.protocol)
        run = self.trier.run(scenario, note).run
        moments = sorted({round(row[0], 1) for row in run.trace.rows})
        may_crash = self.trier.budget.may_crash(built.roster.ids, survives)
        return Plain([str(id) for id in built.roster.ids], may_crash, moments, asked, run.duration_s)

    def smallest(self) -> Scenario:
        """Return the least scenario of the ranges that fits."""
        ranges = self.clusters
        return self.fitting(ranges.workers[0], ranges.rounds[0], 0, ranges.servers[0])

    def scenario(self, draws: Draws) -> Scenario:
        """Return a scenario of the ranges, without faults."""
        ranges = self.clusters
        workers, rounds = draws.between(*ranges.workers), draws.between(*ranges.rounds)
        seed, (least, most) = draws.below(ranges.seeds), ranges.servers
        return self.fitting(workers, rounds, seed, least if least == most else draws.between(least, most))

    def fitting(self, workers: int, rounds: int, seed: int, servers: int) -> Scenario:
        """Return the scenario with the next numbers of servers and workers, round about, that the protocol takes."""
        ranges = self.clusters
        for counts in product(_around(servers, ranges.servers), _around(workers, ranges.workers)):
            if counts in self._refused:
                continue
            scenario = Scenario(servers=counts[0], workers=counts[1], rounds=rounds, seed=seed)
            try:
                self.plain(scenario)
            except UserError as error:
                self._refused.add(counts)
                self._why = error
            else:
                return scenario
        raise self._why

    def crash(self, draws: Draws, plain: Plain, longest_s: float) -> CrashFault:
        """Return a crash, half of the time near a moment at which something happens."""
        node = plain.may_crash[draws.below(len(plain.may_crash))]
        at_s, back_s = self._when(draws, plain, longest_s)
        restarts = not self.trier.budget.for_good or draws.uniform() < 0.7
        return CrashFault(node=node, at_s=at_s, restart_after_s=back_s if restarts else None)

    def _when(self, draws: Draws, plain: Plain, longest_s: float) -> tuple[float, float]:
        """Return when a fault begins, and how long it lasts."""
        horizon_s = 1.5 * plain.duration_s + 1.0
        if draws.uniform() < 0.5:
            at_s = plain.moments[draws.below(len(plain.moments))] + STEP_S * (draws.below(3) - 1)
        else:
            at_s = draws.uniform() * horizon_s
        lasts_s = max(STEP_S, draws.uniform() * min(longest_s, self.trier.budget.restart_within_s))
        return max(0.0, at_s), lasts_s

    def disturbed(self, name: str, scenario: Scenario, longest_s: float = 5.0) -> Scenario:
        """Return the scenario with cuts, pauses and slow nodes, too, each kind in half of all runs.

        They are drawn from a stream of their own, so that the crashes and picks of a run do not depend on them.
        """
        budget, plain, draws = self.trier.budget, self.plain(scenario), Draws(self.seed, f"{name}/disturbed")
        found: list[AnyMishap] = []
        for make, most in ((_cut, budget.cut), (_pause, budget.pause), (_slow, budget.slow)):
            for _ in range(draws.between(0, most)):
                at_s, lasts_s = self._when(draws, plain, longest_s)
                found.append(make(draws, plain.nodes, at_s, lasts_s))
        return scenario.model_copy(update={"faults": (*scenario.faults, *found)}) if found else scenario

    def crashes(self, draws: Draws, scenario: Scenario, most: int, longest_s: float = 5.0) -> Scenario:
        """Return the scenario with 0 to ``most`` crashes."""
        plain = self.plain(scenario)
        count = draws.between(0, min(most, self.trier.budget.crash)) if plain.may_crash else 0
        found = tuple(self.crash(draws, plain, longest_s) for _ in range(count))
        return scenario.model_copy(update={"faults": found})


def _cut(draws: Draws, nodes: list[str], at_s: float, for_s: float) -> CutFault:
    """Return a cut between one node and another one, or everybody else; one of four is of one direction."""
    first = nodes[draws.below(len(nodes))]
    others = [node for node in nodes if node != first]
    second = (others[draws.below(len(others))],) if others and draws.uniform() < 0.5 else ()
    return CutFault(between=((first,), second), at_s=at_s, for_s=for_s, one_way=draws.uniform() < 0.25)


def _pause(draws: Draws, nodes: list[str], at_s: float, for_s: float) -> PauseFault:
    return PauseFault(node=nodes[draws.below(len(nodes))], at_s=at_s, for_s=for_s)


def _slow(draws: Draws, nodes: list[str], at_s: float, for_s: float) -> SlowFault:
    node, factor = nodes[draws.below(len(nodes))], (2, 4, 16)[draws.below(3)]
    return SlowFault(node=node, factor=factor, at_s=at_s, for_s=for_s)
