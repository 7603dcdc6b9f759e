"""Nodes that use every effect, while processes die and connections break: whatever happened, replay gives it again."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import pytest

from emuml import FaultPlan
from emuml.cluster import Cluster, ShiftedExponential, timeline
from emuml.cluster.faults import Crash, Fault, Start
from emuml.des.replay import Replayer
from emuml.lazy import combine
from emuml.message import Array, Message
from emuml.node import Node, NodeId, PeerState
from emuml.roster import Roster
from emuml.runtime import deployment
from emuml.runtime.member import Member
from emuml.task import Task
from emuml.testing.running import run_nodes

pytestmark = pytest.mark.slow


class Gossip(Message):
    life: int
    number: int
    value: Array


def half_more(value: np.ndarray) -> np.ndarray:
    return value * 1.5


class Chatter(Node):
    """Sends to everybody and itself, computes and cancels, saves and loads, all by draws of its own."""

    messages: ClassVar[tuple[type[Message], ...]] = (Gossip,)

    def on_start(self, ctx: Any, saved: Any) -> None:
        self.count = saved["count"] if saved else 0
        self.state = np.full(5, float(self.count))
        self.others = (*ctx.peers("worker"), *ctx.peers("boss"), ctx.id)
        ctx.set_timer("tick", 0.005)
        if saved:
            ctx.load("mine", ["count", "state"])

    def on_timer(self, ctx: Any, name: str) -> None:
        self.count += 1
        draws = ctx.rng(f"draws/{self.count}/{ctx.incarnation}")
        for _ in range(3):
            to = self.others[draws.integers(len(self.others))]
            ctx.send(to, Gossip(ctx.incarnation, self.count, self.state + draws.random(5)))
        if self.count % 7 == 0:
            ctx.save(self.count, {"count": self.count, "state": self.state, ("k", self.count % 3): [1.5, (None,)]})
        if self.count % 5 == 0:
            ctx.cancel("task")
            ctx.compute("task", Task(half_more, (self.state.copy(),), 1.0, (5,)))
        if self.count % 11 == 0:
            ctx.broadcast(ctx.role, Gossip(ctx.incarnation, self.count, self.state))
        ctx.log(count=self.count)
        ctx.set_timer("tick", 0.004)

    def on_message(self, ctx: Any, sender: NodeId, message: Gossip) -> None:
        self.state = self.state * 0.5 + message.value * 0.25
        if message.number % 13 == 0:
            ctx.send(sender, Gossip(ctx.incarnation, message.number + 1, self.state))

    def on_computed(self, ctx: Any, tag: Any, result: Any) -> None:
        self.state = combine([1.0, 0.01], [self.state, result])

    def on_loaded(self, ctx: Any, tag: Any, blocks: Any) -> None:
        self.state = self.state + blocks["state"]

    def on_peer(self, ctx: Any, peer: NodeId, state: PeerState) -> None:
        if state in (PeerState.UP, PeerState.RESTARTED):
            ctx.send(peer, Gossip(ctx.incarnation, self.count, self.state))


class Boss(Chatter):
    """Stops the run after a while."""

    def on_start(self, ctx: Any, saved: Any) -> None:
        super().on_start(ctx, saved)
        ctx.set_timer("end", max(0.0, 0.6 - ctx.now))

    def on_timer(self, ctx: Any, name: str) -> None:
        if name == "end":
            ctx.publish(1, self.state)
            ctx.stop("enough")
        else:
            super().on_timer(ctx, name)


def plan(draws: random.Random, workers: int) -> list[Fault]:
    faults: list[Fault] = []
    for number in range(workers):
        if draws.random() < 0.1:
            faults.append(Start(f"worker-{number}", at_s=draws.random() * 0.4))
            continue
        for _ in range(draws.choice([0, 1, 2])):
            at_s, again_s = (
                draws.choice([0.0, 0.2, draws.random() * 0.5]),
                draws.choice([None, 0.0, draws.random() / 5]),
            )
            faults.append(Crash(f"worker-{number}", at_s=at_s, restart_after_s=again_s))
    if draws.random() < 0.5:
        faults.append(Crash("worker-0", after=("count", 40), restart_after=("count", 60)))
    if draws.random() < 0.3:
        faults.append(Crash("boss-0", at_s=0.2, restart_after_s=0.0))
    return list(timeline.possible(faults))


@contextmanager
def breaking_connections(draws: random.Random, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reset connections between living nodes, without a goodbye, every few milliseconds."""
    members: list[Member] = []
    over = threading.Event()

    class Seen(Member):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            members.append(self)

    def reset(member: Member) -> None:
        for connection in list(member.peers.values()):
            if draws.random() < 0.3 and connection._transport is not None:
                connection._transport.abort()

    def work() -> None:
        while not over.wait(draws.random() * 0.03):
            for member in list(members):
                if member.host is not None and member.host.began_s is not None and draws.random() < 0.2:
                    try:
                        member.loop.call_soon_threadsafe(reset, member)
                    except RuntimeError:  # the run is over
                        return

    patch.setattr(deployment, "Member", Seen)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("seed", range(6))
def test_any_run_is_replayed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = random.Random(seed)
    workers = draws.choice([3, 5])
    nodes: dict[NodeId, Any] = {NodeId("worker", number): ("worker", Chatter) for number in range(workers)}
    nodes[NodeId("boss", 0)] = ("boss", Boss)
    cluster = Cluster(workers=workers, compute=ShiftedExponential(shift_s=0.001, mean_s=0.01))
    faults = FaultPlan(plan(draws, workers))
    with breaking_connections(draws, monkeypatch):
        run = run_nodes(nodes, "tcp", cluster, faults, seed, processes="shared")
    assert run.error is None
    assert run.stopped == "enough"
    again = Replayer(nodes, Roster(tuple(sorted(nodes)), seed), run.journals).run()
    assert again.events == run.events > 0
    assert [p.parameters.tobytes() for p in again.published] == [p.parameters.tobytes() for p in run.published]
