"""The coordinator of a TCP run: starts nodes, connects them, executes the fault plan, hears of the stop, ends them all.

It never carries protocol messages. Every wait has a deadline and a sentence: what for, from whom, since when.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from emuml.directory import Directory
from emuml.errors import Deadlock, EmumlError, NodeFailed, NodeLost, RunFailed, Timeout
from emuml.message import Message
from emuml.node import NodeId
from emuml.outcome import Logged, Published, Run
from emuml.runtime import system
from emuml.runtime.connection import Connection
from emuml.runtime.dialing import Listener
from emuml.runtime.faults import FaultExecutor
from emuml.runtime.plan import Deployment, Handle
from emuml.runtime.watch import ObserverThread


class RemoteError(EmumlError):
    """An exception of a node process: its class, its text, and its traceback there as text."""

    def __init__(self, error: str, text: str, traceback: str) -> None:
        super().__init__(error, text, traceback)
        self.error, self.text, self.traceback = error, text, traceback

    def __str__(self) -> str:
        return f"{self.error}: {self.text}"


class Member:
    """What the coordinator knows of one node id."""

    def __init__(self, id: NodeId) -> None:
        self.id = id
        self.incarnation = 0
        self.handle: Handle | None = None
        self.connection: Connection | None = None
        self.join: system.Join | None = None
        self.ready = False
        self.events = 0
        self.status: system.Status | None = None
        self.expected_end = False

    @property
    def alive(self) -> bool:
        """Whether its process is there and has joined."""
        return self.join is not None and self.handle is not None


class Coordinator:
    """One run over TCP, on the current event loop."""

    def __init__(self, deployment: Deployment, result: Run) -> None:
        self.deployment, self.result = deployment, result
        self.loop = asyncio.get_running_loop()
        self.members = {id: Member(id) for id in deployment.roster.ids}
        self.over: asyncio.Future[None] = self.loop.create_future()
        self.changed = asyncio.Condition()
        self.began_s: float | None = None
        self.directory: Directory | None = None
        self.faults = FaultExecutor(self)
        self.observers = ObserverThread(deployment.observers, deployment.log_sinks, self.loop, self.request_stop)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._finishing = False

    @property
    def now(self) -> float:
        """Seconds since the run began."""
        return 0.0 if self.began_s is None else self.loop.time() - self.began_s

    async def run(self) -> None:
        """Run to the end; the result holds the error, if there is one."""
        self.listener = Listener(self.deployment.security, self._accepted, self._admit, "coordinator")
        try:
            await self._start()
            if self.deployment.until_s is None:
                self._background(self._watch_stall())
            if self.deployment.until_s is not None:
                self.loop.call_later(self.deployment.until_s, self.end)
            await self.over
        except RunFailed as error:
            self.result.error = self.result.error or error
        finally:
            await self._finish()

    async def _start(self) -> None:
        began = time.perf_counter()
        present = [id for id in self.members if id not in self.faults.absent]
        for id in present:
            self.start_node(id)
        await self.wait_for(lambda: all(self.members[id].alive for id in present), self._missing_joins)
        joins = {id.role: self.members[id].join for id in present}
        talks_to = {role: _roles(join) for role, join in joins.items() if join is not None}
        self.directory = Directory(self.deployment.roster, talks_to)
        for id in present:
            self.send_roster(self.members[id], fresh=False)
        await self.wait_for(lambda: all(self.members[id].ready for id in present), self._missing_links)
        self.began_s = self.loop.time()
        self.result.statistics["start_s"] = time.perf_counter() - began
        for id in present:
            self.tell(self.members[id], system.Begin())
        self.faults.schedule()

    def start_node(self, id: NodeId) -> None:
        """Start the next incarnation of a node."""
        member = self.members[id]
        member.incarnation += 1
        member.join, member.connection, member.ready, member.expected_end = None, None, False, False
        try:
            handle = self.deployment.start(id, member.incarnation, self.listener.address)
        except OSError as error:
            raise RunFailed(f"{id} cannot be started: {error}") from error
        member.handle = handle
        handle.exited.add_done_callback(lambda exited: self._exited(member, handle, exited.result()))

    def send_roster(self, member: Member, fresh: bool) -> None:
        """Tell a node whom to dial and whom to expect; a fresh incarnation dials everybody."""
        assert self.directory is not None
        neighbours = self.directory.neighbours(member.id)
        present = [peer for peer in neighbours if self.members[peer].alive]
        joins = {str(peer): self.members[peer].join for peer in present}
        addresses = {name: join.address for name, join in joins.items() if join is not None}
        lives = {str(peer): self.members[peer].incarnation for peer in present}
        talks_to = {role: _listed(roles) for role, roles in self._talks_to().items()}
        dial = [str(peer) for peer in present if fresh or peer < member.id]
        expect = [] if fresh else [str(peer) for peer in present if peer > member.id]
        absent = [str(peer) for peer in neighbours if peer not in present]
        self.tell(member, system.Roster(addresses, lives, talks_to, dial, expect, absent, self.now if fresh else None))

    def _talks_to(self) -> dict[str, frozenset[str] | None]:
        return {m.id.role: _roles(m.join) for m in self.members.values() if m.join is not None}

    async def wait_for(self, condition: Callable[[], bool], describe: Callable[[], str]) -> None:
        """Wait until something is true, for at most the start deadline.

        Raises
        ------
        Timeout
            With the sentence that ``describe`` gives.
        """
        deadline_s = self.deployment.settings.start_deadline_s
        try:
            async with asyncio.timeout(deadline_s), self.changed:
                await self.changed.wait_for(lambda: condition() or self.over.done())
        except TimeoutError:
            raise Timeout(describe(), deadline_s) from None
        if self.result.error is not None:
            raise self.result.error

    def _missing_joins(self) -> str:
        present = [m for m in self.members.values() if m.id not in self.faults.absent]
        missing = [m for m in present if not m.alive]
        lines = "".join(f"\n{m.id}: {m.handle.last_lines()}" for m in missing[:3] if m.handle is not None)
        names = ", ".join(str(m.id) for m in missing[:8])
        return f"start: {len(present) - len(missing)} of {len(present)} nodes joined; waiting for {names}{lines}"

    def _missing_links(self) -> str:
        missing = [str(m.id) for m in self.members.values() if m.alive and not m.ready]
        return f"start: waiting for the links of {', '.join(missing[:8])}"

    def note_change(self) -> None:
        """Wake whoever waits for a condition."""

        async def notify() -> None:
            async with self.changed:
                self.changed.notify_all()

        self._background(notify())

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        if self._finishing:
            work.close()
            return
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _admit(self, node: str, incarnation: int) -> str | None:
        """Return why a dialer is refused: unknown, or not the incarnation that was started."""
        member = next((m for m in self.members.values() if str(m.id) == node), None)
        if member is None:
            return "node"
        if incarnation != member.incarnation:
            return "fenced"
        return "duplicate" if member.connection is not None else None

    def _accepted(self, connection: Connection) -> None:
        member = self.members[NodeId.parse(connection.peer)]
        member.connection = connection
        connection.on_system = lambda message: self._heard(member, message)
        connection.on_closed = lambda reason: None

    def tell(self, member: Member, message: Message) -> None:
        """Send a system message to a node, if it is there."""
        if member.connection is not None:
            member.connection.send_system(message)
            member.connection.flush()

    def _heard(self, member: Member, message: Message) -> None:
        match message:
            case system.Join():
                member.join = message
                self.note_change()
                if self.began_s is not None:
                    self.send_roster(member, fresh=True)
            case system.Ready():
                member.ready = True
                self.note_change()
            case system.Logged(time_s, metrics):
                logged = Logged(time_s, member.id, msgspec.msgpack.decode(metrics))
                self.result.logs.append(logged)
                self.observers.logged(logged)
            case system.Published(time_s, version, parameters, events):
                published = Published(time_s, member.id, version, parameters, events)
                self.result.published.append(published)
                self.observers.published(published)
            case system.Reached(counters):
                self._background(self._reached(member, counters))
            case system.StopRequest(reason, time_s):
                self.request_stop(reason, time_s)
            case system.Failed():
                self.fail(_failure(message, self.deployment.original_errors))
            case system.Status():
                member.status = message
            case system.Finished(_, _, events, statistics):
                self.result.events += events
                for name, value in statistics.items():
                    before = self.result.statistics.get(name, 0.0)
                    self.result.statistics[name] = max(before, value) if name.startswith("max_") else before + value
            case _:
                pass

    async def _reached(self, member: Member, counters: list[tuple[str, int]]) -> None:
        try:
            for counter in counters:
                await self.faults.reached(counter)
        except RunFailed as error:
            self.fail(error)
        self.tell(member, system.Proceed())

    def request_stop(self, reason: str, time_s: float | None = None) -> None:
        """End the run; the first reason is kept."""
        if self.result.stopped is None:
            self.result.stopped = reason
            self.result.duration_s = self.now if time_s is None else time_s
        self.end()

    def fail(self, error: RunFailed) -> None:
        """End the run with an error; the first one is kept."""
        if self.result.error is None and self.result.stopped is None:
            self.result.error = error
            self.result.duration_s = self.now
        self.end()

    def end(self) -> None:
        """Let :meth:`run` go to its end."""
        if not self.over.done():
            self.over.set_result(None)
        self.note_change()

    def _exited(self, member: Member, handle: Handle, reason: str) -> None:
        if member.handle is not handle or self.over.done():
            return
        member.handle, member.join = None, None
        member.connection, connection = None, member.connection
        if connection is not None:
            connection.abort("exited")
        sentence = f"{member.id} (life {member.incarnation}) {reason} at t={self.now:.3f} s"
        self.result.ends.append(sentence)
        self.result.trace.add(self.now, str(member.id), "exit", member.incarnation, reason)
        if self.began_s is None or (member.id.role in self.deployment.vital and not member.expected_end):
            self.fail(NodeLost(str(member.id), member.incarnation, reason, handle.last_lines()))
        for other in self.members.values():
            self.tell(other, system.PeerExited(str(member.id), member.incarnation, reason))
        self.note_change()

    async def _watch_stall(self) -> None:
        """Fail the run when nothing was handled and nothing is pending anywhere for ``stall_s``."""
        stall_s = self.deployment.settings.stall_s
        since, last = self.loop.time(), -1
        while not self.over.done():
            for member in self.members.values():
                self.tell(member, system.StatusQuery())
            await asyncio.sleep(stall_s / 4)
            found = [m.status for m in self.members.values() if m.status is not None and m.alive]
            events = sum(status.events for status in found)
            if events != last or any(status.pending for status in found) or self.faults.pending:
                since, last = self.loop.time(), events
            elif self.loop.time() - since >= stall_s:
                gone = [f"{m.id}: not running" for m in self.members.values() if not m.alive]
                self.fail(Deadlock(self.now, "\n".join([status.text for status in found] + gone)))

    async def _finish(self) -> None:
        self.result.ends += self.faults.missed()
        if self.result.stopped is None and self.result.error is None:  # until_s
            self.result.duration_s = self.now
        self._finishing = True
        self.faults.close()
        for task in list(self._tasks):
            task.cancel()
        handles = [m.handle for m in self.members.values() if m.handle is not None]
        for member in self.members.values():
            if member.connection is None and member.handle is not None:
                member.handle.kill()  # it has not joined, so nothing can be said to it
            self.tell(member, system.Shutdown(self.result.stopped or "the run failed"))
        await self._gone(handles)
        self.kill_all()
        await self._gone(handles)
        await self.loop.run_in_executor(None, self.observers.close)
        await self.listener.close()

    async def _gone(self, handles: list[Handle]) -> None:
        if handles:
            await asyncio.wait([handle.exited for handle in handles], timeout=self.deployment.settings.drain_s)

    def kill_all(self) -> None:
        """End every node at once."""
        for member in self.members.values():
            if member.handle is not None:
                member.handle.kill()


def _roles(join: system.Join | None) -> frozenset[str] | None:
    return None if join is None or join.talks_to is None else frozenset(join.talks_to)


def _listed(roles: frozenset[str] | None) -> list[str] | None:
    return None if roles is None else sorted(roles)


def _failure(message: system.Failed, originals: dict[tuple[str, int], BaseException]) -> RunFailed:
    failed = NodeFailed(message.node, message.incarnation, message.time_s, message.event)
    original = originals.get((message.node, message.incarnation))
    failed.__cause__ = original or RemoteError(message.error, message.text, message.traceback)
    if original is None:
        failed.add_note(f"in the process of {message.node}:\n{message.traceback.rstrip()}")
    return failed
