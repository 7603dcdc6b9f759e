"""The worker of asynchronous training: computes from the copy that it has, and fetches a new one when it must.

Between fetches its copy takes its own updates at once, so that it reads its own writes. What the servers have not
confirmed by a view is kept and sent again when a session is renewed; a server takes each update once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar

from emuml.message import Array
from emuml.node import Node, NodeId, PeerState
from emuml.protocols.async_updates.barriers import Barrier
from emuml.protocols.async_updates.messages import Finish, Place, Read, Slice, Update, View
from emuml.protocols.async_updates.problem import SharedProblem
from emuml.protocols.async_updates.slices import cut, joined

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context


class Worker(Node):
    """Repeats: read, compute a gradient of its share of the data, push it."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"server"})
    messages = (Read, Place, View, Update, Slice, Finish)

    def __init__(self, barrier: Barrier, workload: SharedProblem, index: int, workers: int) -> None:
        self.barrier, self.workload, self.index, self.workers = barrier, workload, index, workers

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Ask where to go on."""
        self.servers = ctx.peers("server")
        self.begin_anew(ctx)

    def begin_anew(self, ctx: Context) -> None:
        """Forget what former lives of servers said, and ask all of them."""
        ctx.cancel("gradient")
        self.places: dict[NodeId, int] = {}
        self.views: dict[NodeId, View] = {}
        self.fetched: list[View] = []
        self.unconfirmed: list[dict[NodeId, Update]] = []
        self.clock = -1
        self.asked: int | None = None  # wherever the servers say
        self.waits = True
        for server in self.servers:
            ctx.send(server, Read(-1))

    def on_message(self, ctx: Context, sender: NodeId, message: View | Place) -> None:
        """Go on when every server has sent a view that was waited for; others change nothing."""
        if isinstance(message, Place):
            if self.asked is None:  # else it is a second answer, and work goes on from the first one
                self.places[sender] = message.clock
                if len(self.places) == len(self.servers):
                    self.ask(ctx)
            return
        # One server may let who was evicted join later than asked for; views of several must be of one iteration.
        is_other = len(self.servers) > 1 and message.clock != self.asked
        if not self.waits or message.clock <= self.clock or is_other:
            return
        self.views[sender] = message
        if len(self.views) == len(self.servers):
            self.fetched = [self.views[server] for server in self.servers]
            self.views, self.waits = {}, False
            self.unconfirmed.clear()
            self.begin(ctx, self.fetched[0].clock, joined([view.value for view in self.fetched]))

    def ask(self, ctx: Context) -> None:
        """Ask for the iteration that the server needs which is furthest behind; the others take no push twice."""
        self.asked, self.views = min(self.places.values()), {}  # views on the way answered what was asked before
        for server in self.servers:
            ctx.send(server, Read(self.asked))

    def begin(self, ctx: Context, clock: int, copy: Array) -> None:
        """Compute iteration ``clock`` from a copy of the parameters."""
        self.clock, self.copy = clock, copy
        ctx.compute("gradient", self.workload.push(copy, self.index, self.workers, draw=clock))

    def on_computed(self, ctx: Context, tag: Hashable, result: Any) -> None:
        """Push, and go on at once if the copy is fresh enough for the next iteration."""
        slowest = min(view.slowest for view in self.fetched)
        # What is done again for a server that lost it is in the slices of the others: a copy would hold it twice.
        is_new = self.clock >= max(self.places.values(), default=0)
        goes_on = is_new and self.clock < self.barrier.serves_until(self.clock, slowest)
        parts = zip(self.servers, self.fetched, cut(result, len(self.servers)), strict=True)
        updates = {
            server: Update(view.life, self.clock, view.version, not goes_on, part) for server, view, part in parts
        }
        self.unconfirmed.append(updates)
        for server, update in updates.items():
            ctx.send(server, update)
        self.waits, self.asked = not goes_on, self.clock + 1
        if goes_on:
            _, copy = self.workload.apply((), self.copy, result, self.clock)
            self.begin(ctx, self.clock + 1, copy)

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Say again what a broken session may have lost; begin anew with a server that did."""
        if state is PeerState.RESTARTED:
            self.begin_anew(ctx)
        elif state is PeerState.UP:
            for updates in self.unconfirmed:
                ctx.send(peer, updates[peer])
            if self.waits and not self.unconfirmed:
                ctx.send(peer, Read(-1 if self.asked is None else self.asked))

    def waiting_for(self) -> str:
        """Say what it waits for."""
        if not self.waits:
            return f"its gradient of iteration {self.clock}"
        missing = ", ".join(str(server) for server in self.servers if server not in self.views)
        return f"a view for iteration {self.clock + 1} from {missing}"
