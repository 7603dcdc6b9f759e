"""Times of rounds and pushes without running anything: worker-iterations a second, and what one configuration costs.

A worker-iteration is one draw and what becomes of it. Whole calls of ``emuml.theory.sample`` are timed, the workers'
keys included. The baselines are measured in the same turns: the SimPy idiom, a process and a Store for each worker, and
numpy, which draws afresh for all workers (so that no draw has a seed, a worker and a position of its own) and
partitions or adds.

Verdict (10,000 workers, half a minute of CPU time): 140 to 171 million worker-iterations a second of rounds, whatever
the rule and also with decode sets: 3,600 to 4,400 times SimPy, 0.8 to 0.96 times numpy, whose draws nobody can ask for
again one by one. 23 million pushes a second under slack 3 and 14 million without bound (630 and 400 times SimPy). A
configuration of 256 workers and 80 rounds takes 0.34 ms, half of which are the workers' keys; numpy takes 0.36 ms.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

import numpy as np
import simpy

from benchmarks import harness
from emuml.cluster import ShiftedExponential
from emuml.protocols.async_updates import ASP, SSP
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.shapes import All, Count, StopRule
from emuml.theory import sample

WORKERS = 10_000
LAW = ShiftedExponential(shift_s=0.05, mean_s=0.5)
SLACK = 3
CONFIGURATIONS, SMALL, SMALL_ROUNDS = 1_000, 256, 80
SIMPY, NUMPY = "SimPy, a process and a Store for each worker", "numpy, fresh draws for all workers"

Contestants = Mapping[str, tuple[Callable[[], object], int]]
"""Work and its worker-iterations, by name."""


def rules(workers: int) -> dict[str, tuple[StopRule, bool]]:
    """Return stop rules by name, and whether it is asked who answered."""
    groups = FractionalRepetition(5).build(workers).stop_rule()
    early = FractionalRepetition(5).build(workers, collect=workers // 2).stop_rule()
    half = Count(workers, workers // 2)
    return {
        "all": (All(workers), False),
        "k-of-n": (half, False),
        "k-of-n with decode sets": (half, True),
        "cover": (groups, False),
        "cover or count": (early, False),
    }


# The SimPy idiom


def simpy_rounds(workers: int, rounds: int) -> float:
    """Return when so many rounds of all workers end."""
    env = simpy.Environment()
    answers, asked = simpy.Store(env), [simpy.Store(env) for _ in range(workers)]
    seconds = LAW.shift_s + LAW.mean_s * np.random.default_rng(0).standard_exponential((rounds, workers))

    def worker(index: int) -> Generator[Any, Any, None]:
        while True:
            draw = yield asked[index].get()
            yield env.timeout(seconds[draw, index])
            yield answers.put(index)

    def server() -> Generator[Any, Any, None]:
        for draw in range(rounds):
            for store in asked:
                store.put(draw)
            for _ in range(workers):
                yield answers.get()

    for index in range(workers):
        env.process(worker(index))
    env.run(until=env.process(server()))
    return float(env.now)


def simpy_pushes(workers: int, pushes: int) -> float:
    """Return when so many pushes have arrived under bounded staleness."""
    env, clocks, draws = simpy.Environment(), [0] * workers, np.random.default_rng(0)
    arrived, views = simpy.Store(env), [simpy.Store(env) for _ in range(workers)]
    at_clock, held = Counter({0: workers}), defaultdict(list)

    def worker(index: int) -> Generator[Any, Any, None]:
        while True:
            yield views[index].get()
            yield env.timeout(LAW.shift_s + LAW.mean_s * draws.standard_exponential())
            yield arrived.put(index)

    def server() -> Generator[Any, Any, None]:
        slowest = 0
        for store in views:
            store.put(0)
        for _ in range(pushes):
            index = yield arrived.get()
            clocks[index] += 1
            at_clock[clocks[index] - 1] -= 1
            at_clock[clocks[index]] += 1
            held[clocks[index]].append(index)
            slowest += at_clock[slowest] == 0
            for clock in (clocks[index], slowest + SLACK):
                for one in held.pop(clock, ()) if clock <= slowest + SLACK else ():
                    views[one].put(clock)

    for index in range(workers):
        env.process(worker(index))
    env.run(until=env.process(server()))
    return float(env.now)


# The numpy form


def numpy_rounds(workers: int, rounds: int, count: int) -> float:
    """Return when so many rounds end that ``count`` answers close."""
    draws, at_s = np.random.default_rng(0), 0.0
    for _ in range(rounds):
        seconds = LAW.shift_s + LAW.mean_s * draws.standard_exponential(workers)
        at_s += float(np.partition(seconds, count - 1)[count - 1])
    return at_s


def numpy_pushes(workers: int, iterations: int) -> float:
    """Return when the last push of so many iterations of all workers arrives under bounded staleness."""
    draws, finish, slowest = np.random.default_rng(0), np.zeros((iterations + 1, workers)), np.zeros(iterations + 1)
    for c in range(1, iterations + 1):
        start = np.maximum(finish[c - 1], slowest[max(c - SLACK - 1, 0)])
        finish[c] = start + (LAW.shift_s + LAW.mean_s * draws.standard_exponential(workers))
        slowest[c] = finish[c].max()
    return float(np.sort(finish[1:], axis=None)[-1])


# Figures


def compared(contestants: Contestants, target: float, turns: int) -> dict[str, harness.Figure]:
    """Return millions of worker-iterations a second of ours, with ratios to the baselines; ours come first.

    Parameters
    ----------
    contestants : mapping
        The baselines are ``SIMPY`` and ``NUMPY``; the others are ours.
    target : float
        In millions a second.
    turns : int
    """
    times = harness.alternate({name: work for name, (work, _) in contestants.items()}, turns)
    rates = {name: [contestants[name][1] / taken_s for taken_s in taken] for name, taken in times.items()}
    medians = {name: statistics.median(rate) for name, rate in rates.items()}
    figures = {}
    for name in contestants.keys() - {SIMPY, NUMPY}:
        found: dict[str, object] = {}
        for key, base in (("simpy", SIMPY), ("numpy", NUMPY)):
            ratios = [ours / theirs for ours, theirs in zip(rates[name], rates[base], strict=True)]
            found |= {f"{key}_ratio": round(statistics.median(ratios), 2), f"{key}_mhz": round(medians[base] / 1e6, 4)}
        figures[name] = harness.Figure(f"{SIMPY}; {NUMPY}", target, value=round(medians[name] / 1e6, 2), details=found)
    return figures


def rounds_figures(workers: int, rounds: int, turns: int) -> dict[str, harness.Figure]:
    """Return the figures of synchronous rounds."""
    contestants: dict[str, tuple[Callable[[], object], int]] = {
        f"rounds, {name}, M/s": (
            partial(sample.round_times, LAW, rule, rounds, 1, asks_who=asks_who),
            rounds * workers,
        )
        for name, (rule, asks_who) in rules(workers).items()
    }
    contestants[SIMPY] = partial(simpy_rounds, workers, 2), 2 * workers
    contestants[NUMPY] = partial(numpy_rounds, workers, rounds, workers // 2), rounds * workers
    return dict(sorted(compared(contestants, 100.0, turns).items()))


def pushes_figures(workers: int, iterations: int, turns: int) -> dict[str, harness.Figure]:
    """Return the figures of pushes under bounded staleness and without bound."""
    pushes = workers * iterations
    contestants: dict[str, tuple[Callable[[], object], int]] = {
        f"pushes, {barrier!r}, M/s": (partial(sample.push_times, LAW, barrier, workers, pushes, 1), pushes)
        for barrier in (SSP(SLACK), ASP())
    }
    contestants[SIMPY] = partial(simpy_pushes, workers, 2 * workers), 2 * workers
    contestants[NUMPY] = partial(numpy_pushes, workers, iterations), pushes
    return dict(sorted(compared(contestants, 8.0, turns).items()))


def configurations(count: int) -> float:
    """Return the mean seconds a round of the best of so many configurations, each with its own rule and seed."""
    best = np.inf
    for seed in range(count):
        rule = Count(SMALL, SMALL // 2 + seed % (SMALL // 2))
        best = min(best, float(sample.round_times(LAW, rule, SMALL_ROUNDS, seed).ended_s[-1]) / SMALL_ROUNDS)
    return best


def numpy_configurations(count: int) -> float:
    """Return the same of fresh draws."""
    return min(
        numpy_rounds(SMALL, SMALL_ROUNDS, SMALL // 2 + seed % (SMALL // 2)) / SMALL_ROUNDS for seed in range(count)
    )


def configuration_figure(count: int, turns: int) -> harness.Figure:
    """Return what one of many configurations costs, in milliseconds."""
    ours, theirs = "ours", NUMPY
    times = harness.alternate(
        {ours: partial(configurations, count), theirs: partial(numpy_configurations, count)}, turns
    )
    value = statistics.median(times[ours]) / count * 1e3
    details: dict[str, object] = {
        "workers": SMALL,
        "rounds": SMALL_ROUNDS,
        "configurations": count,
        "numpy_ratio": round(harness.ratio_of(times, theirs, ours), 3),
        "numpy_ms": round(statistics.median(times[theirs]) / count * 1e3, 4),
    }
    return harness.Figure(NUMPY, 0.5, "lower", value=round(value, 4), details=details)


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return all figures."""
    workers, rounds, turns = (500, 20, 1) if brief else (WORKERS, 1_000, 5)
    return {
        **rounds_figures(workers, rounds, turns),
        **pushes_figures(workers, max(rounds // 10, 5), turns),
        "configuration, ms": configuration_figure(20 if brief else CONFIGURATIONS, turns),
    }


if __name__ == "__main__":
    harness.main(measure)
