"""What is measured of one run, in numbers, and the time at which it reached a target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emuml.comparison.scales import built_code
from emuml.report.expected import linear_code
from emuml.report.facts import is_quality
from emuml.report.view import View

Floats = NDArray[np.float64]

FINAL = "final_"
TARGET = "target_s"
ROUND = "round_s"
ERROR = "decode_error_per_partition"


class Measure(NamedTuple):
    """How a measure is shown: its name there, and what its numbers are multiplied by.

    Amounts, such as seconds and bytes, are compared by ratios; scores, losses and shares by differences.
    """

    title: str
    scale: float = 1.0
    is_amount: bool = False


_KNOWN = {
    ROUND: Measure("seconds per round", is_amount=True),
    TARGET: Measure("seconds to target", is_amount=True),
    "duration_s": Measure("total seconds", is_amount=True),
    "drain_s": Measure("seconds to drain", is_amount=True),
    "sent_bytes": Measure("megabytes sent", 1e-6, is_amount=True),
    ERROR: Measure("decode error per partition"),
    "covered": Measure("covered fraction"),
}


@dataclass(frozen=True, eq=False)
class Run:
    """One run in numbers.

    Attributes
    ----------
    seed : int
    folder : Path or None
    rounds : int
    values : dict
        By measure: seconds, bytes, fractions, final metrics. What the run does not have is left out.
    round_times_s : ndarray, shape (rounds,)
    times_s, curve : ndarray, shape (rounds + 1,)
        Time of each published version, and the metric of the target there.
    stopped : str
    """

    seed: int
    folder: Path | None
    rounds: int
    values: dict[str, float]
    round_times_s: Floats
    times_s: Floats
    curve: Floats
    stopped: str

    def seconds_to(self, target: float, higher: bool) -> float | None:
        """Return when the metric first was as good as the target; ``None`` if never."""
        reached = np.flatnonzero(self.curve >= target if higher else self.curve <= target)
        return float(self.times_s[reached[0]]) if len(reached) else None


def run_of(view: View, metric: str, metrics: tuple[str, ...] = ()) -> Run:
    """Measure a run.

    Parameters
    ----------
    view : View
        A finished run.
    metric : str
        The one whose target is to be reached.
    metrics : tuple of str
        Of those that tell quality, the final value is a measure.
    """
    logged, times_s = view.metrics, view.round_times_s
    values: dict[str, float] = {"duration_s": view.duration_s}
    if view.traced and view.tier != "array":  # which keeps no trace of messages
        values["sent_bytes"] = float(sent_bytes(view.trace))
    if view.drain_s is not None:  # queued work that is finished after the last parameters
        values["drain_s"] = view.drain_s
    if len(times_s):
        values[ROUND] = float(times_s.mean())
    partitions = _partitions(view)
    if "decode_error" in logged and partitions:  # a share of the data, whatever the number of partitions
        values[ERROR] = _mean(logged["decode_error"]) / partitions
    if "covered" in logged and "groups" in logged and linear_code(view.experiment) is None:  # whose groups are workers
        values["covered"] = _mean(logged["covered"] / logged["groups"])
    for name in metrics:
        if name in logged and (is_quality(name) or name == metric):
            values[FINAL + name] = float(logged[name][-1])
    curve = logged[metric] if metric in logged else np.full(len(times_s) + 1, math.nan)
    seed = view.experiment.seed
    return Run(seed, view.run_dir, view.rounds, values, times_s, logged["time_s"], curve, view.stopped)


def _partitions(view: View) -> int | None:
    """Return the number of partitions of the code, if the protocol has one."""
    code = built_code(view.experiment)
    return getattr(code, "partitions", None)


def sent_bytes(trace: list[tuple[Any, ...]]) -> int:
    """Return the bytes of all messages that were sent, as a trace has them."""
    return sum(int(row[5]) for row in trace if row[2] == "send")


def measure(name: str) -> Measure:
    """Return how a measure is shown."""
    return _KNOWN.get(name) or Measure(name.removeprefix(FINAL).replace("_", " "))


def order(names: set[str]) -> list[str]:
    """Return measures in the order in which they are shown: times, quality, costs."""
    finals = sorted(name for name in names if name.startswith(FINAL))
    finals.sort(key=lambda name: name != f"{FINAL}train_loss")
    wanted = [ROUND, TARGET, "duration_s", "drain_s", *finals, "sent_bytes", ERROR, "covered"]
    return [name for name in wanted if name in names]


def higher_is_better(metric: str) -> bool:
    """Tell whether a metric is a score; otherwise it is a loss."""
    return metric.endswith(("accuracy", "auc", "r2"))


def _mean(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan
