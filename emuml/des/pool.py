"""Workers that read, compute and push, without nodes: the times of all of them in one heap, in plain Python.

The compiled twin is ``emuml._kernels.pushes``; the same tests hold for both, and the same results, bit for bit. Events
and their order are those of the event tier: at one instant what was scheduled first comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from emuml.des.rows import Rows

READ, VIEW, END, GOES_ON, READS = range(5)
"""A read reaches the server; parameters reach a worker; it ends an iteration; its push reaches the server, and it goes
on meanwhile or waits for parameters."""

Up = Callable[[int, int, bool], int]
"""Maps (worker, clock, reads) to the bytes of a push; of a read if the clock is -1."""

Down = Callable[[int, int], int]
"""Maps (worker, clock) to the bytes of the parameters that are sent now."""


class Pool:
    """The workers of an asynchronous protocol, and their links to one server.

    Parameters
    ----------
    workers : int
    rows : Rows
        Seconds of each iteration.
    latency_s : float
        One way.
    bandwidth_bps : float
        Of each link and direction; 0 means that size costs nothing, and is not asked for.
    up, down : callables
        Sizes of messages.
    still_max : int
        More events of one instant are no progress.
    """

    def __init__(
        self, workers: int, rows: Rows, latency_s: float, bandwidth_bps: float, up: Up, down: Down, still_max: int
    ) -> None:
        self.now_s = 0.0
        self._rows = rows
        self._latency_s, self._bandwidth_bps, self._up, self._down = latency_s, bandwidth_bps, up, down
        self._clock, self._last = [0] * workers, [0] * workers
        self._up_free_s, self._down_free_s = [0.0] * workers, [0.0] * workers
        self._heap: list[tuple[float, int, int, int]] = []
        self._number = self.still = 0
        self.is_stuck, self._still_max = False, still_max

    def ask(self) -> None:
        """Let all workers ask for parameters, in their order."""
        for worker in range(len(self._clock)):
            self._send_up(READ, worker, -1, True)

    def start(self, worker: int, clock: int, last: int) -> None:
        """Send parameters for iteration ``clock`` to a worker that waits; they serve until iteration ``last``."""
        self._clock[worker], self._last[worker] = clock, last
        left_s = self.now_s
        if self._bandwidth_bps:
            left_s = max(self.now_s, self._down_free_s[worker]) + 8 * self._down(worker, clock) / self._bandwidth_bps
            self._down_free_s[worker] = left_s
        self._schedule(left_s + self._latency_s, VIEW, worker)

    def run(self, ctx: Any, effects: list[Any], asked: Any, pushed: Any, drain: Callable[[], bool]) -> None:
        """Let things happen until the server stops, nothing can happen any more, or time stands still.

        Parameters
        ----------
        ctx : Context
            Of the server; its ``now`` is set before each call.
        effects : list
            Where the context records.
        asked, pushed : callables
            Called with (ctx, worker, start) and (ctx, worker, reads, start).
        drain : callable
            Executes the effects that a call left; tells whether the run is over.
        """
        start, last_s = self.start, -1.0
        while self._heap:
            self.still = self.still + 1 if self._heap[0][0] == last_s else 0
            if self.still > self._still_max:
                self.is_stuck = True
                return
            self.now_s, _, kind, worker = heappop(self._heap)
            last_s = self.now_s
            if kind == VIEW:
                self._begin(worker)
                continue
            if kind == END:
                self._end(worker)
                continue
            ctx.now = self.now_s
            if kind == READ:
                asked(ctx, worker, start)
            else:
                pushed(ctx, worker, kind == READS, start)
            if effects and drain():
                return

    def _begin(self, worker: int) -> None:
        self._schedule(self.now_s + self._rows.seconds(worker, self._clock[worker]), END, worker)

    def _end(self, worker: int) -> None:
        clock = self._clock[worker]
        reads = clock >= self._last[worker]
        self._send_up(READS if reads else GOES_ON, worker, clock, reads)
        if not reads:
            self._clock[worker] = clock + 1
            self._begin(worker)

    def _send_up(self, kind: int, worker: int, clock: int, reads: bool) -> None:
        left_s = self.now_s
        if self._bandwidth_bps:
            size_bytes = self._up(worker, clock, reads)
            left_s = max(self.now_s, self._up_free_s[worker]) + 8 * size_bytes / self._bandwidth_bps
            self._up_free_s[worker] = left_s
        self._schedule(left_s + self._latency_s, kind, worker)

    def _schedule(self, at_s: float, kind: int, worker: int) -> None:
        heappush(self._heap, (at_s, self._number, kind, worker))
        self._number += 1
