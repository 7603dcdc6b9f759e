"""The coordinator: crashes at awkward moments, ends while something is pending, deadlocks, starts that fail."""

from __future__ import annotations

import asyncio
import socket
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from emuml import FaultPlan
from emuml.cluster.faults import Crash, Start
from emuml.errors import Deadlock, NodeLost, RunFailed, Timeout, UserError
from emuml.node import Node, NodeId, PeerState
from emuml.runtime import deployment
from emuml.runtime.member import Member
from emuml.runtime.settings import RuntimeSettings
from tests.runtime.nodes import Ball, Player, Unborn
from tests.runtime.test_host import SERVER, WORKER, Meddler, logged, shared

NEVER_S = 1e6


class Awaiting(Player):
    """Stops when a new life plays."""

    def on_start(self, ctx: Any, saved: Any) -> None:
        self.again = False
        super().on_start(ctx, saved)

    def on_peer(self, ctx: Any, peer: NodeId, state: PeerState) -> None:
        super().on_peer(ctx, peer, state)
        self.again = state is PeerState.RESTARTED

    def on_message(self, ctx: Any, sender: NodeId, message: Ball) -> None:
        super().on_message(ctx, sender, message)
        if self.again:
            ctx.stop("enough")


@pytest.mark.parametrize("at_s", [0.0, 0.001, 0.01])
def test_a_crash_while_the_run_begins(at_s: float) -> None:
    """Whether the server had begun or not: it hears that the worker is down, then that a new life is there."""
    run = shared(Awaiting, Player, faults=FaultPlan([Crash("worker-0", at_s=at_s, restart_after_s=0.0)]))
    assert run.stopped == "enough"
    assert logged(run, SERVER, "state") == ["down", "restarted"]
    assert len(run.ends) == 1


def test_a_peer_lost_before_the_run_began_is_down_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    class Early(Member):
        """The worker is gone between the last word of readiness and the first step of the server."""

        def _begin(self, elapsed_s: float, joining: bool) -> None:
            for connection in self.peers.values():
                connection.abort("lost early")
            self.loop.call_soon(super()._begin, elapsed_s, joining)

        async def _redial(self, peer: NodeId, incarnation: int) -> None:
            return

    monkeypatch.setattr(deployment, "Member", Early)
    run = shared(partial(Player, 1), Player, runtime=RuntimeSettings(stall_s=0.2))
    assert logged(run, SERVER, "state") == ["down"]
    assert isinstance(run.error, Deadlock)


def test_two_crashes_of_one_instant() -> None:
    crashes = [Crash(f"worker-{number}", after=("returns", 10), restart_after=("returns", 14)) for number in (0, 1)]
    run = shared(partial(Player, 30), Player, Player, Player, faults=FaultPlan(crashes))
    assert run.stopped == "enough"
    assert sorted(logged(run, SERVER, "state")) == ["down", "down", "restarted", "restarted"]
    assert sorted(logged(run, SERVER, "peer")) == ["worker-0", "worker-0", "worker-1", "worker-1"]
    for number in (0, 1):
        assert logged(run, NodeId("worker", number), "started") == [1, 2]


def test_a_node_that_crashes_while_it_joins_joins_in_its_next_life() -> None:
    crashes = [
        Crash("worker-0", at_s=0.05, restart_after_s=0.0),
        *(Crash("worker-0", at_s=0.05 + 0.0005 * step, restart_after_s=0.0) for step in range(1, 12)),
    ]
    run = shared(partial(Slow, 0.3), Player, faults=FaultPlan(crashes))
    assert run.stopped == "time"
    lives = logged(run, WORKER, "started")
    assert lives == sorted(lives)
    assert logged(run, SERVER, "state")[-1] == "restarted"
    assert len(run.ends) == len({end.partition(" at t=")[0] for end in run.ends})


