"""Replay of journals of bare nodes: equal records for any program and fault plan, or the first difference."""

from functools import partial

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster.cluster import Cluster, Network, Storage
from emuml.cluster.compute import ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan
from emuml.des.emulator import Emulator
from emuml.des.replay import Replayer
from emuml.errors import Diverged, RunFailed
from emuml.lazy import combine
from emuml.message import Array, Message
from emuml.node import Node, NodeId
from emuml.roster import Roster
from emuml.task import Task
from tests.des.plans import crashes, others, plans
from tests.des.scripted import chooser

IDS = ("server-0", "worker-0", "worker-1")


class Sum(Message):
    life: int
    value: Array


class Busy(Node):
    """Uses every kind of effect, driven by what it receives and by named draws."""

    def __init__(self, slip=None):
        self.total, self.step, self.slip = np.zeros(2), 0, slip

    def on_start(self, ctx, saved):
        self.total = np.array(saved.get("total", np.zeros(2)))
        self.act(ctx)

    def act(self, ctx):
        self.step += 1
        draws = ctx.rng(f"step/{ctx.incarnation}/{self.step}").random(4)
        self.total = self.total + draws[:2]
        if draws[2] < 0.6:
            ctx.broadcast("worker", Sum(ctx.incarnation, self.total))
        if draws[2] < 0.4:
            ctx.send(NodeId("server", 0), Sum(ctx.incarnation, -self.total))
        if draws[3] < 0.4:
            ctx.cancel("grad")
            ctx.compute("grad", Task(np.multiply, (self.total, 0.5), 1.0, (2,)))
        if draws[3] < 0.3:
            ctx.save(("s", self.step), {"total": self.total, ("step", 1): self.step})
        if draws[3] > 0.8:
            ctx.load("l", ["total", "nothing"])
        ctx.log(step=self.step)
        ctx.publish(self.step, self.total)
        if ctx.now < 6:
            ctx.set_timer("tick", 0.3 + draws[0] / 4)
        if (f"{ctx.id}", ctx.incarnation, self.step) == self.slip:
            ctx.log(slip=1)

    def on_message(self, ctx, sender, message):
        self.total = combine([1.0, 0.125], [self.total, message.value])
        if sender.role == "worker" and ctx.role == "server" and ctx.now < 6:
            ctx.send(sender, Sum(ctx.incarnation, self.total))

    def on_timer(self, ctx, name):
        self.act(ctx)

    def on_computed(self, ctx, tag, result):
        ctx.send(NodeId("server", 0), Sum(ctx.incarnation, result))

    def on_loaded(self, ctx, tag, blocks):
        self.total = self.total + blocks.get("total", np.ones(2))

    def on_saved(self, ctx, tag):
        ctx.log(saved=tag[1])

    def on_peer(self, ctx, peer, state):
        ctx.log(**{f"{peer}": state.name})
        if state.name != "DOWN" and peer != ctx.id:
            ctx.send(peer, Sum(ctx.incarnation, self.total))


CLUSTER = Cluster(
    workers=2, compute=ShiftedExponential(0.05, 0.2), network=Network(0.125), storage=Storage(0.25), cancel_lag_s=0.01
)
PLAN = (Crash("worker-0", at_s=1.2, restart_after_s=0.6), Crash("server-0", at_s=2.5, restart_after_s=0.5))


def busy(**options):
    return {NodeId.parse(name): (name.split("-")[0], partial(Busy, **options)) for name in IDS}


def recorded(plan=PLAN, choose=None):
    nodes = busy()
    roster = Roster(tuple(sorted(nodes)), 3)
    run = Emulator(nodes, CLUSTER, roster, FaultPlan(tuple(plan)), journal=True, choose=choose).run(until_s=30)
    assert run.error is None
    return run


def replayed(journals, **options):
    return Replayer(busy(**options), Roster(tuple(sorted(map(NodeId.parse, IDS))), 3), journals).run()


