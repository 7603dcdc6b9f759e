"""Observers of a TCP run, in a thread of their own: what they compute takes no node's and no coordinator's time."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence

from emuml.outcome import Logged, LogSink, Observer, Published


class ObserverThread:
    """Hands logs and published versions to observers in the order in which they came.

    Parameters
    ----------
    stop : callable(reason)
        Called on the loop when an observer ends the run.
    """

    def __init__(
        self,
        observers: Sequence[Observer],
        log_sinks: Sequence[LogSink],
        loop: asyncio.AbstractEventLoop,
        stop: Callable[[str], None],
    ) -> None:
        self._observers, self._log_sinks, self._loop, self._stop = observers, log_sinks, loop, stop
        self._queue: queue.SimpleQueue[Logged | Published | None] = queue.SimpleQueue()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="observers", daemon=True)
        self._thread.start()

    def logged(self, item: Logged) -> None:
        """Queue a log."""
        self._queue.put(item)

    def published(self, item: Published) -> None:
        """Queue a version."""
        self._queue.put(item)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            if self.error is not None:
                continue
            try:
                self._observe(item)
            except Exception as error:  # reported by the run, which it ends
                self.error = error
                self._loop.call_soon_threadsafe(self._stop, f"an observer failed: {type(error).__name__}: {error}")

    def _observe(self, item: Logged | Published) -> None:
        if isinstance(item, Logged):
            for sink in self._log_sinks:
                sink(item)
            return
        for observer in self._observers:
            reason = observer(item)
            if reason is not None:
                self._loop.call_soon_threadsafe(self._stop, reason)

    def close(self) -> None:
        """Observe what is queued, then end the thread."""
        self._queue.put(None)
        self._thread.join()
