"""A node's place in a TCP run: it joins the coordinator, connects to its neighbours, and serves its host.

Local detection meets here: silence is judged by ``emuml.runtime.liveness``, the end of a connection by the socket, the
end of a process by the coordinator's word.
"""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, repeat
from typing import Any, BinaryIO

from emuml.directory import Directory
from emuml.errors import NodeFailed
from emuml.journal import Header, JournalWriter
from emuml.message import Decoder, Message
from emuml.node import Node, NodeId, PeerState, message_types
from emuml.runtime import system
from emuml.runtime.connection import Connection, NoConnection, Security
from emuml.runtime.dialing import Listener, dial
from emuml.runtime.host import Host
from emuml.runtime.liveness import TICK_S, Liveness
from emuml.runtime.node_spec import NodeSpec
from emuml.runtime.store import LogStore
from emuml.spec import from_spec
from emuml.trace import Trace

REDIAL_S = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Pauses before attempts to reach a lost peer again; the last one repeats."""


class Member:
    """One incarnation of a node over TCP.

    Parameters
    ----------
    spec : NodeSpec
    factory : callable
        Builds the node object.
    on_error : callable, optional
        Handed the exception of a failed handler or task when node and caller share a process.
    statistics : callable, optional
        What the process took; for nodes that have one of their own.
    """

    def __init__(
        self,
        spec: NodeSpec,
        factory: Callable[[], Node],
        on_error: Callable[[BaseException], None] | None = None,
        statistics: Callable[[], dict[str, float]] = dict,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.spec, self._factory, self._on_error, self._used = spec, factory, on_error, statistics
        self.law = None
        if spec.id.role == "worker":
            self.law = from_spec(spec.compute, spec.inputs()).sampler(spec.seed, spec.id)
        self.triggers = frozenset((name, count) for name, count in spec.triggers)
        self.peers: dict[NodeId, Connection] = {}
        self.sessions: dict[NodeId, int] = {}
        self.liveness = Liveness(spec.settings.detector, self._silence)
        self.exited: set[tuple[NodeId, int]] = set()
        self.addresses: dict[NodeId, tuple[str, int]] = {}
        self.roster: asyncio.Future[system.Roster] = self.loop.create_future()
        self.shutdown: asyncio.Future[str] = self.loop.create_future()
        self.arrived = asyncio.Event()
        self.host: Host | None = None
        self.listener: Listener | None = None
        self.coordinator: Connection | None = None
        self.killed = False
        self._dirty: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._files: list[BinaryIO] = []
        self._early: list[Callable[[], None]] = []

    async def run(self) -> None:
        """Join, connect, serve, and end when the run does.

        Raises
        ------
        RunFailed
            If the node could not join.
        """
        joining = self.loop.create_task(self._join(self._factory()))
        try:
            first: set[asyncio.Future[Any]] = {joining, self.shutdown}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if joining.done():
                joining.result()
                await self.shutdown
        finally:
            joining.cancel()
            await asyncio.gather(joining, return_exceptions=True)
            await self._close()

    async def _join(self, node: Node) -> None:
        spec = self.spec
        decoder = Decoder(message_types(node))
        self.security = Security(spec.run, spec.secret, spec.node, spec.incarnation, decoder, spec.settings)
        self.listener = Listener(self.security, self._accepted, self._admit, "node")
        await dial(spec.coordinator, self.security.without_messages(), "coordinator", opened=self._joined)
        talks_to = None if node.talks_to is None else sorted(node.talks_to)
        address, schema = self.listener.address, decoder.schema
        self.to_coordinator(system.Join(spec.node, spec.incarnation, os.getpid(), address, talks_to, schema))
        self.flush()
        roster = await self.roster
        heard_s = self.loop.time()
        self._build(node, roster)
        await self._connect(roster)
        self._background(self._watch())
        self._say_ready(heard_s)

    def _joined(self, connection: Connection) -> None:
        self.coordinator = connection
        connection.on_system = self._heard
        connection.on_closed = lambda reason: self._end("the coordinator is gone")

    def _build(self, node: Node, roster: system.Roster) -> None:
        spec = self.spec
        spec.own_folder.mkdir(parents=True, exist_ok=True)
        talks_to = {role: None if roles is None else frozenset(roles) for role, roles in roster.talks_to.items()}
        directory = Directory(spec.roster(), talks_to)
        header = Header(spec.run, spec.node, spec.incarnation, spec.seed, spec.versions)
        journal = JournalWriter(header, self._open("journal"), keep=False) if spec.settings.journal else None
        trace = Trace(self._open("trace"), keep=False) if spec.settings.trace else Trace(keep=False)
        store = LogStore(spec.store_folder, spec.incarnation)
        self.host = Host(node, spec.id, spec.incarnation, directory, self, store, trace, journal)
        if self._joins_late:
            for peer, connection in self.peers.items():
                self.host.opened(peer, connection)
        early, self._early = self._early, []
        for call in early:
            call()

    @property
    def _joins_late(self) -> bool:
        """Whether the run had begun when this incarnation came."""
        return self.roster.done() and self.roster.result().elapsed_s is not None

    def _open(self, name: str) -> BinaryIO:
        stream = (self.spec.own_folder / name).open("wb")
        self._files.append(stream)
        return stream

    async def _connect(self, roster: system.Roster) -> None:
        """Dial whom the coordinator named and wait for those who dial us."""
        self.addresses = {NodeId.parse(peer): address for peer, address in roster.addresses.items()}
        await asyncio.gather(*(self._reach(NodeId.parse(peer)) for peer in roster.dial))
        expected = {NodeId.parse(peer) for peer in roster.expect}
        while not expected <= self.peers.keys():
            self.arrived.clear()
            await self.arrived.wait()

    async def _reach(self, peer: NodeId) -> None:
        """Dial a peer for the first time; a late joiner begins without those that it cannot reach."""
        try:
            await self._dial(peer)
        except NoConnection:
            if not self._joins_late:
                raise
            self._background(self._redial(peer, self.roster.result().incarnations[str(peer)]))

    async def _dial(self, peer: NodeId) -> None:
        incarnation = self.roster.result().incarnations[str(peer)]
        opened = partial(self._adopt, peer)
        gone = partial(self._pointless, peer, incarnation)
        await dial(self.addresses[peer], self.security, str(peer), incarnation, opened, gone)

    def _pointless(self, peer: NodeId, incarnation: int) -> bool:
        """Tell whether dialling is of no use: the peer has ended, or is there already."""
        return (peer, incarnation) in self.exited or peer in self.peers or self.shutdown.done()

    def _accepted(self, connection: Connection) -> None:
        self._adopt(NodeId.parse(connection.peer), connection)

    def _admit(self, node: str, incarnation: int) -> str | None:
        if node not in self.spec.ids or node == self.spec.node:
            return "node"
        peer = NodeId.parse(node)
        if (peer, incarnation) in self.exited:
            return "fenced"
        current = self.peers.get(peer)
        if current is None or incarnation > current.peer_incarnation:
            return None
        return "fenced" if incarnation < current.peer_incarnation else "duplicate"

    def _adopt(self, peer: NodeId, connection: Connection) -> None:
        """Take a new session with a peer; an older one is over."""
        old = self.peers.get(peer)
        self.peers[peer] = connection
        if old is not None:
            old.abort("a new session")
        self.liveness.watch(peer, connection)
        connection.on_data = partial(self._data, peer, connection)
        connection.on_closed = partial(self._lost, peer, connection)
        if self.host is None or self.host.began_s is None:
            self.sessions[peer] = connection.session  # one that is lost before the run begins is DOWN from its start
        self.arrived.set()
        # The inbox keeps the order: the news of a session comes before the messages that arrive in it (contract 3.1).
        if self.host is not None and (self._joins_late or self.host.began_s is not None):
            self.host.opened(peer, connection)

    def _data(self, peer: NodeId, connection: Connection, message: Message, size_bytes: int, seq: int) -> None:
        if self.host is None:
            self._early.append(partial(self._data, peer, connection, message, size_bytes, seq))
            return
        self.host.received(peer, connection, message, size_bytes, seq)

    def _lost(self, peer: NodeId, connection: Connection, reason: str) -> None:
        if self.peers.get(peer) is connection:
            del self.peers[peer]
        self.liveness.forget(peer, connection)
        self._dirty.discard(connection)
        if self.host is None or self.shutdown.done() or self.killed:
            return
        self.host.closed(peer, connection.session, reason)
        if connection.dialed and not connection.ended_by_peer:
            self._background(self._redial(peer, connection.peer_incarnation))

    async def _redial(self, peer: NodeId, incarnation: int) -> None:
        """Try to reach a peer that was lost, until it is known to be gone or has come back."""
        pauses: Iterator[float] = chain(REDIAL_S, repeat(REDIAL_S[-1]))
        for pause_s in pauses:
            await asyncio.sleep(pause_s)
            if self._pointless(peer, incarnation):
                return
            try:
                await self._dial(peer)
            except NoConnection as error:
                if error.final:
                    return

    def _say_ready(self, heard_s: float) -> None:
        """Tell the coordinator that all links are made; a node that joins late begins at once."""
        elapsed_s = self.roster.result().elapsed_s
        if elapsed_s is not None:
            self._begin(elapsed_s + self.loop.time() - heard_s, joining=True)
        self.to_coordinator(system.Ready(self.spec.node))
        self.flush()

    def _heard(self, message: Message) -> None:
        match message:
            case system.Roster():
                if not self.roster.done():
                    self.roster.set_result(message)
            case system.Begin():
                self._begin(0.0, joining=False)
            case system.Proceed():
                if self.host is not None:
                    self.host.proceed()
            case system.PeerExited(node, incarnation):
                self._peer_exited(NodeId.parse(node), incarnation)
            case system.StatusQuery():
                self._tell_status()
            case system.Shutdown(reason):
                self._end(reason)
            case _:
                pass

    def _begin(self, elapsed_s: float, joining: bool) -> None:
        """Start the node: its links are up, or joining if the run had begun before."""
        host = self.host
        assert host is not None
        if joining:
            host.begin(elapsed_s, {}, frozenset(), joining)
            for peer in host.life.directory.neighbours(self.spec.id):
                if peer not in self.peers:
                    host.closed(peer, 0, "unreachable")
            return
        for peer, connection in self.peers.items():
            host.sessions[peer, connection.session] = connection
        absent = frozenset(NodeId.parse(peer) for peer in self.roster.result().absent)
        host.begin(elapsed_s, self.sessions, absent, joining)
        for peer in sorted(absent):  # they start later; nobody is to wait for them
            host.closed(peer, 0, "absent")

    def _peer_exited(self, peer: NodeId, incarnation: int) -> None:
        self.exited.add((peer, incarnation))
        connection = self.peers.get(peer)
        if connection is not None and connection.peer_incarnation == incarnation:
            connection.abort("its process ended")

    def _tell_status(self) -> None:
        host = self.host
        if host is not None:
            events = host.life.events
            self.to_coordinator(system.Status(self.spec.node, events, host.pending(), host.describe()))
            self.flush()

    def holds_at(self, metrics: Mapping[str, Any]) -> bool:
        """Tell whether the fault plan acts at one of these counters; if so the coordinator is asked to."""
        reached = [(name, int(value)) for name, value in metrics.items() if (name, value) in self.triggers]
        if not reached:
            return False
        if self.host is not None and self.host.journal is not None:
            self.host.journal.settle()
        self.to_coordinator(system.Reached(reached))
        self.flush()
        return True

    def to_coordinator(self, message: Message) -> None:
        """Queue a system message; :meth:`flush` makes it leave."""
        if self.coordinator is not None:
            self.coordinator.send_system(message)
            self._dirty.add(self.coordinator)

    def dirty(self, connection: Connection) -> None:
        """Note that a connection has something to flush."""
        self._dirty.add(connection)

    def flush(self) -> None:
        """Let everything that was queued leave."""
        dirty, self._dirty = self._dirty, set()
        for connection in dirty:
            connection.flush()

    def failed(self, error: NodeFailed) -> None:
        """Report a failure of this node; the coordinator ends the run."""
        cause = error.__cause__ or error
        if self._on_error is not None:
            self._on_error(cause)
        name, text = type(cause).__name__, "".join(traceback.format_exception(cause))
        at = (error.node, error.incarnation, error.now, error.event)
        self.to_coordinator(system.Failed(*at, name, str(cause), text))
        self.flush()

    def _silence(self, peer: NodeId, session: int, state: PeerState) -> None:
        if self.host is not None:
            self.host.silence(peer, session, state)

    async def _watch(self) -> None:
        """Send signs of life and judge silence."""
        while not self.shutdown.done():
            self.liveness.tick(self.loop.time())
            self.flush()
            await asyncio.sleep(TICK_S)

    def _background(self, work: Any) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _end(self, reason: str) -> None:
        if not self.shutdown.done():
            self.shutdown.set_result(reason)

    def kill(self) -> None:
        """Vanish at once, as a killed process does; only for nodes that share a process with others."""
        self.killed = True
        if self.host is not None:
            self.host.close()
        for connection in self.peers.values():
            connection.abort("killed")
        if self.coordinator is not None:
            self.coordinator.abort("killed")
        self._end("killed")

    async def _close(self) -> None:
        host = self.host
        if host is not None:
            host.close()
            if not self.killed:
                self.to_coordinator(
                    system.Finished(self.spec.node, self.spec.incarnation, host.life.events, self._statistics(host))
                )
                self.flush()
            if host.journal is not None:
                host.journal.settle()
        await self._hang_up()
        if host is not None:
            await host.disk.finish()
        for stream in self._files:
            stream.close()

    async def _hang_up(self) -> None:
        """Close all connections; what was sent to the coordinator leaves, if it takes it within ``drain_s``."""
        tasks, connections = list(self._tasks), list(self.peers.values())
        if self.coordinator is not None:
            connections.append(self.coordinator)
        for task in tasks:
            task.cancel()
        for connection in connections:
            connection.close("finished")
        if connections:
            await asyncio.wait([connection.closed for connection in connections], timeout=self.spec.settings.drain_s)
        for connection in connections:
            connection.abort("it did not take what was sent")
        if tasks:
            await asyncio.wait(tasks)
        if self.listener is not None:
            await self.listener.close()

    def _statistics(self, host: Host) -> dict[str, float]:
        tasks = {"tasks": float(host.slots.completed), "delay_overruns": float(host.slots.overruns)}
        return {**tasks, **self._used()}
