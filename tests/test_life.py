"""One incarnation: events in, effects out; the context that handlers are given, and what it refuses."""

from threading import Thread

import numpy as np
import pytest

from emuml import effects as fx
from emuml.blocks import Saved
from emuml.directory import Directory
from emuml.errors import (
    NodeFailed,
    StaleContext,
)
from emuml.life import Life
from emuml.node import Node, PeerState
from tests.lives import LINKS, ME, ROSTER, SERVER, WORKERS, Text, caught_in, do, life, note, task

# Dispatch


def test_every_event_reaches_its_handler_with_its_arguments():
    living = life()
    do(living, lambda ctx: (ctx.set_timer("tick", 1.0), ctx.compute("grad", task())))
    message, blocks = note(), Saved({"a": ((1, 5),)})
    for event in (
        fx.Received(SERVER, message),
        fx.TimerFired("tick", living.timers["tick"]),
        fx.Computed("grad", "value", living.tasks["grad"]),
        fx.SaveDone("s"),
        fx.LoadDone("l", blocks),
        fx.PeerChanged(SERVER, PeerState.SUSPECT),
    ):
        do(living, lambda ctx: None, event)

    assert living.node.calls == [
        ("start", {}),
        ("message", SERVER, message),
        ("timer", "tick"),
        ("computed", "grad", "value"),
        ("saved", "s"),
        ("loaded", "l", {"a": 5}),
        ("peer", SERVER, PeerState.SUSPECT),
    ]
    assert (living.events, living.last_event) == (7, "on_peer(server-0, SUSPECT)")


def test_a_node_without_handlers_ignores_everything():
    living = Life(Node(), ME, 1, Directory(ROSTER, LINKS))
    for event in (fx.Started(Saved()), fx.Received(SERVER, note()), fx.PeerChanged(SERVER, PeerState.DOWN)):
        assert living.handle(event, 0.0) == []


def test_the_context_says_who_and_when():
    seen = []
    do(life(incarnation=3), lambda ctx: seen.append((ctx.id, ctx.role, ctx.incarnation, ctx.now)), now=2.5)

    assert seen == [(ME, "worker", 3, 2.5)]


# Effects


def test_effects_come_out_in_call_order_with_their_arguments():
    message = note()

    def everything(ctx):
        ctx.send(SERVER, message)
        ctx.set_timer("tick", 2)
        ctx.save(("s", 1), {"block": [1, 2]})
        ctx.broadcast("worker", Text("all"))
        ctx.compute("grad", task(draw=9))
        ctx.load("l", iter(["a", ("b", 1)]))
        ctx.send_latest(SERVER, Text("new"), "key")
        ctx.log(round=np.int64(3), loss=np.float64(0.5), word="x")
        ctx.publish(np.int64(4), np.zeros(2))
        ctx.cancel("grad")
        ctx.cancel_timer("tick")
        ctx.stop("enough")

    found = do(life(), everything)

    assert [type(effect).__name__ for effect in found] == [
        "Send", "SetTimer", "Save", "Broadcast", "Compute", "Load", "SendLatest", "Log", "Publish", "Cancel",
        "CancelTimer", "Stop",
    ]  # fmt: skip
    send, timer, save, broadcast, compute, load, latest, log, publish, cancel, disarm, stop = found
    assert (send.to, send.message) == (SERVER, message)
    assert (timer.name, timer.after_s) == ("tick", 2.0)
    assert (save.tag, save.blocks) == (("s", 1), {"block": [1, 2]})
    assert (broadcast.to, broadcast.message) == (WORKERS, Text("all"))
    assert (compute.tag, compute.draw) == ("grad", 9)
    assert (load.tag, load.ids) == ("l", ("a", ("b", 1)))
    assert (latest.to, latest.message, latest.key) == (SERVER, Text("new"), "key")
    assert log.metrics == {"round": 3, "loss": 0.5, "word": "x"}
    assert [type(value) for value in log.metrics.values()] == [int, float, str]
    assert (publish.version, publish.parameters.tolist()) == (4, [0.0, 0.0])
    assert cancel.generation == compute.generation
    assert disarm.generation == timer.generation
    assert stop.reason == "enough"


def test_each_step_has_effects_of_its_own():
    living = life()
    first = do(living, lambda ctx: ctx.stop("one"))
    second = do(living, lambda ctx: ctx.stop("two"))

    assert [effect.reason for effect in first] == ["one"]
    assert [effect.reason for effect in second] == ["two"]


def test_a_raising_handler_leaves_no_effects_and_keeps_its_own_exception():
    class Own(Exception):
        def __init__(self, first, second):
            super().__init__(f"{first} and {second}")

    original, living = Own("one", "two"), life(incarnation=2)

    def raises(ctx):
        ctx.send(SERVER, note())
        raise original

    with pytest.raises(NodeFailed) as failed:
        do(living, raises, fx.Received(SERVER, note()), now=3.25)

    assert failed.value.__cause__ is original
    assert living.effects == []
    assert (failed.value.node, failed.value.incarnation, failed.value.now) == ("worker-1", 2, 3.25)
    assert failed.value.event == "on_message(server-0, Note)"


# The context outside of its handler

CALLS = {
    "send": lambda ctx: ctx.send(SERVER, Text("x")),
    "send_latest": lambda ctx: ctx.send_latest(SERVER, Text("x"), "key"),
    "broadcast": lambda ctx: ctx.broadcast("worker", Text("x")),
    "set_timer": lambda ctx: ctx.set_timer("tick", 1.0),
    "cancel_timer": lambda ctx: ctx.cancel_timer("tick"),
    "compute": lambda ctx: ctx.compute("grad", task()),
    "cancel": lambda ctx: ctx.cancel("grad"),
    "save": lambda ctx: ctx.save("s", {}),
    "load": lambda ctx: ctx.load("l", []),
    "log": lambda ctx: ctx.log(x=1),
    "publish": lambda ctx: ctx.publish(1, np.zeros(1)),
    "stop": lambda ctx: ctx.stop("x"),
    "peers": lambda ctx: ctx.peers("worker"),
    "rng": lambda ctx: ctx.rng("x"),
}


def refused(call, ctx):
    with pytest.raises(StaleContext) as caught:
        call(ctx)
    return caught.value.args


@pytest.mark.parametrize("name", CALLS)
def test_a_kept_context_is_refused_afterwards_and_in_later_handlers(name):
    living, kept, refusals = life(), [], []
    do(living, kept.append)

    def uses_the_old_one(ctx):
        refusals.append(refused(CALLS[name], kept[0]))
        CALLS[name](ctx)

    assert refused(CALLS[name], kept[0]) == ("worker-1", name)
    do(living, uses_the_old_one)
    assert refusals == [("worker-1", name)]


def test_a_context_is_refused_in_a_thread_that_outlives_the_handler():
    kept, refusals = [], []
    do(life(), kept.append)
    thread = Thread(target=lambda: refusals.append(refused(CALLS["send"], kept[0])))
    thread.start()
    thread.join()

    assert refusals == [("worker-1", "send")]


def test_a_context_is_refused_after_a_handler_that_raised():
    living, kept = life(), []

    def keeps_and_raises(ctx):
        kept.append(ctx)
        raise RuntimeError

    caught_in(living, keeps_and_raises)
    assert refused(CALLS["stop"], kept[0]) == ("worker-1", "stop")
