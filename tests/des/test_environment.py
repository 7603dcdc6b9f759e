"""The event queue, compiled and pure: one order, cancelled calls, refusals, and nothing kept alive."""

import gc
import os
import subprocess
import sys
import weakref
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from emuml._kernels import EVENT_KERNELS, built
from emuml.des import environment, pure
from emuml.des.environment import NORMAL, TIMER, URGENT

ENVIRONMENTS = {"pure": pure}
if all(built(name) for name in EVENT_KERNELS):
    from emuml.des import compiled

    ENVIRONMENTS["compiled"] = compiled


@pytest.fixture(params=list(ENVIRONMENTS))
def module(request):
    return ENVIRONMENTS[request.param]


@pytest.fixture
def compiled_only():
    if "compiled" not in ENVIRONMENTS:
        pytest.skip("the kernels are not compiled")
    return ENVIRONMENTS["compiled"]


# Order

delays = st.one_of(st.integers(0, 3), st.sampled_from([0.0, 0.25, 0.5, 1.0, 1e-9]))
actions = st.lists(
    st.tuples(st.sampled_from(["call", "event", "cancel", "step", "tie", "next", "peek"]), delays, st.integers(-3, 3)),
    max_size=80,
)


def outcome(module, program):
    """Return what happens, and what the queue looks like, when a program of operations is executed."""
    env, calls, seen = module.Environment(), [], []

    def happen(name):
        seen.append((name, env.now, type(env.now)))
        if name % 3 == 0:  # schedules something from within
            calls.append(env.call_at(env.now + name % 2, NORMAL, happen, 1000 + name))

    def choose(name, count):
        seen.append((name, count))
        return count - 1

    for number, (what, delay, priority) in enumerate(program):
        if what == "call":
            calls.append(env.call_at(env.now + delay, priority, happen, number))
            calls[-1].lane = [None, "a", "b"][number % 3]
        elif what == "event":
            event = simpy.Event(env)
            event._ok, event._value = True, None
            event.callbacks.append(lambda _, number=number: seen.append((number, env.now)))
            env.schedule(event, priority, delay)
        elif what == "cancel" and calls:
            env.cancel(calls[number % len(calls)])
        elif what == "step" and env._queue:
            env.step()
        elif what == "tie" and env._queue:
            env.step_tie(choose)
        elif what == "next":
            at = env.next_time()
            seen.append((at, type(at)))
        elif what == "peek":
            seen.append((env.peek(), type(env.peek())))
        queue = sorted((at, priority, number, type(at).__name__) for at, priority, number, _ in env._queue)
        seen.append((env.now, env.live, env.dead, queue))
        assert env.dead <= env.live + 64
    env.run()
    return [*seen, env.live, env.dead]


@given(actions)
def test_both_queues_do_the_same(program):
    outcomes = [outcome(module, program) for module in ENVIRONMENTS.values()]
    assert outcomes[0] == outcomes[-1]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-2, 2)), max_size=400), st.integers(0, 5))
def test_calls_happen_in_order_of_time_priority_and_schedule_number(entries, skipped):
    for module in ENVIRONMENTS.values():
        env, order = module.Environment(), []
        for number, (at, priority) in enumerate(entries):
            call = env.call_at(at, priority, order.append, (at, priority, number))
            if number % 6 == skipped:
                env.cancel(call)
        env.run()
        expected = [(at, priority, n) for n, (at, priority) in enumerate(entries) if n % 6 != skipped]
        assert order == sorted(expected)


def test_what_is_due_now_waits_for_what_was_scheduled_earlier_for_now(module):
    env, order = module.Environment(), []

    def first():
        env.call_at(1.0, NORMAL, order.append, "scheduled at 1")
        env.call_at(1.0, TIMER, order.append, "timer")
        env.call_at(1.0, URGENT, order.append, "urgent")

    env.call_at(1.0, NORMAL, first)
    env.call_at(1.0, NORMAL, order.append, "scheduled at 0")
    env.run()

    assert order == ["urgent", "scheduled at 0", "scheduled at 1", "timer"]


def test_thousands_due_now_keep_their_order_while_more_come(module):
    """The ring of what is due now grows while its beginning lies in the middle."""
    env, order = module.Environment(), []

    def spread(number):
        order.append(number)
        for child in (2 * number + 1, 2 * number + 2):
            if child < 5000:
                env.call_at(0, NORMAL, spread, child)

    env.call_at(0, NORMAL, spread, 0)
    env.run()

    assert order == list(range(5000))


