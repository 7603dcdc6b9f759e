"""What the waits of a script give, and what they leave: receives, jobs, selects (contract 17.3-17.5)."""

import pytest

from emuml import PeerChange, PeerState
from emuml import effects as fx
from emuml.blocks import Saved
from emuml.errors import JobCancelled, MailboxOverflow, NodeFailed
from tests.lives import SERVER, WORKERS, Note, Text, note, task
from tests.scripts import Played, kinds

# Receiving


def test_messages_wait_in_arrival_order_and_others_stay_in_place():
    async def play(node, tell):
        await node.sleep(1.0)
        tell((await node.receive(Note))[1].text)
        tell((await node.receive(Text, sender=WORKERS[0]))[1].text)
        tell((await node.receive(where=lambda message: message.text.endswith("3")))[1].text)
        for _ in range(3):
            tell((await node.receive())[1].text)

    played = Played(play)
    arrivals = [Text("1"), Text("2"), Text("3"), note("4"), Text("5"), note("6")]
    for sender, message in zip([SERVER, WORKERS[0]] * 3, arrivals, strict=True):
        assert played.message(sender, message) == []
    played.timer("sleep/0")
    assert played.told == ["4", "2", "3", "1", "5", "6"]


def test_receive_gives_sender_and_message_of_any_of_several_types():
    async def play(node, tell):
        while True:
            tell(await node.receive(Text, PeerChange))

    played = Played(play)
    played.message(SERVER, note())
    played.message(WORKERS[1], Text("x"))
    played.peer(SERVER, PeerState.DOWN)
    assert played.told == [(WORKERS[1], Text("x")), (SERVER, PeerChange(PeerState.DOWN))]


def test_changes_of_peers_come_in_order_with_the_messages():
    async def play(node, tell):
        await node.sleep(1.0)
        while True:
            tell(await node.receive())

    played = Played(play)
    played.message(SERVER, Text("before"))
    played.peer(SERVER, PeerState.SUSPECT)
    played.message(SERVER, Text("after"))
    played.timer("sleep/0")
    assert [message for _, message in played.told] == [
        Text("before"),
        PeerChange(PeerState.SUSPECT),
        Text("after"),
    ]


def test_a_receive_that_times_out_has_consumed_nothing():
    async def play(node, tell):
        tell(await node.receive(Note, timeout_s=2.0))
        tell((await node.receive())[1])

    played = Played(play)
    assert kinds(played.first) == [("SetTimer", "timeout/0")]
    played.message(SERVER, Text("unwanted"))
    assert played.told == []
    played.timer("timeout/0", now=2.0)
    assert played.told == [None, Text("unwanted")]


def test_a_message_in_time_disarms_the_timeout():
    async def play(node, tell):
        tell(await node.receive(Text, timeout_s=2.0))
        await node.receive(Note)

    played = Played(play)
    expiry = fx.TimerFired("timeout/0", played.life.timers["timeout/0"])
    assert kinds(played.message(SERVER, Text("in time"), now=2.0)) == [("CancelTimer", "timeout/0")]
    assert not played.life.is_current(expiry)
    assert played.told == [(SERVER, Text("in time"))]


def test_no_timer_is_set_where_a_message_waits_already():
    async def play(node, tell):
        await node.sleep(1.0)
        tell(await node.receive(Text, timeout_s=2.0))

    played = Played(play)
    played.message(SERVER, Text("early"))
    assert played.timer("sleep/0") == []
    assert played.told == [(SERVER, Text("early"))]


def test_a_receive_can_be_awaited_again_and_looks_anew():
    async def play(node, tell):
        inbox = node.receive(Text, timeout_s=1.0)
        while True:
            tell(await inbox)

    played = Played(play)
    played.message(SERVER, Text("a"))
    played.timer("timeout/1")
    played.message(SERVER, Text("b"))
    assert played.told == [(SERVER, Text("a")), None, (SERVER, Text("b"))]


def test_too_many_unread_messages_are_a_leak(monkeypatch):
    monkeypatch.setattr("emuml.script.MAILBOX_MAX", 4)

    async def play(node, tell):
        while True:
            await node.receive(Note)

    played = Played(play)
    for number in range(4):
        played.message(SERVER, Text(f"{number}"))
    played.message(SERVER, note())  # read at once
    with pytest.raises(NodeFailed) as failed:
        played.peer(SERVER, PeerState.UP)
    assert type(failed.value.__cause__) is MailboxOverflow
    assert failed.value.__cause__.args == ("worker-1", 5, "Text")


def test_the_limit_of_the_mailbox_is_a_hundred_thousand():
    from emuml.script import MAILBOX_MAX

    assert MAILBOX_MAX == 100_000


# Jobs


def test_saves_and_loads_give_what_their_handlers_are_given():
    async def play(node, tell):
        tell(await node.save({"a": 1}))
        blocks = await node.load("a", "b")
        tell(dict(blocks))

    played = Played(play)
    assert kinds(played.saved("save/0")) == [("Load", "load/0")]
    played.loaded("load/0", Saved({"a": ((1, 1),)}))
    assert played.told == [None, {"a": 1}]


