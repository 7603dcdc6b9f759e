"""Delays for adaptive coding: stationary laws, laws that change, and recorded ones from ``EMUML_DATA``.

A case gives the seconds of all workers by round and load. Recorded times are those of load 1; how they would grow with
the load nobody recorded, so each trace is taken twice: all of it in proportion to the load (``scaled``), or only the
fastest time of each worker (``shifted``: what is beyond it came from elsewhere).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from emuml.protocols.adaptive_coding.following import Times
from emuml.workloads.data.files import arrays, data_folder

Floats = NDArray[np.float64]


class Case(NamedTuple):
    """Delays of a cluster: ``of(seed)`` gives those of one run."""

    name: str
    workers: int
    rounds: int
    of: Callable[[int], Times]


def law(kind: str, workers: int, rounds: int, seed: int) -> Times:
    """Return times of a law by its name: a form of load dependence and a shape.

    ``A``: ``load * shift + X``; ``B``: ``load * (shift + X)``; X is exponential of mean 0.5 s, or Pareto.
    """
    form, shape, shift = kind.split()
    drawn = np.random.default_rng(seed)
    if shape == "exponential":
        excess = drawn.exponential(0.5, (rounds, workers))
    else:
        excess = 0.3 * (drawn.random((rounds, workers)) ** (-1.0 / 2.2) - 1.0)  # mean 0.25, infinite fourth moment
    shift_s = float(shift)
    return lambda i, load: load * shift_s + excess[i % rounds] if form == "A" else load * (shift_s + excess[i % rounds])


STATIONARY = (
    "A exponential 0.05",
    "A exponential 0.5",
    "B exponential 0.05",
    "B exponential 0.5",
    "A pareto 0.1",
    "B pareto 0.1",
)


def stationary(rounds: int, sizes: tuple[int, ...]) -> Iterator[Case]:
    """Yield one case for each law and number of workers."""
    for workers in sizes:
        for kind in STATIONARY:
            yield Case(
                f"{kind}, n = {workers}",
                workers,
                rounds,
                partial(law, kind, workers, rounds),
            )


def changing(rounds: int, workers: int = 30) -> Iterator[Case]:
    """Yield delays whose law changes halfway, or by thirds."""
    half = rounds // 2

    def switched(before: str, after: str, at: int = half, until: int = rounds) -> Callable[[int], Times]:
        def of(seed: int) -> Times:
            first, second = law(before, workers, rounds, seed), law(after, workers, rounds, seed + 1000)
            return lambda i, load: (second if at <= i < until else first)(i, load)

        return of

    def slowed(count: int, factor: float) -> Callable[[int], Times]:
        def of(seed: int) -> Times:
            base, factors = law("B exponential 0.5", workers, rounds, seed), np.ones(workers)
            factors[np.random.default_rng(seed).permutation(workers)[:count]] = factor
            return lambda i, load: np.asarray(base(i, load)) * (factors if i >= half else 1.0)

        return of

    yield Case("A to B halfway", workers, rounds, switched("A exponential 0.05", "B exponential 0.5"))
    yield Case("B to A halfway", workers, rounds, switched("B exponential 0.5", "A exponential 0.05"))
    yield Case("shift 0.05 to 1 halfway", workers, rounds, switched("A exponential 0.05", "A exponential 1"))
    yield Case(
        "shift 1 for the middle third",
        workers,
        rounds,
        switched("A exponential 0.05", "A exponential 1", rounds // 3, 2 * rounds // 3),
    )
    yield Case("three workers 8 times slower from halfway", workers, rounds, slowed(3, 8.0))
    yield Case("nine workers 3 times slower from halfway", workers, rounds, slowed(9, 3.0))


def slowed_matrix(rounds: int, workers: int = 30, count: int = 9, factor: float = 3.0) -> Floats:
    """Return times of load 1, shape (rounds, workers), of workers some of which become slower halfway."""
    base = law("B exponential 0.5", workers, rounds, 0)
    times = np.array([base(i, 1.0) for i in range(rounds)])
    times[rounds // 2 :, np.random.default_rng(0).permutation(workers)[:count]] *= factor
    return times


def recorded() -> Iterator[Case]:
    """Yield the traces that ``EMUML_DATA`` holds, in both readings; nothing without it."""
    for name, times in _traces():
        yield Case(f"{name}, scaled", times.shape[1], len(times), partial(_recorded, times, times))
        shifts = np.broadcast_to(times.min(axis=0), times.shape)
        yield Case(f"{name}, shifted", times.shape[1], len(times), partial(_recorded, times, shifts))


def _recorded(times: Floats, per_load: Floats, seed: int) -> Times:
    """Return recorded times, of which a part grows with the load; a recording has no seed."""
    return lambda i, load: times[i] + (load - 1.0) * per_load[i]


def _traces() -> Iterator[tuple[str, Floats]]:
    folder = data_folder("benchmarks.adaptive")
    if folder is None:
        return
    folder = folder / "stragglers"
    mini_batches = arrays(folder / "alibaba_pai_minibatch_time.npz", "trace", "arrays")
    for job in ("job1", "job3", "job4"):
        times = mini_batches[job].astype(np.float64)
        times = times[np.isfinite(times).all(axis=1) & (times > 0).all(axis=1)]
        yield f"Alibaba {job}", times / float(np.median(times))
    for job, repeats in (("AR", 5), ("ST", 8)):
        times = _computed(arrays(folder / f"bytedance_llm_{job}.npz.xz", "trace", "arrays"))
        yield f"ByteDance {job}, {repeats} times over", np.tile(times / float(np.median(times)), (repeats, 1))
    noise = arrays(folder / "azure_vm_noise.npz.xz", "trace", "arrays")
    for test in ("Stress-NG|Test:_Matrix_Math", "Intel_Memory_Latency_Checker|Test:_Max_Bandwidth_-_All_Reads"):
        yield f"Azure {test.partition('|')[0]}", _machines(noise, test)


def _computed(operations: dict[str, NDArray[np.generic]]) -> Floats:
    """Return the seconds that each worker of each pipeline stage computed in each step, shape (steps, workers)."""
    kinds = [name.decode() for name in operations["optypes"].tolist()]
    is_work = np.isin(operations["optype"], [kinds.index("forward-compute"), kinds.index("backward-compute")])
    rank = operations["dp_rank"].astype(int) * (int(operations["stage"].max()) + 1) + operations["stage"].astype(int)
    steps, step = np.unique(operations["step"][is_work], return_inverse=True)
    workers, worker = np.unique(rank[is_work], return_inverse=True)
    found = np.zeros((len(steps), len(workers)))
    np.add.at(found, (step, worker), operations["duration"][is_work].astype(np.float64))
    return found[1:-1]  # the first and the last step are recorded in part


def _machines(noise: dict[str, NDArray[np.generic]], test: str, rounds: int = 1000) -> Floats:
    """Return times of twelve machines, the inverse of their rates, each in the order of its measurements."""
    columns = []
    for name in sorted(name for name in noise if name.startswith(test) and name.endswith("|value")):
        values, machines = noise[name].astype(np.float64), noise[name.replace("|value", "|vm")]
        columns += [1.0 / values[machines == one][:rounds] for one in np.unique(machines)]
    times = np.stack([column[: min(map(len, columns))] for column in columns], axis=1)
    return times / float(np.median(times))