def content(run):
    """Return what nodes logged and published, in each node's own order, with bytes."""
    logs = sorted((f"{item.node}", at, item.time_s, repr(item.metrics)) for at, item in by_node(run.logs))
    versions = sorted(
        (f"{item.node}", at, item.time_s, item.version, item.parameters.tobytes())
        for at, item in by_node(run.published)
    )
    return logs, versions


def by_node(items):
    counts = {}
    for item in items:
        counts[item.node] = counts.get(item.node, -1) + 1
        yield counts[item.node], item


@pytest.mark.slow
@given(plans(crashes | others, most=5), st.none() | st.lists(st.integers(0, 5), max_size=99))
def test_any_run_is_replayed_to_the_last_bit(plan, picks):
    run = recorded(plan, chooser(picks))
    again = replayed(run.journals)

    assert content(again) == content(run)
    assert again.events == run.events
    assert len(run.logs) > 5


def test_every_kind_of_event_is_in_the_journals():
    kinds = {step.kind for journal in recorded().journals.values() for step in journal.steps}

    assert kinds == {"start", "message", "timer", "computed", "saved", "loaded", "peer"}


@pytest.mark.parametrize("slip", [("worker-1", 1, 4), ("worker-0", 2, 1), ("server-0", 2, 3)])
def test_a_node_that_does_something_else_is_named_with_the_step(slip):
    run = recorded()
    with pytest.raises(Diverged) as caught:
        replayed(run.journals, slip=slip)

    name, life, step = slip
    steps = [step for step in run.journals[name, life].steps if step.kind in ("start", "timer")]
    assert (caught.value.node, caught.value.index) == (name, steps[step - 1].index)
    assert caught.value.field == f"effects of {steps[step - 1].kind}"


def changed(step, field, details):
    """Return a step with one field of it, or one of its details, changed."""
    if field == "effects":
        return msgspec.structs.replace(step, effects=step.effects ^ 1)
    if field == "kind":
        return msgspec.structs.replace(step, kind="nonsense")
    position = int(field)
    value = details[position]
    other = {int: lambda: value ^ 1, str: lambda: "down" if value == "up" else value + "x", list: lambda: [*value, 7]}
    return msgspec.structs.replace(step, details=[*details[:position], other[type(value)](), *details[position + 1 :]])


FIELDS = [
    ("start", "effects"), ("message", "effects"), ("timer", "effects"), ("computed", "effects"), ("peer", "effects"),
    ("saved", "effects"), ("loaded", "effects"), ("message", "kind"), ("message", "4"), ("computed", "1"),
    ("timer", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=str)
def test_a_changed_record_is_named_by_node_and_index(kind, field):
    journals = recorded().journals
    key, journal = next((key, j) for key, j in journals.items() if any(step.kind == kind for step in j.steps))
    position = [step.kind for step in journal.steps].index(kind)
    steps = list(journal.steps)
    steps[position] = changed(steps[position], field, steps[position].details)
    with pytest.raises(Diverged) as caught:
        replayed({**journals, key: msgspec.structs.replace(journal, steps=steps)})

    assert (caught.value.node, caught.value.index) == (key[0], position)


@pytest.mark.parametrize("field", ["0", "1", "2", "3"])
def test_a_message_without_its_origin_is_named_by_node_and_index(field):
    journals = recorded().journals
    key, journal = next((key, j) for key, j in journals.items() if key[0] == "server-0")
    position = [step.kind for step in journal.steps].index("message")
    steps = list(journal.steps)
    steps[position] = changed(steps[position], field, steps[position].details)
    with pytest.raises(RunFailed, match=rf"server-0 at index {position} needs message") as caught:
        replayed({**journals, key: msgspec.structs.replace(journal, steps=steps)})

    assert "no origin" in str(caught.value)


def test_journals_that_were_cut_are_replayed_up_to_the_first_missing_origin():
    journals = recorded().journals
    key = ("worker-1", 1)
    cut = msgspec.structs.replace(journals[key], steps=journals[key].steps[:5])
    with pytest.raises(RunFailed, match="the journals were cut"):
        replayed({**journals, key: cut})
