"""The compiled delivery and the Python one: equal traces, times, results and reports for any program and fault plan."""

import os
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster.cluster import Cluster, Network, Storage
from emuml.cluster.compute import Constant, Instant, ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan, Start
from emuml.des.emulator import Emulator
from emuml.des.environment import CORE
from emuml.lazy import combine
from emuml.message import Array, Message
from emuml.node import Node, NodeId
from emuml.roster import Roster
from emuml.task import Task

SERVER = NodeId("server", 0)
END_S = 4.0

compiled_only = pytest.mark.skipif(CORE == "pure", reason="there is one path only")


class Number(Message):
    life: int
    number: int


class Values(Message):
    value: Array
    name: str


class Several(Message):
    numbers: list[int]
    maybe: float | None


class Busy(Node):
    """Does a few of everything at each event, as named draws say."""

    messages = (Number, Values, Several)

    def __init__(self, greed):
        self.greed, self.steps, self.seen = greed, 0, []

    def on_start(self, ctx, saved):
        self.kept = np.full(3, float(len(saved)))
        self.seen.append(("start", sorted(map(str, saved))))
        if ctx.role == "server":
            ctx.set_timer("end", END_S)
        self.act(ctx)

    def act(self, ctx):
        self.steps += 1
        draws = ctx.rng(f"{ctx.incarnation}/{self.steps}").random(16)
        for draw in draws[: 1 + int(draws[15] * self.greed)]:
            self.one(ctx, int(draw * 1000))

    def one(self, ctx, draw):
        kind, which = divmod(draw, 50)
        peers = (*ctx.peers("worker"), *ctx.peers("server"), ctx.id)
        peer, name = peers[which % len(peers)], f"t{which % 3}"
        match kind:
            case 0 | 1 | 2 | 3:
                ctx.send(peer, Number(ctx.incarnation, which * 7 - 99))
            case 4:
                ctx.send(peer, Values(self.kept, "x" * which))
            case 5:
                ctx.send_latest(peer, Several([which, 2], None if which % 2 else 0.5), "k")
            case 6:
                ctx.broadcast("worker", Number(which, 1 << which))
            case 7:
                ctx.broadcast("server", Several([], 1.5))
            case 8 | 9:
                ctx.set_timer(name, which / 40)
            case 10:
                ctx.set_timer(name, which % 2)
            case 11:
                ctx.cancel_timer(name)
            case 12 | 13:
                if name not in ctx._live("test").tasks:
                    ctx.compute(name, Task(np.multiply, (self.kept, 0.5), 1 + which % 4, (3,)))
            case 14:
                ctx.cancel(name)
            case 15:
                ctx.save(name, {name: self.kept, "n": which})
            case 16:
                ctx.load(which, [name, "n"])
            case 17:
                ctx.log(which=which, name=name)
            case 18:
                ctx.publish(self.steps, self.kept)
            case 19:
                ctx.compute((name, self.steps, which), Task(np.multiply, (self.kept, 2.0), 0.5, (3,), draw=which))

    def on_message(self, ctx, sender, message):
        self.seen.append((ctx.now, f"{sender}", type(message).__name__))
        if isinstance(message, Values):
            self.kept = combine([0.5, 0.25], [self.kept, message.value])
        if ctx.now < END_S - 1 and self.steps < 40:
            self.act(ctx)

    def on_timer(self, ctx, name):
        self.seen.append((ctx.now, name))
        if name == "end":
            ctx.stop("over")
        elif self.steps < 60:
            self.act(ctx)

    def on_computed(self, ctx, tag, result):
        self.seen.append((ctx.now, f"{tag}"))
        ctx.send(SERVER, Values(result, ""))

    def on_saved(self, ctx, tag):
        self.seen.append((ctx.now, "saved", tag))

    def on_loaded(self, ctx, tag, blocks):
        self.seen.append((ctx.now, "loaded", tag, len(blocks)))

    def on_peer(self, ctx, peer, state):
        self.seen.append((ctx.now, f"{peer}", state.name))
        self.act(ctx)


TIMES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
CLUSTERS = st.builds(
    Cluster,
    workers=st.integers(1, 4),
    compute=st.sampled_from(
        [Instant(), Constant(0.25), ShiftedExponential(0.05, 0.3), ShiftedExponential(0.0, 0.3, "scaled")]
    ),
    network=st.builds(Network, TIMES, st.sampled_from([None, 4096.0])),
    storage=st.builds(Storage, TIMES),
    cores=st.integers(1, 3),
    cancel_lag_s=TIMES,
)
FAULTS = st.lists(
    st.builds(Crash, st.sampled_from(["server-0", "worker-0"]), st.floats(0, 3), restart_after_s=st.none() | TIMES)
    | st.builds(Start, st.just("worker-0"), st.floats(0, 3)),
    max_size=1,
)


