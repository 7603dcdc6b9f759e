"""Real nodes on one loop, with real sockets: sessions that break, steps that go wrong, loops that must turn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from emuml import FaultPlan
from emuml.cluster.faults import Crash
from emuml.errors import MessageError, NodeFailed
from emuml.journal import read_journal
from emuml.message import Message
from emuml.node import Node, NodeId, PeerState
from emuml.outcome import Run
from emuml.runtime import deployment
from emuml.runtime.connection import Connection
from emuml.runtime.member import Member
from emuml.runtime.settings import RuntimeSettings
from emuml.runtime.store import LogStore
from emuml.testing.running import run_nodes
from tests.runtime.nodes import Ball, Player

SERVER, WORKER = NodeId("server", 0), NodeId("worker", 0)


def shared(server: Callable[[], Node], *workers: Callable[[], Node], **options: Any) -> Run:
    nodes = {f"worker-{number}": ("worker", factory) for number, factory in enumerate(workers)}
    return run_nodes({"server-0": ("server", server), **nodes}, "tcp", processes="shared", **options)


def logged(run: Run, node: NodeId, *names: str) -> list[Any]:
    return [item.metrics[name] for item in run.logs for name in names if item.node == node and name in item.metrics]


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> dict[str, Member]:
    """The members of a run, by id, newest incarnation."""
    found: dict[str, Member] = {}

    class Seen(Member):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            found[self.spec.node] = self

    monkeypatch.setattr(deployment, "Member", Seen)
    return found


class Meddler(Player):
    """A server from whose handlers a test reaches into the runtime."""

    def __init__(self, rallies: int, meddle: Callable[[int], None]) -> None:
        super().__init__(rallies)
        self.meddle = meddle

    def on_message(self, ctx: Any, sender: NodeId, message: Ball) -> None:
        super().on_message(ctx, sender, message)
        self.meddle(self.returns)


@pytest.mark.parametrize("breaker", [SERVER, WORKER])
def test_a_reset_between_living_nodes_is_down_then_up_on_both_sides(members: Any, breaker: NodeId) -> None:
    sessions = []

    def meddle(returns: int) -> None:
        if returns in (5, 12):
            other = WORKER if breaker == SERVER else SERVER
            connection = members[str(breaker)].peers[other]
            sessions.append(connection.session)
            connection._transport.abort()

    run = shared(partial(Meddler, 20, meddle), Player)
    assert run.stopped == "enough"
    assert logged(run, SERVER, "state") == ["down", "up"] * 2
    assert logged(run, WORKER, "state") == ["down", "up"] * 2
    assert logged(run, SERVER, "started") == logged(run, WORKER, "started") == [1]
    assert run.ends == []
    assert len(set(sessions)) == 2
    # What was under way was lost, never carried over: after each reset the server serves again.
    numbers = logged(run, SERVER, "number")
    assert numbers.count(2) == 3


def test_a_restarted_peer_is_told_apart_from_one_that_was_away(members: Any) -> None:
    def meddle(returns: int) -> None:
        if returns == 12:
            members["server-0"].peers[WORKER]._transport.abort()

    crash = Crash("worker-0", after=("returns", 5), restart_after_s=0.0)
    run = shared(partial(Meddler, 20, meddle), Player, faults=FaultPlan([crash]))
    assert logged(run, SERVER, "state") == ["down", "restarted", "down", "up"]
    assert logged(run, WORKER, "started") == [1, 2]
    assert logged(run, WORKER, "state") == ["up", "down", "up"]


def test_messages_of_a_session_end_with_it(members: Any) -> None:
    """A frame that came in before the reset, and is handed over after DOWN, would be one of a closed session."""
    kept: list[Any] = []

    def meddle(returns: int) -> None:
        host = members["server-0"].host
        if returns == 5:
            connection = members["server-0"].peers[WORKER]
            kept.append(partial(host.received, WORKER, connection, Ball(99, np.zeros(1)), 100, 6))
            connection._transport.abort()
        if returns == 10:
            kept[0]()

    run = shared(partial(Meddler, 15, meddle), Player)
    assert run.stopped == "enough"
    assert 99 not in logged(run, SERVER, "number")


def test_large_messages_between_nodes() -> None:
    run = shared(partial(Player, 4, size=8 << 20), Player)
    assert run.stopped == "enough"
    sizes = [record.details["size_bytes"] for record in run.trace.of("receive") if record.node == "server-0"]
    assert len(sizes) >= 4
    assert min(sizes) > 64 << 20


class Soliloquist(Node):
    """Sends itself a message for each one that it gets."""

    talks_to: ClassVar[frozenset[str] | None] = None
    messages: ClassVar[tuple[type[Message], ...]] = (Ball,)

    def on_start(self, ctx: Any, saved: Any) -> None:
        ctx.send(ctx.id, Ball(1, np.zeros(1)))

    def on_message(self, ctx: Any, sender: NodeId, message: Ball) -> None:
        if sender == ctx.id:
            ctx.send(ctx.id, message)
        else:
            ctx.send(sender, message)


def test_a_node_that_is_never_done_still_hears_others() -> None:
    run = shared(partial(Player, 20), Soliloquist)
    assert run.stopped == "enough"


class Overflowing(Node):
    """Records an effect that cannot be executed."""

    def on_start(self, ctx: Any, saved: Any) -> None:
        ctx.set_timer("later", 0.0)

    def on_timer(self, ctx: Any, name: str) -> None:
        ctx.log(fine=1)
        ctx.publish(2**70, np.zeros(1))


def test_an_effect_that_cannot_be_executed_ends_the_run() -> None:
    run = shared(Overflowing)
    assert isinstance(run.error, NodeFailed)
    assert run.error.event == "the effects of on_timer('later')"
    assert isinstance(run.error.__cause__, (MessageError, OverflowError))
    assert logged(run, SERVER, "fine") == [1]


class Raising(Node):
    def on_start(self, ctx: Any, saved: Any) -> None:
        raise KeyError("nothing saved")


def test_a_raising_handler_is_the_same_exception_object() -> None:
    run = shared(Raising)
    assert isinstance(run.error, NodeFailed)
    assert run.error.event == "on_start"
    assert isinstance(run.error.__cause__, KeyError)
    assert "on_start" in [frame.name for frame in _frames(run.error.__cause__)]


def _frames(error: BaseException) -> Any:
    import traceback

    return traceback.extract_tb(error.__traceback__)


class Saver(Node):
    """Saves in each step, and is killed between any two of them."""

    def on_start(self, ctx: Any, saved: Any) -> None:
        self.number = saved["number"] if saved else 0
        ctx.log(recovered=self.number)
        self.save(ctx)

    def save(self, ctx: Any) -> None:
        self.number += 1
        ctx.save(self.number, {"number": self.number})

    def on_saved(self, ctx: Any, tag: Any) -> None:
        ctx.log(saved=tag)
        self.save(ctx)


class SaverWithEnd(Saver):
    def on_saved(self, ctx: Any, tag: Any) -> None:
        super().on_saved(ctx, tag)
        if ctx.incarnation == 4:
            ctx.stop("saved in the last life")


def test_every_saved_block_has_a_journalled_step(tmp_path: Path) -> None:
    faults = FaultPlan([Crash("server-0", at_s=0.05 * life, restart_after_s=0.0) for life in (1, 2, 3)])
    run = shared(SaverWithEnd, faults=faults, folder=tmp_path)
    assert run.stopped == "saved in the last life"
    recovered, saved = logged(run, SERVER, "recovered"), logged(run, SERVER, "saved")
    assert recovered == sorted(recovered)
    assert recovered[1] > 0
    for life in (2, 3, 4):
        # What was acknowledged in a former life is there in the next one.
        assert recovered[life - 1] >= max([number for number in saved if number <= recovered[life - 1]], default=0)
        steps = read_journal(tmp_path / f"nodes/server-0.{life - 1}/journal").steps
        assert steps[-1].kind in ("start", "saved")
    store = LogStore(tmp_path / "nodes/server-0.store", 5)
    assert store.read()["number"] >= max(saved)
    store.close()


def test_a_save_is_in_the_journal_before_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a kill in between would leave a block that no replay can make again."""
    found, commit = [], LogStore.commit

    def spy(self: LogStore, blocks: Any) -> int:
        steps = read_journal(tmp_path / "nodes/server-0.1/journal").steps
        found.append((blocks["number"], len(steps)))
        return commit(self, blocks)

    monkeypatch.setattr(LogStore, "commit", spy)
    assert shared(Saver, until_s=0.2, folder=tmp_path).error is None
    assert len(found) > 1
    assert all(steps >= number for number, steps in found)


