"""The event queue in plain Python: SimPy's environment with calls at absolute times (``EMUML_PURE=1``).

A :class:`Call` is a small entry in SimPy's own queue, ordered by (time, priority, schedule number) like all others.
``emuml._kernels.events`` does the same in C; the same tests hold for both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from typing import Any

import simpy


class Call:
    """A function call in the event queue; duck-typed as a SimPy event.

    Calls of one ``lane`` happen in schedule order, also where ties are permuted: those of one link, or of one disk.
    Without a lane a call is free. ``name`` says in a tie what it is; given where an explorer is asked.
    """

    __slots__ = ("_callbacks", "_env", "args", "function", "lane", "name")

    _ok = True
    _value = None

    def __init__(self, env: Environment, function: Callable[..., None], args: tuple[Any, ...]) -> None:
        self._env = env
        self.function = function
        self.args = args
        self._callbacks: tuple[Callable[[Call], None], ...] | None = _RUN
        self.lane: Hashable = None
        self.name = ""

    @property
    def callbacks(self) -> tuple[Callable[[Call], None], ...] | None:
        """What runs when it happens: nothing once it is cancelled, ``None`` afterwards, as of a SimPy event."""
        return self._callbacks

    @callbacks.setter
    def callbacks(self, _: None) -> None:
        # SimPy's step takes them away from what it processes: so the environment's own step is SimPy's.
        if self._callbacks is _DEAD:
            self._env.dead -= 1
        else:
            self._env.live -= 1
        self._callbacks = None

    def __repr__(self) -> str:
        return f"<{self.function.__name__}>"


def _run(call: Call) -> None:
    call.function(*call.args)


_RUN = (_run,)
_DEAD: tuple[Callable[[Call], None], ...] = ()


class Environment(simpy.Environment):
    """SimPy's environment with calls at absolute times that can be cancelled."""

    def __init__(self, initial_time: float = 0) -> None:
        super().__init__(initial_time)
        self.live = 0
        self.dead = 0

    def call_at(self, at: float, priority: int, function: Callable[..., None], *args: Any) -> Call:
        """Call ``function(*args)`` at time ``at``; never before ``now``."""
        if not at >= self._now:
            raise ValueError(f"a call at {at}, which is not at or after the time {self._now}")
        call = Call(self, function, args)
        heappush(self._queue, (at, priority, next(self._eid), call))  # type: ignore[misc]
        self.live += 1
        return call

    def cancel(self, call: Call) -> None:
        """Forget a call that has not happened; its entry leaves the queue later, with bounded delay."""
        if call._callbacks is _RUN:
            call._callbacks = _DEAD
            self.live -= 1
            self.dead += 1
            if self.dead > self.live + 64:
                self._compact()

    def _compact(self) -> None:
        self._queue[:] = [entry for entry in self._queue if not is_dead(entry[3])]
        heapify(self._queue)
        self.dead = 0

    def next_time(self) -> float:
        """Drop dead entries at the head of the queue and return the time of the first living one, or infinity."""
        queue = self._queue
        while queue and is_dead(queue[0][3]):
            heappop(queue)
            self.dead -= 1
        return queue[0][0] if queue else float("inf")

    def step_tie(self, choose: Callable[[str, int], int]) -> None:
        """Process one of the calls that are due first in one class, picked by ``choose("tie/NAME|NAME...", n)``."""
        first = heappop(self._queue)
        tied = [first]
        while self._queue and self._queue[0][:2] == first[:2]:
            tied.append(heappop(self._queue))
        heads: dict[Hashable, Any] = {}
        for entry in tied:
            if is_call(entry[3]):
                lane: Hashable = entry[3].lane  # type: ignore[attr-defined]
                heads.setdefault(entry[2] if lane is None else lane, entry)
        if is_call(first[3]) and len(heads) > 1:
            entries = list(heads.values())
            names = "|".join([_named(entry[3]) for entry in entries])
            first = entries[choose(f"tie/{names}", len(entries))]
        for entry in tied:
            if entry is not first:
                heappush(self._queue, entry)
        heappush(self._queue, (first[0], -2, first[2], first[3]))  # type: ignore[misc]
        self.step()


def _named(call: Call) -> str:
    return (call.name or call.function.__name__).replace("|", ":")


def is_call(event: object) -> bool:
    """Tell whether a queue entry is a call that will happen."""
    return isinstance(event, Call) and event.callbacks is _RUN


def is_dead(event: object) -> bool:
    """Tell whether a queue entry was cancelled."""
    return isinstance(event, Call) and event.callbacks is _DEAD
