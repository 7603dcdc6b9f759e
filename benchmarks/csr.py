"""Gradients on sparse one-hot rows: the kernels against scipy, and a whole run on data of Covertype's shape.

Verdict (Xeon, 2 MB of second-level cache a core, numpy 2.4, scipy 1.17, one thread, median of 11 turns; times faster
than scipy):

| what | kernel | than scipy | rows taken before |
|---|---|---|---|
| sum of a shard of 300 rows, 241,915 columns, in place | 13 us | 10.8 | 5.8 |
| the same of 874 rows | 36 us | 7.4 | 3.1 |
| logistic gradient of 300 rows as a new vector | 93 us | | 1.4 |
| of 874 rows | 149 us | | 1.5 |
| of 396,112 rows, 15,509 columns | 31 ms | | 2.2 |

In place is what gains: the first touch of a new vector of 241,915 numbers takes 40 us; scipy makes one for each sum,
where a worker here makes one for all of its partitions. Larger shards gain less, because they touch more of the vector.
Fetching ahead made the wide sums a tenth faster and those of 15,509 columns an eighth slower, so it is not done.

ErasureHead on 396,112 x 15,509 (30 workers, 100 rounds, 899 gradients of three partitions each) takes 9.0 s of CPU time
and 467 MiB: 1.6 s make the data, 4.0 s evaluate losses and areas under the curve on all rows of 101 versions, 3.0 s are
gradients, and 0.4 s is everything else. The same gradients by scipy alone take 6.8 s.

Blocks of 4,096 rows cost 2 % more than the whole shard at once and stop within 0.3 ms; blocks of 128 take 2.4 times as
long.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import emuml
from benchmarks import harness
from emuml import _kernels
from emuml.blas import single_threaded
from emuml.cluster import Cluster, ShiftedExponential
from emuml.experiment.result import Result
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.workloads import (
    AcceleratedGradientDescent,
    CsrMatrix,
    GradientDescent,
    LogisticRegression,
    RegressionProblem,
)
from emuml.workloads.losses import LOSSES, add_gradients

Vector = NDArray[np.float64]

WIDE, TALL = "amazon-access-twin", "covertype-twin"
"""Data of the shapes of ErasureHead's: 26,215 x 241,915 with 44 ones in a row, 396,112 x 15,509 with 55."""

SHARDS = {300: 8.0, 874: None}
"""Rows of a shard and how many times scipy's speed is asked for; a thirtieth of the wide data has 874 rows."""

OURS, THEIRS, PREPARED = "kernel", "scipy, X[rows].T @ s", "scipy, rows taken before"

WORKERS, REPLICATION, COLLECT, ROUNDS = 30, 3, 15, 100

PEAK_MIB = 2048
"""What the whole run may take at most."""


def features_of(data: str) -> CsrMatrix:
    """Return the training rows of a data set, with the constant column."""
    features = LogisticRegression(data=data, optimizer=GradientDescent(rate=1.0)).problem(0).features
    assert isinstance(features, CsrMatrix)
    return features


def sums(matrix: CsrMatrix, rows: range) -> dict[str, Callable[[], Vector]]:
    """Return the ways to form the weighted sum of a shard's rows; ours adds it to a vector that is there."""
    slopes, total = np.random.default_rng(2).standard_normal(len(rows)), np.zeros(matrix.columns)
    whole = matrix.to_scipy()
    shard = whole[rows.start : rows.stop]

    def kernel() -> Vector:
        matrix.accumulate(rows, slopes, total)
        return total

    return {
        OURS: kernel,
        THEIRS: lambda: whole[rows.start : rows.stop].T @ slopes,
        PREPARED: lambda: shard.T @ slopes,
    }


def gradients(matrix: CsrMatrix, rows: range) -> dict[str, Callable[[], Vector]]:
    """Return the ways to form the logistic gradient of some rows as a new vector."""
    draws = np.random.default_rng(3)
    parameters = 0.1 * draws.standard_normal(matrix.columns)
    targets = np.where(draws.random(len(matrix)) < 0.5, 1.0, -1.0)
    part, theirs = matrix.to_scipy()[rows.start : rows.stop], targets[rows.start : rows.stop]

    def kernel() -> Vector:
        total = np.zeros(matrix.columns)
        add_gradients(LOSSES["logistic"], matrix, targets, rows, parameters, 1.0, total, chunk_rows=4096)
        return total

    return {OURS: kernel, PREPARED: scipy_gradient(part, theirs, parameters)}


def scipy_gradient(X: Any, y: Vector, parameters: Vector) -> Callable[[], Vector]:
    """Return the logistic gradient of the rows of a scipy matrix, as a call."""
    slope = LOSSES["logistic"].slope
    return lambda: X.T @ slope(X @ parameters, y)


def experiment(rounds: int, rows: int | None) -> emuml.Experiment:
    """Return ErasureHead on the twin of Covertype, or on so many rows like its."""
    return emuml.Experiment(
        workload=LogisticRegression(
            data=TALL if rows is None else f"{TALL}:{rows}",
            optimizer=AcceleratedGradientDescent(rate=0.1),
            l2=1 / 396_112,
        ),
        protocol=GradientCoding(FractionalRepetition(REPLICATION), collect=COLLECT),
        cluster=Cluster(workers=WORKERS, compute=ShiftedExponential(shift_s=0.05, mean_s=0.5)),
        rounds=rounds,
    )


