"""Sequential codes: how long a configuration takes to follow, and what codes gain on recorded delays.

``python -m benchmarks.sequential`` follows 80 jobs of 256 workers; ``--data`` compares codes on the recordings of the
folder that ``EMUML_DATA`` names. The published simulator took 0.56 ms (uncoded), 1.6 (GC), 8.1 (SR-SGC) and 9.8 (M-SGC)
for a configuration, on two cores; its Lambda profiles, for which the codes were made, may not be passed on.

Verdict (AMD EPYC, two cores shared by other work, median of 7 turns), milliseconds a configuration, and how many times
faster than following the schedule in Python:

| code | ms | target | times |
|---|---|---|---|
| uncoded | 0.025 | 0.03 | 222 |
| GC(15) | 0.040 | 0.08 | 131 |
| SR-SGC(2,3,23) | 0.048 | 0.4 | 52 |
| M-SGC(1,2,27) | 0.081 | 0.5 | 451 |

docs/codes/sequential.md has the table of ``--data``, and what it says.
"""

from __future__ import annotations

import io
import lzma
import os
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import harness
from emuml.errors import UserError
from emuml.protocols.gradient_coding import IgnoreStragglers, Uncoded
from emuml.protocols.sequential_coding import MultiplexedCoding, SelectiveRepetition, Sequence
from emuml.protocols.sequential_coding.plain import Plain
from emuml.theory.sequential import followed, sequential_rounds

Floats = NDArray[np.float64]

WORKERS, JOBS = 256, 80
TARGETS_MS = {"uncoded": 0.03, "GC(15)": 0.08, "SR-SGC(2,3,23)": 0.4, "M-SGC(1,2,27)": 0.5}
PARTS = (0.0, 0.1, 0.5)
"""Shares of the median time that are due to the load; on Lambda it was less than a hundredth."""

WAITS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)


class Candidate(NamedTuple):
    """A code with a name and a kind."""

    kind: str
    name: str
    code: Sequence


def plain(workers: int, stragglers: int) -> Sequence:
    """Return the timing of an ``(n, s)`` gradient code in every round, of the load that it has."""
    return _Coded(IgnoreStragglers().build(workers, collect=workers - stragglers), stragglers)


class _Coded(Plain):
    """Waits for all but ``s`` workers, each with the load ``s + 1`` of a code that stands it."""

    def __init__(self, code: object, stragglers: int) -> None:
        super().__init__(code)
        self._load = stragglers + 1.0

    @property
    def chunk_load(self) -> float:
        """See :class:`Sequence`."""
        return self._load


def delays(workers: int = WORKERS, rounds: int = JOBS + 8, seed: int = 1) -> Floats:
    """Return seconds of which one in a hundred is far larger than the others, like those of cloud functions."""
    random = np.random.default_rng(seed)
    found = 1.0 + 0.2 * random.exponential(size=(rounds, workers))
    found[random.random(found.shape) < 0.01] += 5.0
    return found


