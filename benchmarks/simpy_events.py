"""SimPy programs on emuml's environment against the same source on SimPy: speed, garbage collection, memory.

``simpy_programs.py`` is loaded twice, once as it stands and once with ``import simpy`` exchanged for ``import
emuml.des.simpy as simpy``. What is timed is the run, after the set-up; collection is on, but for the figures that say
"frozen". The traces of both must be equal, bit for bit.

Verdict (2 cores shared with much other work, CPython 3.11, SimPy 4.1.2): timeouts 6.4, 6.6 and 9.4 times as fast with
1,000, 10,000 and 100,000 processes; the parameter server 13.1, 11.7 and 5.2 times; with both frozen 8.5 and 5.6. A
sleeping process takes 540 bytes (SimPy 973), a worker with its Store 719 (1,297). With 10,000 workers measurements
lay between 7.2 and 11.7, as caches are shared. Memory of dropped events used again took the parameter server with 1,000
workers from about 8.3 to 11.8, a heap without unpredictable branches timeouts with 10,000 processes from 4.9 to 6.3.
What did not help: a ``__dict__`` in the kernel's own struct, as long as ``tp_new`` makes the dict.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import emuml.des.simpy as ours
from benchmarks import harness, simpy_programs

IMPORT = "import simpy\n"
OURS, SIMPY = "emuml", "SimPy"
FROZEN = f"{OURS}, frozen"

TIMEOUTS = {1_000: (200, 5.0), 10_000: (20, 5.0), 100_000: (5, 3.5)}
"""Processes: timeouts of each, and the ratio to reach."""

ROUNDS = {1_000: (40, 12.0), 10_000: (6, 8.0), 100_000: (2, 4.5)}
"""Workers: rounds, and the ratio to reach."""

Build = Callable[..., simpy_programs.Built]


def exchanged() -> ModuleType:
    """Return the programs with our names under SimPy's."""
    source = Path(simpy_programs.__file__).read_text()
    if source.count(IMPORT) != 1:
        raise AssertionError("the programs import SimPy once")
    module = ModuleType("exchanged")
    exec(compile(source.replace(IMPORT, "import emuml.des.simpy as simpy\n"), "exchanged", "exec"), module.__dict__)
    return module


def programs(name: str) -> dict[str, Build]:
    """Return the builders of one program, by whose environment it runs on."""
    return {OURS: getattr(exchanged(), name), SIMPY: getattr(simpy_programs, name)}


def run_s(build: Build, size: tuple[int, int], frozen: bool) -> tuple[float, bytes]:
    """Return the CPU seconds of one run, without its set-up, and its trace."""
    env, until, trace = build(*size)
    gc.collect()
    if frozen:
        with ours.frozen():
            began = time.process_time()
            env.run(until=until)
            taken = time.process_time() - began
    else:
        began = time.process_time()
        env.run(until=until)
        taken = time.process_time() - began
    return taken, trace.tobytes()


def alternate(builds: Mapping[str, Build], size: tuple[int, int], turns: int, frozen: bool) -> dict[str, list[float]]:
    """Let both run a program in turns, in changing order, and make sure that they do the same."""
    times: dict[str, list[float]] = {name: [] for name in builds}
    for turn in range(turns):
        traces = {}
        for name in list(builds)[:: 1 if turn % 2 == 0 else -1]:
            taken, traces[name] = run_s(builds[name], size, frozen)
            times[name].append(taken)
        if len(set(traces.values())) != 1 or not all(traces.values()):
            raise AssertionError(f"{list(builds)} give different traces of {size}")
    return times


def set_up_bytes(build: Build, size: tuple[int, int]) -> float:
    """Return the bytes that a program takes per process when all of its processes wait."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    kept = build(*size)
    kept[0].run(until=0.5)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / size[0]


def memory(name: str, size: int) -> harness.Figure:
    """Return what a process and what belongs to it take."""
    found = {whose: set_up_bytes(build, (size, 3)) for whose, build in programs(name).items()}
    details: dict[str, Any] = {"processes": size, "simpy_bytes": round(found[SIMPY])}
    return harness.Figure(SIMPY, 1000.0, "lower", value=round(found[OURS]), details=details)


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return all figures."""
    figures = {}
    turns = 1 if brief else 7
    for name, sizes in (("timeouts", TIMEOUTS), ("parameter_server", ROUNDS)):
        builds = programs(name)
        for processes, (count, target) in sizes.items():
            if brief and processes > 1_000:
                continue
            size = (processes, 2 if brief else count)
            label = f"{name.replace('_', ' ')}, {processes}"
            times = alternate(builds, size, 5 if processes > 50_000 and not brief else turns, frozen=False)
            figures[label] = harness.speedup(times, SIMPY, OURS, target)
            if processes >= 10_000:
                times = alternate(builds, size, 5, frozen=True)
                figures[f"{label}, both frozen"] = harness.speedup(times, SIMPY, OURS, None)
    size = 1_000 if brief else 10_000
    figures["bytes per sleeping process"] = memory("timeouts", size)
    figures["bytes per worker with its Store"] = memory("parameter_server", size)
    return figures


if __name__ == "__main__":
    harness.main(measure)
