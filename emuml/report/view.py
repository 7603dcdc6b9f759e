"""What a report shows of one run, from a result in memory or from a run directory; the same facts either way.

A directory of a run that was interrupted has no summary; what it has is shown. Nothing here formats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from emuml import names
from emuml.experiment.config import load
from emuml.experiment.experiment import Experiment
from emuml.experiment.folders import no_run
from emuml.experiment.recorded import Rows, failure_of, metrics_of, provenance_of, summary_of, trace_of
from emuml.experiment.result import Metrics, Result
from emuml.experiment.tiers import is_large
from emuml.report.expected import RoundLaw, round_law
from emuml.spec import Inputs
from emuml.trace import OF_STEPS, Records, kept, merge

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class View:
    """One run as reports see it.

    Attributes
    ----------
    label : str
        What legends call it.
    experiment : Experiment
    engine : str
    metrics : Metrics
    trace : list of tuple
        Rows as in :class:`emuml.trace.Trace`.
    summary : dict
        As ``Result.summary()``; empty for a run that did not finish.
    stopped : str
        Why it stopped, as far as the trace tells.
    run_dir : Path or None
    failure : str
        Why it failed, if that is known; the first line says what, further ones where nodes were.
    is_cut : bool
        Whether its summary was cut as it was written.
    traced : bool
        Whether records of messages and tasks are there.
    """

    label: str
    experiment: Experiment
    engine: str
    metrics: Metrics
    trace: Rows
    summary: dict[str, Any] = field(default_factory=dict)
    stopped: str = ""
    run_dir: Path | None = None
    failure: str = ""
    is_cut: bool = False
    traced: bool = True

    @classmethod
    def of_result(cls, result: Result, label: str = "") -> View:
        """Show a result."""
        return cls(
            label or result.experiment.name,
            result.experiment,
            result.engine,
            result.metrics,
            kept(result.trace),
            result.summary(),
            result.stopped,
            result.run_dir,
            traced=not isinstance(result.trace, Records),
        )

    @classmethod
    def of_folder(cls, folder: str | Path, label: str = "") -> View:
        """Show a run directory.

        Raises
        ------
        UserError
            If it is none, of another format, or damaged.
        """
        folder = Path(folder)
        if not (folder / "config.yaml").is_file():
            raise no_run(folder)
        loaded = load(folder / "config.yaml")
        traced = not (loaded.engine == "des" and is_large(loaded.experiment))
        trace = _trace(folder, frozenset() if traced else OF_STEPS)
        stops = [row[3] for row in trace if row[2] == "stop"]
        summary = summary_of(folder)
        return cls(
            label or loaded.experiment.name,
            loaded.experiment,
            loaded.engine,
            Metrics(metrics_of(folder)),
            trace,
            summary or {},
            str(stops[0]) if stops else "" if summary else "the run did not finish",
            folder,
            failure_of(folder),
            summary is None and (folder / "summary.json").exists(),
            traced,
        )

    @property
    def tier(self) -> str:
        """How it was emulated: ``"event"`` or ``"array"``; nothing if that is not known, or it was not emulated."""
        return str(self.summary.get("tier") or self.provenance.get("tier", ""))

    @property
    def rounds(self) -> int:
        """Rounds done."""
        return int(self.metrics["round"].max()) if len(self.metrics) else 0

    @property
    def duration_s(self) -> float:
        """Seconds on the engine's clock."""
        return float(self.summary.get("duration_s", self.metrics.final.get("time_s", 0.0)))

    @property
    def round_times_s(self) -> Floats:
        """Seconds of each round, in order."""
        return np.diff(self.metrics["time_s"]) if len(self.metrics) else np.zeros(0)

    @cached_property
    def drain_s(self) -> float | None:
        """Seconds from the end of the last round until all work was done; None when nobody waited for that."""
        if self.stragglers != "carry-over":
            return None
        logged = (row[3].get("drain_s") for row in reversed(self.trace) if row[2] == "log")
        return next((float(value) for value in logged if value is not None), None)

    @property
    def decided_round_times_s(self) -> Floats:
        """Seconds from the start of each round until its stop rule fired, for servers that say when."""
        return self.metrics["decided_s"][1:] - self.metrics["time_s"][:-1]

    def tally(self, name: str) -> Counter[int]:
        """Add up the histograms that were logged under a name, such as ``0:12 1:3``."""
        found: Counter[int] = Counter()
        for value, times in self._pairs(name):
            found[value] += int(times)
        return found

    def sums(self, name: str) -> dict[int, float]:
        """Add up the amounts that were logged under a name for each worker, such as ``0:1.5 3:0.25``."""
        found: dict[int, float] = {}
        for worker, amount in self._pairs(name):
            found[worker] = found.get(worker, 0.0) + float(amount)
        return found

    def _pairs(self, name: str) -> Iterator[tuple[int, str]]:
        for row in self.metrics.rows:
            for item in str(row.get(name) or "").split():
                value, _, amount = item.partition(":")
                yield int(value), amount

    @property
    def lost(self) -> list[str]:
        """How nodes ended that ended before the run did, a sentence each; of a run without summary, by its trace."""
        if self.summary:
            return list(self.summary["lost"])
        # Over TCP a planned crash has two records, the second one of the process that it ended.
        ends = {(str(row[1]), row[3]): _ended(*row) for row in self.trace if row[2] in ("crash", "exit")}
        return list(ends.values())

    @property
    def losses(self) -> list[str]:
        """Names of the losses that were observed, the training loss first."""
        return sorted((name for name in self.metrics if name.endswith("_loss")), key=lambda name: name != "train_loss")

    @property
    def provenance(self) -> dict[str, Any]:
        """Versions, seed, data and command."""
        recorded = self.summary.get("provenance")
        if recorded is None and self.run_dir is not None:
            is_there = (self.run_dir / "provenance.json").exists()
            recorded = provenance_of(self.run_dir) if is_there else {}
        return dict(recorded or {})

    def config(self) -> str:
        """Return the complete configuration as YAML."""
        return yaml.safe_dump({"engine": self.engine, **self.experiment.spec(Inputs())}, sort_keys=False)

    @cached_property
    def round_law(self) -> RoundLaw:
        """The time of a round in closed form.

        There is none for a real run whose tasks did not take what the cluster's law says.
        """
        scale = 1.0
        if self.engine == "tcp":
            runtime = self.provenance.get("runtime", {})
            if runtime.get("inject", "floor") != "floor":
                return RoundLaw(reason="tasks took what they took, not what the law of the cluster says")
            scale = float(runtime.get("time_scale", 1.0))
        return round_law(self.experiment, scale)

    def expected_round_s(self) -> float | None:
        """Return the mean seconds per round in closed form, for equal shares and free messages, if there is one."""
        return self.round_law.mean_s

    @property
    def stragglers(self) -> str:
        """What became of work on a closed round."""
        return str(getattr(self.experiment.protocol, "stragglers", "cancel"))

    def seconds_to(self, loss: float, metric: str = "train_loss") -> float | None:
        """Return the time at which a metric was first at most ``loss``."""
        times, values = self.metrics["time_s"], self.metrics[metric]
        reached = np.flatnonzero(values <= loss)
        return float(times[reached[0]]) if len(reached) else None


