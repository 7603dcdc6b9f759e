"""Nodes that stand still or compute slowly: what waits, what is late, and tasks that are split exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster.cluster import Cluster, Detection, Network, Storage
from emuml.cluster.compute import Constant
from emuml.cluster.faults import Crash, GroupCrash, Hang, SlowNode
from emuml.node import NodeId
from tests.des.scripted import Note, emulate, on
from tests.des.test_partitions import ticks, told
from tests.des.test_slots import task

SERVER, WORKER = NodeId("server", 0), NodeId("worker", 0)


def cluster(latency_s=0.25, compute_s=4.0, storage_s=0.0, cores=1, cancel_lag_s=0.0, **detection):
    patience = {"suspect_s": 50, "down_s": 90, **detection}
    return Cluster(
        workers=1, compute=Constant(compute_s), network=Network(latency_s), storage=Storage(storage_s),
        detection=Detection(**patience), cores=cores, cancel_lag_s=cancel_lag_s,
    )  # fmt: skip


def both(server, worker, faults, model, until_s=99):
    run, seen = emulate({"server-0": server, "worker-0": worker}, model, faults, until_s=until_s)
    assert run.error is None
    return run, seen


# Hangs


def test_messages_wait_in_their_order_and_late_timers_fire_after_them():
    def start(ctx, saved):
        for name, after_s in (("second", 1.75), ("first", 1.25), ("on time", 5.0)):
            ctx.set_timer(name, after_s)

    _, seen = both(ticks(0.5, 1.5, 2.0, 4.0, to=WORKER), on(start=start), [Hang("worker-0", 2.0, at_s=1)], cluster())

    assert [(row[0], *row[3:]) for row in seen if row[1] == "worker-0" and row[3] != "start"] == [
        (0.75, "message", "server-0", "0.5"), (3.0, "message", "server-0", "1.5"), (3.0, "message", "server-0", "2"),
        (3.0, "timer", "first"), (3.0, "timer", "second"), (4.25, "message", "server-0", "4"),
        (5.0, "timer", "on time"),
    ]  # fmt: skip


def test_a_message_that_comes_as_the_node_goes_on_follows_those_that_waited():
    _, seen = both(ticks(1.0, 2.75, to=WORKER), None, [Hang("worker-0", 2.0, at_s=1)], cluster())

    assert seen.of("worker-0", "message") == [(3.0, "server-0", "1"), (3.0, "server-0", "2.75")]


def test_nothing_that_waited_is_handed_over_after_a_stop():
    script = on(message=lambda ctx, sender, text: ctx.stop("enough"))
    run, seen = both(ticks(1.5, 2.0, to=WORKER), script, [Hang("worker-0", 2.0, at_s=1)], cluster())

    assert seen.of("worker-0", "message") == [(3.0, "server-0", "1.5")]
    assert run.stopped == "enough"


def test_a_timer_cancelled_or_armed_anew_by_what_waited_does_not_fire_late():
    def start(ctx, saved):
        ctx.set_timer("cancelled", 1.5)
        ctx.set_timer("again", 1.5)

    def message(ctx, sender, text):
        ctx.cancel_timer("cancelled")
        ctx.set_timer("again", 0.5)

    _, seen = both(ticks(1.0, to=WORKER), on(start=start, message=message), [Hang("worker-0", 2.0, at_s=1)], cluster())

    assert seen.of("worker-0", "timer") == [(3.5, "again")]


def test_tasks_stand_still_and_end_as_much_later():
    script = on(start=lambda ctx, saved: [ctx.compute(tag, task()) for tag in "ab"])
    _, seen = both(None, script, [Hang("worker-0", 2.0, at_s=1), Hang("worker-0", 0.5, at_s=7)], cluster())

    assert seen.of("worker-0", "computed") == [(6.0, "a"), (10.5, "b")]


def test_what_had_been_sent_goes_on_and_what_is_saved_becomes_durable():
    def start(ctx, saved):
        ctx.send(SERVER, Note("hello"))
        ctx.save("s", {"a": 1})

    plan = [Hang("worker-0", 2.0, at_s=0.125), Crash("worker-0", at_s=1.0, restart_after_s=1.0)]
    _, seen = both(None, on(start=start), plan, cluster(storage_s=0.5))

    assert seen.of("server-0", "message")[0] == (0.25, "worker-0", "hello")
    assert seen.of("worker-0", "saved", life=1) == []
    assert seen.of("worker-0", "start", life=2) == [(2.5, {"a": 1})]
    run, seen = both(None, on(start=start), plan[:1], cluster(storage_s=0.5))
    assert seen.of("worker-0", "saved") == [(2.125, "s")]
    assert [row.time_s for row in run.trace.of("saved")] == [2.125]


def test_a_slot_that_is_free_while_its_node_stands_still_is_filled_after_that():
    def timer(ctx, name):
        ctx.cancel("a")

    script = on(start=lambda ctx, saved: [ctx.compute("a", task()), ctx.compute("b", task()), ctx.set_timer("t", 1)],
                timer=timer)  # fmt: skip
    run, seen = both(None, script, [Hang("worker-0", 2.0, at_s=1.25)], cluster(cancel_lag_s=0.5))

    assert [record.time_s for record in run.trace.of("freed")] == [3.25]
    assert seen.of("worker-0", "computed") == [(7.25, "b")]


def test_a_node_that_hangs_is_suspected_and_taken_for_dead_though_it_lives():
    plan = [Hang("worker-0", 5.0, at_s=1)]
    _, seen = both(ticks(1.5, to=WORKER), None, plan, cluster(suspect_s=0.5, down_s=2))

    assert told(seen, "server-0") == [
        (1.75, "worker-0", "SUSPECT"), (3.25, "worker-0", "DOWN"), (6.25, "worker-0", "UP"),
    ]  # fmt: skip
    # It takes what came before the end of the session, then that end.
    assert [(row[0], *row[3:]) for row in seen if row[1] == "worker-0"][1:] == [
        (6.0, "message", "server-0", "1.5"), (6.0, "peer", "server-0", "DOWN"), (6.25, "peer", "server-0", "UP"),
    ]  # fmt: skip


def test_a_short_hang_ends_no_session_and_the_node_blames_nobody():
    _, seen = both(None, None, [Hang("worker-0", 1.0, at_s=1)], cluster(suspect_s=0.5, down_s=2))

    assert told(seen, "server-0") == [(1.75, "worker-0", "SUSPECT"), (2.25, "worker-0", "UP")]
    assert told(seen, "worker-0") == []


def test_two_that_hang_one_after_the_other_are_judged_by_time_in_which_the_other_could_listen():
    plan = [Hang("server-0", 1.0, at_s=1), Hang("worker-0", 4.0, at_s=1.5)]
    _, seen = both(None, None, plan, cluster(latency_s=0.0, suspect_s=0.75, down_s=2))

    # It heard the worker until 1.5, stood still until 2, and listens from then on.
    assert told(seen, "server-0")[:2] == [(2.75, "worker-0", "SUSPECT"), (4.0, "worker-0", "DOWN")]


def test_a_crash_ends_a_hang_and_the_next_life_is_not_touched_by_it():
    plan = [Hang("worker-0", 6.0, at_s=1), Crash("worker-0", at_s=2, restart_after_s=1)]
    _, seen = both(ticks(4.0, to=WORKER), None, plan, cluster(exit_s=0.5))

    assert told(seen, "server-0") == [(2.5, "worker-0", "DOWN"), (3.25, "worker-0", "RESTARTED")]
    assert seen.of("worker-0", "message", life=2) == [(4.25, "server-0", "4")]


def test_a_restart_reaches_a_neighbour_that_stands_still_when_that_goes_on():
    plan = [Hang("server-0", 6.0, at_s=1), Crash("worker-0", at_s=2, restart_after_s=1)]
    _, seen = both(None, None, plan, cluster(exit_s=0.5, unreachable_s=1.0))

    assert told(seen, "worker-0") == [(4.25, "server-0", "DOWN"), (7.25, "server-0", "UP")]
    assert told(seen, "server-0") == [(7.0, "worker-0", "DOWN"), (7.25, "worker-0", "RESTARTED")]


def test_the_logical_form_stops_a_node_after_the_step_that_logged():
    def start(ctx, saved):
        ctx.log(round=1)
        ctx.send(SERVER, Note("of this step"))
        ctx.compute("a", task())

    _, seen = both(None, on(start=start), [Hang("worker-0", 2.0, after=("round", 1))], cluster())

    assert seen.of("server-0", "message") == [(0.25, "worker-0", "of this step")]
    assert seen.of("worker-0", "computed") == [(6.0, "a")]


# Slow nodes


def test_a_task_that_runs_when_its_node_slows_down_or_recovers_is_split():
    script = on(start=lambda ctx, saved: [ctx.compute(tag, task()) for tag in "abc"])
    _, seen = both(None, script, [SlowNode("worker-0", 2.0, 4.0, at_s=1)], cluster())

    # 1 second of work before, 2 in 4 seconds, 1 after.
    assert seen.of("worker-0", "computed") == [(6.0, "a"), (10.0, "b"), (14.0, "c")]


def test_factors_multiply_and_a_restart_does_not_end_them():
    script = on(start=lambda ctx, saved: ctx.compute("a", task()))
    plan = [
        SlowNode("worker-0", 2.0, 90.0, at_s=0),
        SlowNode("worker-0", 3.0, 90.0, at_s=2),
        Crash("worker-0", 3.0, 1.0),
    ]
    _, seen = both(None, script, plan, cluster())

    assert seen.of("worker-0", "computed") == [(28.0, "a")]


quarters = st.integers(1, 40).map(lambda n: n / 4)


@pytest.mark.slow
@given(st.lists(st.tuples(quarters, quarters, st.sampled_from([0.5, 1.0, 2.0, 4.0])), max_size=4), st.booleans())
def test_a_task_ends_when_the_integral_of_its_pace_is_its_work(slow, hangs):
    """All numbers are sums of powers of two, so that nothing is rounded."""
    plan = [SlowNode("worker-0", factor, for_s, at_s) for at_s, for_s, factor in slow]
    plan += [Hang("worker-0", 1.5, at_s=2.125)] if hangs else []
    script = on(start=lambda ctx, saved: [ctx.compute(tag, task()) for tag in "ab"])
    _, seen = emulate({"worker-0": script}, cluster(compute_s=8.0), plan, until_s=1e4)

    ends, left, now, tick = [], 8.0, 0.0, 1 / 8
    while len(ends) < 2:
        slowness = 1.0
        for at_s, for_s, factor in slow:
            slowness *= factor if at_s <= now < at_s + for_s else 1.0
        done = 0.0 if hangs and 2.125 <= now < 3.625 else tick / slowness
        if done >= left:
            ends.append(now + left * slowness)
            left += 8.0
        left, now = left - done, now + tick
    assert [row[0] for row in seen.of("worker-0", "computed")] == ends


# Groups


def test_a_reclaimed_group_vanishes_in_one_instant_after_its_warning():
    fault = GroupCrash(("worker-0", "worker-1"), at_s=1.0, warning_s=2.0)
    run, seen = emulate(dict.fromkeys(("server-0", "worker-0", "worker-1")), cluster(exit_s=0.0), [fault], until_s=99)

    assert [(row.time_s, row.node, row.kind) for row in run.trace.of("fault", "crash")] == [
        (1.0, "worker-0", "fault"), (1.0, "worker-1", "fault"), (3.0, "worker-0", "crash"), (3.0, "worker-1", "crash"),
    ]  # fmt: skip
    assert told(seen, "server-0") == [(3.0, "worker-0", "DOWN"), (3.0, "worker-1", "DOWN")]
    assert told(seen, "worker-1") == []


def test_a_rack_goes_down_within_its_window_and_comes_back():
    fault = GroupCrash(("worker-0", "worker-1", "worker-2"), at_s=1.0, restart_after_s=4.0, within_s=0.5)
    names = ("server-0", "worker-0", "worker-1", "worker-2")
    run, seen = emulate(dict.fromkeys(names), cluster(), [fault], until_s=99)

    assert [row.time_s for row in run.trace.of("crash")] == [1.0, 1.25, 1.5]
    assert [seen.of(f"worker-{w}", "start", life=2)[0][0] for w in range(3)] == [5.0, 5.25, 5.5]
