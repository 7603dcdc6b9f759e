"""Observers: loss and metrics of published versions, evaluated off the nodes, the same on both engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from emuml.outcome import Logged, Published
from emuml.protocol import Problem
from emuml.stopping import StopCondition

RowSink = Callable[[dict[str, Any]], None]
"""Called for each finished row of metrics, as it is made."""


@runtime_checkable
class Watcher(Protocol):
    """Somebody who shows progress and wants to know how far a run is also between two rows."""

    def watch(self, peek: Callable[[], dict[str, float]]) -> None:
        """Take what says how far it is; see :class:`Observatory`."""
        ...


class Observatory:
    """Joins what servers log with the metrics of what they publish, into one row per version.

    Parameters
    ----------
    problem : Problem
    stop : StopCondition
        Asked with the metrics of each version.
    sinks : callables
        Each finished row is handed to them, so that rows are on disk as soon as they exist.

    Attributes
    ----------
    peek : callable
        Says how far the engine is between two rows, as far as it can; engines set it.
    """

    def __init__(self, problem: Problem, stop: StopCondition, sinks: tuple[RowSink, ...] = ()) -> None:
        self.rows: list[dict[str, Any]] = []
        self.events = 0
        self.peek: Callable[[], dict[str, float]] = dict
        self._problem, self._stop, self._sinks = problem, stop, sinks
        self._logged: Mapping[str, float | str] = {}

    def add_sink(self, sink: RowSink) -> None:
        """Hand further rows to one more sink."""
        self._sinks += (sink,)

    def on_log(self, logged: Logged) -> None:
        """Keep what was logged until its version is published."""
        self._logged = logged.metrics

    def on_publish(self, published: Published) -> str | None:
        """Evaluate one version; return a reason to stop, or None."""
        metrics = self._problem.metrics(published.parameters)
        self.events = published.events
        # A server that crashed after its log publishes nothing for it; its next life begins with another version.
        logged = self._logged if self._logged.get("round", published.version) == published.version else {}
        row = {"time_s": published.time_s, "round": published.version, **logged, **metrics}
        self._logged = {}
        self.rows.append(row)
        for sink in self._sinks:
            sink(row)
        if self._stop.reached_by(metrics):
            return f"target reached at version {published.version}"
        return None
