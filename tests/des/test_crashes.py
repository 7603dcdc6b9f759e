"""Crashes, restarts and late starts: what neighbours are told, what is lost, and what never crosses a life."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster import timeline
from emuml.cluster.cluster import Cluster, Detection, Network
from emuml.cluster.compute import Constant
from emuml.cluster.faults import Crash, Start
from emuml.errors import UserError
from emuml.message import size_bytes
from emuml.node import NodeId
from tests.des.plans import crashes, plans
from tests.des.scripted import Bulk, Note, chooser, emulate, gossip, on
from tests.des.test_slots import task

SERVER, WORKER, OTHER = NodeId("server", 0), NodeId("worker", 0), NodeId("worker", 1)
TABLE = {
    # contract 3.4
    ("up", "SUSPECT"): "suspect", ("suspect", "UP"): "up", ("up", "DOWN"): "down", ("suspect", "DOWN"): "down",
    ("down", "UP"): "up", ("down", "RESTARTED"): "up", ("joining", "UP"): "up", ("joining", "DOWN"): "down",
}  # fmt: skip


def cluster(latency_s=0.0, bytes_per_s=None, exit_s=0.01, connect_s=0.0, unreachable_s=10.0, **options):
    detection = Detection(exit_s, connect_s, unreachable_s)
    return Cluster(
        workers=1, network=Network(latency_s, bytes_per_s and 8 * bytes_per_s), detection=detection, **options
    )


def told(seen, node, life=None):
    return seen.of(node, "peer", life=life)


IDLE = {"server-0": None, "worker-0": None, "worker-1": None}

# What is told, and when


def test_neighbours_learn_of_an_exit_after_the_time_of_detection():
    run, seen = emulate(IDLE, cluster(exit_s=0.25), [Crash("worker-0", at_s=1)], until_s=99)

    assert told(seen, "server-0") == told(seen, "worker-1") == [(1.25, "worker-0", "DOWN")]
    assert told(seen, "worker-0") == []
    assert run.ends == ["worker-0 (life 1) crashed at t=1 s"]
    assert [record.kind for record in run.trace.of("fault", "crash")] == ["fault", "crash"]


def test_a_restart_is_told_to_both_ends_when_it_has_connected():
    plan = [Crash("worker-0", at_s=1, restart_after_s=2)]
    _, seen = emulate(IDLE, cluster(latency_s=0.125, connect_s=0.5), plan, until_s=99)

    assert seen.of("worker-0", "start") == [(0.0, {}), (3.0, {})]
    assert told(seen, "server-0") == [(1.01, "worker-0", "DOWN"), (3.625, "worker-0", "RESTARTED")]
    assert told(seen, "worker-0", life=2) == [(3.625, "server-0", "UP"), (3.625, "worker-1", "UP")]


def test_a_restart_before_the_exit_was_noticed_is_down_first():
    _, seen = emulate(IDLE, cluster(exit_s=5), [Crash("worker-0", at_s=1, restart_after_s=0.5)], until_s=99)

    assert told(seen, "server-0") == [(1.5, "worker-0", "DOWN"), (1.5, "worker-0", "RESTARTED")]


def test_a_neighbour_that_is_not_there_is_down_after_the_connect_deadline():
    plan = [Crash("worker-0", at_s=1), Crash("worker-1", at_s=2, restart_after_s=1)]
    _, seen = emulate(IDLE, cluster(unreachable_s=4), plan, until_s=99)

    assert told(seen, "worker-1", life=2) == [(3.0, "server-0", "UP"), (7.0, "worker-0", "DOWN")]


def test_a_neighbour_that_comes_back_after_that_deadline_has_restarted():
    plan = [Crash("worker-0", at_s=1, restart_after_s=9), Crash("worker-1", at_s=2, restart_after_s=1)]
    _, seen = emulate(IDLE, cluster(unreachable_s=4), plan, until_s=99)

    assert told(seen, "worker-1", life=2)[1:] == [(7.0, "worker-0", "DOWN"), (10.0, "worker-0", "RESTARTED")]
    assert told(seen, "worker-0", life=2) == [(10.0, "server-0", "UP"), (10.0, "worker-1", "UP")]


def test_two_that_restart_together_are_up_for_each_other_once():
    plan = [Crash(name, at_s=1, restart_after_s=1) for name in ("server-0", "worker-0")]
    run, seen = emulate(IDLE, cluster(latency_s=0.5), plan, until_s=99)

    assert run.error is None
    assert told(seen, "server-0", life=2) == [(2.5, "worker-0", "UP"), (2.5, "worker-1", "UP")]
    assert told(seen, "worker-0", life=2) == [(2.5, "server-0", "UP"), (2.5, "worker-1", "UP")]


def test_a_late_start_is_up_for_those_who_waited():
    def start(ctx, saved):
        ctx.send(WORKER, Note("too early"))

    scripts = {
        "server-0": on(start=start, peer=lambda ctx, peer, state: ctx.send(WORKER, Note(state))),
        "worker-0": None,
    }
    run, seen = emulate(scripts, cluster(latency_s=0.5), [Start("worker-0", at_s=3)], until_s=99)

    assert seen.of("worker-0", "start") == [(3.0, {})]
    assert told(seen, "server-0") == [(0.0, "worker-0", "DOWN"), (3.5, "worker-0", "UP")]
    assert told(seen, "worker-0") == [(3.5, "server-0", "UP")]
    assert seen.of("worker-0", "message") == [(4.0, "server-0", "UP")]
    # What waited while the link was joining, and what was sent on the news that nobody is there.
    assert [record.time_s for record in run.trace.of("discarded")] == [0.0, 0.0]


def test_all_vanish_before_anybody_is_told_of_an_instant():
    plan = [Crash("worker-0", at_s=1), Crash("worker-1", at_s=1)]
    _, seen = emulate(IDLE, cluster(exit_s=0.0), plan, until_s=99)

    assert told(seen, "server-0") == [(1.0, "worker-0", "DOWN"), (1.0, "worker-1", "DOWN")]
    assert told(seen, "worker-0") == told(seen, "worker-1") == []


def test_a_crash_of_the_dead_and_a_start_of_the_living_change_nothing():
    """Only the forms that wait for a counter can come so: of times it is known before."""

    def counts(ctx, saved):
        ctx.set_timer("now", 2.0)

    scripts = {**IDLE, "server-0": on(start=counts, timer=lambda ctx, name: ctx.log(now=1))}
    plan = [Crash("worker-0", at_s=1, restart_after_s=4), Crash("worker-0", after=("now", 1), restart_after_s=1),
            Crash("worker-1", at_s=1, restart_after=("never", 1))]  # fmt: skip
    run, seen = emulate(scripts, cluster(), plan, until_s=99)

    assert [row[0] for row in seen.of("worker-0", "start")] == [0.0, 3.0]
    assert run.ends == ["worker-0 (life 1) crashed at t=1 s", "worker-1 (life 1) crashed at t=1 s"]


# What a life loses, and what it may send


def test_sends_wait_while_links_are_joining_and_leave_before_the_answer_to_up():
    def start(ctx, saved):
        if ctx.incarnation == 2:
            ctx.send(SERVER, Note("one"))
            ctx.broadcast("worker", Note("all"))
            ctx.send(SERVER, Note("two"))
            ctx.set_timer("later", 0.25)

    def timer(ctx, name):
        ctx.send(SERVER, Note("three"))

    def peer(ctx, peer, state):
        ctx.send(NodeId.parse(peer), Note("hello"))

    scripts = {**IDLE, "worker-0": on(start=start, timer=timer, peer=peer)}
    _, seen = emulate(scripts, cluster(latency_s=0.5), [Crash("worker-0", at_s=1, restart_after_s=1)], until_s=99)

    assert seen.of("server-0", "message") == [(3.0, "worker-0", text) for text in ("one", "two", "three", "hello")]
    assert seen.of("worker-1", "message") == [(3.0, "worker-0", text) for text in ("all", "hello")]


def test_what_waited_for_a_peer_that_cannot_be_reached_is_discarded():
    def start(ctx, saved):
        if ctx.incarnation == 2:
            ctx.send(OTHER, Note("lost"))

    plan = [Crash("worker-1", at_s=0.5, restart_after_s=30), Crash("worker-0", at_s=1, restart_after_s=1)]
    _, seen = emulate({**IDLE, "worker-0": on(start=start)}, cluster(), plan, until_s=99)

    assert told(seen, "worker-0", life=2)[1:] == [(12.0, "worker-1", "DOWN"), (30.5, "worker-1", "RESTARTED")]
    assert seen.of("worker-1", "message") == []


def test_sends_to_a_peer_that_is_down_are_discarded_and_traced():
    script = on(start=lambda ctx, saved: ctx.set_timer("x", 2.0), timer=lambda ctx, name: ctx.send(WORKER, Note("x")))
    run, _ = emulate({**IDLE, "server-0": script}, cluster(), [Crash("worker-0", at_s=1)], until_s=99)
    (discarded,) = run.trace.of("discarded")

    assert (discarded.time_s, discarded.node) == (2.0, "server-0")
    assert discarded.details == {"peer": "worker-0", "type": "Note", "size_bytes": size_bytes(Note("x"))}
    assert run.trace.of("send") == []


def test_timers_tasks_and_messages_to_oneself_die_with_their_life():
    def start(ctx, saved):
        if ctx.incarnation == 1:
            ctx.set_timer("tick", 2.0)
            ctx.compute("grad", task())
            ctx.compute("queued", task())
            ctx.send(SERVER, Note("ask"))

    def message(ctx, sender, text):
        ctx.send(WORKER, Note("answer to the dead"))

    scripts = {"server-0": on(message=message), "worker-0": on(start=start)}
    plan = [Crash("worker-0", at_s=1, restart_after_s=0.25)]
    _, seen = emulate(scripts, cluster(latency_s=0.5, compute=Constant(1.5)), plan, until_s=99)

    assert [row[3] for row in seen if row[1] == "worker-0" and row[2] == 2] == ["start", "peer"]


def test_slots_of_a_new_life_are_free():
    script = on(start=lambda ctx, saved: [ctx.compute(tag, task()) for tag in "ab"])
    plan = [Crash("worker-0", at_s=1, restart_after_s=1)]
    _, seen = emulate({"worker-0": script}, cluster(compute=Constant(3)), plan, until_s=99)

    assert seen.of("worker-0", "computed") == [(5.0, "a"), (8.0, "b")]


def test_what_had_left_before_a_crash_arrives_and_the_rest_does_not():
    def start(ctx, saved):
        for number in range(6):
            ctx.send(SERVER, Bulk(np.full(100, float(number))))

    one_s = size_bytes(Bulk(np.zeros(100))) / 1e3
    scripts = {
        "server-0": None,
        "worker-0": on(start=lambda ctx, saved: start(ctx, saved) if ctx.incarnation == 1 else None),
    }
    for crash_s, whole in [(0.5 * one_s, 0), (one_s, 1), (3.4 * one_s, 3)]:
        _, seen = emulate(scripts, cluster(0.25, 1e3, exit_s=60.0), [Crash("worker-0", at_s=crash_s)], until_s=99)
        assert [message.value[0] for *_, message in seen.of("server-0", "message")] == list(range(whole))


def test_a_new_session_does_not_wait_for_what_the_old_one_had_queued():
    def start(ctx, saved):
        for _ in range(100 if ctx.incarnation == 1 else 1):
            ctx.send(SERVER, Bulk(np.zeros(100)))

    one_s = size_bytes(Bulk(np.zeros(100))) / 1e3
    plan = [Crash("worker-0", at_s=one_s / 2, restart_after_s=1)]
    _, seen = emulate({"server-0": None, "worker-0": on(start=start)}, cluster(0.0, 1e3), plan, until_s=99)

    (arrival,) = seen.of("server-0", "message")
    assert arrival[0] == pytest.approx(one_s / 2 + 1 + one_s, abs=1e-12)


# Logical forms


def test_a_crash_at_a_count_falls_between_what_was_recorded_before_and_after():
    def start(ctx, saved):
        ctx.send(SERVER, Note("before"))
        ctx.log(round=1)
        ctx.send(SERVER, Note("after"))

    run, seen = emulate(
        {**IDLE, "worker-0": on(start=start)}, cluster(), [Crash("worker-0", after=("round", 1))], until_s=9
    )

    assert seen.of("server-0", "message") == [(0.0, "worker-0", "before")]
    assert [logged.metrics for logged in run.logs] == [{"round": 1}]


def test_others_crash_and_come_back_at_counts_that_someone_logs():
    def timer(ctx, name):
        ctx.log(round=int(ctx.now))
        ctx.set_timer("round", 1.0)

    script = on(start=lambda ctx, saved: ctx.set_timer("round", 1.0), timer=timer)
    plan = [Crash("worker-0", after=("round", 2), restart_after=("round", 5)), Start("worker-1", after=("round", 3))]
    _, seen = emulate({**IDLE, "server-0": script}, cluster(), plan, until_s=20)

    assert [row[0] for row in seen.of("worker-0", "start")] == [0.0, 5.0]
    assert [row[0] for row in seen.of("worker-1", "start")] == [3.0]


def test_plans_are_refused_before_anything_runs():
    with pytest.raises(UserError, match="'worker-7' is not in the roster"):
        emulate(IDLE, cluster(), [Crash("worker-7", at_s=1)])
    with pytest.raises(UserError, match="worker-0 crashes at 2 s, but is down since 1 s"):
        emulate(IDLE, cluster(), [Crash("worker-0", at_s=1, restart_after_s=1), Crash("worker-0", at_s=2)])


# Any plan


@pytest.mark.slow
@given(
    plan=plans(crashes, most=6),
    late=st.booleans(),
    latency_s=st.sampled_from([0.0, 0.3]),
    exit_s=st.sampled_from([0.0, 0.2, 2.0]),
    picks=st.none() | st.lists(st.integers(0, 5), max_size=60),
)
def test_any_plan_keeps_the_table_the_fence_and_the_prefix_rule(plan, late, latency_s, exit_s, picks):
    """Everybody tells everybody (life, number) a few times a second, and at once to whoever comes up."""
    sent = {}

    everybody, peer = gossip(sent)
    script = on(start=everybody, timer=everybody, peer=peer)
    faults = timeline.possible([Start("worker-1", at_s=1.0), *plan] if late else plan)
    run, seen = emulate(
        dict.fromkeys(IDLE, script), cluster(latency_s, exit_s=exit_s), faults, until_s=30, choose=chooser(picks)
    )

    assert run.error is None
    for node in IDLE:
        for life in {row[2] for row in seen if row[1] == node}:
            for peer_name in IDLE:
                if peer_name != node:
                    state = "up" if life == 1 else "joining"
                    if late and life == 1 and "worker-1" in (node, peer_name):
                        state = "joining"
                    check_one_link(seen, node, life, peer_name, state)


def check_one_link(seen, node, life, peer, state):
    """Check all that one life of a node saw of one peer: the table, one life per session, and no gap in its numbers.

    A fresh life may have missed what its peer sent before; in all other sessions the first message is the first sent.
    """
    session_life, last = None, None if state == "joining" else 0
    for row in seen:
        if row[1:3] != (node, life) or row[3] not in ("peer", "message") or row[4] != peer:
            continue
        if row[3] == "peer":
            assert (state, row[5]) in TABLE
            if state == "down":
                session_life, last = None, 0
            state = TABLE[state, row[5]]
        else:
            assert state in ("up", "suspect")
            sender_life, number = map(int, row[5].split())
            assert sender_life == (session_life or sender_life)
            assert number == (number if last is None else last + 1)
            session_life, last = sender_life, number