def nodes_of(cluster, greed):
    ids = [SERVER, *(NodeId("worker", index) for index in range(cluster.workers))]
    return {id: (id.role, partial(Busy, greed)) for id in ids}


def emulate(cluster, faults, greed, seed):
    """Run busy nodes and return all that can be told of the run."""
    nodes = nodes_of(cluster, greed)
    engine = Emulator(nodes, cluster, Roster(tuple(nodes), seed), FaultPlan(tuple(faults)), 0.7)
    run = engine.run(until_s=END_S + 1)
    return engine, {
        "trace": run.trace.rows,
        "digest": run.trace.digest(),
        "times": (run.duration_s, run.events, run.stopped, str(run.error), run.ends),
        "logs": run.logs,
        "published": [(item.time_s, item.node, item.version, item.events) for item in run.published],
        "seen": {id: (node.seen, node.kept.tobytes()) for id, node in run.nodes.items()},
        "report": engine.report(),
    }


def told(pure, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMUML_PURE", "1" if pure else "0")
        patch.setenv("EMUML_CHECK", "0")
        engine, found = emulate(*arguments)
    assert (engine.post is None) == pure
    return found


@compiled_only
@given(CLUSTERS, FAULTS, st.integers(1, 5), st.integers(0, 2**32))
def test_any_program_runs_equally_on_both_paths(cluster, faults, greed, seed):
    compiled, plain = (told(pure, cluster, faults, greed, seed) for pure in (False, True))
    for name, value in plain.items():
        assert compiled[name] == value, name


@compiled_only
@pytest.mark.slow
def test_a_process_with_the_python_path_alone_gives_the_same_digests():
    code = (
        "from tests.des.test_delivery import *\n"
        "faults = [Crash('worker-1', at_s=1.5, restart_after_s=0.5)]\n"
        "cluster = Cluster(workers=3, compute=ShiftedExponential(0.05, 0.3), network=Network(0.25), cores=2)\n"
        "print([emulate(cluster, faults, 4, seed)[1]['digest'] for seed in range(5)])"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "EMUML_CHECK": "0", **switches},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for switches in ({"EMUML_PURE": "0"}, {"EMUML_PURE": "1"}, {"EMUML_REFERENCE": "1"})
    }
    assert len(told) == 1


class Echo(Node):
    messages = (Number,)

    def __init__(self, at=10**9):
        self.left = at

    def on_start(self, ctx, saved):
        if ctx.role == "server":
            ctx.send(NodeId("worker", 0), Number(1, 0))

    def on_message(self, ctx, sender, message):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)
        ctx.send(sender, message)


def echo(at, latency_s=0.5):
    nodes = {SERVER: ("server", partial(Echo, at)), NodeId("worker", 0): ("worker", Echo)}
    return Emulator(nodes, Cluster(workers=1, network=Network(latency_s)), Roster(tuple(nodes)))


def test_an_interrupt_ends_a_run_and_leaves_what_was_recorded():
    engine = echo(at=50)
    with pytest.raises(KeyboardInterrupt):
        engine.run()
    assert 98 <= len([row for row in engine.trace.rows if row[2] == "receive"]) <= 102


@pytest.mark.slow
def test_events_without_progress_of_time_end_the_run():
    run = echo(at=-1, latency_s=0.0).run()
    assert type(run.error).__name__ == "Livelock"
    assert "server-0 (life 1): last on_message(worker-0, Number) at t=0 s" in str(run.error)


class Keeper(Node):
    messages = (Number,)

    def on_start(self, ctx, saved):
        self.first = ctx
        ctx.set_timer("later", 1.0)

    def on_timer(self, ctx, name):
        self.same = ctx is self.first
        self.first.stop("through a context that is over")


def test_a_context_that_somebody_keeps_is_over_and_is_not_used_again():
    nodes = {SERVER: ("server", Keeper)}
    run = Emulator(nodes, Cluster(workers=1), Roster((SERVER,))).run()
    assert type(run.error.__cause__).__name__ == "StaleContext"
    assert not run.nodes[SERVER].same


class Failing(Node):
    def on_start(self, ctx, saved):
        ctx.set_timer("a", 0.5)

    def on_timer(self, ctx, name):
        ctx.log(never=1)
        raise KeyError(name)


def test_a_failure_names_the_node_the_time_and_the_event_and_leaves_no_effect():
    run = Emulator({SERVER: ("server", Failing)}, Cluster(workers=1), Roster((SERVER,))).run()
    error = run.error
    assert (error.node, error.incarnation, error.now, error.event) == ("server-0", 1, 0.5, "on_timer('a')")
    assert type(error.__cause__) is KeyError
    assert run.logs == []
