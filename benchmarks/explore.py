"""How fast schedules are explored, and what planted bugs cost: runs per second and runs until found.

A run is a training of four workers in six rounds, about 50 messages of it sent, with one crash: the emulator, an
explorer's picks (p = 0.4), the oracles that come with the protocol. The plain path is the same run without them.

Verdict (2 cores shared with other work, CPython 3.11): 237 explored runs/s of asynchronous updates and 262 of gradient
coding, 0.61 and 0.62 of the plain path. The target is far: of a run's time 0.61 and 0.62 are the emulator and the
nodes, in Python step by step, 0.24 and 0.31 the oracles, 0.15 and 0.07 the choices and their names; building the nodes
takes 8 to 23 us of 4 ms.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import emuml.testing as et
from benchmarks import harness
from emuml.protocols.async_updates import SSP, AsyncUpdates
from emuml.protocols.gradient_coding import FractionalRepetition, GradientCoding
from emuml.streams import generator
from emuml.testing.campaign import described
from emuml.testing.oracles import Description
from emuml.testing.subject import Subject
from emuml.testing.trial import Trier, prepared

PROTOCOLS = {
    "asynchronous updates": AsyncUpdates(barrier=SSP(2)),
    "gradient coding": GradientCoding(code=FractionalRepetition(2)),
}
SCENARIO = et.Scenario(workers=4, rounds=6, faults=(et.CrashFault(node="worker-1", at_s=2.0, restart_after_s=1.0),))
"""About 50 messages."""

TARGET_RUNS_PER_S = 10_000.0


def chooser() -> Callable[[str, int], int]:
    """Return picks that deviate with p = 0.4."""
    draws = generator(0, "", "explore")
    left: list[float] = []

    def choose(name: str, n: int) -> int:
        if len(left) < 2:
            left.extend(draws.random(512).tolist())
        return 1 + int(left.pop() * (n - 1)) if left.pop() < 0.4 else 0

    return choose


def figures(name: str, turns: int, least_s: float) -> dict[str, harness.Figure]:
    """Return runs per second, and what choices and oracles cost."""
    protocol, choose = PROTOCOLS[name], chooser()
    subject = Subject(lambda: protocol)
    tries, bare = Trier(subject, described(et.shipped(protocol))), Trier(subject, Description())
    contestants = {
        "explored": lambda: tries.run(SCENARIO, choose),
        "plain": lambda: bare.run(SCENARIO, asks=False),
    }
    with prepared():
        messages = len(tries.run(SCENARIO).run.trace.of("send"))
        times = harness.alternate(contestants, turns, least_s)
    rate = round(1.0 / statistics.median(times["explored"]), 1)
    return {
        f"explored runs/s, {name}": harness.Figure(
            "the target", TARGET_RUNS_PER_S, value=rate, details={"messages": messages}
        ),
        f"explored against plain, {name}": harness.speedup(times, "plain", "explored", None),
    }


def measure(brief: bool) -> dict[str, harness.Figure]:
    """Return the figures of both protocols."""
    turns, least_s = (3, 0.02) if brief else (9, 0.5)
    return {key: figure for name in PROTOCOLS for key, figure in figures(name, turns, least_s).items()}


if __name__ == "__main__":
    harness.main(measure)