def configurations() -> dict[str, Sequence]:
    """Return what is timed."""
    return {
        "uncoded": Plain(Uncoded().build(WORKERS)),
        "GC(15)": plain(WORKERS, 15),
        "SR-SGC(2,3,23)": SelectiveRepetition(2, 3, 23).sequence(WORKERS),
        "M-SGC(1,2,27)": MultiplexedCoding(1, 2, 27).sequence(WORKERS),
    }


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return milliseconds a configuration, and the gain over the schedule in Python."""
    given, figures = delays(), {}
    for name, code in configurations().items():
        extra_s = np.zeros(code.slots + 1)
        work = {
            "ours": lambda code=code: sequential_rounds(given, code, JOBS),
            "schedule": lambda code=code, extra_s=extra_s: followed(given, code, JOBS, 1.0, extra_s),
        }
        times = harness.alternate(work, turns=3 if brief else 7, least_s=0.002 if brief else 0.03)
        ours_ms = 1e3 * statistics.median(times["ours"])
        figures[f"{name}, ms a configuration"] = harness.Figure(
            "the published simulator, 20 times", TARGETS_MS[name], "lower", value=float(f"{ours_ms:.3g}")
        )
        figures[f"{name} against its schedule in Python"] = harness.speedup(times, "schedule", "ours", None)
    return figures


# Recorded delays


def arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of a file, packed or not."""
    packed = path.read_bytes()
    if path.suffix == ".xz":
        packed = lzma.decompress(packed)
    with np.load(io.BytesIO(packed), allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def recordings(folder: Path) -> Iterator[tuple[str, Floats]]:
    """Yield names and delays of shape (rounds, workers), in seconds or units of the source."""
    alibaba = arrays(folder / "stragglers" / "alibaba_pai_minibatch_time.npz")
    for job in ("job1", "job3", "job4"):
        table = alibaba[job].astype(np.float64)
        yield f"Alibaba {job}", table[~np.isnan(table).any(axis=1)]
    for job in ("AR", "ST"):
        yield f"LLM {job}", computing(arrays(folder / "stragglers" / f"bytedance_llm_{job}.npz.xz"))


def computing(operations: dict[str, NDArray[np.generic]]) -> Floats:
    """Return the seconds that each replica and stage computed in each step."""
    kinds = [kind.decode() for kind in operations["optypes"].tolist()]
    is_compute = np.isin(operations["optype"], [i for i, kind in enumerate(kinds) if kind.endswith("-compute")])
    keys = [np.unique(operations[name][is_compute], return_inverse=True) for name in ("step", "dp_rank", "stage")]
    found = np.zeros([len(values) for values, _ in keys])
    np.add.at(found, tuple(place for _, place in keys), operations["duration"][is_compute].astype(np.float64))
    return found.reshape(len(found), -1)


def candidates(workers: int) -> Iterator[Candidate]:
    """Yield uncoded, gradient codes, SR-SGC and M-SGC with all parameters up to some size."""
    yield Candidate("uncoded", "uncoded", Plain(Uncoded().build(workers)))
    for stragglers in range(1, workers):
        yield Candidate("GC", f"GC({stragglers})", plain(workers, stragglers))
    for burst in (1, 2, 3):
        for stragglers in range(1, workers + 1):
            for times in (1, 2, 3):
                window = 1 + burst * times
                code = SelectiveRepetition(burst, window, stragglers)
                yield Candidate("SR-SGC", f"SR-SGC({burst},{window},{stragglers})", code.sequence(workers))
            for window in range(burst + 1, burst + 4):
                mixed = MultiplexedCoding(burst, window, stragglers)
                yield Candidate("M-SGC", f"M-SGC({burst},{window},{stragglers})", mixed.sequence(workers))


def seconds_a_job(table: Floats, code: Sequence, wait: float, slope_s: float) -> float:
    """Return the mean time from one decoded job to the next."""
    jobs = len(table) - code.delay
    return sequential_rounds(table, code, jobs, wait=wait, slope_s=slope_s).seconds / jobs


def compared(table: Floats, part: float) -> dict[str, tuple[str, float, float]]:
    """Return the best of each kind on the first half, and its seconds a job on the second, uncoded being 1.

    Parameters
    ----------
    table : ndarray of shape (rounds, workers)
    part : float
        Share of the median time that is due to the load.

    Returns
    -------
    dict of kind to (name with its ``wait``, on the second half, on the first)
    """
    slope_s, half = part * float(np.median(table)), len(table) // 2
    tried: dict[str, tuple[float, Candidate, float]] = {}
    for candidate in candidates(table.shape[1]):
        for wait in WAITS if candidate.kind != "uncoded" else WAITS[-1:]:
            try:
                found = seconds_a_job(table[:half], candidate.code, wait, slope_s)
            except UserError:  # a chunk that takes less than no time
                continue
            tried[candidate.kind] = min(tried.get(candidate.kind, (np.inf, candidate, wait)), (found, candidate, wait))
    first, last = table[:half], table[half:]
    uncoded = Plain(Uncoded().build(table.shape[1]))
    before, after = (seconds_a_job(each, uncoded, 1.0, slope_s) for each in (first, last))
    return {
        kind: (f"{each.name}, wait {wait:g}", seconds_a_job(last, each.code, wait, slope_s) / after, found / before)
        for kind, (found, each, wait) in tried.items()
    }


def show(recorded: Iterable[tuple[str, Floats]]) -> None:
    """Print a table of what codes gain."""
    print("| delays | rounds x workers | load's part | GC | SR-SGC | M-SGC |")
    print("|---|---|---|---|---|---|")
    for name, table in recorded:
        for part in PARTS:
            found = compared(table, part)
            cells = [f"{found[kind][1]:.3f} ({found[kind][0]})" for kind in ("GC", "SR-SGC", "M-SGC")]
            print(f"| {name} | {len(table)} x {table.shape[1]} | {part:g} | {' | '.join(cells)} |")


if __name__ == "__main__":
    if "--data" not in sys.argv:
        harness.main(measure)
    elif not os.environ.get("EMUML_DATA"):
        raise SystemExit("EMUML_DATA must name the folder of recordings")
    else:
        show(recordings(Path(os.environ["EMUML_DATA"])))
