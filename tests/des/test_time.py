"""Virtual time: timers, ties and their classes, users' SimPy processes, dead entries."""

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster.cluster import Cluster, Network
from emuml.cluster.compute import Constant
from emuml.cluster.faults import Crash
from emuml.des.environment import NORMAL, TIMER, URGENT, Environment
from emuml.node import NodeId
from tests.des.scripted import Note, emulate, emulator, on
from tests.des.test_slots import task

SERVER, WORKER = NodeId("server", 0), NodeId("worker", 0)

# Timers


names = st.sampled_from("abc")
programs = st.lists(st.tuples(st.integers(0, 20), st.booleans(), names, st.integers(0, 8)), max_size=12)


@pytest.mark.slow
@given(programs)
def test_timers_fire_once_at_their_deadline_unless_cancelled_or_rearmed(program):
    """Each action happens at a time of its own, told by messages, which precede timers of the same instant."""
    actions = {at: action for at, *action in program}

    def start(ctx, saved):
        for at in sorted(actions):
            ctx.set_timer(f"action {at}", at)

    def timer(ctx, name):
        if name.startswith("action"):
            ctx.send(ctx.id, Note(name.split()[1]))

    def message(ctx, sender, text):
        arms, name, after = actions[int(text)]
        if arms:
            ctx.set_timer(name, after + 0.5)
        else:
            ctx.cancel_timer(name)

    _, seen = emulate({"worker-0": on(start=start, timer=timer, message=message)}, until_s=99)

    expected, running = [], {}
    for at in range(30):
        expected += [(due, name) for name, due in running.items() if due < at]
        running = {name: due for name, due in running.items() if due >= at}
        if at in actions:
            arms, name, after = actions[at]
            running.pop(name, None)
            if arms:
                running[name] = at + after + 0.5
    fired = [row for row in seen.of("worker-0", "timer") if not row[1].startswith("action")]
    assert sorted(fired) == sorted(expected)
    assert [at_s for at_s, _ in fired] == sorted(at_s for at_s, _ in fired)


def test_a_timer_of_no_time_comes_after_what_is_due_now():
    def start(ctx, saved):
        ctx.set_timer("now", 0.0)
        ctx.send(ctx.id, Note("first"))

    _, seen = emulate({"worker-0": on(start=start)}, until_s=1)

    assert [row[3:] for row in seen] == [("start", {}), ("message", "worker-0", "first"), ("timer", "now")]


def test_deadlines_are_absolute_and_not_summed_up_from_differences():
    def start(ctx, saved):
        ctx.set_timer("tick", 0.1)

    def timer(ctx, name):
        ctx.set_timer("tick", 0.1)

    _, seen = emulate({"worker-0": on(start=start, timer=timer)}, until_s=100)

    expected, now = [], 0.0
    while (now := now + 0.1) <= 100:
        expected.append((now, "tick"))
    assert seen.of("worker-0", "timer") == expected


# Ties


def test_a_crash_precedes_messages_and_messages_precede_timers_of_one_instant():
    def server(ctx, saved):
        ctx.send(WORKER, Note("on time"))
        ctx.send(NodeId("worker", 1), Note("too late"))

    scripts = {
        "server-0": on(start=server),
        "worker-0": on(start=lambda ctx, saved: ctx.set_timer("deadline", 0.5)),
        "worker-1": None,
    }
    _, seen = emulate(scripts, Cluster(workers=1, network=Network(0.5)), [Crash("worker-1", at_s=0.5)], until_s=0.75)

    assert [row[3:] for row in seen if row[1] == "worker-0"][1:] == [
        ("message", "server-0", "on time"),
        ("timer", "deadline"),
        ("peer", "worker-1", "DOWN"),
    ]
    assert seen.of("worker-1", "message") == []


def test_equal_classes_go_in_the_order_in_which_effects_were_executed():
    def start(ctx, saved):
        ctx.set_timer("first", 1.0)
        ctx.set_timer("second", 1.0)
        ctx.set_timer("first", 1.0)

    _, seen = emulate({"worker-0": on(start=start), "worker-1": on(start=start)}, until_s=9)

    assert [(row[1], row[4]) for row in seen if row[3] == "timer"] == [
        ("worker-0", "second"), ("worker-0", "first"), ("worker-1", "second"), ("worker-1", "first"),
    ]  # fmt: skip


def test_calls_are_ordered_by_time_class_and_schedule_number():
    env, order = Environment(), []
    for at, priority, name in [
        (2.0, NORMAL, "g"), (1.0, TIMER, "d"), (1.0, NORMAL, "b"), (1.0, URGENT, "a"), (1.0, NORMAL, "c"),
        (1.5, TIMER, "f"), (1.0, TIMER, "e"),
    ]:  # fmt: skip
        env.call_at(at, priority, order.append, name)
    env.cancel(env.call_at(1.25, NORMAL, order.append, "x"))
    assert (env.live, env.dead) == (7, 1)
    env.run()

    assert "".join(order) == "abcdefg"
    assert (env.live, env.dead) == (0, 0)
    with pytest.raises(simpy.core.EmptySchedule):
        env.step()


