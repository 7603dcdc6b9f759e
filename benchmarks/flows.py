"""Max-min fair flows: the kernel against SimGrid's C++ engine, and against its own readable twin.

Flows on a fat tree of 8-port switches (128 hosts, equal-cost paths, all links 10 Gbit/s) begin together, between random
hosts and of random sizes; each end changes rates everywhere, so this measures filling. On a star all send to one host:
one bottleneck for all, where virtual time makes an event cost the logarithm of the flows. SimGrid runs as a process of
its own, in turn with ours; its CPU time is that of the simulation, without reading its input; ours is that of the
kernel, from the first flow that is added to the last time. Both take the same routes. Times are compared in each run,
and have to agree to 1e-9. Links have no latency: with latencies SimGrid 3.32's default way of keeping rates up to date
differs from its own other one (``network/optim:Full``) by up to 7 % on these flows; that one and ours agree.

Verdict (2 cores of a shared x86-64 machine, SimGrid 3.32; times faster than its default, and than its best setting):

| flows | fat tree | star incast |
|---|---|---|
| 100 | 6.6, 5.5 | |
| 1,000 | 7.7, 4.6 | 385, 208 |
| 10,000 | 53, 26 | 10,100, 5,700 |
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import harness, simgrid
from emuml import _kernels
from emuml._kernels import FlowSystem, reference_flows
from emuml.cluster import FatTree, Star, Topology

AGREE = 1e-9
_LEAST_S = 0.02

Floats = NDArray[np.float64]


class Case(NamedTuple):
    """Flows over a topology, of which the first ends are computed; and the ratios that are asked for."""

    name: str
    topology: Topology
    flows: list[simgrid.Flow]
    ends: int
    default: float | None
    best: float


def on_fat_tree(count: int, ends: int, default: float, best: float) -> Case:
    """Return random flows on a fat tree."""
    draws, tree = np.random.default_rng(count), FatTree(8, 10e9).build()
    flows = []
    for _ in range(count):
        source, destination = draws.choice(len(tree.hosts), 2, replace=False)
        flows.append((0.0, tree.hosts[source], tree.hosts[destination], int(draws.integers(10**5, 10**7))))
    return Case(f"fat tree k=8, {count:,} flows", tree, flows, ends, default, best)


def on_star(count: int, best: float) -> Case:
    """Return flows of many hosts to one."""
    draws, star = np.random.default_rng(count), Star(count + 1, 10e9).build()
    flows = [(0.0, host, star.hosts[0], int(draws.integers(10**5, 10**7))) for host in star.hosts[1:]]
    return Case(f"star incast, {count:,} flows", star, flows, count, None, best)


def columns(case: Case) -> list[NDArray[Any]]:
    """Return what the kernel takes of the flows of a case."""
    crossings = [case.topology.crossing(source, destination) for _, source, destination, _ in case.flows]
    latencies = np.array([crossed.latency_s for crossed in crossings])
    first = np.cumsum([0, *(len(crossed.channels) for crossed in crossings)]).astype(np.intc)
    route = np.array([channel for crossed in crossings for channel in crossed.channels], np.intc)
    weights = np.array([1 / latency_s if latency_s else 1.0 for latency_s in latencies])
    starts = np.array([flow[0] for flow in case.flows]) + latencies
    sizes = np.array([float(flow[3]) for flow in case.flows])
    return [starts, first, route, weights, np.full(len(sizes), np.inf), sizes]


def ours(
    system: Any, case: Case, given: Sequence[NDArray[Any]], until_s: float, least_s: float = 0.0
) -> tuple[float, Floats]:
    """Return CPU seconds and ends; what is short is repeated for so many seconds."""
    capacities, out = np.array(case.topology.capacities_bytes_per_s), np.full(len(case.flows), np.nan)
    before, calls = time.process_time(), 0
    while not calls or time.process_time() - before < least_s:
        system(capacities).finish(*given, out, until_s)
        calls += 1
    return (time.process_time() - before) / calls, out


def _time_of(case: Case, given: Sequence[NDArray[Any]], ends: int) -> float:
    """Return the time at which so many flows have ended, or one after all."""
    times = np.sort(ours(FlowSystem, case, given, np.inf)[1])
    return float(times[ends - 1]) * (1 + 1e-9) if ends < len(times) else 2 * float(times[-1])


def against_twin(case: Case, given: Sequence[NDArray[Any]], until_s: float, turns: int) -> harness.Figure:
    """Return how many times as fast as its twin the kernel is."""
    times: dict[str, list[float]] = {"kernel": [], "twin": []}
    for _ in range(turns):
        for name, system in (("twin", reference_flows.FlowSystem), ("kernel", FlowSystem)):
            taken_s, _ = ours(system, case, given, until_s, _LEAST_S)
            times[name].append(taken_s)
    return harness.speedup(times, "twin", "kernel", None)


def against_simgrid(
    case: Case, given: Sequence[NDArray[Any]], until_s: float, turns: int, program: Path, folder: Path
) -> dict[str, harness.Figure]:
    """Return how many times as fast as SimGrid we are, by its default and by its best setting.

    Raises
    ------
    SystemExit
        If the two do not agree.
    """
    platform, flows = folder / "platform.xml", folder / "flows.txt"
    simgrid.write_platform(platform, case.topology, case.flows)
    simgrid.write_flows(flows, case.flows)
    times: dict[str, list[float]] = {"ours": [], **{setting: [] for setting in simgrid.SETTINGS}}
    worst = 0.0
    for _ in range(turns):
        for setting, options in simgrid.SETTINGS.items():
            taken_s, expected = simgrid.simulate(program, platform, flows, until_s, options)
            times[setting].append(taken_s)
            own_s, found = ours(FlowSystem, case, given, until_s, _LEAST_S)
            ended = np.isfinite(found) & np.isfinite(expected)
            worst = max(worst, float(np.max(np.abs(found[ended] / expected[ended] - 1))))
            if worst > AGREE or abs(int(np.isfinite(found).sum()) - int(np.isfinite(expected).sum())) > 1:
                raise SystemExit(f"{case.name}: the times of SimGrid ({setting}) differ by {worst:.2g}")
        times["ours"].append(own_s)
    fastest = min(simgrid.SETTINGS, key=lambda setting: statistics.median(times[setting]))
    return {
        f"{case.name}, against SimGrid's default": _figure(times, "default", case.default, worst),
        f"{case.name}, against SimGrid's best ({fastest})": _figure(times, fastest, case.best, worst),
    }


def _figure(times: dict[str, list[float]], setting: str, target: float | None, worst: float) -> harness.Figure:
    found = harness.speedup(times, setting, "ours", target)
    return harness.Figure(
        f"SimGrid, {setting}", target, ratio=found.ratio, details={**found.details, "largest_difference": worst}
    )


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return the figures; without SimGrid those against the twin alone, and why."""
    cases = [
        on_fat_tree(100, 100, 3.0, 1.5),
        on_fat_tree(1_000, 200 if brief else 1_000, 4.0, 2.0),
        on_fat_tree(10_000, 20 if brief else 200, 20.0, 10.0),
        on_star(1_000, 200.0),
        *([] if brief else [on_star(10_000, 2_000.0)]),
    ]
    figures: dict[str, harness.Figure] = {}
    with TemporaryDirectory() as name:
        folder, turns = Path(name), 3 if brief else 5
        try:
            program: Path | None = simgrid.compiled(folder)
        except simgrid.Absent as absent:
            program = None
            figures[f"without SimGrid: {absent}"] = harness.Figure("nothing", None, value=0.0)
        for case in cases:
            given = columns(case)
            until_s = _time_of(case, given, case.ends)
            if program is not None:
                rounds = 1 if len(case.flows) == 10_000 and case.default is None else turns
                figures |= against_simgrid(case, given, until_s, rounds, program, folder)
            if len(case.flows) < 10_000:
                until_s = _time_of(case, given, min(case.ends, 50 if case.default else 1_000))
                figures[f"{case.name}, against the twin"] = against_twin(case, given, until_s, 1 if brief else 3)
    return figures


if __name__ == "__main__":
    if _kernels.IMPLEMENTATION != "compiled":
        raise SystemExit("the kernels are not compiled; build them first")
    harness.main(measure)
