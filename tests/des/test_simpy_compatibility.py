"""Users' SimPy programs run as on SimPy: classes, order, types of times, stops, what users reach for, representations.

Each test runs on SimPy itself, too, so that it says what SimPy does and not what we think of it.
"""

import re

import pytest
import simpy
from simpy import core, events

# Classes


def test_everything_is_an_instance_of_simpys_class(names, env):
    def program():
        yield env.timeout(1)

    process = env.process(program())
    made = {
        simpy.Environment: env,
        simpy.Event: env.event(),
        simpy.Timeout: env.timeout(1),
        simpy.Process: process,
        events.Initialize: process.target,
        events.Condition: env.event() & env.event(),
        simpy.AllOf: env.all_of([]),
        simpy.AnyOf: env.any_of([]),
        simpy.Store: names.Store(env),
        simpy.PriorityStore: names.PriorityStore(env),
        simpy.FilterStore: names.FilterStore(env),
        simpy.Resource: names.Resource(env),
        simpy.PriorityResource: names.PriorityResource(env),
        simpy.PreemptiveResource: names.PreemptiveResource(env),
        simpy.Container: names.Container(env),
    }
    for kind, thing in made.items():
        assert isinstance(thing, kind)
        assert kind in {simpy.Environment, simpy.Store, *made} or isinstance(thing, simpy.Event)
    for event in (made[simpy.Timeout], process, made[events.Condition], names.Store(env).get()):
        assert isinstance(event, simpy.Event)
    assert env.run(until=made[simpy.Timeout]) is None


def test_classes_are_called_and_derived_from_as_simpys(names, env):
    class Named(names.Event):
        def __init__(self, env, name):
            super().__init__(env)
            self.name = name

    class Loud(names.Timeout):
        def _desc(self):
            return f"Loud({self._delay})"

    event, timeout = Named(env, "x"), Loud(env, 2, value="v")
    event.anything = 3
    event.succeed("value")

    assert (env.run(until=event), env.run(until=timeout), event.name, event.anything) == ("value", "v", "x", 3)
    assert repr(timeout).startswith("<Loud(2) object at 0x")
    assert env.now == 2


# Order and time


def test_events_are_ordered_by_time_priority_and_schedule_number(env, log):
    for name, priority, delay in [("f", 2, 1), ("c", 0, 1), ("b", -1, 1), ("d", 1, 1), ("a", 7, 0), ("e", 1, 1.0)]:
        event = env.event()
        event._ok, event._value = True, None
        event.callbacks.append(lambda _, name=name: log.append(name))
        env.schedule(event, priority, delay)
    env.run()
    assert "".join(log) == "abcdef"


def test_integers_stay_integers_until_a_delay_is_none(env, log):
    def program():
        for delay in (1, 2, 0, 0.5, 1):
            yield env.timeout(delay)
            log.append(env.now)

    env.process(program())
    env.run()
    assert [(now, type(now)) for now in log] == [(1, int), (3, int), (3, int), (3.5, float), (4.5, float)]


@pytest.mark.parametrize("initial", [0, 5, 2.5, -3])
def test_time_begins_where_it_is_told_to(names, initial, log):
    env = names.Environment(initial)
    assert (env.now, type(env.now), env.peek()) == (initial, type(initial), float("inf"))
    env.run(until=env.timeout(1))
    assert (env.now, type(env.now)) == (initial + 1, type(initial))


def test_a_negative_delay_is_refused(env):
    with pytest.raises(ValueError, match="Negative delay -1"):
        env.timeout(-1)


# Stops


def test_a_stop_leaves_the_other_callbacks_for_the_next_run(env, log):
    def stop(event):
        raise core.StopSimulation(event.value)

    event = env.timeout(1, value="v")
    event.callbacks += [lambda _: log.append("before"), stop, lambda _: log.append("after")]

    assert env.run() == "v"
    assert (log, len(event.callbacks), env.peek()) == (["before"], 1, 1)
    env.run()
    assert (log, event.callbacks) == (["before", "after"], None)


def test_a_run_until_a_number_stops_before_what_is_due_then(env, log):
    def program():
        while True:
            yield env.timeout(1)
            log.append(env.now)

    env.process(program())
    for until in (2, 2.5, "4"):
        assert env.run(until) is None
    assert (log, env.now) == ([1, 2, 3], 4.0)
    for until in (4, 3, "1"):
        with pytest.raises(ValueError, match="must be greater than the current simulation time"):
            env.run(until)
    env.run(until=5)
    assert (log, env.now) == ([1, 2, 3, 4], 5)


