"""Links: sessions are prefixes, peers are told of in legal sequences, nothing crosses a crash (contract 3, 10.4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from emuml.blocks import Saved
from emuml.cluster.faults import Crash, FaultPlan
from emuml.context import Context
from emuml.journal import Journal
from emuml.message import Message
from emuml.node import Node, NodeId, PeerState
from emuml.outcome import Run
from emuml.testing.conformance.engine import WORKERS, RunNodes, equal, expect, stopped

TABLE = {
    "up": {"suspect": "suspected", "down": "down"},
    "suspected": {"up": "up", "down": "down"},
    "down": {"up": "up", "restarted": "up"},
    "joining": {"up": "up", "down": "down"},
}
"""State of a link -> event -> next state: the transitions of contract 3.4, and no others."""


@dataclass
class _End:
    """One end of a link as a journal shows it."""

    state: str
    session: int | None = None
    life: int = 0
    lives_before: int = 0
    received: int = 0


def check_links(run: Run) -> int:
    """Raise unless every journal keeps 3.1, 3.4 and 3.5; return how many messages of peers it looked at."""
    return sum(_check_journal(node, journal) for (node, _), journal in run.journals.items())


def _check_journal(node: str, journal: Journal) -> int:
    if not journal.steps:
        return 0
    ends: dict[str, _End] = {}
    equal(journal.steps[0].kind, "start", f"first event of {node}")
    _, sessions, joining, absent = journal.steps[0].details
    known: dict[str, int] = dict(sessions)
    messages = 0
    for step in journal.steps[1:]:
        if step.kind not in ("peer", "message") or step.details[0] == node:
            continue
        peer, where = step.details[0], f"{node} (life {journal.header.incarnation}) at index {step.index}"
        if peer not in ends:
            state = "joining" if joining else "down" if peer in absent else "up"
            ends[peer] = _End(state, known.get(peer) if state == "up" else None)
        if step.kind == "peer":
            _change(ends[peer], step.details, where)
        else:
            _receive(ends[peer], step.details, where)
            messages += 1
    return messages


def _change(end: _End, details: list[Any], where: str) -> None:
    peer, event, session, _ = details
    following = TABLE[end.state].get(event)
    if following is None:
        raise AssertionError(f"{where}: {event} of {peer} follows {end.state}")
    if end.state in ("down", "joining") and following == "up":
        end.session, end.received = session, 0
        end.lives_before = end.life if event == "restarted" else end.life - 1
        end.life = 0
    end.state = following


def _receive(end: _End, details: list[Any], where: str) -> None:
    peer, life, session, number, _ = details
    expect(end.state in ("up", "suspected"), f"{where}: a message of {peer}, which is {end.state}")
    end.session = session if end.session is None else end.session
    equal(session, end.session, f"{where}: session of a message of {peer}")
    end.received += 1
    equal(number, end.received, f"{where}: number of a message of {peer} in its session")
    end.life = end.life or life
    equal(life, end.life, f"{where}: life of {peer} in one session")
    expect(life > end.lives_before, f"{where}: life {life} of {peer} after RESTARTED of life {end.lives_before}")


class Numbered(Message):
    """A number of one session, with the life it is from and the life it is for (0: not known yet)."""

    life: int
    to_life: int
    number: int


class Talker(Node):
    """Answers every message by the next number; floods its peers; tells of its own life, and expects theirs to hold.

    It raises when a message is of an older life than one it has seen after ``RESTARTED``, is for another life than its
    own, is out of order, or when a timer of a former life fires.
    """

    def __init__(self, flood: int = 5) -> None:
        self.flood = flood
        self.lives: dict[NodeId, int] = {}
        self.oldest: dict[NodeId, int] = {}
        self.sent: dict[NodeId, int] = {}
        self.received: dict[NodeId, int] = {}
        self.states: dict[NodeId, PeerState] = {}

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Flood everybody; a fresh life before its links are up."""
        ctx.set_timer(f"life {ctx.incarnation}", 0.02)
        for role in ("server", "worker"):
            for peer in ctx.peers(role):
                for _ in range(self.flood):
                    self.say(ctx, peer)

    def say(self, ctx: Context, peer: NodeId) -> None:
        """Send the next number."""
        self.sent[peer] = self.sent.get(peer, 0) + 1
        ctx.send(peer, Numbered(ctx.incarnation, self.lives.get(peer, 0), self.sent[peer]))

    def on_message(self, ctx: Context, sender: NodeId, message: Numbered) -> None:
        """Judge it and answer."""
        where = f"{ctx.id} (life {ctx.incarnation}) got {message} of {sender}"
        self.received[sender] = self.received.get(sender, 0) + 1
        equal(message.number, self.received[sender], f"{where}: number")
        equal(message.life, self.lives.setdefault(sender, message.life), f"{where}: life of the sender")
        expect(message.life >= self.oldest.get(sender, 1), f"{where}: after RESTARTED")
        expect(message.to_life in (0, ctx.incarnation), f"{where}: it is for another life")
        self.say(ctx, sender)

    def on_timer(self, ctx: Context, name: str) -> None:
        """Only timers of this life fire."""
        equal(name, f"life {ctx.incarnation}", f"timer of {ctx.id}")

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Begin anew with a new session."""
        again = state is PeerState.UP and self.states.get(peer) is PeerState.SUSPECT
        opens = state in (PeerState.UP, PeerState.RESTARTED) and not again
        self.states[peer] = state
        if not opens:
            return
        if state is PeerState.RESTARTED:
            self.oldest[peer] = self.lives.get(peer, self.oldest.get(peer, 1)) + 1
        if peer in self.received or state is PeerState.RESTARTED:
            self.lives.pop(peer, None)
            self.sent[peer] = 0
        self.received[peer] = 0
        if state is PeerState.RESTARTED:
            self.say(ctx, peer)


class Clock(Talker):
    """A talker whose talk with ``worker-0`` is the clock of the fault plan; stops once ``lives`` are all there.

    Parameters
    ----------
    after : int
        Steps to take at least.
    lives : int
        Sum of the lives of all workers to have heard of in the end.
    """

    def __init__(self, after: int, lives: int) -> None:
        super().__init__(flood=1)
        self.after, self.wanted, self.step = after, lives, 0

    def on_message(self, ctx: Context, sender: NodeId, message: Numbered) -> None:
        """Log each message of ``worker-0`` as a step, before anything is sent."""
        if sender == NodeId("worker", 0):
            self.step += 1
            ctx.log(step=self.step)
        super().on_message(ctx, sender, message)
        there = sum(self.lives.get(peer, 0) for peer in ctx.peers("worker"))
        if self.step >= self.after and there >= self.wanted and min(self.received.values()) > 3:
            ctx.stop("done")


def _run(run: RunNodes, faults: list[Crash], after: int, lives: int, workers: int) -> Run:
    nodes = {f"worker-{i}": ("worker", Talker) for i in range(workers)}
    clock = {"server-0": ("server", partial(Clock, after, lives))}
    # The talk with worker-0 never ends by itself, so that a lost return would not be a deadlock.
    found = run({**clock, **nodes}, cluster=WORKERS, faults=FaultPlan(tuple(faults)), until_s=30.0)
    expect(check_links(found) > 4 * after, "too few messages to mean anything")
    return stopped(found)


def nothing_of_an_old_life_arrives_after_restarted(run: RunNodes) -> None:
    """K5, K4 (3.1, 3.4, 3.5, 6.4): one worker dies and returns twice, amid a flood in all directions."""
    faults = [
        Crash("worker-1", after=("step", 3), restart_after=("step", 5)),
        Crash("worker-1", after=("step", 60), restart_after=("step", 60)),
    ]
    found = _run(run, faults, after=80, lives=5, workers=3)
    lives = sorted(life for node, life in found.journals if node == "worker-1")
    equal(lives, [1, 2, 3], "lives of worker-1 with a journal")


def nodes_that_return_together_find_each_other(run: RunNodes) -> None:
    """K5, K4 (3.4, 10.4): two linked workers die in one instant, unknown to each other, and return in one."""
    faults = [Crash(f"worker-{i}", after=("step", 5), restart_after=("step", 9)) for i in (1, 2)]
    found = _run(run, faults, after=40, lives=5, workers=3)
    for worker, other in (("worker-1", "worker-2"), ("worker-2", "worker-1")):
        last = [step.details[0] for step in found.journals[worker, 1].steps if step.kind == "peer"]
        expect(other not in last, f"{worker} was told of {other} before it died in the same instant")
        heard = [step.details[0] for step in found.journals[worker, 2].steps if step.kind == "message"]
        expect(other in heard, f"{worker} and {other} did not find each other in their second lives")


class Sender(Node):
    """Sends to a peer that it knows to be down, and again when that has come back."""

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Let the peer crash."""
        ctx.log(step=1)

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Send into the void, then to somebody."""
        if state is PeerState.DOWN:
            for number in range(3):
                ctx.send(peer, Numbered(1, 0, number))
            ctx.log(step=2)
        elif state is PeerState.RESTARTED:
            ctx.send(peer, Numbered(1, 2, 100))

    def on_message(self, ctx: Context, sender: NodeId, message: Numbered) -> None:
        """The echo of what arrived."""
        ctx.stop(f"{message.number}")


class Echo(Node):
    """Sends back what it gets."""

    def on_message(self, ctx: Context, sender: NodeId, message: Numbered) -> None:
        """Echo."""
        ctx.send(sender, message)


def sends_to_a_peer_that_is_down_are_discarded(run: RunNodes) -> None:
    """K5 (3.6): they raise nothing, are traced, and are not carried over to the next life."""
    faults = FaultPlan((Crash("echo-0", after=("step", 1), restart_after=("step", 2)),))
    found = run({"sender-0": ("sender", Sender), "echo-0": ("echo", Echo)}, cluster=WORKERS, faults=faults)
    stopped(found, "100")
    check_links(found)
    rows = [(row[2], row[3]) for row in found.trace.rows if row[1] == "sender-0" and row[2] in ("send", "discarded")]
    equal(rows, [("discarded", "echo-0")] * 3 + [("send", "echo-0")], "what sender-0 sent")


class Soliloquist(Node):
    """Sends numbers to itself and to another; crashes in between."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Send three, and crash with them in the air in the first life."""
        for number in range(3):
            ctx.send(ctx.id, Numbered(ctx.incarnation, ctx.incarnation, number))
        if ctx.incarnation == 1:
            ctx.log(step=1)
        equal(self.heard, [], "handed over within the step")

    def on_message(self, ctx: Context, sender: NodeId, message: Numbered) -> None:
        """Collect."""
        equal((sender, message.life), (ctx.id, ctx.incarnation), "sender and life of a message to oneself")
        self.heard.append(message.number)
        if len(self.heard) == 3:
            equal(self.heard, [0, 1, 2], "order of messages to oneself")
            equal(ctx.incarnation, 2, "life in which they arrived")
            ctx.stop("done")


def messages_to_oneself_keep_order_and_die_with_their_life(run: RunNodes) -> None:
    """K5 (3.8): FIFO, in a later step, never lost but by a crash."""
    for back in (Crash("soliloquist-0", after=("step", 1), restart_after=("step", 1)),
                 Crash("soliloquist-0", after=("step", 1), restart_after_s=0.005)):  # fmt: skip
        stopped(run({"soliloquist-0": ("soliloquist", Soliloquist)}, cluster=WORKERS, faults=FaultPlan((back,))))
