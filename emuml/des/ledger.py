"""What an array tier keeps of a run: logs, published versions, why it stopped; no message and no event of a worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from emuml import effects as fx
from emuml.errors import ContractError
from emuml.node import NodeId
from emuml.outcome import Logged, LogSink, Observer, Published, Run


class Ledger:
    """Takes the effects of a server that are records, and tells those who watch.

    Parameters
    ----------
    run : Run
        Filled as the run goes on.
    server : NodeId
    observers, log_sinks : sequences of callables
        As of the emulator.
    """

    def __init__(self, run: Run, server: NodeId, observers: Sequence[Observer], log_sinks: Sequence[LogSink]) -> None:
        self.run, self.server = run, server
        self._observers, self._log_sinks = tuple(observers), tuple(log_sinks)

    def take(self, effects: Sequence[fx.Effect], now: float, other: Callable[[fx.Effect], None]) -> None:
        """Execute the effects of one step up to a stop; ``other`` gets those that are no records."""
        self.run.events += 1
        for effect in effects:
            match effect:
                case fx.Log(metrics):
                    self._note(now, "log", metrics)
                    self._log(Logged(now, self.server, metrics))
                case fx.Publish(version, parameters):
                    self._note(now, "publish", version)
                    self._publish(Published(now, self.server, version, parameters, self.run.events))
                case fx.Stop(reason):
                    self._stop(now, reason)
                case _:
                    other(effect)
            if self.run.stopped is not None:
                return

    def _log(self, logged: Logged) -> None:
        self.run.logs.append(logged)
        for sink in self._log_sinks:
            sink(logged)

    def _publish(self, published: Published) -> None:
        self.run.published.append(published)
        for observer in self._observers:
            reason = observer(published)
            if reason is not None:
                self._stop(published.time_s, reason)

    def _stop(self, now: float, reason: str) -> None:
        if self.run.stopped is None:
            self.run.stopped = reason
            self._note(now, "stop", reason)

    def _note(self, now: float, kind: str, detail: Any) -> None:
        self.run.trace.add(now, str(self.server), kind, detail)


def refuse(effect: fx.Effect) -> None:
    """Refuse an effect that has no place in an array tier.

    Raises
    ------
    ContractError
        Always.
    """
    what = type(effect).__name__
    raise ContractError(f"a server that is served by arrays asks workers, logs, publishes and stops; got {what}")