def test_a_run_until_an_event_returns_its_value(env):
    def program():
        yield env.timeout(2)
        return "value"

    process = env.process(program())
    assert [env.run(until=process), env.run(until=process), env.now] == ["value", "value", 2]
    with pytest.raises(RuntimeError, match='No scheduled events left but "until" event was not triggered: <Event'):
        env.run(until=env.event())
    failed = env.event()
    failed.fail(KeyError("mine"))
    with pytest.raises(KeyError, match="mine"):
        env.run(until=failed)


def test_an_empty_schedule_ends_a_run_and_fails_a_step(env):
    assert env.run() is None
    with pytest.raises(core.EmptySchedule):
        env.step()
    assert env.peek() is core.Infinity


# What users reach for


def test_foreign_events_are_processed(env, log):
    class Duck:
        def __init__(self, ok, value):
            self.callbacks, self._ok, self._value = [log.append], ok, value

    def waits():
        log.append((yield duck))

    duck = Duck(True, "quack")
    env.process(waits())
    env.run()
    env.schedule(duck, priority=0, delay=2)
    env.run()
    assert (log, env.now, duck.callbacks) == ([duck, "quack"], 2, None)
    env.schedule(Duck(False, KeyError("mine")))
    with pytest.raises(KeyError, match="mine"):
        env.run()


def test_simpys_own_events_processes_and_resources_run_on_it(env, log):
    def producer(store):
        for item in range(3):
            yield simpy.Timeout(env, 1)
            yield store.put(item) & events.Event(env).succeed()

    def consumer(store):
        while True:
            got = yield store.get() | env.timeout(5, value="late")
            log.append((env.now, list(got.values())))

    store = simpy.Store(env)
    events.Process(env, producer(store))
    env.process(consumer(store))
    env.run(until=10)
    assert log == [(1, [0]), (2, [1]), (3, [2]), (8, ["late"])]


def test_the_parts_that_extensions_use_are_there(env, log):
    def program():
        log.append((env.active_process, env._active_proc))
        yield env.timeout(3)

    number = next(env._eid)
    process = env.process(program())
    assert env.active_process is None
    assert [(row[0], row[1], row[3]) for row in env._queue] == [(0, 0, process.target)]
    assert next(env._eid) > number
    env.step()
    assert log == [(process, process)]
    assert (env.peek(), env._now, len(env._queue)) == (3, 0, 1)


def test_steps_and_schedules_can_be_wrapped_as_simpys_guide_does(names, log):
    class Watched(names.Environment):
        def schedule(self, event, priority=1, delay=0):
            log.append(("schedule", type(event).__name__, priority, delay))
            super().schedule(event, priority, delay)

    def program():
        yield env.timeout(2)
        yield env.event().succeed()

    env = Watched()
    step = env.step
    env.step = lambda: (log.append(("step", [row[0] for row in env._queue[:1]])), step())
    env.process(program())
    env.run()

    assert log == [
        ("schedule", "Initialize", 0, 0), ("step", [0]), ("schedule", "Timeout", 1, 2), ("step", [2]),
        ("schedule", "Event", 1, 0), ("step", [2]), ("schedule", "Process", 1, 0), ("step", [2]), ("step", []),
    ]  # fmt: skip


def test_what_a_subclass_makes_in_place_of_timeouts_is_used(names, log):
    class Slow(names.Timeout):
        def __init__(self, env, delay, value=None):
            super().__init__(env, 2 * delay, value)

    class Own(names.Environment):
        timeout = core.BoundClass(Slow)

    env = Own()
    env.process(program(env, log))
    env.run()
    assert log == [4]


def program(env, log):
    yield env.timeout(2)
    log.append(env.now)


def test_events_and_processes_are_told_as_simpys(env):
    async def coroutine():
        await Forever()

    class Forever:
        def __await__(self):
            return (yield env.event())

    process = env.process(program(env, []))
    later = env.process(coroutine())
    names = [env.event(), env.timeout(1), env.timeout(2.5, value="v"), process, env.event() & env.timeout(1)]
    told = [re.sub(r" object at 0x\w+", "", repr(event)) for event in names]

    assert told == [
        "<Event()>", "<Timeout(1)>", "<Timeout(2.5, value=v)>", "<Process(program)>",
        "<Condition(all_events, (<Event()>, <Timeout(1)>))>",
    ]  # fmt: skip
    assert (process.name, process.is_alive, later.name) == ("program", True, "coroutine")
    env.run()
    assert (process.is_alive, process.target, later.is_alive) == (False, None, True)
    with pytest.raises(ValueError, match=r"3 is not a generator\."):
        env.process(3)