def test_jobs_can_be_awaited_in_any_order_and_again():
    async def play(node, tell):
        first, second = node.compute(task()), node.compute(task())
        tell(await second)
        tell(await first)
        tell(await first)

    played = Played(play)
    played.computed("compute/0", "one")
    assert played.told == []
    played.computed("compute/1", "two")
    assert played.told == ["two", "one", "one"]


def test_awaiting_a_cancelled_job_raises():
    async def play(node, tell):
        job = node.compute(task())
        job.cancel()
        job.cancel()
        try:
            await job
        except JobCancelled as error:
            tell(error.args)
        try:
            await node.select(job=job, reply=node.receive(Text))
        except JobCancelled:
            tell("again")

    played = Played(play)
    assert kinds(played.first) == [("Compute", "compute/0"), ("Cancel", "compute/0")]
    assert played.told == [("worker-1", "compute/0 (ones)"), "again"]


def test_a_cancel_after_the_result_came_does_nothing():
    """8.6: whichever was handled first wins."""

    async def play(node, tell):
        job = node.compute(task())
        await node.receive(Text)
        job.cancel()
        tell(await job)

    played = Played(play)
    played.computed("compute/0", "result")
    assert played.message(SERVER, Text("go")) == []
    assert played.told == ["result"]


def test_a_save_cannot_be_cancelled():
    async def play(node, tell):
        node.save({"a": 1}).cancel()

    with pytest.raises(NodeFailed, match="no attribute 'cancel'"):
        Played(play)


# Selecting


def test_the_listed_order_decides_among_ready_parts():
    async def play(node, tell):
        job, nap = node.compute(task()), node.sleep(1.0)
        await node.receive(Note)
        tell(await node.select(nap=nap, job=job, reply=node.receive(Text)))
        tell(await node.select(reply=node.receive(Text), job=job))
        tell(await node.select(reply=node.receive(Text), job=job))

    played = Played(play)
    played.message(SERVER, Text("early"))
    played.computed("compute/0", "result")
    played.timer("sleep/0")
    assert played.message(SERVER, note()) == []
    assert played.told == [("nap", None), ("reply", (SERVER, Text("early"))), ("job", "result")]


def test_one_message_that_two_parts_want_goes_to_the_first():
    async def play(node, tell):
        tell(await node.select(any=node.receive(), text=node.receive(Text)))

    played = Played(play)
    played.message(SERVER, Text("x"))
    assert played.told == [("any", (SERVER, Text("x")))]


def test_losers_are_withdrawn_and_jobs_go_on():
    async def play(node, tell):
        job = node.compute(task())
        parts = {"nap": node.sleep(9.0), "note": node.receive(Note, timeout_s=8.0)}
        tell(await node.select(**parts, job=job, text=node.receive(Text, timeout_s=7.0)))
        tell(await job)
        await node.receive()

    played = Played(play)
    assert kinds(played.first) == [
        ("Compute", "compute/0"), ("SetTimer", "sleep/0"), ("SetTimer", "timeout/0"), ("SetTimer", "timeout/1"),
    ]  # fmt: skip
    effects = played.message(SERVER, Text("first"))
    assert kinds(effects) == [("CancelTimer", "sleep/0"), ("CancelTimer", "timeout/0"), ("CancelTimer", "timeout/1")]
    assert played.life.timers == {}
    played.computed("compute/0", "late")
    assert played.told == [("text", (SERVER, Text("first"))), "late"]


def test_a_receive_that_lost_has_consumed_nothing():
    async def play(node, tell):
        await node.sleep(1.0)
        tell(await node.select(note=node.receive(Note), text=node.receive(Text)))
        tell(await node.receive())

    played = Played(play)
    played.message(SERVER, Text("a"))
    played.message(SERVER, note("b"))
    played.timer("sleep/0")
    (name, (_, message)), (_, rest) = played.told
    assert (name, message.text, rest) == ("note", "b", Text("a"))


def test_a_timeout_within_a_select_is_an_outcome_of_its_part():
    async def play(node, tell):
        tell(await node.select(job=node.compute(task()), reply=node.receive(Text, timeout_s=1.0)))

    played = Played(play)
    played.timer("timeout/0")
    assert played.told == [("reply", None)]


def test_selects_nest():
    async def play(node, tell):
        inner = node.select(nap=node.sleep(1.0), text=node.receive(Text))
        tell(await node.select(inner=inner, note=node.receive(Note)))
        await node.sleep(5.0)

    played = Played(play)
    effects = played.message(SERVER, Text("x"))
    assert kinds(effects) == [("CancelTimer", "sleep/0"), ("SetTimer", "sleep/1")]
    assert played.told == [("inner", ("text", (SERVER, Text("x"))))]