class Slow(Player):
    """Stops at a time."""

    def __init__(self, stop_s: float) -> None:
        super().__init__()
        self.stop_s = stop_s

    def on_start(self, ctx: Any, saved: Any) -> None:
        super().on_start(ctx, saved)
        ctx.set_timer("stop", self.stop_s)

    def on_timer(self, ctx: Any, name: str) -> None:
        ctx.stop("time")


@pytest.mark.parametrize(
    "fault",
    [
        Crash("worker-0", at_s=NEVER_S),
        Start("worker-1", at_s=NEVER_S),
        Crash("worker-0", after=("returns", 5), restart_after_s=NEVER_S),
        Crash("worker-0", after=("returns", 5), restart_after_s=0.0),
        Crash("worker-0", after=("returns", 6)),
        Crash("server-0", after=("returns", 6)),
    ],
)
def test_a_run_ends_while_a_fault_is_pending(fault: Any) -> None:
    before = threading.active_count()
    run = shared(
        partial(Player, 6), Player, Player, faults=FaultPlan([fault]), runtime=RuntimeSettings("shared", stall_s=0.3)
    )
    assert run.stopped == "enough" or isinstance(run.error, Deadlock)
    assert run.stopped or fault.node == "server-0"
    assert threading.active_count() == before


def test_several_counters_in_one_log() -> None:
    class Both(Player):
        def on_message(self, ctx: Any, sender: NodeId, message: Ball) -> None:
            super().on_message(ctx, sender, message)
            ctx.log(first=self.returns, second=self.returns)

    crashes = [Crash("worker-0", after=("first", 5)), Crash("worker-1", after=("second", 5))]
    run = shared(partial(Both, 20), Player, Player, Player, faults=FaultPlan(crashes))
    assert run.stopped == "enough"
    assert [end.partition(" (")[0] for end in run.ends] == ["worker-0", "worker-1"]


def test_more_nodes_than_strangers_are_let_in_at_once() -> None:
    class Spoke(Player):
        talks_to = frozenset({"server"})

    run = shared(partial(Player, 300), *[Spoke] * 100)
    assert run.stopped == "enough"


def test_a_deadlock_names_what_everybody_waits_for() -> None:
    class Silent(Player):
        def on_message(self, ctx: Any, sender: NodeId, message: Ball) -> None:
            pass

    run = shared(Silent, Player, Silent, runtime=RuntimeSettings(stall_s=0.2))
    assert isinstance(run.error, Deadlock)
    for node in ("server-0", "worker-0", "worker-1"):
        assert node in run.error.report
    assert run.error.report.count("waiting for the ball") == 3


def test_a_pending_timer_or_fault_is_no_deadlock() -> None:
    class Patient(Node):
        def on_start(self, ctx: Any, saved: Any) -> None:
            ctx.set_timer("end", 0.5)

        def on_timer(self, ctx: Any, name: str) -> None:
            ctx.stop("patient")

    run = shared(Patient, runtime=RuntimeSettings(stall_s=0.05))
    assert run.stopped == "patient"


def test_until_ends_a_run_that_would_go_on() -> None:
    run = shared(Player, Player, until_s=0.1)
    assert run.error is None
    assert run.stopped is None
    assert run.duration_s >= 0.1  # on the run's own clock, which begins when all have joined


@pytest.mark.parametrize("vital", ["server-0", "worker-1"])
def test_a_factory_that_raises(vital: str) -> None:
    bad = partial(Unborn, "raise")
    run = shared(bad, Player) if vital == "server-0" else shared(Player, Player, bad)
    assert isinstance(run.error, NodeLost)
    assert run.error.node == vital
    assert "RuntimeError: no such data set" in str(run.error)