def whole_run(rounds: int, rows: int | None) -> dict[str, float]:
    """Emulate it in this process, which must be a fresh one, and return where its time went.

    Returns
    -------
    dict of str to float
        ``wall_s`` and ``cpu_s`` of the run and ``peak_mib`` of the process until then; CPU seconds of the parts of the
        run, each done again by itself as often as the run did it; ``scipy_s`` for the run's gradients by scipy.
    """
    emuml.run(experiment(1, 1000))  # so that all modules are loaded
    declared = experiment(rounds, rows)
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    result = emuml.run(declared)
    figures = {"wall_s": time.perf_counter() - began_s, "cpu_s": time.process_time() - began_cpu_s}
    figures["peak_mib"] = peak_mib()
    began_s = time.process_time()
    problem = declared.workload.problem(declared.seed)
    figures["data_s"] = time.process_time() - began_s
    with single_threaded():
        figures["metrics_s"] = seconds_of(lambda: problem.metrics(result.parameters)) * len(result.metrics.rows)
        return figures | gradients_of(problem, result)


def peak_mib() -> float:
    """Return the most memory that this process has held; ``getrusage`` would count what its parent held, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def gradients_of(problem: RegressionProblem, result: Result) -> dict[str, float]:
    """Return the CPU seconds of all gradients that a run decoded: by our kernels, and by scipy alone.

    The groups take turns, as in the run, because a shard that was just read comes from a cache.
    """
    assert isinstance(problem.features, CsrMatrix)
    whole, bounds, times = problem.features.to_scipy(), problem.partition_bounds(WORKERS), decoded(result)
    ours, theirs = {}, {}
    for group in times:
        owned = tuple(range(REPLICATION * group, REPLICATION * (group + 1)))
        rows = slice(bounds[owned[0]], bounds[owned[-1] + 1])
        ours[group] = problem.gradient(result.parameters, owned, WORKERS).run
        theirs[group] = scipy_gradient(whole[rows], problem.targets[rows], result.parameters)
    return {
        "gradients": times.total(),
        "gradients_s": seconds_in_turn(ours, times),
        "scipy_s": seconds_in_turn(theirs, times),
    }


def seconds_in_turn(work: Mapping[int, harness.Work], times: Mapping[int, int], passes: int = 7) -> float:
    """Return the CPU seconds of calls that are made so many times each, from the median over some passes of all."""
    taken_s = [[harness.cpu_s(call, 1) for call in work.values()] for _ in range(passes)]
    return float(np.median(taken_s, axis=0) @ [times[group] for group in work])


def decoded(result: Result) -> Counter[int]:
    """Return how often each group's gradient was part of a step."""
    sets = (int(row["covered_set"], 16) for row in result.metrics.rows if "covered_set" in row)
    return Counter(group for covered in sets for group in range(WORKERS // REPLICATION) if covered >> group & 1)


def seconds_of(work: Callable[[], object], times: int = 5) -> float:
    """Return the median CPU time of a call."""
    return float(np.median([harness.cpu_s(work, 1) for _ in range(times)]))


def in_a_fresh_process(rounds: int, rows: int | None) -> dict[str, float]:
    """Return the figures of :func:`whole_run` in a process that has held nothing else."""
    program = f"import json; from benchmarks import csr; print(json.dumps(csr.whole_run({rounds}, {rows})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def figures_of(run: dict[str, float]) -> dict[str, harness.Figure]:
    """Return what is said of a whole run."""
    name, details = f"covertype-shaped AGC, n = {WORKERS}", {key: round(value, 3) for key, value in run.items()}
    alone = "scipy, the same gradients and nothing else"
    rest_s = run["cpu_s"] - run["data_s"] - run["metrics_s"]
    return {
        f"{name}: run_s": harness.Figure(
            "no other; parts of it are details", None, "lower", value=round(run["wall_s"], 2), details=details
        ),
        f"{name}: peak_mib": harness.Figure(
            "what a small machine has", PEAK_MIB, "lower", value=round(run["peak_mib"], 1)
        ),
        f"{name}: the run without data and metrics": harness.Figure(
            alone, 1.0, ratio=round(run["scipy_s"] / rest_s, 3),
            details={"ours_s": round(rest_s, 3), "baseline_s": round(run["scipy_s"], 3)},
        ),
        f"{name}: the run": harness.Figure(alone, None, ratio=round(run["scipy_s"] / run["cpu_s"], 3)),
    }  # fmt: skip


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return the speed of the kernels relative to scipy, and the figures of the whole run."""
    options: Any = {"turns": 3, "least_s": 0.002} if brief else {"turns": 11, "least_s": 0.05}
    figures, wide = {}, features_of(WIDE)
    for rows, target in SHARDS.items():
        shard = range(rows, 2 * rows)
        times = harness.alternate(sums(wide, shard), **options)
        for name in (THEIRS, PREPARED):
            asked = target if name == THEIRS else None
            figures[f"sum of {rows} x {wide.columns} against {name}"] = harness.speedup(times, name, OURS, asked)
        times = harness.alternate(gradients(wide, shard), **options)
        figures[f"gradient of {rows} x {wide.columns}"] = harness.speedup(times, PREPARED, OURS, None)
    tall = features_of(f"{TALL}:20000" if brief else TALL)
    times = harness.alternate(gradients(tall, range(len(tall))), **options)
    figures[f"gradient of {len(tall)} x {tall.columns}"] = harness.speedup(times, PREPARED, OURS, None)
    return figures | figures_of(in_a_fresh_process(3 if brief else ROUNDS, 20_000 if brief else None))


if __name__ == "__main__":
    if _kernels.IMPLEMENTATION != "compiled":
        raise SystemExit("the kernels are not compiled; build them first")
    harness.main(measure)