def test_an_error_of_a_call_leaves_the_queue_as_it_was_without_it(module):
    env, order = module.Environment(), []
    original = KeyError("mine")

    def fail():
        raise original

    env.call_at(1.0, NORMAL, fail)
    env.call_at(1.0, NORMAL, order.append, "next")
    with pytest.raises(KeyError) as caught:
        env.run()
    assert caught.value is original
    env.run()

    assert (order, env.live, env.dead) == (["next"], 0, 0)


def test_schedule_numbers_can_be_taken(module):
    env = module.Environment()
    first = next(env._eid)
    env.call_at(1.0, NORMAL, print)

    assert [next(env._eid) - first, env._queue[0][2] - first] == [2, 1]


# Refusals


@pytest.mark.parametrize("at", [-1.0, float("nan")])
def test_a_call_in_the_past_or_at_no_time_is_refused(module, at):
    with pytest.raises(ValueError, match=f"a call at {at}, which is not at or after the time 0"):
        module.Environment().call_at(at, NORMAL, print)


@pytest.mark.parametrize("number", [Decimal(1), Fraction(1, 2), "1", None, 1j])
def test_times_of_other_types_are_refused(compiled_only, number):
    env = compiled_only.Environment()
    with pytest.raises(
        TypeError, match=r"a time or delay must be an int or a float, not .*(Decimal|Fraction|str|None|c)"
    ):
        env.schedule(simpy.Event(env), delay=number)
    with pytest.raises(TypeError, match="must be an int or a float"):
        env.call_at(number, NORMAL, print)


@pytest.mark.parametrize(
    ("number", "kind"), [(np.int32(2), int), (True, int), (np.float64(2), float), (np.float32(2), float)]
)
def test_times_of_numpy_are_taken_as_what_they_stand_for(compiled_only, number, kind):
    env = compiled_only.Environment()
    env.call_at(number, NORMAL, int)
    env.run()
    assert (env.now, type(env.now)) == (number, kind)


@pytest.mark.parametrize("priority", [-32769, 32768])
def test_priorities_have_16_bits(compiled_only, priority):
    env = compiled_only.Environment()
    with pytest.raises(ValueError, match=f"a priority must be from -32768 to 32767, not {priority}"):
        env.call_at(0, priority, print)
    order = []
    env.call_at(0, 32767, order.append, "last")
    env.call_at(0, -32768, order.append, "first")
    env.run()
    assert order == ["first", "last"]


def test_integers_that_doubles_cannot_hold_are_refused(compiled_only):
    env = compiled_only.Environment(2**53 - 2)
    env.schedule(simpy.Event(env), delay=1)
    with pytest.raises(OverflowError, match=r"within 2\*\*53 of 0"):
        env.schedule(simpy.Event(env), delay=2)
    with pytest.raises(OverflowError, match="use floats"):
        env.call_at(2**53 + 1, NORMAL, print)
    assert env.peek() == 2**53 - 1


# Memory


class Owner:
    """Something that can be weakly referenced."""

    def happen(self):
        pass


@pytest.mark.parametrize("at", [0, 1.0])
def test_a_dropped_environment_is_collected_with_what_its_queue_holds(module, at):
    env, owner = module.Environment(), Owner()
    owner.env = env
    env.call_at(at, NORMAL, owner.happen)
    watch = weakref.ref(owner)
    del env, owner
    gc.collect()
    assert watch() is None


@pytest.mark.parametrize("at", [0, 1.0])
def test_what_has_happened_or_was_forgotten_is_not_kept(module, at):
    env, happened, cancelled = module.Environment(), Owner(), [Owner() for _ in range(200)]
    env.call_at(at, NORMAL, happened.happen)
    for owner in cancelled:
        env.cancel(env.call_at(at, NORMAL, owner.happen))
    watch = weakref.ref(happened)
    forgotten = [weakref.ref(owner) for owner in cancelled]
    del happened, cancelled, owner
    assert sum(ref() is not None for ref in forgotten) <= 1 + 64
    env.run()
    gc.collect()
    assert watch() is None
    assert all(ref() is None for ref in forgotten)


# The choice


def core(**settings):
    script = "from emuml.des import environment as e; print(e.CORE, e.Environment.__module__, e.Call.__module__)"
    given = {name: value for name, value in os.environ.items() if name != "EMUML_PURE"} | settings
    ran = subprocess.run([sys.executable, "-c", script], env=given, capture_output=True, text=True, check=True)
    return ran.stdout.split()


@pytest.mark.slow
def test_the_switch_chooses_the_queue():
    assert core(EMUML_PURE="1") == ["pure", "emuml.des.pure", "emuml.des.pure"]
    if "compiled" in ENVIRONMENTS:
        assert core(EMUML_PURE="0") == ["compiled", "emuml.des.compiled", "emuml._kernels.events"]


def test_this_run_tests_the_chosen_queue():
    assert environment.Environment is ENVIRONMENTS[environment.CORE].Environment
