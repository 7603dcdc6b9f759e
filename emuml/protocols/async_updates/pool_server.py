"""The server of asynchronous training where workers are no nodes: it computes what they would push when it takes it.

All decisions are those of :class:`~emuml.protocols.async_updates.server.Server`; what differs is that parameters are
noted for a worker in place of being sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emuml.lazy import Deferred
from emuml.message import Array, size_bytes
from emuml.protocols.async_updates.messages import Read, Update, View
from emuml.protocols.async_updates.problem import SharedProblem
from emuml.protocols.async_updates.server import Server

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context
    from emuml.pushes import Start

_ASKS = Read(-1)


class Turn:
    """What one worker has read, and its push when it comes: it has the fields of an :class:`Update`."""

    __slots__ = ("clock", "copy", "life", "reads", "value", "version")

    def __init__(self, copy: Array) -> None:
        self.life, self.clock, self.version, self.reads = 1, 0, 0, True
        self.copy = copy
        self.value: Any = None


class PoolServer(Server):
    """A server that an array tier calls for each push; see :class:`emuml.pushes.PushServer`."""

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin with the initial parameters."""
        super().on_start(ctx, saved)
        self.turns: list[Any] = [Turn(self.table.values) for _ in range(self.workers)]

    def asked(self, ctx: Context, worker: int, start: Start) -> None:
        """See :class:`emuml.pushes.PushServer`."""
        self.start = start
        self.from_worker(ctx, worker, _ASKS)

    def pushed(self, ctx: Context, worker: int, reads: bool, start: Start) -> None:
        """See :class:`emuml.pushes.PushServer`."""
        turn = self.turns[worker]
        clock, copy, turn.reads = turn.clock, turn.copy, reads
        task = self.workload.push(copy, worker, self.workers, draw=clock)
        turn.value = Deferred(task, "gradient", f"worker-{worker}")
        if not reads:  # it goes on with its own copy
            turn.copy = self.workload.apply((), copy, turn.value, clock)[1]
        self.from_worker(ctx, worker, turn)
        if not reads:
            turn.clock = clock + 1

    def show(self, ctx: Context, worker: int, clock: int) -> None:
        """Let a worker begin with the parameters that it would be sent."""
        turn = self.turns[worker]
        turn.clock, turn.version, turn.copy = clock, self.table.version, self.table.values
        self.start(worker, clock, self.barrier.serves_until(clock, self.slowest))

    def up_bytes(self, worker: int, clock: int, reads: bool) -> int:
        """See :class:`emuml.pushes.PushServer`."""
        if clock < 0:
            return size_bytes(_ASKS)
        return size_bytes(Update(1, clock, self.turns[worker].version, reads, self.table.values))

    def down_bytes(self, worker: int, clock: int) -> int:
        """See :class:`emuml.pushes.PushServer`."""
        return size_bytes(View(1, clock, self.table.version, self.slowest, self.table.values))


def costs_of(workload: SharedProblem, workers: int) -> NDArray[np.float64]:
    """Return the costs of what all workers compute, shape (workers,)."""
    return np.array([workload.push(workload.initial, worker, workers, draw=0).cost for worker in range(workers)])