def brief(declaration: Any) -> str:
    """Return a declaration as one line: its kind and the fields that differ from their defaults.

    Examples
    --------
    >>> from emuml.protocols.gradient_coding import FractionalRepetition
    >>> brief(FractionalRepetition(replication=3))
    'fractional-repetition(replication=3)'
    """
    if isinstance(declaration, tuple):
        return f"[{', '.join(map(brief, declaration))}]"
    if not is_dataclass(declaration) or isinstance(declaration, type):
        return f"array{declaration.shape}" if isinstance(declaration, np.ndarray) else str(declaration)
    if isinstance(short := getattr(declaration, "in_short", None), str):
        return short
    shown = []
    for item in fields(declaration):
        value = getattr(declaration, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if item.init and (isinstance(value, np.ndarray | tuple) or value != default):
            shown.append(f"{item.name}={brief(value)}")
    kind = names.kind_of(type(declaration)).rpartition(":")[2]
    return f"{kind}({', '.join(shown)})" if shown else kind


def _ended(time_s: float, node: str, kind: str, life: int, reason: str = "") -> str:
    """Return how a node ended, as engines say it, from the record of that."""
    how = f"crashed at t={time_s:.6g} s" if kind == "crash" else f"{reason} at t={time_s:.3f} s"
    return f"{node} (life {life}) {how}"


def _trace(folder: Path, without: frozenset[str]) -> Rows:
    """Read the trace of the run, or those of its nodes, as far as they go; one without its header was cut."""
    whole = folder / "trace"
    paths = [whole] if whole.exists() else sorted(folder.glob("nodes/*/trace*"))
    return merge(trace_of(path, without) for path in paths if path.is_dir() or path.stat().st_size).rows
