"""Training of many workers: the array tiers against idiomatic SimPy, memory by worker, and one long run with gradients.

Speeds are worker-iterations a second: one dispatch, compute and reply of one worker. SimPy's programs are those of
``benchmarks/simpy_idiom.py``, and the servers of the array tiers decide the same and train nothing
(``benchmarks/lean.py``), unless a figure names a protocol. Contestants take turns, each with its own number of
worker-iterations, and ratios are those of the time of one. Durations are drawn as everywhere in the emulator: by
position, from the seed.

Memory is the growth of the peak of a process's resident memory between two numbers of workers.

Verdict (10,000 workers, five turns, two cores shared with another benchmark): a handler for each push 42x SimPy; a
handler for each round 1,178x where a count closes rounds and 1,390x where a cover does, 71 and 84 million
worker-iterations/s; a handler for each arrival 95x. Gradient coding of 100 groups, decoding and logs included, 163x
SimPy and 89x the event tier; asynchronous updates with their statistics 2.1x and 2.7x. 88 million workers in 2 GiB in
rounds, 17 million of pushes. A run of one round of a million workers event by event: 1.71 GiB, 45 s beside other work
(26 s of CPU). A push takes 1.7 times as long at 100,000 workers as at 1,000: the heap leaves the cache.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import harness, lean, simpy_idiom
from benchmarks.round_times import Idle
from benchmarks.update_times import IdlePushes
from emuml.cluster import Cluster, ShiftedExponential
from emuml.des.array_tier import ArrayTier
from emuml.des.emulator import Emulator
from emuml.des.pushes import PushTier
from emuml.des.rounds import RoundTier
from emuml.protocol import TrainingProtocol
from emuml.protocols import AsyncUpdates, GradientCoding
from emuml.protocols.async_updates import SSP
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers
from emuml.roster import Ids, Roster
from emuml.shapes import Count, Cover
from emuml.stopping import Rounds
from emuml.trace import Trace
from emuml.workloads import LogisticRegression

LAW = ShiftedExponential(shift_s=0.05, mean_s=0.5)
WORKERS = 10_000
STALENESS = 3


@dataclass(frozen=True)
class Contestant:
    """What runs, and how many worker-iterations that is."""

    work: Callable[[], object]
    iterations: int
    details: dict[str, object] = field(default_factory=dict)


def finished(tier: ArrayTier) -> None:
    """Run a tier to its end."""
    run = tier.run()
    if run.error is not None:
        raise run.error


def roster(workers: int, rounds: int) -> Roster:
    """Return one server and many workers."""
    return Roster(Ids({"server": 1, "worker": workers}), 1, Rounds(rounds))


def asked(workers: int, rounds: int, one_by_one: bool = False) -> Contestant:
    """Return rounds of k of n, k = n/2, with a server of a handler for each round."""
    rule = Count(workers, workers // 2)
    nodes = lean.asking(lean.OneByOne(rule) if one_by_one else rule, rounds)
    cluster = Cluster(workers=workers, compute=LAW)
    return Contestant(lambda: finished(RoundTier(nodes, cluster, roster(workers, rounds), 1.0)), workers * rounds)


def covered(workers: int, rounds: int) -> Contestant:
    """Return rounds that an answer of each group of four closes."""
    groups = tuple(tuple(range(first, first + 4)) for first in range(0, workers, 4))
    nodes, cluster = lean.asking(Cover(groups), rounds), Cluster(workers=workers, compute=LAW)
    return Contestant(lambda: finished(RoundTier(nodes, cluster, roster(workers, rounds), 1.0)), workers * rounds)


def pushed(workers: int, pushes: int) -> Contestant:
    """Return pushes under stale synchronous parallel, with a server of a handler for each push."""
    nodes, cluster = lean.pushing(workers, STALENESS, pushes), Cluster(workers=workers, compute=LAW)
    return Contestant(lambda: finished(PushTier(nodes, cluster, roster(workers, 1), 1.0)), pushes)


def coded(protocol: GradientCoding, workers: int, rounds: int) -> Contestant:
    """Return rounds of gradient coding, decoding, logs and versions included, whose gradients cost nothing."""
    problem, cluster = Idle(1.0, np.zeros(1)), Cluster(workers=workers, compute=LAW)

    def work() -> None:
        of = roster(workers, rounds)
        finished(RoundTier(protocol.in_rounds(problem, of), cluster, of, 1.0 / workers))

    return Contestant(work, workers * rounds)


def updated(workers: int, rounds: int) -> Contestant:
    """Return asynchronous updates, statistics included, whose gradients cost nothing."""
    problem, cluster = IdlePushes(1.0, np.zeros(1)), Cluster(workers=workers, compute=LAW)

    def work() -> None:
        of = roster(workers, rounds)
        nodes = AsyncUpdates(SSP(STALENESS)).in_pushes(problem, of)
        assert nodes is not None
        finished(PushTier(nodes, cluster, of, 1.0 / workers))

    return Contestant(work, workers * rounds)


def by_events(protocol: TrainingProtocol, problem: Any, workers: int, rounds: int) -> Contestant:
    """Return the same on the event tier, whose trace is not kept."""
    cluster = Cluster(workers=workers, compute=LAW)

    def work() -> None:
        of = Roster.of_counts(1, Rounds(rounds), server=1, worker=workers)
        nodes, trace = protocol.nodes(problem, of), Trace(keep=False)
        run = Emulator(nodes, cluster, of, unit_cost=1.0 / workers, trace=trace).run()
        if run.error is not None:
            raise run.error

    return Contestant(work, workers * rounds)


def race(contestants: dict[str, Contestant], turns: int) -> dict[str, list[float]]:
    """Let contestants take turns and return CPU seconds per worker-iteration."""
    times = harness.alternate({name: one.work for name, one in contestants.items()}, turns, least_s=0.0)
    return {name: [taken / contestants[name].iterations for taken in times[name]] for name in times}


def speeds(brief: bool) -> dict[str, harness.Figure]:
    """Return speeds at one size against SimPy."""
    workers, turns, factor = (1000, 1, 1) if brief else (WORKERS, 5, 10)
    half = workers // 2
    frc = GradientCoding(FractionalRepetition(100), half)
    contestants = {
        "rounds": Contestant(lambda: simpy_idiom.rounds(workers, factor), workers * factor),
        "pushes": Contestant(
            lambda: simpy_idiom.pushes(workers, workers * factor, STALENESS), workers * factor
        ),
        "k of n": asked(workers, 40 * factor),
        "cover": covered(workers, 40 * factor),
        "by arrival": asked(workers, 5 * factor, one_by_one=True),
        "ssp": pushed(workers, 6 * workers * factor),
        "frc": coded(frc, workers, 5 * factor),
        "k of n, coded": coded(GradientCoding(IgnoreStragglers(), half), workers, factor),
        "async updates": updated(workers, factor),
        "frc by events": by_events(frc, Idle(1.0, np.zeros(1)), workers, 2),
        "updates by events": by_events(AsyncUpdates(SSP(STALENESS)), IdlePushes(1.0, np.zeros(1)), workers, 2),
    }  # fmt: skip
    times = race(contestants, turns)
    named = [
        ("P5 ssp, a handler for each push", "pushes", "ssp", 30.0, None),
        ("P6 k of n, a handler for each round", "rounds", "k of n", 700.0, 40.0),
        ("P6 cover of groups, a handler for each round", "rounds", "cover", 700.0, 40.0),
        ("P7 k of n, a handler for each arrival", "rounds", "by arrival", 50.0, None),
        ("gradient coding, 100 replicas, c = n/2", "rounds", "frc", None, None),
        ("gradient coding, k of n, k = n/2", "rounds", "k of n, coded", None, None),
        ("asynchronous updates, ssp", "pushes", "async updates", None, None),
        ("gradient coding, 100 replicas, c = n/2, array tier", "frc by events", "frc", None, None),
        ("asynchronous updates, ssp, array tier", "updates by events", "async updates", None, None),
    ]
    titles = {
        "rounds": "SimPy, a process and a Store per worker",
        "pushes": "SimPy, a process and a Store per worker",
        "frc by events": "the event tier",
        "updates by events": "the event tier",
    }
    found = {}
    for name, baseline, ours, target, least_mhz in named:
        figure = harness.speedup(times, baseline, ours, target)
        mhz = round(1e-6 / statistics.median(times[ours]), 3)
        details = {**figure.details, "workers": workers, "ours_mhz": mhz}
        found[name] = harness.Figure(titles[baseline], target, ratio=figure.ratio, details=details)
        if least_mhz is not None:
            found[f"{name}, speed"] = harness.Figure("million worker-iterations/s", least_mhz, value=mhz)
    return found


# Memory

_MEMORY = """
import sys
from benchmarks import scale
scale.{what}(int(sys.argv[1]), {rounds}).work()
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def peak_bytes(what: str, workers: int, rounds: int) -> int:
    """Return the peak of the resident memory of a process that runs so many workers."""
    code = _MEMORY.format(what=what, rounds=rounds)
    done = subprocess.run([sys.executable, "-c", code, str(workers)], capture_output=True, text=True, check=True)
    return int(done.stdout)


