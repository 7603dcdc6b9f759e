"""A real node: one inbox, one handler at a time, effects executed after the handler returned.

The host decides nothing. It takes events in the order in which they arrived, writes each step into the journal before
the step's first send leaves the process, and keeps the link states of ``emuml.links``, which move only when an event is
handed over.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from emuml import effects as fx
from emuml.checks import Checker
from emuml.directory import Directory
from emuml.errors import NodeFailed
from emuml.journal import JournalWriter, blocks_digest, value_digest
from emuml.life import Life
from emuml.links import Links
from emuml.message import Message, digest
from emuml.node import Node, NodeId, PeerState
from emuml.runtime import system
from emuml.runtime.compute import ComputeSlots
from emuml.runtime.disk import Disk
from emuml.runtime.store import LogStore
from emuml.switches import checking
from emuml.trace import Trace

if TYPE_CHECKING:
    from emuml.runtime.connection import Connection
    from emuml.runtime.member import Member

TURN_S = 0.02
"""After this time of handling events the node looks at its sockets again, and shows that it lives."""

Handed = tuple[fx.Event, str, Callable[[], list[Any]]]
"""An event, the kind of its journal record, and what makes the record's details."""

Entry = Callable[[], Handed | None]
"""Made when something happened; gives the event when it is handed over, or ``None`` if it became stale."""


