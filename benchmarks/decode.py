"""Weighted sum of k separate buffers of d numbers, as a server decodes: the kernel against what numpy offers.

Verdict (AMD EPYC, numpy 2.4 with OpenBLAS on one thread, median of 11 turns; times faster than each):

| k x d | kernel | numpy twin | best numpy loop | stack and gemv | copy and gemv | gemv in place |
|---|---|---|---|---|---|---|
| 10 x 30 | 0.83 us | 18 | 12 | 7 | 4.5 | 0.6 |
| 30 x 1,000 | 5.3 us | 10 | 8 | 4.5 | 3.2 | 0.6 |
| 100 x 100,000 | 3.4 ms | 1.75 | 1.75 | 4.7 | 2.8 | 0.9 |

The kernel is the fastest way to add separate buffers. On 80 MB everybody waits for memory (it reads 23 GB/s), so it
gains less than 2x there. Only a matrix that is already in place is summed faster, by gemv; but messages arrive in
buffers of their own, and gemv's last bits change with the CPU and the BLAS, while the kernel adds in one order.

Where the weights come from is measured by ``decode_weights`` and ``decode_approximate``, whose figures follow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks import decode_approximate, decode_weights, harness
from emuml import _kernels
from emuml._kernels import reference, weighted_sum

SIZES = ((10, 30), (30, 1_000), (100, 100_000))
"""Buffers and numbers in each."""

OURS = "kernel"

TARGETS = {"numpy twin": 2.0, "numpy loop": 1.0, "stack and gemv": 1.0, "copy and gemv": 1.0, "gemv in place": None}
"""A kernel below twice the speed of its twin is not worth having; the last one is for information."""

MEMORY_BOUND = (100, 100_000)
"""Here the twin is limited by memory as the kernel is, so 1.5 times its speed is what can be asked."""


def contestants(buffers: int, numbers: int) -> dict[str, Callable[[], NDArray[np.float64]]]:
    """Return the ways to form the sum; all read the same separate buffers but ``gemv in place``.

    Most write to one shared result.
    """
    generator = np.random.default_rng(1)
    arrays = [generator.standard_normal(numbers) for _ in range(buffers)]
    weights = generator.standard_normal(buffers)
    out, scratch, stacked = np.empty(numbers), np.empty(numbers), np.stack(arrays)

    def kernel() -> NDArray[np.float64]:
        weighted_sum(weights, arrays, out)
        return out

    def numpy_twin() -> NDArray[np.float64]:
        reference.weighted_sum(weights, arrays, out)
        return out

    def numpy_loop() -> NDArray[np.float64]:
        np.multiply(arrays[0], weights[0], out=out)
        for weight, array in zip(weights[1:], arrays[1:], strict=True):
            np.multiply(array, weight, out=scratch)
            np.add(out, scratch, out=out)
        return out

    def copy_and_gemv() -> NDArray[np.float64]:
        for row, array in zip(stacked, arrays, strict=True):
            row[:] = array
        return np.dot(weights, stacked, out=out)

    return {
        OURS: kernel,
        "numpy twin": numpy_twin,
        "numpy loop": numpy_loop,
        "stack and gemv": lambda: weights @ np.stack(arrays),
        "copy and gemv": copy_and_gemv,
        "gemv in place": lambda: np.dot(weights, stacked, out=out),
    }


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return the speed of the kernel relative to each other way, by size."""
    figures = {}
    for buffers, numbers in SIZES:
        times = harness.alternate(
            contestants(buffers, numbers), turns=3 if brief else 11, least_s=0.002 if brief else 0.03
        )
        for name in times:
            if name != OURS:
                target = 1.5 if name == "numpy twin" and (buffers, numbers) == MEMORY_BOUND else TARGETS[name]
                figures[f"decode {buffers}x{numbers} against {name}"] = harness.speedup(times, name, OURS, target)
    return figures | decode_weights.measure(brief) | decode_approximate.measure(brief)


if __name__ == "__main__":
    if _kernels.IMPLEMENTATION != "compiled":
        raise SystemExit("the kernels are not compiled; build them first")
    harness.main(measure)
