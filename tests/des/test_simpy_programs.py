"""Random SimPy programs do the same on SimPy and on our environments: order, times, their types, values, ends."""

import gc
import weakref

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from tests.des.simpy_names import ALL, OURS

PROCESSES, EVENTS = 4, 3
delays = st.one_of(st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0, 2.5]))
process, event = st.integers(0, PROCESSES - 1), st.integers(0, EVENTS - 1)
steps = st.one_of(
    st.tuples(st.just("sleep"), delays),
    st.tuples(st.just("wait"), event),
    st.tuples(st.just("succeed"), event),
    st.tuples(st.just("fail"), event),
    st.tuples(st.just("raise")),
    st.tuples(st.just("join"), process),
    st.tuples(st.just("interrupt"), process),
    st.tuples(st.sampled_from(["any", "all", "two", "nested"]), event, delays),
    st.tuples(st.just("put"), st.integers(0, 3)),
    st.tuples(st.just("put in vain"), st.integers(0, 3)),
    st.tuples(st.just("get")),
    st.tuples(st.just("get for"), delays),
    st.tuples(st.sampled_from(["small", "filter"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["use", "urgent", "preempt"]), delays),
    st.tuples(st.sampled_from(["fill", "drain"]), st.sampled_from([1, 2, 2.5])),
    st.tuples(st.just("spawn"), delays),
)
programs = st.lists(st.lists(steps, max_size=7), min_size=1, max_size=PROCESSES)
untils = st.lists(st.one_of(st.integers(1, 6), st.sampled_from([0.5, 2.5, "3"]), st.tuples(event)), max_size=3)


class World:
    """What the processes of one program share."""

    def __init__(self, names, program):
        self.names, self.log = names, []
        self.env = env = names.Environment()
        self.events = [env.event() for _ in range(EVENTS)]
        self.store, self.least = names.Store(env, capacity=2), names.PriorityStore(env)
        self.filter = names.FilterStore(env, capacity=3)
        self.resource, self.ranked = names.Resource(env), names.PriorityResource(env)
        self.taken, self.tank = names.PreemptiveResource(env), names.Container(env, capacity=4, init=1)
        self.processes = [env.process(self.live(name, steps)) for name, steps in enumerate(program)]

    def tell(self, *what):
        now = self.env.now
        self.log.append((now, type(now).__name__, *what))

    def live(self, name, steps):
        """Execute the steps, each with what comes of it, and go on after interrupts and failures."""
        for number, (what, *how) in enumerate(steps):
            try:
                if what == "raise":
                    raise KeyError(name, number)
                found = yield from getattr(self, what.replace(" ", "_") + "_")(*how)
                self.tell(name, number, what, shown(found))
            except simpy.Interrupt as interrupt:
                cause = interrupt.cause
                if not isinstance(cause, tuple):
                    cause = ("preempted", cause.usage_since, cause.by is self.env.active_process)
                self.tell(name, number, what, "interrupted", cause)
            except (ValueError, RuntimeError) as error:
                self.tell(name, number, what, type(error).__name__, error.args if error.args[0] == "failed" else ())
        return name

    def sleep_(self, delay):
        return (yield self.env.timeout(delay, value=delay))

    def wait_(self, event):
        return (yield self.events[event])

    def succeed_(self, event):
        self.events[event].succeed(("value", event))
        yield self.env.timeout(0)

    def fail_(self, event):
        self.events[event].fail(ValueError("failed", event))
        yield self.env.timeout(0)

    def join_(self, process):
        return (yield self.processes[process % len(self.processes)])

    def interrupt_(self, process):
        self.processes[process % len(self.processes)].interrupt(("by", self.env.now))
        yield self.env.timeout(1)

    def any_(self, event, delay):
        return (yield self.env.any_of([self.events[event], self.env.timeout(delay, "late"), self.processes[0]]))

    def all_(self, event, delay):
        return (yield self.env.all_of([self.events[event], self.env.timeout(delay)]))

    def two_(self, event, delay):
        parts = [*self.events, self.env.timeout(delay, "late"), self.events[event]]
        return (yield self.names.Condition(self.env, lambda events, count: count >= 2, parts))

    def nested_(self, event, delay):
        return (yield (self.events[event] | self.env.timeout(delay, "late")) & (self.events[0] | self.env.timeout(2)))

    def put_(self, item):
        return (yield self.store.put(item))

    def put_in_vain_(self, item):
        self.least.put(item)
        self.filter.put(item)
        with self.store.put(item) as request:
            yield request | self.env.timeout(1)
        return [request.triggered, len(self.store.items), len(self.store.put_queue), len(self.store.get_queue)]

    def get_(self):
        return (yield self.store.get())

    def get_for_(self, delay):
        with self.store.get() as request:
            return (yield request | self.env.timeout(delay, "late"))

    def small_(self, item):
        return (yield self.least.get())

    def filter_(self, least):
        return (yield self.filter.get(lambda item: item >= least))

    def use_(self, delay):
        with self.resource.request() as request:
            yield request
            yield self.env.timeout(delay)
            return [
                request.usage_since,
                type(request.usage_since).__name__,
                self.resource.count,
                len(self.resource.queue),
            ]

    def urgent_(self, delay):
        with self.ranked.request(priority=delay) as request:
            yield request
            yield self.env.timeout(delay)
        return len(self.ranked.queue)

    def preempt_(self, delay):
        with self.taken.request(priority=-delay, preempt=delay != 1) as request:
            yield request
            yield self.env.timeout(delay + 1)
        return self.taken.count

    def fill_(self, amount):
        yield self.tank.put(amount) | self.env.timeout(3)
        return self.tank.level

    def drain_(self, amount):
        yield self.tank.get(amount) | self.env.timeout(3)
        return self.tank.level

    def spawn_(self, delay):
        def child():
            yield self.env.timeout(delay)
            return delay

        return (yield self.env.process(child()))


def shown(value):
    """Return a value without what differs between runs."""
    if isinstance(value, simpy.events.ConditionValue):
        return [shown(one) for one in value.values()]
    return repr(value) if isinstance(value, BaseException) else value


def outcome(names, program, untils):
    """Return what a program does, and how its runs end."""
    world = World(names, program)
    for until in [*untils, None]:
        try:
            target = world.events[until[0]] if isinstance(until, tuple) else until
            world.tell("run", until, shown(world.env.run(target)))
        except (KeyError, ValueError, RuntimeError) as error:
            world.tell("run", until, type(error).__name__, error.args if isinstance(error, KeyError) else ())
    ends = [(process.is_alive, process.triggered and shown(process._value)) for process in world.processes]
    return [*world.log, ends]


@pytest.mark.slow
@given(programs, untils)
def test_programs_do_the_same_everywhere(program, untils):
    outcomes = {name: outcome(names, program, untils) for name, names in ALL.items()}
    for name in OURS:
        assert outcomes[name] == outcomes["simpy"], name


@pytest.mark.parametrize("names", OURS.values(), ids=OURS)
def test_a_dropped_world_is_collected(names):
    """Waiting processes, lines, conditions and the queue refer to each other in circles."""
    program = [
        [("put", 1), ("put", 2), ("put", 3), ("get for", 2), ("use", 9)],
        [("use", 1), ("any", 0, 5), ("wait", 1)],
        [("filter", 1), ("preempt", 3)],
        [("two", 2, 9), ("fill", 2.5), ("join", 1)],
    ]
    world = World(names, program)
    world.env.run(until=4)
    watch = [weakref.ref(thing) for thing in (world, world.env, world.store, world.events[1], *world.processes)]
    assert len(world.env._queue) > 0
    del world
    gc.collect()
    assert [ref() for ref in watch] == [None] * len(watch)