def test_a_start_that_does_not_come_to_its_end_names_the_links(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(Member):
        async def _connect(self, roster: Any) -> None:
            if self.spec.node == "worker-1":
                await asyncio.Event().wait()
            await super()._connect(roster)

    monkeypatch.setattr(deployment, "Member", Deaf)
    run = shared(Player, Player, Player, runtime=RuntimeSettings(start_deadline_s=0.5))
    assert isinstance(run.error, Timeout)
    assert "links of" in str(run.error)
    assert "worker-1" in str(run.error)
    assert run.events == 0


def test_an_observer_that_raises_ends_the_run_with_its_reason() -> None:
    from emuml.roster import Roster

    class Publisher(Player):
        def on_message(self, ctx: Any, sender: NodeId, message: Ball) -> None:
            super().on_message(ctx, sender, message)
            ctx.publish(self.returns, message.value)

    seen = []

    def observe(item: Any) -> str | None:
        seen.append(item.version)
        if item.version == 3:
            raise ValueError("no such metric")
        return None

    nodes = {SERVER: ("server", Publisher), WORKER: ("worker", Player)}
    job = deployment.Job(
        nodes,
        Roster((SERVER, WORKER), 0),
        deployment.Cluster(workers=1),
        lambda id: {},
        deployment.Inputs(),
        observers=[observe],
    )
    run = deployment.deploy(job, RuntimeSettings("shared"))
    assert "ValueError: no such metric" in (run.stopped or str(run.error))
    assert seen == [1, 2, 3]


def test_an_unknown_node_in_the_plan_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="worker-7"):
        shared(Player, Player, faults=FaultPlan([Crash("worker-7", at_s=1.0)]), folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_coordinator_admits_only_the_life_that_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    from emuml.runtime.coordinator import Coordinator

    asked = []
    admit = Coordinator._admit

    def spy(self: Coordinator, node: str, incarnation: int) -> str | None:
        asked.append([admit(self, node, n) for n in (incarnation - 1, incarnation, incarnation + 1)])
        asked.append([admit(self, "worker-9", 1), admit(self, "nonsense", 1)])
        return admit(self, node, incarnation)

    monkeypatch.setattr(Coordinator, "_admit", spy)
    assert shared(partial(Player, 3), Player).stopped == "enough"
    assert asked == [["fenced", None, "fenced"], ["node", "node"]] * 2


class UntilLost(Meddler):
    """Stops when the coordinator knows that a worker is gone."""

    def __init__(self, meddle: Any) -> None:
        super().__init__(0, meddle)

    def on_peer(self, ctx: Any, peer: NodeId, state: PeerState) -> None:
        ctx.set_timer("gone", 0.2)

    def on_timer(self, ctx: Any, name: str) -> None:
        ctx.stop("it is gone")


def test_a_node_without_its_coordinator_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def meddle(returns: int) -> None:
        if returns == 3:
            member = found["worker-0"]
            assert member.coordinator is not None
            member.coordinator.abort("cut")

    found: dict[str, Member] = {}

    class Seen(Member):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            found[self.spec.node] = self

    monkeypatch.setattr(deployment, "Member", Seen)
    run = shared(partial(UntilLost, meddle), Player, Player)
    assert run.stopped == "it is gone"
    assert [end.partition(" at t=")[0] for end in run.ends] == ["worker-0 (life 1) finished"]


def test_a_killed_node_that_had_not_joined() -> None:
    async def work() -> str:
        class Never:
            settings = RuntimeSettings("shared")
            original_errors: dict[Any, Any] = {}  # noqa: RUF012

        from emuml.runtime.node_spec import NodeSpec
        from tests.runtime.asynchronous import until

        spec = NodeSpec("run", "server-0", 1, "ab" * 20, ("127.0.0.1", 1), "/nowhere", ["server-0"], 0, {},
                        RuntimeSettings(), 1, 1.0, {}, [], {}, {})  # fmt: skip
        handle = deployment.SharedHandle(spec, Player, Never(), None)  # type: ignore[arg-type]
        handle.kill()
        await until(handle.exited.done)
        return handle.exited.result()

    assert asyncio.run(work()) == "killed by SIGKILL"


def test_run_failed_is_what_a_run_that_cannot_listen_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise OSError("no more ports")

    monkeypatch.setattr(socket, "create_server", refuse)
    with pytest.raises(RunFailed, match=r"cannot listen on 127\.0\.0\.1: no more ports"):
        shared(Player, Player)