def test_a_call_that_has_happened_cannot_be_cancelled():
    env, order = Environment(), []
    call = env.call_at(1.0, NORMAL, order.append, "a")
    env.run()
    env.cancel(call)

    assert (order, env.live, env.dead) == (["a"], 0, 0)


# Users' SimPy processes


def test_processes_beside_the_nodes_live_on_the_same_clock():
    order = []

    def beside(env, cluster):
        assert isinstance(env, simpy.Environment)
        for _ in range(3):
            yield env.timeout(0.5)
            order.append(("process", env.now, cluster.workers))

    def timer(ctx, name):
        order.append(("node", ctx.now))
        if ctx.now < 1.4:
            ctx.set_timer("tick", 0.5)
        else:
            ctx.stop("enough")

    script = on(start=lambda ctx, saved: ctx.set_timer("tick", 0.5), timer=timer)
    run, _ = emulate({"worker-0": script}, Cluster(workers=4), beside=[beside])

    assert order == [
        ("process", 0.5, 4), ("node", 0.5), ("process", 1.0, 4), ("node", 1.0), ("process", 1.5, 4), ("node", 1.5),
    ]  # fmt: skip
    assert (run.stopped, run.duration_s) == ("enough", 1.5)


def test_processes_change_nothing_for_the_nodes():
    def beside(env, cluster):
        store = simpy.Store(env)
        while True:
            store.put(env.now)
            yield env.timeout(0.25)
            yield store.get()

    def timer(ctx, name):
        ctx.send(SERVER, Note("tick"))
        ctx.set_timer("tick", 0.5)

    scripts = {"server-0": None, "worker-0": on(start=lambda ctx, saved: ctx.set_timer("tick", 0.5), timer=timer)}
    alone, beside_one = (emulate(scripts, until_s=9, beside=given)[0] for given in ([], [beside]))

    assert alone.trace.digest() == beside_one.trace.digest()
    assert len(alone.trace) > 50


def test_an_error_of_a_users_process_is_raised_as_simpy_raises_it():
    def beside(env, cluster):
        yield env.timeout(1.0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        emulate({"worker-0": on(start=lambda ctx, saved: ctx.set_timer("x", 9.0))}, beside=[beside])


# Dead entries


@given(st.lists(st.tuples(st.sampled_from(["arm", "cancel", "compute", "drop"]), st.integers(0, 40)), max_size=400))
def test_dead_entries_never_outnumber_the_living_by_more_than_64(program):
    engine, largest = None, 0

    def timer(ctx, name):
        nonlocal largest
        what, number = program[int(name.split()[1])]
        if what == "arm":
            ctx.set_timer(f"t{number}", 1e3 + number)
        elif what == "cancel":
            ctx.cancel_timer(f"t{number}")
        elif what == "compute" and number not in alive:
            alive.add(number)
            ctx.compute(number, task(draw=0))
        else:
            alive.discard(number)
            ctx.cancel(number)
        dead = sum(entry[3].callbacks == () for entry in engine.env._queue)
        living = len(engine.env._queue) - dead
        assert dead == engine.env.dead
        assert living == engine.env.live
        largest = max(largest, dead - living)

    alive = set()
    start = on(start=lambda ctx, saved: [ctx.set_timer(f"step {n}", n / 8) for n in range(len(program))], timer=timer)
    engine, _ = emulator({"worker-0": start}, Cluster(workers=1, compute=Constant(1e6), cores=4))
    run = engine.run(until_s=100)

    assert run.error is None
    assert largest <= 64


def test_a_timer_rearmed_ten_thousand_times_leaves_a_short_queue():
    sizes = []

    def again(ctx, _):
        ctx.set_timer("watchdog", 1e6)
        sizes.append(len(engine.env._queue))
        if len(sizes) < 10_000:
            ctx.set_timer("next", 0.001)

    script = on(start=again, timer=again)
    engine, _ = emulator({"worker-0": script})
    engine.run(until_s=100)

    assert len(sizes) == 10_000
    assert max(sizes) <= 2 * 2 + 64


@pytest.mark.slow
def test_many_living_entries_allow_as_many_dead_ones_and_64_more():
    dead = []

    def timer(ctx, name):
        number = int(name.split()[1])
        ctx.set_timer(f"t{number % 200}", 1e6)
        dead.append(sum(entry[3].callbacks == () for entry in engine.env._queue))
        if number < 2000:
            ctx.set_timer(f"step {number + 1}", 0.001)

    engine, _ = emulator({"worker-0": on(start=lambda ctx, saved: ctx.set_timer("step 0", 0.0), timer=timer)})
    engine.run(until_s=100)

    assert len(dead) == 2001
    assert 200 < max(dead) <= 200 + 1 + 64
