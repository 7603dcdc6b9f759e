"""How the time of a worker-round grows from 100 to 100,000 workers, on both tiers and in idiomatic SimPy.

The training is gradient coding in which a hundred groups hold the data and an answer of each of them closes a round;
its gradients cost nothing. In pushes, asynchronous updates behind a barrier, a worker-round is a push. The SimPy
programs are those of ``benchmarks/simpy_idiom.py``; they decide the same as little as possible and wait for everybody.
Each contestant makes everything that it needs, nodes and processes included, as a user's run does.

``docs/figures/growth.py`` keeps what this measures, and draws it. Verdict: there, and in ``docs/tiers.md``.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks import harness, simpy_idiom
from benchmarks.round_times import Idle
from benchmarks.scale import Contestant, by_events, coded, groups_of_100, pushed, race

SIZES = (100, 1000, 10_000, 100_000)
ROUNDS_LEAST = 3

NAMES = {
    "event": "event tier, gradient coding",
    "array": "array tier, gradient coding",
    "push": "array tier, pushes",
    "simpy": "SimPy, a process and a Store per worker",
}


def _by_events(workers: int, rounds: int) -> Contestant:
    return by_events(groups_of_100(workers), Idle(1.0, np.zeros(1)), workers, rounds)


def _by_arrays(workers: int, rounds: int) -> Contestant:
    return coded(groups_of_100(workers), workers, rounds)


def _by_pushes(workers: int, rounds: int) -> Contestant:
    return pushed(workers, workers * rounds)


def _by_simpy(workers: int, rounds: int) -> Contestant:
    return Contestant(lambda: simpy_idiom.rounds(workers, rounds), workers * rounds)


MAKERS: dict[str, tuple[Callable[[int, int], Contestant], int]] = {
    "event": (_by_events, 100_000),
    "array": (_by_arrays, 1_000_000),
    "push": (_by_pushes, 500_000),
    "simpy": (_by_simpy, 100_000),
}
"""What makes each contestant, and how many worker-rounds it does at least."""


def seconds(turns: int = 1, sizes: tuple[int, ...] = SIZES, least: float = 1.0) -> dict[str, list[float]]:
    """Return CPU seconds of a worker-round by contestant, one for each size: medians of turns after one to warm up."""
    found: dict[str, list[float]] = {name: [] for name in MAKERS}
    for workers in sizes:
        contestants = {
            name: make(workers, max(int(least * count) // workers, ROUNDS_LEAST))
            for name, (make, count) in MAKERS.items()
        }
        alone = {name: replace(one, work=_alone(one.work)) for name, one in contestants.items()}
        for name, times in race(alone, turns).items():
            found[name].append(float(f"{statistics.median(times):.3g}"))
    return found


def _alone(work: Callable[[], object]) -> Callable[[], object]:
    """Return work that clears up what it leaves behind: the garbage collector would charge the next one for it."""

    def cleared() -> None:
        work()
        gc.collect()

    return cleared


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return the time at the largest number of workers over that at a thousand."""
    sizes = (100, 1000, 3000) if brief else SIZES
    found = seconds(1, sizes, 0.05) if brief else seconds()
    return {
        f"{NAMES[name]}: time at {sizes[-1]:,} workers over that at 1,000": harness.Figure(
            "1 for linear growth",
            None if name == "simpy" else 2.0,
            "lower",
            value=round(each[-1] / each[1], 3),
            details={"us_by_workers": {str(n): round(1e6 * s, 3) for n, s in zip(sizes, each, strict=True)}},
        )
        for name, each in found.items()
    }


if __name__ == "__main__":
    harness.main(measure)
