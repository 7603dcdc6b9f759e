"""Emulated training with gradients: what evaluating only what is decoded saves, and one long run of many workers.

Whoever evaluates each worker's task by itself makes as many gradients as there are workers; of replicas that hold the
same data one is enough, and answers that come too late need none.

Verdict: with four replicas 4.3 times less work where each group must answer, 4.4 times where half of the workers close
a round. 10,000 workers, 1,000 rounds: 7 s of wall time on breast-cancer (416 groups), 171 s on the original's one-hot
covertype (2,500 groups, 15,509 parameters), on two cores shared with another benchmark.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import emuml
from benchmarks import harness
from emuml.cluster import Cluster, ShiftedExponential
from emuml.des.rounds import RoundTier
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.protocols.gradient_coding.server import Server
from emuml.roster import Roster
from emuml.rounds import Answers, RoundNodes
from emuml.stopping import Rounds
from emuml.workloads import LogisticRegression

LAW = ShiftedExponential(shift_s=0.05, mean_s=0.5)
COVERTYPE = "ml/covtype_full.npz.xz"


class EachByItself(Server):
    """A server in whose rounds every worker's task is evaluated."""

    tasks: Any = None

    def answered(self, ctx: Any, answers: Answers, late: int) -> None:
        """Evaluate what all workers compute, then go on."""
        question = self.question(ctx)
        for worker in range(self.code.workers):
            self.tasks(question, worker).run()
        super().answered(ctx, answers, late)


def trained(nodes: RoundNodes, problem: Any, workers: int, rounds: int) -> None:
    """Train to the end."""
    roster = Roster.of_counts(1, Rounds(rounds), server=1, worker=workers)
    cluster = Cluster(workers=workers, compute=LAW)
    run = RoundTier(nodes, cluster, roster, problem.full_cost / workers).run()
    if run.error is not None:
        raise run.error


def replicas(brief: bool) -> dict[str, harness.Figure]:
    """Return what sharing replicas saves in coded rounds of real gradients."""
    workers, rounds, turns = (40, 3, 1) if brief else (100, 20, 5)
    problem = LogisticRegression(data="breast-cancer", l2=1e-4).problem(0)
    roster = Roster.of_counts(1, Rounds(rounds), server=1, worker=workers)
    found = {}
    for name, collect in (("exact", None), ("c = n/2", workers // 2)):
        ours = GradientCoding(FractionalRepetition(4), collect).in_rounds(problem, roster)
        server = type("Eager", (EachByItself,), {"tasks": staticmethod(ours.task)})
        arguments = ours.factory.args if isinstance(ours.factory, partial) else ()
        eager = replace(ours, factory=partial(server, *arguments))
        contestants = {
            "each": partial(trained, eager, problem, workers, rounds),
            "shared": partial(trained, ours, problem, workers, rounds),
        }
        times = harness.alternate(contestants, turns, least_s=0.0)
        title = f"P13 coded rounds with gradients, 4 replicas, {name}"
        found[title] = harness.speedup(times, "each", "shared", 3.5)
    return found


def long_run(data: str, replication: int, workers: int, rounds: int) -> harness.Figure:
    """Return the wall time of approximate coding with gradients, data and metrics of every round included."""
    protocol = GradientCoding(FractionalRepetition(replication), collect=workers // 2)
    cluster = Cluster(workers=workers, compute=LAW)
    experiment = emuml.Experiment(LogisticRegression(data=data, l2=1e-4), protocol, cluster, rounds=rounds)
    began = time.perf_counter()
    result = emuml.run(experiment, tier="array")
    wall_s = time.perf_counter() - began
    final = result.metrics.final
    details = {
        "workers": workers,
        "rounds": result.rounds,
        "emulated_s": round(result.duration_s, 3),
        "train_loss": round(final["train_loss"], 6),
        "khz_worker_iterations": round(workers * rounds / wall_s / 1e3, 1),
    }
    return harness.Figure("seconds of wall time", None, "lower", value=round(wall_s, 2), details=details)


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return all figures."""
    workers, rounds = (1000, 5) if brief else (10_000, 1000)
    title = f"{workers:,} workers, {rounds:,} rounds of approximate coding"
    found = replicas(brief)
    found[f"{title}, breast-cancer"] = long_run("breast-cancer", 24, workers, rounds)
    covertype = Path(os.environ.get("EMUML_DATA", "")) / COVERTYPE
    if not brief and covertype.is_file():
        found[f"{title}, covertype"] = long_run(f"covertype:{covertype}", 4, workers, rounds)
    return found
