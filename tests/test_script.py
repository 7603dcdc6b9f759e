"""Scripts by hand: steps and their effects, ends, reports (contract 17.2, 17.7, 17.8)."""

import numpy as np
import pytest

from emuml import NodeId, PeerChange, PeerState
from emuml.blocks import Saved
from emuml.errors import NodeFailed
from emuml.script_context import ScriptContext
from emuml.streams import generator
from tests.lives import ME, SERVER, WORKERS, Note, Text, note, task
from tests.scripts import Played, kinds, line_in


def line_of(mark):
    return line_in(__file__, mark)


# Steps


def test_main_begins_at_the_start_and_knows_who_it_is():
    async def play(node, tell):
        tell((node.id, node.role, node.incarnation, node.now, dict(node.saved), node.peers("worker")))

    played = Played(play, {"a": ((1, 5),)}, incarnation=3)
    assert played.told == [(ME, "worker", 3, 0.0, {"a": 5}, WORKERS)]


def test_code_between_two_suspensions_is_one_step():
    async def play(node, tell):
        node.send(SERVER, Text("one"))
        await node.receive(Text)
        node.log(step=1)
        node.broadcast("worker", Text("two"))
        await node.receive(Text)
        tell(node.now)
        node.stop("done")

    played = Played(play)
    assert kinds(played.first) == ["Send"]
    assert kinds(played.message(SERVER, Text("go"))) == ["Log", "Broadcast"]
    assert kinds(played.message(SERVER, Text("on"), now=2.5)) == ["Stop"]
    assert played.told == [2.5]


def test_an_await_that_is_satisfied_does_not_suspend():
    async def play(node, tell):
        nap, job, save = node.sleep(1.0), node.compute(task()), node.save({"a": 1})
        await node.receive(Text)
        await nap
        tell(await job)
        tell(await save)
        tell((await node.receive(Note))[1].text)
        node.stop("done")

    played = Played(play)
    played.timer("sleep/0")
    played.computed("compute/0", "result")
    played.saved("save/0")
    played.message(SERVER, note("early"))
    assert played.told == []
    assert kinds(played.message(SERVER, Text("go"))) == ["Stop"]
    assert played.told == ["result", None, "early"]


def test_every_effect_goes_through_in_call_order():
    async def play(node, tell):
        node.send(SERVER, Text("a"))
        node.send_latest(SERVER, Text("b"), "key")
        node.broadcast("worker", Text("c"))
        node.log(loss=1.5)
        node.publish(4, np.zeros(2))
        job = node.compute(task())
        node.save({"block": 1})
        node.load("block", ("b", 1))
        node.sleep(3)
        job.cancel()
        tell(node.rng("batch/3").random())
        node.stop("enough")

    played = Played(play)
    assert kinds(played.first) == [
        "Send", "SendLatest", "Broadcast", "Log", "Publish", ("Compute", "compute/0"), ("Save", "save/0"),
        ("Load", "load/0"), ("SetTimer", "sleep/0"), ("Cancel", "compute/0"), "Stop",
    ]  # fmt: skip
    latest, broadcast, load, nap = played.first[1], played.first[2], played.first[7], played.first[8]
    assert (latest.key, broadcast.to, load.ids, nap.after_s) == ("key", WORKERS, ("block", ("b", 1)), 3.0)
    assert played.told == [generator(7, "worker-1", "batch/3").random()]


# Ends


def test_a_script_whose_main_returned_ignores_events():
    async def play(node, tell):
        node.sleep(1.0), node.compute(task()), node.save({"a": 1})

    played = Played(play)
    for effects in (
        played.message(SERVER, Text("x")),
        played.peer(SERVER, PeerState.DOWN),
        played.timer("sleep/0"),
        played.computed("compute/0", "result"),
        played.saved("save/0"),
        played.loaded("unknown", Saved()),
    ):
        assert effects == []
    assert played.script.waiting_for() == "nothing: main has returned"


def test_main_is_not_resumed_after_a_stop():
    async def play(node, tell):
        node.stop("enough")
        tell(await node.receive(Text))

    played = Played(play)
    assert played.message(SERVER, Text("x")) == []
    assert played.told == []
    assert played.script.waiting_for() == "nothing: it stopped the run"


def test_a_main_that_raises_fails_the_node_at_the_authors_line():
    original = ValueError("own")

    async def asks(node):
        await node.receive(Text)
        raise original  # the author

    async def play(node, tell):
        await asks(node)

    played = Played(play)
    with pytest.raises(NodeFailed) as failed:
        played.message(SERVER, Text("x"), now=3.25)
    assert failed.value.__cause__ is original
    assert (failed.value.event, failed.value.now) == ("on_message(server-0, Text)", 3.25)
    assert f"({line_of('the author')})" in str(failed.value)
    assert played.life.effects == []


# Reports


@pytest.mark.parametrize(
    ("awaits", "said"),
    [
        (lambda node: node.receive(), "receive()"),
        (
            lambda node: node.receive(Text, PeerChange, sender=SERVER, where=bool, timeout_s=2.5),
            "receive(Text, PeerChange, sender=server-0, where=bool, timeout_s=2.5)",
        ),
        (lambda node: node.sleep(2), "sleep(2)"),
        (lambda node: node.compute(task()), "compute/0 (ones)"),
        (lambda node: node.save({}), "save/0"),
        (
            lambda node: node.select(a=node.load("x"), b=node.receive(Text)),
            "select(a=load/0, b=receive(Text))",
        ),
    ],
)
def test_a_report_says_what_is_awaited_and_where(awaits, said):
    async def asks(node):
        await awaits(node)  # here

    async def play(node, tell):
        await asks(node)

    played = Played(play)
    assert played.script.waiting_for() == f"{said} in asks ({line_of('here')})"
    assert f"waiting for {said} in asks" in played.life.describe()


def test_a_report_counts_what_is_unread():
    async def play(node, tell):
        await node.sleep(1.0)

    played = Played(play)
    played.message(SERVER, Text("x"))
    played.message(SERVER, Text("y"))
    assert played.script.waiting_for().endswith(", 2 unread")


def test_what_main_is_handed_has_the_effects_of_a_context():
    from emuml.context import Context

    public = {name for name in dir(Context) if not name.startswith("_")}
    offered = {name for name in dir(ScriptContext) if not name.startswith("_")}
    assert public - offered == {"set_timer", "cancel_timer", "cancel"}
    assert offered - public == {"receive", "sleep", "select", "saved"}
    assert NodeId("worker", 1) == ME