def memory(brief: bool) -> dict[str, harness.Figure]:
    """Return bytes per worker and how many workers two gibibytes hold."""
    few, many = (100_000, 300_000) if brief else (2_000_000, 6_000_000)
    found = {}
    for name, what, rounds in (("rounds", "asked", 2), ("pushes", "pushed", few)):
        each = (peak_bytes(what, many, rounds) - peak_bytes(what, few, rounds)) / (many - few)
        fit, target = (1 << 31) / each / 1e6, 50.0 if what == "asked" else None
        details = {"bytes_per_worker": round(each, 1), "measured_between": [few, many]}
        title = f"P9 {name}: million workers in 2 GiB"
        found[title] = harness.Figure("SimPy: 1.07 million", target, value=round(fit, 2), details=details)
    return found


# A whole run

_WHOLE = """
import sys, time, resource
from benchmarks import scale
began_s = time.perf_counter()
scale.whole(int(sys.argv[1]))
took_s = time.perf_counter() - began_s
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_maxrss / 2**20, took_s, usage.ru_utime + usage.ru_stime)
"""


def whole(workers: int) -> None:
    """Declare and run one round of as many workers event by event: each has a row, half of them are waited for."""
    import emuml

    experiment = emuml.Experiment(
        workload=LogisticRegression(data=f"two-gaussians:{workers}x2", validation=0.0),
        protocol=GradientCoding(IgnoreStragglers(), collect=workers // 2),
        cluster=Cluster(workers=workers, compute=LAW),
        rounds=1,
    )
    if emuml.run(experiment, tier="event", trace=False).rounds != 1:
        raise RuntimeError("the round did not end")


def event_by_event(brief: bool) -> dict[str, harness.Figure]:
    """Return what one round of a million workers takes on the event tier, in a process of its own."""
    workers = 20_000 if brief else 1_000_000
    done = subprocess.run([sys.executable, "-c", _WHOLE, str(workers)], capture_output=True, text=True, check=True)
    peak_gib, took_s, cpu_s = map(float, done.stdout.split())
    name, details = f"a run of {workers:,} workers, event by event", {"cpu_s": round(cpu_s, 2)}
    return {
        f"{name}: GiB at its peak": harness.Figure("2 GiB", 2.0, "lower", value=round(peak_gib, 3)),
        f"{name}: seconds": harness.Figure("a minute", 30.0, "lower", value=round(took_s, 2), details=details),
    }


# Growth


def groups_of_100(workers: int) -> GradientCoding:
    """Return gradient coding in which a hundred groups hold the data."""
    return GradientCoding(FractionalRepetition(workers // 100))


def growth(brief: bool) -> dict[str, harness.Figure]:
    """Return how the time of a worker-iteration grows with the number of workers."""
    sizes = (100, 1000, 3000) if brief else (100, 1000, 10_000, 100_000)
    least = 100_000 if brief else 2_000_000
    makers: dict[str, tuple[Callable[[int, int], Contestant], int]] = {
        "k of n": (asked, 1),
        "ssp": (lambda n, count: pushed(n, n * count), 4),
        "gradient coding, 100 groups": (lambda n, count: coded(groups_of_100(n), n, count), 4),
    }
    found = {}
    for name, (make, per) in makers.items():
        contestants = {str(n): make(n, max(least // per // n, 3)) for n in sizes}
        times = race(contestants, 1 if brief else 3)
        each_ns = {n: round(1e9 * statistics.median(values), 1) for n, values in times.items()}
        title = f"growth of {name}: time at {sizes[-1]:,} workers over that at {sizes[1]:,}"
        ratio = round(each_ns[str(sizes[-1])] / each_ns[str(sizes[1])], 3)
        details = {"ns_by_workers": each_ns}
        found[title] = harness.Figure("1 for linear growth", 2.0, "lower", value=ratio, details=details)
    return found


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return all figures."""
    from benchmarks import scale_training

    whole_run, training = event_by_event(brief), scale_training.measure(brief)
    return {**speeds(brief), **growth(brief), **memory(brief), **whole_run, **training}


if __name__ == "__main__":
    harness.main(measure)
