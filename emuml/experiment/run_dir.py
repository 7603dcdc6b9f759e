"""The folder of a run: configuration, provenance, metrics and trace, written while the run goes on."""

from __future__ import annotations

import csv
import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import yaml

from emuml.errors import EmumlError, UserError
from emuml.spec import Inputs, to_spec

if TYPE_CHECKING:
    from emuml.experiment.experiment import Experiment
    from emuml.experiment.result import Result
    from emuml.runtime.settings import RuntimeSettings

FORMAT = 1


class FolderTaken(UserError):
    """A run directory that holds a run already."""


class RunDir:
    """A new run directory; an existing one that holds a run is refused.

    ``config.yaml`` (complete, replayable), ``inputs/``, ``provenance.json``, ``metrics.csv`` (a row per logged
    point), ``trace``, and ``parameters.npy`` at the end. ``latest`` beside it points to the newest run. Of a run that
    failed ``error.txt`` says why. :mod:`emuml.experiment.recorded` reads all that back.
    """

    def __init__(
        self,
        path: Path,
        experiment: Experiment,
        engine: str,
        runtime: RuntimeSettings | None = None,
        made_from: dict[str, Any] | None = None,
    ) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._write_config(experiment, engine, runtime)
            (path / "provenance.json").write_text(json.dumps(made_from or {}, indent=1) + "\n")
            self.trace_stream: BinaryIO | None = (path / "trace").open("wb") if engine == "des" else None
            self._metrics = (path / "metrics.csv").open("w", newline="")
        except OSError as error:
            raise UserError(f"cannot write the run directory: {error}", str(path)) from None
        self._columns: list[str] | None = None

    def _write_config(self, experiment: Experiment, engine: str, runtime: RuntimeSettings | None) -> None:
        inputs = Inputs()
        if hasattr(experiment.workload, "embedded"):  # data files of the user may move or change; the run keeps its own
            experiment = replace(experiment, workload=experiment.workload.embedded(experiment.seed))
        spec = {"format": FORMAT, "engine": engine, **experiment.spec(inputs)}
        if runtime is not None:
            spec["runtime"] = {name: value for name, value in to_spec(runtime, inputs).items() if name != "kind"}
        try:
            with (self.path / "config.yaml").open("x") as stream:  # exclusive: of two runs at once, one gets the folder
                stream.write(yaml.safe_dump(spec, sort_keys=False))
        except FileExistsError:
            raise FolderTaken(f"{self.path} already holds a run", "out", "a new folder") from None
        inputs.write(self.path / "inputs")

    def add_row(self, row: dict[str, Any]) -> None:
        """Append a row of metrics; it is in the file when this returns."""
        if self._columns is None:
            self._columns = []
        new = [name for name in row if name not in self._columns]
        if new and not self._columns:
            self._columns = list(row)
            csv.writer(self._metrics).writerow(self._columns)
        elif new:
            self._widen(new)
        csv.writer(self._metrics).writerow([_text(row.get(name)) for name in self._columns])
        self._metrics.flush()

    def _widen(self, new: list[str]) -> None:
        """Start the file again with more columns; rows that are there keep their values."""
        assert self._columns is not None
        self._metrics.close()
        path = self.path / "metrics.csv"
        with path.open(newline="") as stream:
            rows = list(csv.reader(stream))[1:]
        self._columns += new
        self._metrics = path.open("w", newline="")
        writer = csv.writer(self._metrics)
        writer.writerow(self._columns)
        writer.writerows(row + [""] * len(new) for row in rows)

    def finish(self, result: Result) -> None:
        """Write what is known at the end and point ``latest`` here."""
        result.run_dir = self.path
        np.save(self.path / "parameters.npy", result.parameters, allow_pickle=False)
        (self.path / "summary.json").write_text(json.dumps(result.summary(), indent=1) + "\n")
        with suppress(OSError):  # a convenience: a parent that cannot be written does not undo a run
            _point_here(self.path.resolve())

    def fail(self, error: BaseException) -> None:
        """Write down why the run ended early."""
        interrupted = isinstance(error, KeyboardInterrupt)
        text = "interrupted" if interrupted else str(error) if isinstance(error, EmumlError) else repr(error)
        with suppress(OSError):  # what could not be written before cannot be written now
            (self.path / "error.txt").write_text(text + "\n", encoding="utf-8", errors="backslashreplace")

    def close(self) -> None:
        """Close the files."""
        for stream in (self._metrics, self.trace_stream):
            with suppress(OSError):  # a full disk has been told already, by what could not be written
                if stream is not None:
                    stream.close()


def _point_here(path: Path) -> None:
    """Let ``latest`` beside a run directory point to it, unless something else has that name."""
    latest = path.parent / "latest"
    if latest.is_symlink() or not latest.exists():
        temporary = path.parent / f".latest-{os.getpid()}"
        temporary.symlink_to(path.name)
        temporary.replace(latest)


def _text(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)