class Host:
    """Runs one incarnation of a node on the current event loop.

    Parameters
    ----------
    node : Node
        Fresh from its factory.
    member : Member
        The node's place in the run: connections to peers and to the coordinator.
    """

    def __init__(
        self,
        node: Node,
        id: NodeId,
        incarnation: int,
        directory: Directory,
        member: Member,
        store: LogStore,
        trace: Trace,
        journal: JournalWriter | None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.id, self.name, self.incarnation, self.member = id, str(id), incarnation, member
        self.life = Life(node, id, incarnation, directory, Checker() if checking() else None)
        self.links = Links(False, id, incarnation)
        self.known: dict[NodeId, int] = {}
        self.sessions: dict[tuple[NodeId, int], Connection] = {}
        self.trace, self.journal = trace, journal
        self.inbox: deque[Entry] = deque()
        self.timers: dict[str, asyncio.TimerHandle] = {}
        self.rest: deque[fx.Effect] | None = None
        self.began_s: float | None = None
        self.last_s = 0.0
        self.ended = False
        self._scheduled = False
        self.disk = Disk(self, store)
        self.slots = ComputeSlots(
            member.spec.cores,
            member.law,
            member.spec.unit_cost,
            member.spec.settings,
            self._computed,
            self._task_failed,
            self.note,
        )
        self._execute: dict[type, Callable[[Any], None]] = {
            fx.Send: lambda e: self.send(e.to, e.message, e.size_bytes),
            fx.SendLatest: lambda e: self.send(e.to, e.message, e.size_bytes),
            fx.Broadcast: self._broadcast,
            fx.SetTimer: self._set_timer,
            fx.CancelTimer: self._cancel_timer,
            fx.Compute: self.slots.compute,
            fx.Cancel: lambda e: self.slots.cancel(e.tag, e.generation),
            fx.Save: self.disk.save,
            fx.Load: self.disk.load,
            fx.Log: self._log,
            fx.Publish: self._publish,
            fx.Stop: self._stop,
        }

    @property
    def now(self) -> float:
        """Seconds since the run began; never decreases."""
        if self.began_s is not None:
            self.last_s = max(self.last_s, self.loop.time() - self.began_s)
        return self.last_s

    def note(self, kind: str, *details: Any) -> None:
        """Add a trace record of this node."""
        if self.member.spec.settings.trace:
            self.trace.add(self.now, self.name, kind, *details)

    def begin(self, elapsed_s: float, sessions: dict[NodeId, int], absent: frozenset[NodeId], joining: bool) -> None:
        """Start the incarnation: its clock, then ``on_start``."""
        self.began_s = self.loop.time() - elapsed_s
        self.links = Links(joining, self.id, self.incarnation, sessions, absent)
        self.note("start", self.incarnation)
        saved = self.disk.store.read()
        known = [[str(peer), session] for peer, session in sorted(sessions.items())]
        gone = [str(peer) for peer in sorted(absent)]
        details = lambda: [blocks_digest(saved), known, joining, gone]  # noqa: E731
        self.inbox.appendleft(lambda: (fx.Started(saved), "start", details))
        self.wake()

    def put(self, entry: Entry) -> None:
        """Queue something that happened."""
        if not self.ended:
            self.inbox.append(entry)
            self.wake()

    def wake(self) -> None:
        """Handle the inbox in the next turn of the loop, if there is anything to hand over."""
        if not self._scheduled and self.inbox and self.began_s is not None and self.rest is None and not self.ended:
            self._scheduled = True
            self.loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._scheduled = False
        turn_ends_s = self.loop.time() + TURN_S
        with self._failing():
            while self.inbox and self.rest is None and not self.ended:
                found = self.inbox.popleft()()
                if found is not None:
                    self._step(*found)
                if self.loop.time() >= turn_ends_s:
                    break
        self._settle()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Let whatever goes wrong in a step end the run, never the step alone."""
        try:
            yield
        except NodeFailed as error:
            self.fail(error)
        except Exception as error:
            failed = NodeFailed(self.name, self.incarnation, self.now, f"the effects of {self.life.last_event}")
            failed.__cause__ = error
            self.fail(failed)

    def _settle(self) -> None:
        """Write what was done into the journal, then let it leave, then go on."""
        if self.journal is not None:
            self.journal.settle()
        self.trace.flush()
        self.member.flush()
        self.wake()

    def _step(self, event: fx.Event, kind: str, details: Callable[[], list[Any]]) -> None:
        if not self.life.is_current(event):
            return
        effects = self.life.step(event, self.now, self.journal, kind, details)
        self.rest = deque(effects)
        self.resume()

    def resume(self) -> None:
        """Execute what is left of the current step, up to a planned fault."""
        rest = self.rest
        while rest:
            effect = rest.popleft()
            self._execute[type(effect)](effect)
            if self.ended:
                break
            if isinstance(effect, fx.Log) and self.member.holds_at(effect.metrics):
                return
        self.rest = None

    def proceed(self) -> None:
        """Go on after the coordinator has executed what was planned for this step boundary."""
        with self._failing():
            self.resume()
        self._settle()

    def _broadcast(self, effect: fx.Broadcast) -> None:
        for peer in effect.to:
            self.send(peer, effect.message, effect.size_bytes)

    def send(self, to: NodeId, message: Message, size_bytes: int) -> None:
        """Hand a message to its connection, keep it while the link is joining, discard it when the peer is down."""
        link = self.links.of(to)
        kind = type(message).__name__
        if link.carries:
            seq = link.next_seq()
            self.note("send", str(to), kind, size_bytes)
            if to == self.id:
                self.put(partial(self._own, message, size_bytes, seq))
                return
            connection = self.sessions.get((to, link.session))
            if connection is not None:
                connection.send_data(message, seq)
                self.member.dirty(connection)
        elif link.state == "joining":
            link.waiting.append((message, size_bytes))
        else:
            self.note("discarded", str(to), kind, size_bytes)

    def _own(self, message: Message, size_bytes: int, seq: int) -> Handed:
        self.note("receive", self.name, type(message).__name__, size_bytes)
        details = [self.name, self.incarnation, self.incarnation, seq]
        return fx.Received(self.id, message), "message", lambda: [*details, digest(message)]

    def received(self, peer: NodeId, connection: Connection, message: Message, size_bytes: int, seq: int) -> None:
        """Queue a message of a peer; it is handed over only in its own session."""
        session, life = connection.session, connection.peer_incarnation

        def entry() -> Handed | None:
            link = self.links.of(peer)
            if not link.carries or link.session != session:
                return None
            self.note("receive", str(peer), type(message).__name__, size_bytes)
            details = [str(peer), life, session, seq]
            return fx.Received(peer, message), "message", lambda: [*details, digest(message)]

        self.put(entry)

    def opened(self, peer: NodeId, connection: Connection) -> None:
        """Queue the news of a new session with a peer."""
        self.sessions[peer, connection.session] = connection
        self.put(partial(self._opened, peer, connection))

    def _opened(self, peer: NodeId, connection: Connection) -> Any:
        link = self.links.of(peer)
        life = connection.peer_incarnation
        if link.carries:  # the old session has not been noticed to be over: DOWN comes first (contract 3.4)
            self.inbox.appendleft(partial(self._opened, peer, connection))
            return self._changed(peer, PeerState.DOWN, link.session, "a new session")
        newer = link.state == "down" and life > self.known.get(peer, life if life == 1 else 0)
        self.known[peer] = life
        return self._changed(peer, PeerState.RESTARTED if newer else PeerState.UP, connection.session, "")

    def closed(self, peer: NodeId, session: int, reason: str) -> None:
        """Queue the end of a session."""
        self.put(lambda: self._changed(peer, PeerState.DOWN, session, reason))

    def silence(self, peer: NodeId, session: int, state: PeerState) -> None:
        """Queue a suspicion, or its end."""
        self.put(lambda: self._changed(peer, state, session, "silence"))

    def _changed(self, peer: NodeId, state: PeerState, session: int, reason: str) -> Any:
        link = self.links.of(peer)
        opening = state in (PeerState.UP, PeerState.RESTARTED) and not link.carries
        if not self.links.allows(peer, state) or not (opening or link.session == session or link.state == "joining"):
            return None
        waiting = self.links.change(peer, state, session)
        self.note("peer", str(peer), state.value)
        if state is PeerState.DOWN:
            self.sessions.pop((peer, session), None)
        for message, size_bytes in waiting:
            self.send(peer, message, size_bytes)
        return fx.PeerChanged(peer, state), "peer", lambda: [str(peer), state.value, session, reason]

    def _set_timer(self, effect: fx.SetTimer) -> None:
        self.note("set_timer", effect.name, effect.after_s)
        old = self.timers.pop(effect.name, None)
        if old is not None:
            old.cancel()
        due_s = self.life.last_now + effect.after_s
        at = (self.began_s or 0.0) + due_s
        self.timers[effect.name] = self.loop.call_at(at, self._expired, effect, due_s)

    def _expired(self, effect: fx.SetTimer, due_s: float) -> None:
        self.timers.pop(effect.name, None)

        def entry() -> Handed | None:
            event = fx.TimerFired(effect.name, effect.generation)
            if not self.life.is_current(event):
                return None
            self.last_s = max(self.last_s, due_s)  # the loop's clock may be a resolution early
            self.note("timer", effect.name)
            return event, "timer", lambda: [effect.name]

        self.put(entry)

    def _cancel_timer(self, effect: fx.CancelTimer) -> None:
        self.note("cancel_timer", effect.name)
        handle = self.timers.pop(effect.name, None)
        if handle is not None:
            handle.cancel()

    def _computed(self, effect: fx.Compute, result: Any, real_s: float) -> None:
        def entry() -> Handed | None:
            event = fx.Computed(effect.tag, result, effect.generation)
            if not self.life.is_current(event):
                return None
            self.note("computed", effect.tag, effect.draw)
            return event, "computed", lambda: [effect.tag, value_digest(result), real_s]

        self.put(entry)

    def _task_failed(self, effect: fx.Compute, error: BaseException) -> None:
        failed = NodeFailed(self.name, self.incarnation, self.now, f"task {effect.tag!r} ({effect.task.name})")
        failed.__cause__ = error
        self.fail(failed)

    def _log(self, effect: fx.Log) -> None:
        self.note("log", effect.metrics)
        self.member.to_coordinator(system.Logged(self.life.last_now, msgspec.msgpack.encode(effect.metrics)))

    def _publish(self, effect: fx.Publish) -> None:
        self.note("publish", effect.version)
        now, events = self.life.last_now, self.life.events
        self.member.to_coordinator(system.Published(now, effect.version, effect.parameters, events))

    def _stop(self, effect: fx.Stop) -> None:
        self.note("stop", effect.reason)
        self.member.to_coordinator(system.StopRequest(effect.reason, self.now))
        self.ended = True

    def fail(self, error: NodeFailed) -> None:
        """Report a failure that ends the run."""
        self.ended = True
        self.rest = None
        self.member.failed(error)

    def pending(self) -> int:
        """How much may still happen here without news from outside."""
        busy = self.rest is not None
        return len(self.inbox) + len(self.timers) + self.slots.pending + self.disk.pending + busy

    def describe(self) -> str:
        """Return a line for deadlock reports."""
        states = self.links.states()
        return self.life.describe() + (f", links {states}" if states else "")

    def close(self) -> None:
        """Stop timers, tasks and storage; nothing is handed over any more."""
        self.ended = True
        for handle in self.timers.values():
            handle.cancel()
        self.slots.close()
        self.disk.close(lose_pending=self.member.killed)
