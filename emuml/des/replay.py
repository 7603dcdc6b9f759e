"""Replay: journals of a run, from either engine, fed to fresh nodes; every effect must come out as it was recorded.

Messages are not in the journals: each is re-created by replaying its sender. So nodes advance in turns, each as far as
the messages it received are there. Compute results are made again by the same calls.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from emuml import effects as fx
from emuml.blocks import Saved
from emuml.checks import Checker
from emuml.cluster.faults import Crash, FaultPlan
from emuml.directory import Directory
from emuml.errors import Diverged, RunFailed
from emuml.journal import RAISED, Journal, Step, effects_digest, tag_of, value_digest
from emuml.lazy import Deferred
from emuml.life import Life
from emuml.links import Links
from emuml.message import Message, digest
from emuml.node import Node, NodeId, Nodes, PeerState
from emuml.outcome import Logged, Published, Run
from emuml.roster import Roster
from emuml.switches import checking
from emuml.task import Task
from emuml.trace import Trace

Origin = tuple[str, int, str, int, int]
"""Sender, its incarnation, receiver, session, number in the session."""


class Replayer:
    """Replays all journals of one run.

    Parameters
    ----------
    nodes : mapping of NodeId -> (role, factory)
    roster : Roster
        With the seed of the run.
    journals : mapping of (node, incarnation) -> Journal
    faults : FaultPlan, optional
        Of the run: a node that was crashed at its own log did not get to what it recorded after it.
    """

    def __init__(
        self,
        nodes: Nodes,
        roster: Roster,
        journals: Mapping[tuple[str, int], Journal],
        faults: FaultPlan | None = None,
    ) -> None:
        self.faults = faults or FaultPlan()
        self.mail: dict[Origin, Message] = {}
        self.result = Run("replay", Trace())
        first = {id: factory() for id, (_, factory) in nodes.items()}
        self.directory = Directory(roster, {id.role: node.talks_to for id, node in first.items()})
        self.checker = Checker() if checking() else None
        self.readers = [
            Reader(self, id, nodes[id][1], [journals[key] for key in sorted(journals) if key[0] == str(id)])
            for id in roster.ids
        ]

    def run(self) -> Run:
        """Replay as far as the journals go.

        Raises
        ------
        Diverged
            At the first difference.
        RunFailed
            If a journal was cut so that the origin of a message is missing.
        """
        began = time.perf_counter()
        while sum(reader.advance() for reader in self.readers):  # every reader in each turn
            pass
        blocked = [reader.blocked() for reader in self.readers if reader.blocked()]
        if blocked and self.result.stopped is None:
            raise RunFailed("the journals were cut; replay ends where messages have no origin: " + "; ".join(blocked))
        self.result.published.sort(key=lambda item: item.time_s)
        self.result.duration_s = max((reader.now for reader in self.readers), default=0.0)
        self.result.wall_s = time.perf_counter() - began
        return self.result


class Reader:
    """One node id with its journals, one per incarnation, and how far they are replayed."""

    def __init__(self, replayer: Replayer, id: NodeId, factory: Any, journals: Sequence[Journal]) -> None:
        self.replayer, self.id, self.factory, self.name = replayer, id, factory, str(id)
        self.steps = [(journal.header.incarnation, step) for journal in journals for step in journal.steps]
        self.position = 0
        self.now = 0.0
        self.life: Life | None = None
        self.links = Links(False, id, 0)
        self.tasks: dict[Any, Task] = {}
        self.saves: list[Mapping[Any, Any]] = []
        crashes = (f for f in replayer.faults.faults if isinstance(f, Crash) and f.target == id)
        self.ends_at = {crash.after for crash in crashes if crash.after is not None}

    def blocked(self) -> str:
        """Return what the next step waits for, or an empty string at the end of the journals."""
        if self.position == len(self.steps):
            return ""
        _, step = self.steps[self.position]
        return f"{self.name} at index {step.index} needs message {step.details[:4]}"

    def advance(self) -> bool:
        """Replay steps until one waits for a message that is not there; tell whether any was replayed."""
        before = self.position
        while self.position < len(self.steps):
            incarnation, step = self.steps[self.position]
            event = self._event(incarnation, step)
            if event is None:
                break
            self._replay(incarnation, step, event)
            self.position += 1
        return self.position > before

    def _replay(self, incarnation: int, step: Step, event: fx.Event) -> None:
        assert self.life is not None
        self.now = step.now
        self.replayer.result.events += 1
        effects = self.life.handle(event, step.now)
        if step.effects == RAISED:
            raise Diverged(self.name, step.index, f"effects of {step.kind}", "an exception", f"{len(effects)} effects")
        found = effects_digest(effects)
        if found != step.effects:
            raise Diverged(self.name, step.index, f"effects of {step.kind}", f"{step.effects:08x}", f"{found:08x}")
        self._execute(incarnation, effects, step.now)

    def _event(self, incarnation: int, step: Step) -> fx.Event | None:
        details = step.details
        match step.kind:
            case "start":
                return self._start(incarnation, details)
            case "message":
                return self._received(step)
            case "timer":
                return fx.TimerFired(details[0], self._live("timer", step).timers.get(details[0], -1))
            case "computed":
                return self._computed(step)
            case "saved":
                return fx.SaveDone(tag_of(details[0]))
            case "loaded":
                return fx.LoadDone(tag_of(details[0]), self._blocks(details[1], step))
            case "peer":
                return self._peer(incarnation, step)
        raise Diverged(self.name, step.index, "kind", step.kind, "an event of this version")

    def _live(self, what: str, step: Step) -> Life:
        life = self.life
        if life is None or (what == "timer" and step.details[0] not in life.timers):
            raise Diverged(self.name, step.index, what, str(step.details[0]), "not set")
        return life

    def _start(self, incarnation: int, details: list[Any]) -> fx.Event:
        blocks, sessions, joining, absent = details
        parsed = {NodeId.parse(peer): session for peer, session in sessions}
        missing = frozenset(NodeId.parse(peer) for peer in absent)
        self.links = Links(joining, self.id, incarnation, parsed, missing)
        self.tasks = {}
        node: Node = self.factory()
        self.life = Life(node, self.id, incarnation, self.replayer.directory, self.replayer.checker)
        self.replayer.result.nodes[self.id] = node
        return fx.Started(self._blocks(blocks, None))

    def _received(self, step: Step) -> fx.Event | None:
        sender, life, session, seq, recorded = step.details
        message = self.replayer.mail.get((sender, life, self.name, session, seq))
        if message is None:
            return None
        if digest(message) != recorded:
            raise Diverged(self.name, step.index, f"message from {sender}", f"{recorded:08x}", f"{digest(message):08x}")
        return fx.Received(NodeId.parse(sender), message)

    def _computed(self, step: Step) -> fx.Event:
        tag = tag_of(step.details[0])
        task = self.tasks.pop(tag, None)
        if task is None or self.life is None:
            raise Diverged(self.name, step.index, "task", str(tag), "never started")
        result = Deferred(task, tag, self.name)
        found = value_digest(result)
        if found != step.details[1]:
            what = "result of a task (the kernel, BLAS or machine differs, not the protocol)"
            raise Diverged(self.name, step.index, what, f"{step.details[1]:08x}", f"{found:08x}")
        return fx.Computed(tag, result, self.life.tasks.get(tag, -1))

    def _peer(self, incarnation: int, step: Step) -> fx.Event:
        peer, state = NodeId.parse(step.details[0]), PeerState(step.details[1])
        for message in self.links.change(peer, state, step.details[2]):
            self._send(incarnation, peer, message)
        return fx.PeerChanged(peer, state)

    def _blocks(self, recorded: Iterable[list[Any]], step: Step | None) -> Saved:
        found = {}
        for block, version, crc in recorded:
            block = tag_of(block)
            values = [save[block] for save in self.saves if block in save and value_digest(save[block]) == crc]
            if not values:
                raise Diverged(
                    self.name, step.index if step else 0, "stored block", f"{block!r} {crc:08x}", "never saved"
                )
            found[block] = ((version, values[-1]),)
        return Saved(found)

    def _send(self, incarnation: int, to: NodeId, message: Message) -> None:
        link = self.links.of(to)
        if link.carries:
            self.replayer.mail[self.name, incarnation, str(to), link.session, link.next_seq()] = message
        elif link.state == "joining":
            link.waiting.append(message)

    def _execute(self, incarnation: int, effects: Iterable[fx.Effect], now: float) -> None:
        result = self.replayer.result
        for effect in effects:
            match effect:
                case fx.Send(to, message) | fx.SendLatest(to, message):
                    self._send(incarnation, to, message)
                case fx.Broadcast(peers, message):
                    for peer in peers:
                        self._send(incarnation, peer, message)
                case fx.Compute(tag, task):
                    self.tasks[tag] = task
                case fx.Cancel(tag):
                    self.tasks.pop(tag, None)
                case fx.Save(_, blocks):
                    self.saves.append(blocks)
                case fx.Log(metrics):
                    result.logs.append(Logged(now, self.id, metrics))
                    if self.ends_at.intersection(metrics.items()):
                        self.ends_at.difference_update(metrics.items())
                        return
                case fx.Publish(version, parameters):
                    result.published.append(Published(now, self.id, version, parameters))
                case fx.Stop(reason):
                    result.stopped = result.stopped or reason
                    return
                case _:
                    pass
