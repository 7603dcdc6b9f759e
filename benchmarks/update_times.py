"""Pushes per second under bounded staleness: the emulator against the exact chain of the workers' leads.

A figure is the relative distance of the emulated rate from the chain's, for exponential times of mean 1 s. Nothing is
trained: pushes are zeros that nobody reads.

Verdict (120,000 pushes each, about 10 s of CPU time a figure): P = 2: 0.32, 0.23, 0.31 % for s = 0, 1, 3; P = 3: 0.36,
0.40, 0.27 %; a standard error is about 0.3 %.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import harness
from benchmarks.round_times import Idle, nothing
from emuml.cluster import Cluster, ShiftedExponential
from emuml.des.emulator import Emulator
from emuml.protocols import AsyncUpdates
from emuml.protocols.async_updates import SSP
from emuml.roster import Roster
from emuml.stopping import Rounds
from emuml.task import Task
from emuml.theory import expected_update_time

PUSHES = 120_000
LAW = ShiftedExponential(shift_s=0.0, mean_s=1.0)


@dataclass(frozen=True)
class IdlePushes(Idle):
    """A problem whose pushes cost nothing to make and everything to wait for."""

    has_state: bool = field(default=False)

    def push(self, parameters: NDArray[Any], share: int, shares: int, draw: int) -> Task:
        """Return a task that takes its share of the time and does nothing."""
        return Task(nothing, (), self.full_cost / shares, (1,), draw=draw)

    def apply(self, state: Any, parameters: NDArray[Any], push: Any, clock: int) -> tuple[Any, NDArray[Any]]:
        """Return what was given."""
        return state, parameters


def figure(workers: int, staleness: int, pushes: int) -> harness.Figure:
    """Return how far the emulated rate is from the chain's."""
    barrier, rounds = SSP(staleness), max(pushes // workers, 1)
    problem, roster = IdlePushes(1.0, np.zeros(1)), Roster.of_counts(1, Rounds(rounds), server=1, worker=workers)
    cluster = Cluster(workers=workers, compute=LAW)
    nodes = AsyncUpdates(barrier).nodes(problem, roster)
    run = Emulator(nodes, cluster, roster, unit_cost=1.0 / workers).run()
    if run.error is not None:
        raise run.error
    found, expected = rounds * workers / run.duration_s, 1.0 / expected_update_time(barrier, workers, LAW)
    details = {"pushes": rounds * workers, "emulated_hz": round(found, 5), "chain_hz": round(expected, 5)}
    distance = round(abs(found / expected - 1.0), 5)
    return harness.Figure("the chain's rate", 0.01, "lower", value=distance, details=details)


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return the distances by number of workers and staleness."""
    pushes = 300 if brief else PUSHES
    return {f"P = {p}, s = {s}": figure(p, s, pushes) for p in (2, 3) for s in (0, 1, 3)}


if __name__ == "__main__":
    harness.main(measure)
