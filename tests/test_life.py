"""One incarnation: events in, effects out; the context that handlers are given, and what it refuses."""

import math
from threading import Thread

import numpy as np
import pytest

from emuml import effects as fx
from emuml.blocks import MemoryStore, Saved
from emuml.checks import Checker
from emuml.directory import Directory
from emuml.errors import (
    ContractError,
    MessageError,
    NodeFailed,
    StaleContext,
    StreamReused,
    TagInUse,
    UnknownPeer,
)
from emuml.life import Life
from emuml.message import Array, Message
from emuml.node import Node, NodeId, PeerState
from emuml.roster import Roster
from emuml.streams import generator
from emuml.task import Task

ROSTER = Roster.of_counts(seed=7, client=1, server=1, worker=3)
LINKS = {"client": frozenset({"server"}), "server": frozenset({"worker"}), "worker": frozenset({"worker"})}
ME, SERVER, CLIENT = NodeId("worker", 1), NodeId("server", 0), NodeId("client", 0)
WORKERS = (NodeId("worker", 0), NodeId("worker", 2))


class Note(Message):
    text: str
    value: Array


class Text(Message):
    text: str


def note(text="hello", value=(1.0, 2.0)):
    return Note(text, np.array(value))


def ones(size):
    return np.ones(size)


def task(size=2, **options):
    return Task(ones, (size,), 1.0, (size,), **options)


class Obedient(Node):
    """Does what ``order`` says in its next handler, and remembers every call."""

    def __init__(self):
        self.calls = []
        self.order = lambda ctx: None

    def _called(self, ctx, *call):
        self.calls.append(call)
        self.order(ctx)

    def on_start(self, ctx, saved):
        self._called(ctx, "start", dict(saved))

    def on_message(self, ctx, sender, message):
        self._called(ctx, "message", sender, message)

    def on_timer(self, ctx, name):
        self._called(ctx, "timer", name)

    def on_computed(self, ctx, tag, result):
        self._called(ctx, "computed", tag, result)

    def on_saved(self, ctx, tag):
        self._called(ctx, "saved", tag)

    def on_loaded(self, ctx, tag, blocks):
        self._called(ctx, "loaded", tag, dict(blocks))

    def on_peer(self, ctx, peer, state):
        self._called(ctx, "peer", peer, state)

    def waiting_for(self):
        return "orders"


def life(checker=None, incarnation=1):
    return Life(Obedient(), ME, incarnation, Directory(ROSTER, LINKS), checker)


def do(living, order, event=None, now=1.0):
    """Hand an event over to a node that does ``order`` in its handler, and return the effects."""
    living.node.order = order
    return living.handle(event or fx.Started(Saved()), now)


def caught_in(living, order):
    """Return the exception that ``order`` raised in the handler."""
    with pytest.raises(NodeFailed) as failed:
        do(living, order)
    return failed.value.__cause__


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


# Values are fixed at the call


def test_what_is_sent_is_frozen_in_the_senders_hands():
    array = np.zeros(3)

    def sends_and_writes(ctx):
        ctx.send(SERVER, Note("x", array))
        array[0] = 1.0

    assert "read-only" in str(caught_in(life(), sends_and_writes))
    assert array.tolist() == [0.0, 0.0, 0.0]


def test_a_view_of_a_live_table_is_copied():
    table = np.zeros(4)
    (send,) = do(life(), lambda ctx: ctx.send(SERVER, Note("x", table[1:3])))
    table[:] = 5.0

    assert send.message.value.tolist() == [0.0, 0.0]
    assert not send.message.value.flags.writeable


def test_inputs_of_tasks_and_published_parameters_are_frozen_too():
    given, shared = np.zeros(2), np.zeros(4)
    computes = lambda ctx: ctx.compute("c", Task(np.add, (given, shared[:2]), 1.0, (2,)))  # noqa: E731
    (compute,) = do(life(), computes)
    (publish,) = do(life(), lambda ctx: ctx.publish(0, shared[2:]))
    shared[:] = 9.0

    assert not given.flags.writeable
    assert compute.task.run().tolist() == [0.0, 0.0]
    assert publish.parameters.tolist() == [0.0, 0.0]


def test_a_save_is_a_snapshot_and_freezes_nothing():
    table, nested = np.zeros(2), {"a": [1]}
    (save,) = do(life(), lambda ctx: ctx.save("s", {"table": table, "nested": nested}))
    table[0], nested["a"][0] = 7.0, 8
    MemoryStore().commit(save.blocks)

    assert save.blocks["table"].tolist() == [0.0, 0.0]
    assert save.blocks["nested"] == {"a": [1]}


# Timers and tasks of yesterday


def test_expiries_of_cancelled_and_rearmed_timers_are_stale():
    living = life()
    (first,) = do(living, lambda ctx: ctx.set_timer("tick", 1.0))
    (second,) = do(living, lambda ctx: ctx.set_timer("tick", 1.0))

    assert not living.is_current(fx.TimerFired("tick", first.generation))
    assert living.is_current(fx.TimerFired("tick", second.generation))
    (cancelled,) = do(living, lambda ctx: ctx.cancel_timer("tick"))
    assert cancelled.generation == second.generation
    assert not living.is_current(fx.TimerFired("tick", second.generation))
    assert do(living, lambda ctx: ctx.cancel_timer("tick")) == []


