"""What a report shows of one run, from a result in memory or from a run directory; the same facts either way.

A directory of a run that was interrupted has no summary; what it has is shown. Nothing here formats.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from emuml import names
from emuml.errors import FormatError, UserError
from emuml.experiment.config import load
from emuml.experiment.experiment import Experiment
from emuml.experiment.result import Metrics, Result
from emuml.report.expected import RoundLaw, round_law
from emuml.spec import Inputs
from emuml.trace import merge, read_rows

Floats = NDArray[np.float64]
Rows = list[tuple[Any, ...]]


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
    """

    label: str
    experiment: Experiment
    engine: str
    metrics: Metrics
    trace: Rows
    summary: dict[str, Any] = field(default_factory=dict)
    stopped: str = ""
    run_dir: Path | None = None

    @classmethod
    def of_result(cls, result: Result, label: str = "") -> View:
        """Show a result."""
        return cls(
            label or result.experiment.name,
            result.experiment,
            result.engine,
            result.metrics,
            result.trace.rows,
            result.summary(),
            result.stopped,
            result.run_dir,
        )

    @classmethod
    def of_folder(cls, folder: str | Path, label: str = "") -> View:
        """Show a run directory.

        Raises
        ------
        UserError
            If it is none, or of another format.
        """
        folder = Path(folder)
        if not (folder / "config.yaml").is_file():
            raise UserError("there is no config.yaml", str(folder), "a run directory, such as runs/latest")
        loaded = load(folder / "config.yaml")
        trace = _trace(folder)
        stops = [row[3] for row in trace if row[2] == "stop"]
        summary = _json(folder / "summary.json")
        return cls(
            label or loaded.experiment.name,
            loaded.experiment,
            loaded.engine,
            Metrics(_metrics(folder / "metrics.csv")),
            trace,
            summary,
            str(stops[0]) if stops else "" if summary else "the run did not finish",
            folder,
        )

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
    def losses(self) -> list[str]:
        """Names of the losses that were observed, the training loss first."""
        return sorted((name for name in self.metrics if name.endswith("_loss")), key=lambda name: name != "train_loss")

    @property
    def provenance(self) -> dict[str, Any]:
        """Versions, seed, data and command."""
        recorded = self.summary.get("provenance")
        if recorded is None and self.run_dir is not None:
            recorded = _json(self.run_dir / "provenance.json")
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
    shown = []
    for item in fields(declaration):
        value = getattr(declaration, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if item.init and (isinstance(value, np.ndarray | tuple) or value != default):
            shown.append(f"{item.name}={brief(value)}")
    kind = names.kind_of(type(declaration)).rpartition(":")[2]
    return f"{kind}({', '.join(shown)})" if shown else kind


def _metrics(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    with path.open(newline="") as stream:
        return [{name: _number(text) for name, text in row.items() if text} for row in csv.DictReader(stream)]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _trace(folder: Path) -> Rows:
    """Read the trace of the run, or those of its nodes, as far as they go."""
    paths: Iterable[Path] = (
        [folder / "trace"] if (folder / "trace").is_file() else sorted(folder.glob("nodes/*/trace*"))
    )
    found = []
    for path in paths:
        try:
            found.append(list(read_rows(path)))
        except FormatError:
            if path.stat().st_size:  # a file without its header belongs to a run that was cut
                raise
    return merge(found).rows


def _json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.is_file() else {}
