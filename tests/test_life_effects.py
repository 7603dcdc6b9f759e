"""What a life fixes at the call, drops as stale, and refuses at the author's own line."""

import math

import numpy as np
import pytest

from emuml import effects as fx
from emuml.blocks import MemoryStore
from emuml.checks import Checker
from emuml.errors import (
    ContractError,
    MessageError,
    StreamReused,
    TagInUse,
    UnknownPeer,
)
from emuml.node import NodeId
from emuml.streams import generator
from emuml.task import Task
from tests.lives import CLIENT, ME, SERVER, Note, Text, caught_in, do, life, note, ones, task

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