def test_a_timer_fires_once():
    living = life()
    (timer,) = do(living, lambda ctx: ctx.set_timer("tick", 1.0))
    event = fx.TimerFired("tick", timer.generation)
    do(living, lambda ctx: None, event)

    assert not living.is_current(event)


def test_a_timer_can_be_set_again_in_its_own_handler():
    living = life()
    (timer,) = do(living, lambda ctx: ctx.set_timer("tick", 1.0))
    (again,) = do(living, lambda ctx: ctx.set_timer("tick", 1.0), fx.TimerFired("tick", timer.generation))

    assert again.generation > timer.generation
    assert living.is_current(fx.TimerFired("tick", again.generation))


def test_results_of_cancelled_tasks_are_stale_also_under_a_tag_in_use_again():
    living = life()
    (first,) = do(living, lambda ctx: ctx.compute("grad", task()))
    cancel, second = do(living, lambda ctx: (ctx.cancel("grad"), ctx.compute("grad", task())))

    assert cancel.generation == first.generation
    assert not living.is_current(fx.Computed("grad", None, first.generation))
    assert living.is_current(fx.Computed("grad", None, second.generation))
    assert do(living, lambda ctx: ctx.cancel("unknown")) == []


def test_one_live_task_per_tag():
    living = life()
    (first,) = do(living, lambda ctx: ctx.compute(("grad", 1), task()))
    refusal = caught_in(living, lambda ctx: ctx.compute(("grad", 1), task()))
    assert isinstance(refusal, TagInUse)
    assert refusal.args == ("worker-1", "('grad', 1)")

    computed = fx.Computed(("grad", 1), None, first.generation)
    (again,) = do(living, lambda ctx: ctx.compute(("grad", 1), task()), computed)
    assert again.generation > first.generation


def test_draws_are_counted_where_the_author_names_none():
    living = life()
    starts = lambda ctx: [ctx.compute(tag, task(draw=draw)) for tag, draw in enumerate([None, 17, None])]  # noqa: E731

    assert [effect.draw for effect in do(living, starts)] == [0, 17, 2]


# The author's own mistakes, at the author's own line


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda ctx: ctx.send(CLIENT, Text("x")), UnknownPeer, "worker-1 cannot send to client-0: roles"),
        (lambda ctx: ctx.send(NodeId("worker", 9), Text("x")), UnknownPeer, "no such node in the roster"),
        (lambda ctx: ctx.broadcast("client", Text("x")), UnknownPeer, "not linked"),
        (lambda ctx: ctx.send(SERVER, "text"), MessageError, "worker-1 sends a str"),
        (lambda ctx: ctx.set_timer("t", -1e-9), ContractError, "finite seconds >= 0"),
        (lambda ctx: ctx.set_timer("t", math.nan), ContractError, "finite seconds >= 0"),
        (lambda ctx: ctx.set_timer("t", math.inf), ContractError, "finite seconds >= 0"),
        (lambda ctx: ctx.compute("c", ones), ContractError, "needs an emuml.Task, got function"),
        (lambda ctx: ctx.log(loss=None), ContractError, "log(loss=None)"),
        (lambda ctx: ctx.log(loss=np.zeros(2)), ContractError, "numbers and short texts"),
    ],
)
def test_mistakes_are_raised_where_they_are_made(call, kind, said):
    refusal = caught_in(life(), call)

    assert type(refusal) is kind
    assert said in str(refusal)


def test_a_message_above_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr("emuml.context.MESSAGE_BYTES_MAX", 100)

    do(life(), lambda ctx: ctx.send(SERVER, note(value=[1.0])))
    refusal = caught_in(life(), lambda ctx: ctx.send(SERVER, note(value=np.zeros(20))))
    assert isinstance(refusal, MessageError)
    assert "at most 100 are allowed" in str(refusal)


def test_a_broadcast_to_nobody_does_nothing():
    assert do(life(), lambda ctx: ctx.broadcast("nobody", Text("x"))) == []


def test_messages_to_oneself_are_allowed():
    (send,) = do(life(), lambda ctx: ctx.send(ME, Text("x")))

    assert send.to == ME


# Randomness


def test_a_stream_starts_anew_at_each_call_whatever_the_incarnation():
    drawn = []
    for incarnation in (1, 2):
        do(life(incarnation=incarnation), lambda ctx: drawn.extend(ctx.rng("batch/3").random(2) for _ in range(2)))

    expected = generator(7, "worker-1", "batch/3").random(2)
    assert all((draws == expected).all() for draws in drawn)
    assert len(drawn) == 4


def test_check_mode_refuses_to_open_a_stream_twice_in_one_life():
    living = life(Checker())
    do(living, lambda ctx: (ctx.rng("batch/1"), ctx.rng("batch/2")))
    refusal = caught_in(living, lambda ctx: ctx.rng("batch/1"))

    assert isinstance(refusal, StreamReused)
    assert refusal.args == ("worker-1", "batch/1")


# Reports


def test_a_report_says_what_a_node_has_and_waits_for():
    living = life()
    do(living, lambda ctx: (ctx.set_timer("tick", 1.0), ctx.compute(("grad", 2), task())), now=0.5)

    assert living.describe() == (
        "worker-1 (life 1): last on_start at t=0.5 s, 1 events, timers ['tick'], tasks [\"('grad', 2)\"], "
        "waiting for orders"
    )
