"""Approximate codes: weights of a set of answers against least squares of numpy, and rounds closed by their error.

Verdict (numpy 2.4 with OpenBLAS on one thread, a busy machine, median of 7 turns; load 4, a tenth missing, whole calls
of ``decode``):

| decoder | 1,000 workers | times faster than lstsq | 100,000 workers |
|---|---|---|---|
| components | 0.029 ms | 1,500 | 3.5 ms |
| group flags | 0.026 ms | 1,700 | 1.2 ms |
| tiling | 0.016 ms | 2,700 | 1.2 ms |
| one step | 0.030 ms | 1,400 | 3.5 ms |

Rounds of 10,000 workers are closed at 22 (error) and 31 (tiling) million worker-iterations a second: half of the time
is the sort of the arrivals.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from functools import partial

import numpy as np

from benchmarks import harness
from benchmarks.decode_weights import in_turn
from emuml.blas import single_threaded
from emuml.cluster import ShiftedExponential
from emuml.protocols.gradient_coding import BalancedRepetition, Bernoulli, BuiltCode, FractionalRepetition, GraphCode
from emuml.protocols.gradient_coding.codes.graphs import RandomRegular
from emuml.protocols.gradient_coding.decoders.seam import Floats, Indices
from emuml.shapes import StopRule, Tracker
from emuml.theory import sample

LOAD = 4
SETS = 16
"""Sets of responders that are decoded in turn; a tenth of the workers is missing."""

SMALL, LARGE = 1_000, 100_000
TARGETS_MS: Mapping[str, float] = {"components": 0.1, "group flags": 0.1, "tiling": 1.0, "one step": 1.0}
"""Of one decoding for 1,000 workers."""

WORKERS, ROUNDS = 10_000, 1_000


def codes(workers: int) -> dict[str, BuiltCode]:
    """Return codes of one load by the name of their decoder."""
    return {
        "components": GraphCode(RandomRegular(LOAD)).build(workers, seed=1),
        "group flags": FractionalRepetition(LOAD).build(workers),
        "tiling": BalancedRepetition(LOAD - 1).build(workers),
        "one step": Bernoulli(LOAD).build(workers, seed=1),
    }


def sets_of(workers: int) -> list[Indices]:
    """Return random sets of nine tenths of the workers."""
    draws = np.random.default_rng(3)
    return [np.sort(draws.permutation(workers)[: workers - workers // 10]) for _ in range(SETS)]


def contestants(workers: int, with_least_squares: bool) -> dict[str, harness.Work]:
    """Return whole decodings: who answered is checked, and weights, error and noise gain are told."""
    built, sets = codes(workers), sets_of(workers)
    found: dict[str, harness.Work] = {name: in_turn(code.decode, sets) for name, code in built.items()}
    if with_least_squares:
        matrix = built["components"].encode_matrix
        ones = np.ones(matrix.shape[1])

        def least_squares(received: Indices) -> Floats:
            return np.asarray(np.linalg.lstsq(matrix[received].T, ones, rcond=None)[0], np.float64)

        found["numpy lstsq"] = in_turn(least_squares, sets)
    return found


class OneByOne(StopRule):
    """A rule that is told of arrivals one by one, as an event-driven engine tells it."""

    def __init__(self, rule: StopRule) -> None:
        self.workers, self.rule = rule.workers, rule

    def tracker(self) -> Tracker:
        """See :meth:`StopRule.tracker`."""
        return self.rule.tracker()

    def closing_index(self, order: Indices) -> int:
        """See :meth:`StopRule.closing_index`."""
        arrived = self.tracker().arrived
        return next((used for used, worker in enumerate(order.tolist(), 1) if arrived(worker)), 0)


def rounds(brief: bool) -> dict[str, harness.Figure]:
    """Return millions of worker-iterations a second of rounds that an error or a tiling closes."""
    workers, count = (500, 20) if brief else (WORKERS, ROUNDS)
    law, few = ShiftedExponential(shift_s=0.05, mean_s=0.5), max(count // 100, 5)
    found = {}
    for name, rule in (
        ("error", GraphCode(RandomRegular(LOAD), tolerance=0.01).build(workers, seed=1).stop_rule()),
        ("tiling", BalancedRepetition(LOAD - 1).build(workers).stop_rule()),
    ):
        ours = partial(sample.round_times, law, rule, count, 1)
        trackers = partial(sample.round_times, law, OneByOne(rule), few, 1)
        times = harness.alternate({"ours": ours, "trackers": trackers}, turns=1 if brief else 5)
        rate = count * workers / statistics.median(times["ours"]) / 1e6
        ratio = harness.ratio_of(times, "trackers", "ours") * count / few
        found[f"rounds closed by {name}, {workers} workers, M/s"] = harness.Figure(
            "arrivals one by one", None, value=round(rate, 2), details={"trackers_ratio": round(ratio, 1)}
        )
    return found


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return milliseconds of decodings, how many times faster than least squares they are, and rates of rounds."""
    figures: dict[str, harness.Figure] = {}
    for workers in (SMALL,) if brief else (SMALL, LARGE):
        is_small = workers == SMALL
        with single_threaded():
            times = harness.alternate(contestants(workers, is_small), turns=3 if brief else 7, least_s=0.01)
        for name in TARGETS_MS:
            title, taken_ms = f"{name}, {workers} workers", 1e3 * statistics.median(times[name])
            target = TARGETS_MS[name] if is_small else None
            machine = "CPU time on this machine"
            figures[f"{title}, ms"] = harness.Figure(machine, target, "lower", value=float(f"{taken_ms:.4g}"))
            if is_small:
                figures[f"{title} against lstsq"] = harness.speedup(times, "numpy lstsq", name, 100.0)
    return figures | rounds(brief)


if __name__ == "__main__":
    harness.main(measure)