def test_a_node_admits_its_own_neighbours_in_their_newest_life(members: Any) -> None:
    asked = {}

    def meddle(returns: int) -> None:
        member = members["server-0"]
        if returns == 3:
            member.exited.add((WORKER, 5))
            for node, life in [("worker-0", 1), ("worker-0", 2), ("worker-0", 0), ("worker-0", 5), ("worker-1", 1)]:
                asked[node, life] = member._admit(node, life)
            asked["self"] = member._admit("server-0", 1)
            asked["nonsense"] = member._admit("nonsense", 1)

    assert shared(partial(Meddler, 5, meddle), Player).stopped == "enough"
    assert asked == {
        ("worker-0", 1): "duplicate",
        ("worker-0", 2): None,
        ("worker-0", 0): "fenced",
        ("worker-0", 5): "fenced",
        ("worker-1", 1): "node",
        "self": "node",
        "nonsense": "node",
    }


def test_no_step_leaves_before_it_is_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When bytes of the worker's nth answer leave, the step that made it can be read from the worker's file."""
    sent, checked = [], []
    send_data, flush = Connection.send_data, Connection.flush

    def sending(self: Connection, message: Message, seq: int) -> None:
        if self.peer == "server-0":
            sent.append(seq)
        send_data(self, message, seq)

    def flushing(self: Connection) -> None:
        if (self._security.node, self.peer) == ("worker-0", "server-0") and self._out:
            steps = read_journal(tmp_path / "nodes/worker-0.1/journal").steps
            checked.append((sum(step.kind == "message" for step in steps), len(sent)))
        flush(self)

    monkeypatch.setattr(Connection, "send_data", sending)
    monkeypatch.setattr(Connection, "flush", flushing)
    assert shared(partial(Player, 30), Player, folder=tmp_path).stopped == "enough"
    assert len(checked) >= 30
    assert all(steps >= answers for steps, answers in checked)


def test_states_are_told_in_the_order_of_the_table(members: Any) -> None:
    """SUSPECT then UP of one session; a stale suspicion of a former session is nothing."""

    def meddle(returns: int) -> None:
        member = members["server-0"]
        session = member.peers[WORKER].session
        if returns == 3:
            member.host.silence(WORKER, session, PeerState.SUSPECT)
            member.host.silence(WORKER, session, PeerState.SUSPECT)
            member.host.silence(WORKER, session, PeerState.UP)
            member.host.silence(WORKER, session + 1, PeerState.SUSPECT)
            member.host.closed(WORKER, session + 1, "another")

    run = shared(partial(Meddler, 10, meddle), Player)
    assert run.stopped == "enough"
    assert logged(run, SERVER, "state") == ["suspect", "up"]


class Line:
    """A connection that takes whatever is sent."""

    session = 77

    def __init__(self, peer_incarnation: int) -> None:
        self.peer_incarnation = peer_incarnation

    def send_data(self, message: Message, seq: int) -> None:
        pass

    def flush(self) -> None:
        pass


@pytest.mark.parametrize(("life", "again"), [(1, "up"), (2, "restarted")])
def test_a_new_session_ends_the_old_one_first(members: Any, life: int, again: str) -> None:
    """The end of a session may be noticed later than the begin of the next one (contract 3.4)."""
    late = Line(life)

    def meddle(returns: int) -> None:
        member = members["server-0"]
        if returns == 3:
            member.host.opened(WORKER, late)
            member.host.closed(WORKER, member.peers[WORKER].session, "noticed late")
            member.loop.call_soon(member.host.closed, WORKER, 77, "its end")

    run = shared(partial(Meddler, 0, meddle), Player, until_s=0.3)
    assert run.error is None
    assert logged(run, SERVER, "state")[:3] == ["down", again, "down"]


class Failing(Node):
    """Saves to a disk that refuses."""

    def on_start(self, ctx: Any, saved: Any) -> None:
        ctx.save("first", {"a": 1})


def test_a_disk_that_refuses_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: LogStore, blocks: Any) -> int:
        raise OSError("no space left")

    monkeypatch.setattr(LogStore, "commit", refuse)
    run = shared(Failing)
    assert isinstance(run.error, NodeFailed)
    assert (run.error.node, run.error.event) == ("server-0", "storage")
    assert isinstance(run.error.__cause__, OSError)


def test_a_late_joiner_begins_without_a_peer_that_it_cannot_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shy(Member):
        def _admit(self, node: str, incarnation: int) -> str | None:
            return "fenced" if self.spec.node == "worker-0" and incarnation == 2 else super()._admit(node, incarnation)

    monkeypatch.setattr(deployment, "Member", Shy)
    crash = Crash("worker-1", after=("returns", 5), restart_after=("returns", 20))
    run = shared(partial(Player, 60), Player, Player, faults=FaultPlan([crash]))
    assert run.stopped == "enough"
    again = [item.metrics for item in run.logs if item.node == NodeId("worker", 1)][-3:]
    assert again[0] == {"started": 2}
    assert {(item["peer"], item["state"]) for item in again[1:]} == {("server-0", "up"), ("worker-0", "down")}


def test_without_journal_and_trace(tmp_path: Path) -> None:
    settings = RuntimeSettings("shared", journal=False, trace=False)
    run = shared(partial(Player, 5), Player, folder=tmp_path, runtime=settings)
    assert run.stopped == "enough"
    assert run.journals == {}
    assert not list(tmp_path.glob("nodes/*/journal"))
    assert run.events > 5
