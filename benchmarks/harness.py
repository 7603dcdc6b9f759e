"""Compare implementations by CPU time in alternating runs, and print figures in one JSON form.

Contestants take turns, so that a change of the machine's speed meets all of them; a ratio is the median over the turns
of the ratio within a turn. Times are CPU time of this process: contestants must not start processes. A figure is
an object with ``ratio`` or ``value``, and ``baseline``, ``target`` and ``better``; further keys are details.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Work = Callable[[], object]
"""One contestant: a call that does the whole work once."""


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Parameters
    ----------
    baseline : str
        What it is compared with or measured on.
    target : float or None
        The value to reach; ``None`` when the figure is only for information.
    better : {"higher", "lower"}
        Which direction is good.
    ratio, value : float, optional
        Exactly one is given: a ratio from alternating runs (dimensionless), or a value in the unit its name says.
    details : mapping
        More to print, such as times in seconds.
    """

    baseline: str
    target: float | None
    better: Literal["higher", "lower"] = "higher"
    ratio: float | None = None
    value: float | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.ratio is None) == (self.value is None):
            raise ValueError("a figure has either a ratio or a value")

    @property
    def reached(self) -> bool | None:
        """Whether the target is met; ``None`` without a target."""
        measured = self.ratio if self.ratio is not None else self.value
        if self.target is None or measured is None:
            return None
        return measured >= self.target if self.better == "higher" else measured <= self.target

    def as_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        kind, measured = ("ratio", self.ratio) if self.ratio is not None else ("value", self.value)
        return {
            kind: measured,
            "baseline": self.baseline,
            "target": self.target,
            "better": self.better,
            **self.details,
        }


def calls_per_turn(work: Work, least_s: float) -> int:
    """Return how many calls take at least ``least_s`` seconds of CPU time; the first calls also warm up."""
    calls = 1
    while True:
        taken_s = cpu_s(work, calls)
        if taken_s >= least_s:
            return calls
        calls = max(2 * calls, int(calls * min(1.2 * least_s / max(taken_s, 1e-9), 100)))


def cpu_s(work: Work, calls: int) -> float:
    """Return the CPU time in seconds of so many calls."""
    start = time.process_time()
    for _ in range(calls):
        work()
    return time.process_time() - start


def alternate(contestants: Mapping[str, Work], turns: int = 7, least_s: float = 0.02) -> dict[str, list[float]]:
    """Let contestants take turns and return CPU seconds per call, one entry per turn.

    Every second turn runs in the opposite order, so that nobody always follows the same neighbour, and nobody pays for
    the garbage that another one has left.

    Parameters
    ----------
    contestants : mapping of str to callable
        By name.
    turns : int
        Turns of each, >= 1.
    least_s : float
        CPU seconds that one turn takes at least; short work is repeated within the turn.
    """
    calls = {name: calls_per_turn(work, least_s) for name, work in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(turns):
        for name in list(contestants)[:: 1 if turn % 2 == 0 else -1]:
            gc.collect()
            times[name].append(cpu_s(contestants[name], calls[name]) / calls[name])
    return times


def ratio_of(times: Mapping[str, Sequence[float]], baseline: str, ours: str) -> float:
    """Return the median over the turns of baseline time over our time: above 1 we are faster."""
    return statistics.median(b / o for b, o in zip(times[baseline], times[ours], strict=True))


def speedup(times: Mapping[str, Sequence[float]], baseline: str, ours: str, target: float | None) -> Figure:
    """Return how many times faster than the baseline we are, as a figure with both median times."""
    return Figure(
        baseline,
        target,
        ratio=round(ratio_of(times, baseline, ours), 3),
        details={
            "ours_s": float(f"{statistics.median(times[ours]):.4g}"),
            "baseline_s": float(f"{statistics.median(times[baseline]):.4g}"),
        },
    )


def main(measure: Callable[[bool], Mapping[str, Figure]], arguments: Sequence[str] | None = None) -> None:
    """Run a benchmark from the command line: ``--json`` prints one object, ``--brief`` measures briefly.

    Parameters
    ----------
    measure : callable
        Takes whether to be brief, returns figures by name.
    arguments : sequence of str, optional
        Instead of the command line.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--brief", "--smoke", action="store_true", help="few and short turns: figures are rough")
    options = parser.parse_args(arguments)
    figures = measure(options.brief)
    if options.json:
        print(json.dumps({name: figure.as_dict() for name, figure in figures.items()}, indent=2))
        return
    for name, figure in figures.items():
        text = f"{figure.ratio:.2f}x" if figure.ratio is not None else f"{figure.value:g}"
        verdict = {True: "reached", False: "missed", None: "for information"}[figure.reached]
        print(f"{name:40} {text:>12}  against {figure.baseline}; target {figure.target} ({verdict})")
