"""Compute slots of a real node: threads off the event loop, injected delays, cancellation between chunks."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from numpy.typing import NDArray

from emuml.effects import Compute
from emuml.runtime.settings import RuntimeSettings
from emuml.runtime.threads import submit

Sampler = Callable[[int, float], float]
Done = Callable[[Compute, Any, float], None]
Broken = Callable[[Compute, BaseException], None]
Note = Callable[..., None]


class _Running:
    """One task that has a slot: its flag while it computes, its timer while it is held back."""

    __slots__ = ("cancelled", "effect", "hold", "started_s")

    def __init__(self, effect: Compute, started_s: float) -> None:
        self.effect, self.started_s = effect, started_s
        self.cancelled = threading.Event()
        self.hold: asyncio.TimerHandle | None = None


class ComputeSlots:
    """FIFO slots of one node.

    Parameters
    ----------
    cores : int
    law : callable (draw, load) -> seconds, or None
        Durations that tasks are stretched to.
    unit_cost : float
        Cost of load 1.
    done, broken : callables
        Called on the loop when a task ends or raises; never for a cancelled one.
    note : callable(kind, *details)
        For the trace.
    """

    def __init__(
        self,
        cores: int,
        law: Sampler | None,
        unit_cost: float,
        settings: RuntimeSettings,
        done: Done,
        broken: Broken,
        note: Note,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(cores, "compute")
        self._cores, self._unit_cost, self._settings = cores, unit_cost, settings
        self._law = law if settings.inject != "off" else None
        self._done, self._broken, self._note = done, broken, note
        self._queue: deque[Compute] = deque()
        self._running: dict[int, _Running] = {}
        self.overruns = 0
        self.completed = 0

    @property
    def pending(self) -> int:
        """How many tasks are queued or have a slot."""
        return len(self._queue) + len(self._running)

    def compute(self, effect: Compute) -> None:
        """Queue a task."""
        self._note("compute", effect.tag, effect.draw, effect.task.cost / self._unit_cost)
        self._queue.append(effect)
        self._fill()

    def _fill(self) -> None:
        while self._queue and len(self._running) < self._cores:
            running = _Running(self._queue.popleft(), self._loop.time())
            self._running[running.effect.generation] = running
            self._note("begin", running.effect.tag, running.effect.draw)
            work = partial(running.effect.task.run, running.cancelled.is_set)
            submit(self._loop, self._pool, work, partial(self._ended, running))

    def _ended(self, running: _Running, future: Future[NDArray[Any]]) -> None:
        if future.cancelled() or running.cancelled.is_set():
            self._free(running)
            return
        error = future.exception()
        if error is not None:
            self._fail(running, error)
            return
        real_s = self._loop.time() - running.started_s
        try:
            wanted_s = self._wanted_s(running.effect, real_s)
        except Exception as unlawful:  # such as a recorded trace that has ended
            self._fail(running, unlawful)
            return
        if wanted_s <= real_s:
            self._complete(running, future.result(), real_s)
        else:
            at = running.started_s + wanted_s
            running.hold = self._loop.call_at(at, self._complete, running, future.result(), real_s)

    def _fail(self, running: _Running, error: BaseException) -> None:
        self._free(running)
        self._broken(running.effect, error)

    def _wanted_s(self, effect: Compute, real_s: float) -> float:
        if self._law is None:
            return real_s
        drawn_s = effect.task.seconds(self._law, effect.draw, self._unit_cost) * self._settings.time_scale
        if self._settings.inject == "add":
            return real_s + drawn_s
        self.overruns += real_s > drawn_s
        return max(real_s, drawn_s)

    def _complete(self, running: _Running, result: NDArray[Any], real_s: float) -> None:
        self.completed += 1
        self._free(running)
        self._done(running.effect, result, real_s)

    def _free(self, running: _Running) -> None:
        self._running.pop(running.effect.generation, None)
        self._fill()

    def cancel(self, tag: Any, generation: int) -> None:
        """Take a task out of the queue, end its hold at once, or tell it to stop at its next chunk."""
        self._note("cancel", tag)
        running = self._running.get(generation)
        if running is None:
            self._queue = deque(effect for effect in self._queue if effect.generation != generation)
        elif running.hold is not None:
            running.hold.cancel()
            self._free(running)
        else:
            running.cancelled.set()

    def close(self) -> None:
        """Cancel everything; does not wait for what computes."""
        self._queue.clear()
        for running in self._running.values():
            running.cancelled.set()
            if running.hold is not None:
                running.hold.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)
