"""How fast node processes start, join and connect, and what each of them holds.

A run of one round with 31 nodes, each a process of its own; several times, the median counts. Seconds from the first
process to the moment at which all links are made. Peak memory is what the kernel counted for the largest node.

Verdict (2 cores shared with other work): 5.2 to 6.5 s, median 5.7 s; 51.4 MB at most.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import emuml
from benchmarks import harness
from emuml.cluster import Cluster, Constant
from emuml.experiment.config import loads
from emuml.experiment.result import Result
from emuml.protocols import GradientCoding
from emuml.workloads import LogisticRegression

WORKERS = 30

CONFIGURATION = """
workload: {{kind: logistic-regression, data: "two-gaussians:{workers}x2", validation: 0.0}}
protocol: {{kind: gradient-coding, code: {{kind: ignore-stragglers}}}}
cluster:
  workers: {workers}
  compute: {{kind: constant, seconds: 1.0}}
faults:
- {{kind: crash, node: worker-7, at_s: 2.0}}
rounds: 1
"""


def start() -> Result:
    """Run one round."""
    return emuml.run(
        emuml.Experiment(
            workload=LogisticRegression(data="breast-cancer"),
            protocol=GradientCoding(),
            cluster=Cluster(workers=WORKERS, compute=Constant(seconds=0.001)),
            rounds=1,
        ),
        "tcp",
    )


def figures_of(runs: Sequence[Result]) -> dict[str, harness.Figure]:
    """Return what some runs say of their starts: the median of the times, the largest of the sizes."""
    seconds = [run.run.statistics["start_s"] for run in runs]
    peak_mb = max(run.run.statistics["max_rss_bytes"] for run in runs) / 1e6
    details: dict[str, object] = {"each_s": [round(value, 2) for value in seconds]} if len(runs) > 1 else {}
    return {
        "start_s": harness.Figure(
            f"goal for {WORKERS + 1} processes on 2 cores",
            8.0,
            "lower",
            value=round(statistics.median(seconds), 2),
            details=details,
        ),
        "node_peak_mb": harness.Figure("76 MB a rank of an MPI program", 60.0, "lower", value=round(peak_mb, 1)),
    }


class Began(Exception):
    """The first parameters are published: the first round begins."""


def first_round(workers: int) -> float:
    """Return CPU seconds from the text of a configuration to the first round of its emulation."""

    def begun(row: dict[str, Any]) -> None:
        raise Began

    text = CONFIGURATION.format(workers=workers)
    began_s = time.process_time()
    try:
        emuml.run(loads(text).experiment, tier="event", trace=False, progress=begun)
    except Began:
        return time.process_time() - began_s
    raise RuntimeError("nothing was published")


def emulated(brief: bool) -> dict[str, harness.Figure]:
    """Return how long an emulation takes to its first round, most of which is making its nodes."""
    workers = 2000 if brief else 100_000
    taken_s = statistics.median([first_round(workers) for _ in range(1 if brief else 5)])
    name = f"CPU seconds to the first round of {workers:,} emulated workers"
    return {name: harness.Figure("10 us a worker", 1e-5 * workers, "lower", value=round(taken_s, 3))}


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Start once, or several times."""
    return emulated(brief) | figures_of([start() for _ in range(1 if brief else 5)])


if __name__ == "__main__":
    harness.main(measure)
