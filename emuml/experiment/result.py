"""The result of an experiment: parameters, metrics, trace, and what it was made from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emuml.outcome import Run
from emuml.trace import Trace

if TYPE_CHECKING:
    from emuml.experiment.experiment import Experiment


class Metrics(Mapping[str, NDArray[np.float64]]):
    """Logged and observed numbers, a row per logged step, by column.

    Columns are numpy arrays; a cell that was not logged is NaN. ``rows`` has the plain rows.
    """

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        names: dict[str, None] = {}
        for row in rows:
            names.update(dict.fromkeys(key for key, value in row.items() if not isinstance(value, str)))
        self._names = list(names)

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        if name not in self._names:
            raise KeyError(f"{name!r}; there are {', '.join(self._names)}")
        return np.array([row.get(name, np.nan) for row in self.rows], np.float64)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def final(self) -> dict[str, float]:
        """The last value of each column."""
        return {name: float(self[name][-1]) for name in self._names} if self.rows else {}


def parameters_sha256(parameters: NDArray[Any]) -> str:
    """Return the SHA-256 of the little-endian bytes of the parameters."""
    little = np.ascontiguousarray(parameters).astype(parameters.dtype.newbyteorder("<"), copy=False)
    return hashlib.sha256(little.tobytes()).hexdigest()


@dataclass
class Result:
    """What :func:`emuml.run` returns.

    Attributes
    ----------
    experiment : Experiment
    engine : str
        ``"des"`` or ``"tcp"``, or ``"replay"``.
    parameters : ndarray
        Trained parameters.
    metrics : Metrics
        A row per logged step: time, round, arrivals, decode error, losses.
    trace : Trace
    duration_s : float
        On the engine's clock, from the start of the run to its stop, or to the last parameters if work was drained
        after them.
    drain_s : float
        How long workers went on with what was queued for them after the last parameters (``stragglers="carry-over"``).
    rounds : int
    wall_s : float
        Wall time of the whole call.
    run : Run
        The engine's own record, with journals.
    run_dir : Path or None
    provenance : dict
    compared : tuple of str
        Of a replay: what was found equal to the recorded run.
    """

    experiment: Experiment
    engine: str
    parameters: NDArray[Any]
    metrics: Metrics
    trace: Trace
    duration_s: float
    rounds: int
    wall_s: float
    run: Run
    drain_s: float = 0.0
    run_dir: Path | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    compared: tuple[str, ...] = ()

    @property
    def parameters_sha256(self) -> str:
        """SHA-256 of the parameters' little-endian bytes."""
        return parameters_sha256(self.parameters)

    @property
    def events(self) -> int:
        """How many events the nodes handled."""
        return self.run.events

    @property
    def tier(self) -> str:
        """How it was emulated: ``"event"``, or ``"array"``, which keeps no trace of messages; else nothing."""
        return self.run.tier

    @property
    def stopped(self) -> str:
        """Why the run stopped."""
        return self.run.stopped or ""

    @property
    def lost(self) -> list[str]:
        """How nodes ended that ended before the run did, one sentence each."""
        return self.run.ends

    def summary(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "parameters_sha256": self.parameters_sha256,
            "duration_s": self.duration_s,
            "drain_s": self.drain_s,
            "wall_s": self.wall_s,
            "rounds": self.rounds,
            "final": self.metrics.final,
            "events": self.events,
            "tier": self.tier,
            "run_dir": None if self.run_dir is None else str(self.run_dir),
            "lost": self.lost,
            "provenance": self.provenance,
        }
