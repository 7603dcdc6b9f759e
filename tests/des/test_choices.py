"""What an explorer is asked, by name: delays of tasks, disks and verdicts, what a dead node had sent, ties."""

import pytest

from emuml.cluster.cluster import Cluster, Detection, Network, Storage
from emuml.cluster.compute import Constant
from emuml.cluster.faults import Crash
from emuml.des.choices import Choices
from emuml.node import NodeId
from emuml.task import Task
from tests.conformance.test_emulator import zeros
from tests.des.scripted import Note, emulate, on

CLUSTER = Cluster(
    workers=2,
    compute=Constant(1.0),
    network=Network(0.5),
    storage=Storage(latency_s=0.25),
    detection=Detection(exit_s=0.125),
)
SERVER = NodeId("server", 0)


class Picks(dict):
    """Picks by name, 0 where none is given; notes what was asked."""

    def __init__(self, **picks):
        super().__init__({name.replace("__", "/").replace("_", "-"): pick for name, pick in picks.items()})
        self.asked = []

    def __call__(self, name, n):
        self.asked.append((name, n))
        return self.get(name, 0)


def test_late_tasks_saves_and_loads_take_multiples_of_their_time():
    def start(ctx, saved):
        ctx.compute("task", Task(zeros, (), 1.0, (1,)))
        ctx.save("s", {"a": 1})
        ctx.load("l", ["a"])

    picks = Picks(compute__worker_0__task__0=2, storage__worker_0__s__0=3, storage__worker_0__l__0=1)
    _, seen = emulate({"worker-0": on(start=start)}, CLUSTER, until_s=9, choose=picks)

    assert seen.of("worker-0", "computed") == [(3.0, "task")]
    assert seen.of("worker-0", "saved") == [(1.0, "s")]
    assert seen.of("worker-0", "loaded") == [(1.5, "l", {"a": 1})]
    assert [row for row in picks.asked if row[1] == 6] == [
        ("compute/worker-0/task/0", 6),
        ("storage/worker-0/s/0", 6),
        ("storage/worker-0/l/0", 6),
    ]


def test_names_count_over_all_lives():
    def start(ctx, saved):
        ctx.save("s", {"a": 1})

    picks = Picks()
    faults = [Crash("worker-0", at_s=0.125, restart_after_s=1.0)]
    emulate({"worker-0": on(start=start)}, CLUSTER, faults, until_s=9, choose=picks)

    names = [name for name, _ in picks.asked if name.startswith(("storage", "save"))]
    assert names == ["storage/worker-0/s/0", "save/worker-0/s/0", "storage/worker-0/s/1"]


def test_each_neighbour_may_notice_a_crash_late():
    picks = Picks(verdict__server_0__worker_0__0=4)
    faults = [Crash("worker-0", at_s=1.0)]
    _, seen = emulate(dict.fromkeys(["server-0", "worker-0", "worker-1"]), CLUSTER, faults, until_s=9, choose=picks)

    assert seen.of("server-0", "peer") == [(1.625, "worker-0", "DOWN")]
    assert seen.of("worker-1", "peer") == [(1.125, "worker-0", "DOWN")]


@pytest.mark.parametrize(("lost", "arrived"), [(0, "abc"), (1, "ab"), (2, "a"), (3, "")])
def test_of_what_a_dead_node_had_sent_any_prefix_arrives(lost, arrived):
    def start(ctx, saved):
        for text in "abc":
            ctx.send(SERVER, Note(text))

    picks = Picks(lost__worker_0__server_0__0=lost)
    faults = [Crash("worker-0", at_s=0.4375)]
    _, seen = emulate({"server-0": None, "worker-0": on(start=start)}, CLUSTER, faults, until_s=9, choose=picks)

    assert "".join(text for _, _, text in seen.of("server-0", "message")) == arrived
    assert ("lost/worker-0/server-0/0", 4) in picks.asked


def test_what_has_arrived_cannot_be_lost():
    picks = Picks()
    sends = on(start=lambda ctx, saved: ctx.send(SERVER, Note("a")))
    emulate({"server-0": None, "worker-0": sends}, CLUSTER, [Crash("worker-0", at_s=0.75)], until_s=9, choose=picks)

    assert not [name for name, _ in picks.asked if name.startswith("lost")]


def test_ties_name_their_events():
    tells = on(start=lambda ctx, saved: ctx.send(SERVER, Note("a")))
    waits = on(start=lambda ctx, saved: [ctx.set_timer("x", 0.5), ctx.set_timer("y", 0.5)])
    name = "tie/message/worker-0/server-0/Note/0|message/worker-1/server-0/Note/0"
    picks = Picks()
    picks[name] = 1
    _, seen = emulate({"server-0": waits, "worker-0": tells, "worker-1": tells}, CLUSTER, until_s=9, choose=picks)

    assert [sender for _, sender, _ in seen.of("server-0", "message")] == ["worker-1", "worker-0"]
    assert [asked for asked in picks.asked if asked[0].startswith("tie")] == [
        (name, 2),
        ("tie/timer/server-0/x/0|timer/server-0/y/0", 2),
    ]


def test_without_an_explorer_nothing_is_named(monkeypatch):
    def refuse(*_):
        raise AssertionError("a name was made")

    monkeypatch.setattr(Choices, "name", refuse)
    monkeypatch.setattr(Choices, "__init__", refuse)
    sends = on(start=lambda ctx, saved: [ctx.send(SERVER, Note("a")), ctx.save("s", {"a": 1})])
    run, seen = emulate({"server-0": None, "worker-0": sends}, CLUSTER, [Crash("worker-0", at_s=0.4375)], until_s=9)

    assert run.error is None
    assert len(seen.of("server-0", "message")) == 1


def test_names_of_equal_texts_are_numbered_together():
    choices = Choices(lambda name, n: 0)

    names = [choices.name("compute", "worker-0", tag) for tag in (1, "1", 1, "2")]
    assert names == ["compute/worker-0/1/0", "compute/worker-0/1/1", "compute/worker-0/1/2", "compute/worker-0/2/0"]
