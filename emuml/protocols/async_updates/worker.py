"""The worker of asynchronous training: computes from the copy that it has, and fetches a new one when it must.

Between fetches its copy takes its own updates at once, so that it reads its own writes. What the server has not
confirmed by a view is kept and sent again when their session is renewed; the server takes each update once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar

from emuml.message import Array
from emuml.node import Node, NodeId, PeerState
from emuml.protocols.async_updates.barriers import Barrier
from emuml.protocols.async_updates.messages import Read, Update, View
from emuml.protocols.async_updates.problem import SharedProblem

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context

SERVER = NodeId("server", 0)


class Worker(Node):
    """Repeats: read, compute a gradient of its share of the data, push it."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"server"})
    messages = (Read, View, Update)

    def __init__(self, barrier: Barrier, workload: SharedProblem, index: int, workers: int) -> None:
        self.barrier, self.workload, self.index, self.workers = barrier, workload, index, workers

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Ask where to go on."""
        self.reset(ctx)

    def reset(self, ctx: Context) -> None:
        """Forget a former life of the server, and ask the new one."""
        ctx.cancel("gradient")
        self.view: View | None = None
        self.unconfirmed: list[Update] = []
        self.clock = -1
        self.waits = True
        ctx.send(SERVER, Read())

    def on_message(self, ctx: Context, sender: NodeId, message: View) -> None:
        """Go on with a view that was waited for; repeated ones and those of a former life change nothing."""
        if not self.waits or (self.view is not None and message.life < self.view.life) or message.clock <= self.clock:
            return
        self.view, self.waits = message, False
        self.unconfirmed.clear()
        self.begin(ctx, message.clock, message.value)

    def begin(self, ctx: Context, clock: int, copy: Array) -> None:
        """Compute iteration ``clock`` from a copy of the parameters."""
        self.clock, self.copy = clock, copy
        ctx.compute("gradient", self.workload.push(copy, self.index, self.workers, draw=clock))

    def on_computed(self, ctx: Context, tag: Hashable, result: Any) -> None:
        """Push, and go on at once if the copy is fresh enough for the next iteration."""
        view, slack = self.view, self.barrier.slack
        assert view is not None
        goes_on = slack is not None and view.slowest >= self.clock + 1 - slack
        update = Update(view.life, self.clock, view.version, not goes_on, result)
        self.unconfirmed.append(update)
        ctx.send(SERVER, update)
        self.waits = not goes_on
        if goes_on:
            _, copy = self.workload.apply((), self.copy, result, self.clock)
            self.begin(ctx, self.clock + 1, copy)

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Say again what a broken session may have lost; begin anew with a server that did."""
        if state is PeerState.RESTARTED:
            self.reset(ctx)
        elif state is PeerState.UP:
            for update in self.unconfirmed:
                ctx.send(SERVER, update)
            if self.waits and not self.unconfirmed:
                ctx.send(SERVER, Read())

    def waiting_for(self) -> str:
        """Say what it waits for."""
        return f"a view for iteration {self.clock + 1}" if self.waits else f"its gradient of iteration {self.clock}"
