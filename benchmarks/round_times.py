"""Mean round times of the emulator against closed forms, in standard errors.

A figure is the largest distance of the emulated mean from the closed form over both tails of one rule and number of
workers, in standard errors of that mean (from the closed form of the variance). Rounds start afresh; in the last two
rows the server waits for all, and stragglers finish in vain before they take the newest parameters. Nothing is
trained: gradients are a constant that is evaluated once, so that what is tried is the emulator, the stop rules and the
delays.

Verdict (shift 0.05 s, mean 0.5 s; under skip-stale no shift; five minutes of CPU time): all within 2.2 standard errors.

| rule | n = 30, 4,000 rounds | n = 100, 1,500 | n = 1,000, 150 | n = 10,000, 20 |
|---|---|---|---|---|
| uncoded | 0.54 | 0.41 | 1.59 | 1.50 |
| k-of-n, k = n/2 | 1.68 | 1.54 | 1.38 | 0.78 |
| FRC r=5 | 0.48 | 1.43 | 1.52 | 1.35 |
| AGC r=3, c = n/2 | 1.46 | 1.54 | 1.38 | 0.78 |
| AGC r=3, c = n/2, wait-all | 0.54 | 0.41 | 1.59 | 1.50 |
| k-of-n, k = n/2, skip-stale | 1.52 | 2.00 | 0.52 | 2.17 |
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import harness
from emuml.cluster import Cluster, ShiftedExponential
from emuml.des.emulator import Emulator
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.roster import Roster
from emuml.shapes import Stragglers
from emuml.stopping import Rounds
from emuml.task import Task
from emuml.theory import expected_round_time, round_time_variance

ROUNDS = {30: 4000, 100: 1500, 1000: 150, 10000: 20}
"""Rounds by number of workers."""

RULES = {
    "uncoded": lambda n: GradientCoding(Uncoded()),
    "k-of-n, k = n/2": lambda n: GradientCoding(IgnoreStragglers(), collect=n // 2),
    "FRC r=5": lambda n: GradientCoding(FractionalRepetition(5)),
    "AGC r=3, c = n/2": lambda n: GradientCoding(FractionalRepetition(3), collect=n // 2),
    "AGC r=3, c = n/2, wait-all": lambda n: GradientCoding(FractionalRepetition(3), n // 2, "wait-all"),
    "k-of-n, k = n/2, skip-stale": lambda n: GradientCoding(IgnoreStragglers(), n // 2, "skip-stale"),
}
"""Protocols by name, as functions of the number of workers."""

SEEDS = {"fixed": 1, "scaled": 2}
"""Seed of the delays by tail: runs of one rule must not share their draws."""


def nothing() -> NDArray[np.float64]:
    """Return the gradient of a problem without content."""
    return np.zeros(1)


@dataclass(frozen=True)
class Idle:
    """A problem whose gradients cost nothing to make and everything to wait for."""

    full_cost: float
    initial: NDArray[np.float64]

    def gradient(
        self,
        parameters: NDArray[Any],
        owned: tuple[int, ...],
        partitions: int,
        coefficients: tuple[float, ...] | None = None,
        draw: int | None = None,
    ) -> Task:
        """Return a task that takes its share of the time and does nothing."""
        return Task(nothing, (), self.full_cost * len(owned) / partitions, (1,), draw=draw)

    def partition_bounds(self, partitions: int) -> NDArray[np.int64]:
        """Return that every partition has a row."""
        return np.arange(partitions + 1)

    def start(self) -> None:
        """Return no state."""

    def step(
        self, state: Any, parameters: NDArray[Any], gradient: NDArray[Any], round: int
    ) -> tuple[Any, NDArray[Any]]:
        """Return what was given."""
        return state, parameters

    def metrics(self, parameters: NDArray[Any]) -> dict[str, float]:
        """Return nothing."""
        return {}


def round_s(protocol: GradientCoding, workers: int, rounds: int, law: ShiftedExponential, seed: int) -> float:
    """Return the emulated mean seconds per round."""
    problem, roster = Idle(1.0, np.zeros(1)), Roster.of_counts(seed, Rounds(rounds), server=1, worker=workers)
    cluster = Cluster(workers=workers, compute=law)
    run = Emulator(protocol.nodes(problem, roster), cluster, roster, unit_cost=1.0 / workers).run()
    if run.error is not None:
        raise run.error
    return run.duration_s / rounds


def _first(protocol: GradientCoding) -> Stragglers:
    """Return the semantics of the first round: nobody is late in it."""
    return "cancel" if protocol.stragglers == "skip-stale" else protocol.stragglers


def figure(name: str, workers: int, rounds: int) -> harness.Figure:
    """Return the distance of one rule from its closed form."""
    protocol, worst = RULES[name](workers), 0.0
    details: dict[str, object] = {"rounds": rounds}
    for tail, seed in SEEDS.items():
        # Times with a shift remember something: under skip-stale they have no closed form.
        shift_s = 0.0 if protocol.stragglers == "skip-stale" else 0.05
        law = ShiftedExponential(shift_s=shift_s, mean_s=0.5, tail=tail)
        began = time.process_time()
        found = round_s(protocol, workers, rounds, law, seed)
        taken_s = time.process_time() - began
        arguments = protocol.code, workers, law, protocol.collect
        later = expected_round_time(*arguments, protocol.stragglers)
        expected = (expected_round_time(*arguments, _first(protocol)) + (rounds - 1) * later) / rounds
        error_s = math.sqrt(round_time_variance(*arguments, protocol.stragglers) / rounds)
        worst = max(worst, abs(found - expected) / error_s)
        details |= {f"{tail}_emulated_s": round(found, 6), f"{tail}_expected_s": round(expected, 6)}
        details |= {f"{tail}_standard_error_s": round(error_s, 6), f"{tail}_cpu_s": round(taken_s, 3)}
    return harness.Figure("closed form, in standard errors", 3.0, "lower", value=round(worst, 3), details=details)


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return the distances by rule and number of workers."""
    rounds = {workers: max(count // 50, 3) if brief else count for workers, count in ROUNDS.items()}
    return {f"{name}, n = {workers}": figure(name, workers, rounds[workers]) for workers in rounds for name in RULES}


if __name__ == "__main__":
    harness.main(measure)
