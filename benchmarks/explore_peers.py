"""Explorers beside their peers: the same toy protocols, planted bugs and seeds; runs until found, size, CPU time.

Contestants: our explorers; Hypothesis with one draw for each choice, and with one opaque seed, on our emulator;
detangle, where it is installed, on the toys written in asyncio, with its default strategies and its own count of
deviations, in which draws of a crash count, too. Everybody has up to ``RUNS`` runs for each bug and seed.

Verdict (2 cores shared with other work, CPython 3.11): each of our four explorers finds all 20 (bug, seed), shrunk to
a median of 0 or 1 faults + deviations for each bug; Hypothesis finds 18 by draws for each choice, of 0 to 4, and 20 by
seeds, of 3 to 11; detangle 17, of 0 to 4. To find and shrink all takes them 40, 1.3 and 4.9 times the CPU time of our
portfolio. In a second detangle makes more runs: ours are 0.56 to 0.63 of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import emuml.testing as et
from benchmarks import harness
from benchmarks.toys.nodes import TOYS, Toy
from emuml.testing.campaign import described
from emuml.testing.explorers import Ground
from emuml.testing.explorers.random import Random
from emuml.testing.scenario import Scenario
from emuml.testing.shrink import shrink
from emuml.testing.subject import Subject
from emuml.testing.trial import Trial, Trier, prepared

OURS = ("portfolio", "random", "swarm", "sparse")
RUNS, SEEDS = 500, 5
RATED = 50
"""Runs of a right toy that are timed together."""
ONE = et.clusters(workers=(1, 1), rounds=(1, 1))
"""Toys have their own numbers of workers and rounds."""


@dataclass(frozen=True)
class Search:
    """What a search for one bug with one seed came to; ``runs`` is when it was found."""

    runs: int | None
    size: int | None
    cpu_s: float
    shrink_cpu_s: float


Contestant = Callable[[str, str, int, int], Search]
"""Searches (toy, bug, seed, runs at most)."""


def trier_of(toy: Toy, bug: str) -> Trier:
    """Return what runs a toy with a bug."""
    return Trier(Subject(toy.make(bug)), described(toy.describe), toy.faults)


def size_of(trial: Trial) -> int:
    """Return faults + deviations."""
    scenario = trial.recorded()
    return len(scenario.faults) + len(scenario.deviations)


def ours(explorer: Any, name: str, bug: str, seed: int, runs: int) -> Search:
    """Search by one of our explorers."""
    toy, began = TOYS[name], time.process_time()
    campaign = et.explore(
        toy.make(bug), toy.describe, runs, explorer, seed, clusters=ONE, faults=toy.faults, shrinks=False
    )
    found = time.process_time()
    if campaign.failure is None:
        return Search(None, None, found - began, 0.0)
    with prepared():
        small = shrink(trier_of(toy, bug), campaign.failure.trial)
    return Search(campaign.runs, size_of(small.trial), found - began, time.process_time() - found)


def by_choice(data: Any, trier: Trier, ground: Ground) -> Trial:
    """Run with a draw for each choice; crashes are drawn first."""
    from hypothesis import strategies as st

    nodes = ground.plain(ground.smallest()).may_crash
    tenths = st.integers(0, 60)
    faults = [
        et.CrashFault(node=data.draw(st.sampled_from(nodes)), at_s=data.draw(tenths) / 10, restart_after_s=0.5)
        for _ in range(data.draw(st.integers(0, trier.budget.crash)) if nodes else 0)
    ]
    return trier.run(Scenario(workers=1, rounds=1, faults=tuple(faults)), lambda _, n: data.draw(st.integers(0, n - 1)))


def by_seed(data: Any, trier: Trier, ground: Ground) -> Trial:
    """Run what our random explorer proposes of a drawn seed."""
    from hypothesis import strategies as st

    proposal = Random(ground).propose(data.draw(st.integers(0, 2**32)))
    return trier.run(proposal.scenario, proposal.choose)


def hypothesis(draws: Callable[..., Trial], name: str, bug: str, seed: int, runs: int) -> Search:
    """Search, and shrink, by Hypothesis."""
    import hypothesis as hy
    from hypothesis import strategies as st

    trier = trier_of(TOYS[name], bug)
    ground, began = Ground(trier, ONE, 0), time.process_time()
    ran, found, failing = 0, None, None

    @hy.seed(seed)
    @hy.settings(
        max_examples=runs,
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        phases=(hy.Phase.generate, hy.Phase.shrink),
        suppress_health_check=list(hy.HealthCheck),
    )
    @hy.given(data=st.data())
    def test(data: Any) -> None:
        nonlocal ran, found, failing
        ran += 1
        trial = draws(data, trier, ground)
        if not trial.ok:
            found = found or (ran, time.process_time())
            failing = trial
            raise AssertionError

    with prepared():
        try:
            test()
        except AssertionError as error:
            if failing is None:
                raise error
    end = time.process_time()
    if found is None or failing is None:
        return Search(None, None, end - began, 0.0)
    return Search(found[0], size_of(failing), found[1] - began, end - found[1])


def detangled(name: str, bug: str, seed: int, runs: int) -> Search:
    """Search by detangle, then again with shrinking: it begins with the same runs."""
    began = time.process_time()
    report = _detangle(name, bug, seed, runs, False)
    found = time.process_time()
    if report is None:
        return Search(None, None, found - began, 0.0)
    small = _detangle(name, bug, seed, runs, True)
    cpu_s = found - began
    return Search(report.runs, small.deviations, cpu_s, time.process_time() - found - cpu_s)


def _detangle(name: str, bug: str, seed: int, runs: int, shrinks: bool) -> Any:
    import detangle

    from benchmarks.toys import tasks

    changes = dict(TOYS[name].bugs.get(bug, {}))

    async def main() -> None:
        await tasks.run(name, detangle.randint, detangle.invariant, changes)

    try:
        detangle.explore(main, runs=runs, seed=seed, database=False, shrink=shrinks)
    except detangle.BugFound as found:
        return found.report
    return None


def contestants() -> tuple[dict[str, Contestant], dict[str, str]]:
    """Return who takes part, and who is left out, why."""
    taking: dict[str, Contestant] = {name: partial(ours, name) for name in OURS}
    left_out = {}
    peers: dict[str, tuple[str, Contestant]] = {
        "Hypothesis, a draw per choice": ("hypothesis", partial(hypothesis, by_choice)),
        "Hypothesis, one seed": ("hypothesis", partial(hypothesis, by_seed)),
        "detangle": ("detangle", detangled),
    }
    for name, (package, search) in peers.items():
        if find_spec(package) is None:
            left_out[name] = f"{package} is not installed"
        else:
            taking[name] = search
    return taking, left_out


def searches(taking: Mapping[str, Contestant], runs: int, seeds: int) -> dict[str, dict[tuple[str, str, int], Search]]:
    """Let all contestants search in turn for each bug with each seed."""
    found: dict[str, dict[tuple[str, str, int], Search]] = {name: {} for name in taking}
    for name, toy in TOYS.items():
        for bug in toy.bugs:
            for seed in range(seeds):
                for contestant, search in taking.items():
                    found[contestant][name, bug, seed] = search(name, bug, seed, runs)
    return found


def summed(found: Mapping[tuple[str, str, int], Search], bug: str) -> dict[str, object]:
    """Return what one contestant came to on one bug, over the seeds."""
    mine = [search for (_, name, _), search in found.items() if name == bug]
    hits = [search for search in mine if search.runs is not None]
    return {
        "found": len(hits),
        "runs until found": statistics.median([search.runs for search in hits]) if hits else None,
        "faults + deviations": statistics.median([search.size for search in hits]) if hits else None,
        "search CPU s": round(sum(search.cpu_s for search in mine), 4),
        "shrink CPU s": round(sum(search.shrink_cpu_s for search in mine), 4),
    }


def found_figures(
    found: Mapping[str, Mapping[tuple[str, str, int], Search]], left_out: Mapping[str, str]
) -> dict[str, harness.Figure]:
    """Return how many bugs each contestant found, and details by bug."""
    bugs = [bug for toy in TOYS.values() for bug in toy.bugs]
    figures = {}
    for contestant, searched in found.items():
        hits = sum(search.runs is not None for search in searched.values())
        figures[f"found, {contestant}"] = harness.Figure(
            "all (bug, seed)",
            float(len(searched)) if contestant == "portfolio" else None,
            value=float(hits),
            details={"of": len(searched), "left out": dict(left_out), **{bug: summed(searched, bug) for bug in bugs}},
        )
    for contestant in found:
        if contestant not in OURS:
            cost = {name: sum(s.cpu_s + s.shrink_cpu_s for s in found[name].values()) for name in found}
            figures[f"CPU to find and shrink, portfolio against {contestant}"] = harness.Figure(
                contestant,
                None,
                ratio=round(cost[contestant] / cost["portfolio"], 3),
                details={"ours_s": round(cost["portfolio"], 3), "baseline_s": round(cost[contestant], 3)},
            )
    return figures


def rate_figures(taking: Mapping[str, Contestant], turns: int, least_s: float) -> dict[str, harness.Figure]:
    """Return runs per second of the right toys, ours against each peer in alternating turns."""
    figures = {}
    for name in TOYS:
        work = {key: partial(search, name, "", 0, RATED) for key, search in taking.items() if key not in OURS[1:]}
        for key, once in work.items():
            if once().runs is not None:
                raise RuntimeError(f"{key} reports the right toy {name!r} as wrong")
        times = harness.alternate(work, turns, least_s)
        for key in work:
            if key != "portfolio":
                figures[f"runs/s, {name}, portfolio against {key}"] = harness.speedup(times, key, "portfolio", 1.0)
    return figures


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return the figures."""
    taking, left_out = contestants()
    turns, least_s, runs, seeds = (1, 0.0, 60, 2) if brief else (5, 0.1, RUNS, SEEDS)
    return {
        **rate_figures(taking, turns, least_s),
        **found_figures(searches(taking, runs, seeds), left_out),
    }


if __name__ == "__main__":
    harness.main(measure)
