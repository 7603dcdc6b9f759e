"""What only an emulator promises: ties, laziness that nobody can see, equal digests whatever the process (K10, K13)."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from emuml.cluster.cluster import Cluster, Detection, Network, Storage
from emuml.cluster.compute import Constant
from emuml.cluster.faults import Crash, FaultPlan
from emuml.des.emulator import Emulator
from emuml.message import Message
from emuml.node import Node, NodeId
from emuml.roster import Roster
from emuml.task import Task
from emuml.testing.conformance import training


class Tick(Message):
    number: int


def zeros():
    return np.zeros(1)


class Busy(Node):
    """Makes everything due one second later, in one step; prints what comes, in order."""

    def __init__(self, told):
        self.told = told

    def on_start(self, ctx, saved):
        ctx.set_timer("first", 1.0)
        ctx.send(NodeId("server", 0), Tick(0))
        ctx.save("save", {"block": 1})
        ctx.compute("task", Task(zeros, (), 1.0, (1,)))
        ctx.set_timer("second", 1.0)
        ctx.send(NodeId("server", 0), Tick(1))

    def say(self, ctx, text):
        self.told.append(f"{ctx.now:g} {ctx.id} {text}")

    def on_message(self, ctx, sender, message):
        self.say(ctx, f"message {message.number} of {sender}")

    def on_saved(self, ctx, tag):
        self.say(ctx, "saved")

    def on_computed(self, ctx, tag, result):
        self.say(ctx, "computed")
        ctx.set_timer("at once", 0.0)
        ctx.send(ctx.id, Tick(2))

    def on_timer(self, ctx, name):
        self.say(ctx, f"timer {name}")

    def on_peer(self, ctx, peer, state):
        self.say(ctx, f"{peer} {state.value}")


class Server(Busy):
    def on_start(self, ctx, saved):
        ctx.set_timer("deadline", 1.0)
        ctx.broadcast("worker", Tick(9))


GOLDEN = """
1 worker-0 message 9 of server-0
1 server-0 message 0 of worker-0
1 worker-0 saved
1 worker-0 computed
1 server-0 message 1 of worker-0
1 server-0 message 0 of worker-1
1 server-0 message 1 of worker-1
1 user a, event
1 user b, event
1 worker-0 message 2 of worker-0
1 server-0 timer deadline
1 worker-0 timer first
1 worker-0 timer second
1 worker-0 timer at once
1.5 server-0 worker-1 down
1.5 worker-0 worker-1 down
"""
"""Everything is due at 1 s. First the crash of worker-1, which handles nothing any more; what had left it arrives. Then
all else in schedule order, that is the order of effects, users' processes after the nodes; then timers."""


def user(name, told):
    def process(env, cluster):
        yield env.timeout(1.0)
        told.append(f"{env.now:g} user {name}, event")

    return process


def test_ties_go_by_class_then_by_the_order_of_effects_with_users_processes_between():
    """K10 (6.6): faults, then all else users' processes included, then timers."""
    told = []
    nodes = {NodeId("worker", i): ("worker", lambda: Busy(told)) for i in range(2)}
    nodes[NodeId("server", 0)] = ("server", lambda: Server(told))
    cluster = Cluster(
        workers=2,
        compute=Constant(1.0),
        network=Network(latency_s=1.0),
        storage=Storage(latency_s=1.0),
        detection=Detection(exit_s=0.5),
    )
    crash = FaultPlan((Crash("worker-1", at_s=1.0),))
    emulator = Emulator(nodes, cluster, Roster(tuple(sorted(nodes)), 0), crash)
    emulator.run(beside=[user("a", told), user("b", told)])

    assert told == GOLDEN.strip().splitlines()


def emulate(worker, journal=False, seed=3):
    nodes = {NodeId.parse(id): given for id, given in training.training(worker).items()}
    roster = Roster(tuple(sorted(nodes)), seed)
    run = Emulator(nodes, training.CLUSTER, roster, training.FAULTS, journal=journal).run()
    assert run.stopped == "done"
    return run


def evidence(run):
    return run.trace.digest(), training.published(run), [(item.time_s, dict(item.metrics)) for item in run.logs]


class Counted(training.Worker):
    """Counts evaluations, in a list that the test reads; the same function for all, so that replicas are shared."""

    def __init__(self):
        super().__init__(counted)


calls = []


def counted(parameters, group):
    calls.append(group)
    return training.slope(parameters, group)


class CountedCopies(training.Copying):
    def __init__(self):
        super().__init__(counted)


@pytest.fixture
def evaluations():
    calls.clear()
    return calls


def test_lazy_eager_and_unbatched_runs_are_equal(monkeypatch, evaluations):
    """K13 (8.7, 8.8): trace, parameters and logs; only the number of evaluations differs."""
    monkeypatch.delenv("EMUML_CHECK", raising=False)
    shared = evidence(emulate(Counted))
    n_shared = len(evaluations)
    apart = evidence(emulate(CountedCopies))
    n_apart = len(evaluations) - n_shared
    monkeypatch.setenv("EMUML_EAGER", "1")
    eager = evidence(emulate(Counted))

    assert shared == apart == eager
    # 29 answers of 32 are used; in a group of two replicas one evaluation serves both.
    assert (n_shared, n_apart) == (16, 29)


def test_journals_and_check_mode_change_nothing(monkeypatch):
    """K13 (8.7d, 13.4): what is only looked at stays as it is."""
    monkeypatch.delenv("EMUML_CHECK", raising=False)
    plain = evidence(emulate(training.Worker))
    assert evidence(emulate(training.Worker, journal=True)) == plain
    monkeypatch.setenv("EMUML_CHECK", "1")
    assert evidence(emulate(training.Worker, journal=True)) == plain


def test_a_stragglers_result_that_nobody_reads_is_not_evaluated(monkeypatch, evaluations):
    """K13 (8.7): not even if it ended, was sent and arrived."""
    monkeypatch.delenv("EMUML_CHECK", raising=False)
    monkeypatch.delenv("EMUML_EAGER", raising=False)
    nodes = {NodeId.parse(id): given for id, given in training.training(Counted).items()}
    nodes[NodeId("master", 0)] = ("master", Impatient)
    cluster = replace(training.CLUSTER, compute=Constant(0.001))
    run = Emulator(nodes, cluster, Roster(tuple(sorted(nodes)), 0)).run()

    assert run.stopped == "done"
    assert len(run.trace.of("computed")) > 4 * 2
    assert len(evaluations) == training.ROUNDS


class Impatient(training.Master):
    """Closes a round with the first answer."""

    def on_message(self, ctx, sender, message):
        self.up = {sender}
        super().on_message(ctx, sender, message)
        self.up = set(ctx.peers("worker"))


def test_digests_are_equal_in_every_process():
    """13.4: whatever the hash seed, with and without check mode, the trace and the parameters are the same."""
    program = (
        "from emuml.testing import run_nodes; from emuml.testing.conformance import training as t\n"
        "run = run_nodes(t.training(), cluster=t.CLUSTER, faults=t.FAULTS, seed=3)\n"
        "print(run.trace.digest(), t.published(run)[-1], sorted(t.published(run)) == t.expected())"
    )
    settings = [{"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "EMUML_CHECK": "1"}, {"PYTHONHASHSEED": "3"}]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **extra}, capture_output=True, text=True, check=True
        ).stdout
        for extra in settings
    }

    assert len(outputs) == 1
    assert outputs.pop().strip().endswith("True")
