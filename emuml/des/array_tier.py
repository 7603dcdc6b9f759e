"""What array tiers have in common: one server, its steps, and what they leave of a run.

That is logs, published versions and why it stopped; no message and no event of a worker is kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from emuml import effects as fx
from emuml.blocks import Saved
from emuml.des.emulator import LIVELOCK_EVENTS
from emuml.directory import Directory
from emuml.errors import ContractError, EmumlError, RunFailed
from emuml.life import Life
from emuml.node import Factory, NodeId
from emuml.outcome import Logged, LogSink, Observer, Published, Run
from emuml.roster import Roster
from emuml.trace import Records


class Unordered(EmumlError):
    """Events of one instant whose order an array tier does not know, where it matters."""


class Served(Protocol):
    """The nodes of a protocol as array tiers see them: one server, and more."""

    @property
    def server(self) -> NodeId:
        """The server."""
        ...

    @property
    def factory(self) -> Factory:
        """Makes its node."""
        ...


def most_at_once(workers: int) -> int:
    """Return how many events may fall on one instant before it is said that time stands still."""
    return max(LIVELOCK_EVENTS, 10 * workers)


class ArrayTier:
    """One emulated run of a server whose workers are no nodes.

    Parameters
    ----------
    nodes : RoundNodes or PushNodes
    roster : Roster
    observers, log_sinks : sequences of callables
        As of the emulator.
    """

    def __init__(
        self, nodes: Served, roster: Roster, observers: Sequence[Observer], log_sinks: Sequence[LogSink]
    ) -> None:
        self.result = Run("des", Records(), "array")
        self.server, self.node = nodes.server, nodes.factory()
        self.life = Life(self.node, nodes.server, 1, Directory(roster, {nodes.server.role: self.node.talks_to}))
        self._observers, self._log_sinks = tuple(observers), tuple(log_sinks)

    def run(self) -> Run:
        """Run until the server stops.

        Raises
        ------
        Unordered
            If the order of events of one instant matters and is not known; what was published until then is right.
        """
        began, result = time.perf_counter(), self.result
        try:
            self.step(fx.Started(Saved()))
            if result.stopped is None:
                self.serve()
        except RunFailed as error:
            result.error = error
        result.duration_s, result.wall_s = self.now_s(), time.perf_counter() - began
        result.nodes[self.server] = self.node
        return result

    def peek(self) -> dict[str, float]:
        """Return how far the run is: its time; there are no events to count."""
        return {"time_s": self.now_s()}

    def serve(self) -> None:
        """Let workers work until the server stops."""
        raise NotImplementedError

    def now_s(self) -> float:
        """Return the time."""
        raise NotImplementedError

    def ask(self, effect: fx.Effect) -> None:
        """Execute an effect that is no record.

        Raises
        ------
        ContractError
            If it has no place in an array tier.
        """
        what = type(effect).__name__
        raise ContractError(f"a server that is served by arrays asks workers, logs, publishes and stops; got {what}")

    def step(self, event: fx.Event) -> None:
        """Hand an event to the server and execute what it records."""
        self.take(self.life.handle(event, self.now_s()))

    def take(self, effects: Sequence[fx.Effect]) -> None:
        """Execute the effects of one step, up to a stop."""
        now = self.now_s()
        self.result.events += 1
        for effect in effects:
            match effect:
                case fx.Log(metrics):
                    self._note(now, "log", metrics)
                    self._log(Logged(now, self.server, metrics))
                case fx.Publish(version, parameters):
                    self._note(now, "publish", version)
                    self._publish(Published(now, self.server, version, parameters, self.result.events))
                case fx.Stop(reason):
                    self._stop(now, reason)
                case _:
                    self.ask(effect)
            if self.result.stopped is not None:
                return

    def _log(self, logged: Logged) -> None:
        self.result.logs.append(logged)
        for sink in self._log_sinks:
            sink(logged)

    def _publish(self, published: Published) -> None:
        self.result.published.append(published)
        for observer in self._observers:
            reason = observer(published)
            if reason is not None:
                self._stop(published.time_s, reason)

    def _stop(self, now: float, reason: str) -> None:
        if self.result.stopped is None:
            self.result.stopped = reason
            self._note(now, "stop", reason)

    def _note(self, now: float, kind: str, detail: Any) -> None:
        self.result.trace.add(now, str(self.server), kind, detail)
