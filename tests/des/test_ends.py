"""How runs end: deadlocks and livelocks, stops and time limits, handlers that raise."""

import numpy as np
import pytest

import emuml
from emuml.cluster.cluster import Cluster, Network
from emuml.cluster.compute import Constant
from emuml.cluster.faults import Crash
from emuml.des import emulator as emulator_module
from emuml.errors import Deadlock, Livelock, NodeFailed
from emuml.node import NodeId
from emuml.protocols import AsyncUpdates
from emuml.protocols.async_updates import BSP
from emuml.workloads import LogisticRegression
from tests.des.scripted import Note, emulate, on

SERVER, WORKER = NodeId("server", 0), NodeId("worker", 0)


def test_a_deadlock_names_each_node_and_what_it_waits_for():
    def start(ctx, saved):
        ctx.send(SERVER, Note("only once"))

    scripts = {"server-0": None, "worker-0": on(start=start), "worker-1": None}
    run, _ = emulate(scripts, Cluster(workers=1, network=Network(0.5)), [Crash("worker-1", at_s=0.25)])

    assert isinstance(run.error, Deadlock)
    assert run.error.now == 0.5
    assert run.error.report.splitlines() == [
        "server-0 (life 1): last on_message(worker-0, Note) at t=0.5 s, 3 events, received 1 Note, "
        "waiting for what comes, links {'worker-1': 'down'}",
        "worker-0 (life 1): last on_peer(worker-1, DOWN) at t=0.26 s, 2 events, sent 1 Note, "
        "waiting for what comes, links {'worker-1': 'down'}",
        "worker-1: crashed (life 1)",
    ]


def test_users_processes_do_not_put_off_a_deadlock():
    def forever(env, cluster):
        while True:
            yield env.timeout(1.0)

    run, _ = emulate({"worker-0": on(start=lambda ctx, saved: ctx.set_timer("x", 2.5))}, beside=[forever])

    assert isinstance(run.error, Deadlock)
    assert run.error.now == 2.5


@pytest.mark.parametrize("beside", [False, True])
def test_an_end_in_time_is_no_deadlock(beside):
    ticks = []

    def forever(env, cluster):
        while True:
            ticks.append(env.now)
            yield env.timeout(1.0)

    run, seen = emulate({"worker-0": None}, until_s=7.5, beside=[forever] if beside else [])

    assert (run.error, run.stopped, run.duration_s) == (None, None, 7.5)
    assert len(ticks) == (8 if beside else 0)
    assert seen == [(0.0, "worker-0", 1, "start", {})]


def test_what_is_due_at_the_end_still_happens():
    script = on(start=lambda ctx, saved: [ctx.set_timer(name, at) for name, at in (("a", 2.0), ("b", 2.1))])
    _, seen = emulate({"worker-0": script}, until_s=2.0)

    assert seen.of("worker-0", "timer") == [(2.0, "a")]


def test_messages_without_end_in_one_instant_are_a_livelock(monkeypatch):
    monkeypatch.setattr(emulator_module, "LIVELOCK_EVENTS", 1000)

    def start(ctx, saved):
        ctx.set_timer("begin", 1.5)

    script = on(start=start, timer=lambda ctx, name: ctx.send(ctx.id, Note("x")),
                message=lambda ctx, sender, text: ctx.send(ctx.id, Note("x")))  # fmt: skip
    run, _ = emulate({"worker-0": script})

    assert isinstance(run.error, Livelock)
    assert run.error.now == 1.5
    assert 1000 <= run.error.events <= 1002
    assert "worker-0" in run.error.report


@pytest.mark.parametrize("servers", [1, 2])
def test_a_round_of_one_instant_is_no_livelock_however_many_take_part(monkeypatch, servers):
    monkeypatch.setattr(emulator_module, "LIVELOCK_EVENTS", 1000)
    workers = 1000  # so that everybody's message, end of work and answer are more events than that
    experiment = emuml.Experiment(
        workload=LogisticRegression(data=f"two-gaussians:{workers}x2", validation=0.0),
        protocol=AsyncUpdates(BSP()),
        cluster=Cluster(workers=workers, servers=servers, compute=Constant(1.0)),
        rounds=2,
    )

    result = emuml.run(experiment, tier="event", trace=False)

    assert result.duration_s == 2.0
    assert result.run.events > 4000 * servers


def test_stop_takes_effect_at_its_place_and_the_first_reason_is_kept():
    def start(ctx, saved):
        ctx.log(before=1)
        ctx.stop("one")
        ctx.log(after=1)
        ctx.stop("two")

    run, seen = emulate({"worker-0": on(start=start), "worker-1": None})

    assert (run.stopped, run.error) == ("one", None)
    assert [logged.metrics for logged in run.logs] == [{"before": 1}]
    assert [row[1] for row in seen] == ["worker-0"]


def test_an_observer_can_stop_the_run():
    script = on(start=lambda ctx, saved: (ctx.publish(3, np.ones(1)), ctx.log(after=1)))
    run, _ = emulate({"worker-0": script}, observers=[lambda item: f"version {item.version}"])

    assert run.stopped == "version 3"
    assert run.logs == []
    assert [(item.version, item.parameters.tolist()) for item in run.published] == [(3, [1.0])]


def test_a_raising_handler_ends_the_run_with_the_original_object_and_no_effects():
    class Own(Exception):
        def __init__(self, first, second):
            super().__init__(f"{first} and {second}")

    original = Own("one", "two")

    def timer(ctx, name):
        ctx.log(lost=1)
        raise original

    run, _ = emulate({"worker-0": on(start=lambda ctx, saved: ctx.set_timer("x", 1.5), timer=timer)})

    assert isinstance(run.error, NodeFailed)
    assert run.error.__cause__ is original
    assert (run.error.now, run.error.event) == (1.5, "on_timer('x')")
    assert run.logs == []
