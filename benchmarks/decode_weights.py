"""Weights of a set of answers: the decoders of exact codes against least squares of numpy, after their preparation.

Verdict (numpy 2.4 with OpenBLAS on one thread, a busy machine, median of 7 turns; ours with error and noise gain):

| workers, missing | null space | times faster than lstsq | Fourier | times faster |
|---|---|---|---|---|
| 30, 3 | 0.021 ms | 3.7 | 0.039 ms | 2.0 |
| 100, 10 (9) | 0.026 ms | 26 | 0.044 ms | 16 |
| 300, 30 (29) | 0.043 ms | 140 | 0.065 ms | 86 |
| 1000, 100 (99) | 0.26 ms | 820 | 0.29 ms | 700 |

Each contestant takes the next of the same random sets of responders in turn, and says what its weights are worth
(error and noise gain), which numpy's least squares does not.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from itertools import cycle

import numpy as np

from benchmarks import harness
from emuml.blas import single_threaded
from emuml.protocols.gradient_coding.codes.cyclic import cyclic_factors, parity_check
from emuml.protocols.gradient_coding.codes.cyclic_code import cyclic_rows
from emuml.protocols.gradient_coding.codes.cyclic_mds import generator, positions_of
from emuml.protocols.gradient_coding.decoders.fourier import Fourier
from emuml.protocols.gradient_coding.decoders.null_space import ExactDecoder, NullSpace
from emuml.protocols.gradient_coding.decoders.seam import Floats, Indices

SIZES = ((30, 3), (100, 10), (300, 30), (1000, 100))
"""Workers and stragglers."""

TARGET_MS = 1.0
"""Of one decoding, for 1,000 workers and 100 stragglers."""

GAIN_MAX = 1e3
"""Of exact decodings of 30 workers with up to 5 random stragglers."""

GAINS = 2_000
"""Sets of responders of which the worst is told."""

SETS = 16
"""Sets of responders that are decoded in turn."""


def null_space(workers: int, stragglers: int) -> NullSpace:
    """Return the decoder of cyclic repetition, prepared."""
    rows = cyclic_rows(cyclic_factors(parity_check(workers, stragglers, seed=1)), np.arange(workers))
    decoder = NullSpace(rows, stragglers)
    _ = decoder.basis
    return decoder


def fourier(workers: int, stragglers: int) -> Fourier:
    """Return the decoder of the cyclic MDS code with as many stragglers or one fewer, such that it is real."""
    stragglers -= (workers - stragglers) % 2 == 0
    factors, order = generator(workers, stragglers), positions_of(workers, "stride")
    rows = cyclic_rows(np.tile(factors, (workers, 1)), order)
    return Fourier(rows, stragglers, order, float(factors.sum()))


def sets_of(decoder: ExactDecoder, spread: bool) -> list[Indices]:
    """Return sets without as many as may be missing, at random or spread over the code with a random gap."""
    workers, draws = decoder.rows.workers, np.random.default_rng(3)
    found = []
    for number in range(SETS):
        if spread:
            positions = (np.arange(decoder.stragglers) * workers // decoder.stragglers + number) % workers
            assert isinstance(decoder, Fourier)
            missing = np.argsort(decoder.order)[positions]
        else:
            missing = draws.choice(workers, decoder.stragglers, replace=False)
        found.append(np.setdiff1d(np.arange(workers), missing))
    return found


def in_turn(work: Callable[[Indices], object], sets: list[Indices]) -> harness.Work:
    """Return the work of the next set at each call."""
    turns = cycle(sets)
    return lambda: work(next(turns))


def contestants(decoder: ExactDecoder, spread: bool = False) -> dict[str, harness.Work]:
    """Return a decoder and numpy's least squares on the rows of those who answered."""
    matrix, sets = decoder.rows.dense(), sets_of(decoder, spread)
    ones = np.ones(decoder.rows.partitions)

    def least_squares(received: Indices) -> Floats:
        return np.asarray(np.linalg.lstsq(matrix[received].T, ones, rcond=None)[0], np.float64)

    return {"ours": in_turn(decoder.weights, sets), "numpy lstsq": in_turn(least_squares, sets)}


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return how many times faster than least squares each decoder is, and its milliseconds."""
    figures: dict[str, harness.Figure] = {}
    for workers, stragglers in SIZES[: 3 if brief else None]:
        for name, decoder in (
            ("null space", null_space(workers, stragglers)),
            ("fourier", fourier(workers, stragglers)),
        ):
            # Random stragglers of large MDS codes are drowned in rounding; spread ones are not, and cost the same.
            spread = name == "fourier" and workers > 100
            with single_threaded():
                times = harness.alternate(contestants(decoder, spread), turns=3 if brief else 7, least_s=0.01)
            title = f"{name}, {workers} workers, {decoder.stragglers} missing"
            figures[f"{title} against lstsq"] = harness.speedup(times, "numpy lstsq", "ours", 1.5)
            taken_ms = 1e3 * statistics.median(times["ours"])
            figures[f"{title}, ms"] = harness.Figure(
                "CPU time on this machine", TARGET_MS, "lower", value=float(f"{taken_ms:.4g}")
            )
    return figures | gains()


def gains() -> dict[str, harness.Figure]:
    """Return the largest noise gain over random stragglers of 30 workers; what is tolerable is a thousand."""
    found: dict[str, harness.Figure] = {}
    draws = np.random.default_rng(5)
    for stragglers in (1, 3, 5):
        for name, decoder, target in (
            ("cyclic MDS", fourier(30, stragglers), GAIN_MAX),
            ("cyclic repetition", null_space(30, stragglers), None),
        ):
            sets = (np.sort(draws.choice(30, 30 - stragglers, replace=False)) for _ in range(GAINS))
            worst = max(decoder.weights(received).noise_gain for received in sets)
            title = f"noise gain of {name}, 30 workers, {stragglers} missing"
            baseline = f"largest of {GAINS:,} random sets"
            found[title] = harness.Figure(baseline, target, "lower", value=float(f"{worst:.3g}"))
    return found


if __name__ == "__main__":
    harness.main(measure)
