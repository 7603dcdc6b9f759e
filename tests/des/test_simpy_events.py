"""Events and processes behave as SimPy's: failures, callbacks, interrupts, conditions.

Each test runs on SimPy itself, too, so that it says what SimPy does and not what we think of it.
"""

import traceback

import pytest
import simpy

# Failures


def test_a_failure_that_nobody_defuses_ends_the_run_with_a_copy(env):
    event, original = env.event(), ValueError("one", 2)
    assert not hasattr(event, "_defused")
    assert not event.defused
    event.fail(original)
    with pytest.raises(ValueError, match="one") as caught:
        env.run()
    assert (caught.value.args, caught.value.__cause__) == (("one", 2), original)
    assert caught.value is not original


@pytest.mark.parametrize("value", [True, False])
def test_a_defused_failure_passes(env, value):
    event = env.event()
    event.callbacks.append(lambda event: setattr(event, "defused", value))
    event.fail(ValueError("one"))
    env.run()
    assert (event.defused, event._defused, event.ok) == (True, True, False)


def test_the_chain_of_exceptions_leads_through_the_processes_and_shows_their_frames_alone(env):
    def child():
        yield env.timeout(1)
        raise RuntimeError("foo")

    def parent():
        yield env.process(child())

    def grandparent():
        yield env.process(parent())

    env.process(grandparent())
    with pytest.raises(RuntimeError, match="foo") as caught:
        env.run()

    chain, error = [], caught.value
    while error is not None:
        chain.append([frame.name for frame in traceback.extract_tb(error.__traceback__)])
        assert (type(error), error.args) == (RuntimeError, ("foo",))
        error = error.__cause__
    assert chain[1:] == [["grandparent"], ["parent"], ["child"]]
    assert chain[0][0].startswith("test_the_chain")


def test_an_exception_that_cannot_be_copied_fails_as_on_simpy(env, log):
    class Own(Exception):
        def __init__(self, first, second):
            super().__init__(first)

    def program(event):
        try:
            yield event
        except Exception as error:
            log.append(type(error))

    event = env.event()
    process = env.process(program(event))
    event.fail(Own(1, 2))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'second'"):
        env.run()
    assert (log, type(process.value)) == ([], TypeError)


@pytest.mark.parametrize("thing", [None, 1, "text"])
def test_what_is_no_event_cannot_be_waited_for(env, thing):
    def program():
        yield thing

    env.process(program())
    with pytest.raises(RuntimeError, match=f'in program\n    yield thing\nInvalid yield value "{thing}"'):
        env.run()


# Callbacks


def test_callbacks_are_a_list_until_the_event_is_processed(env, log):
    def waiting(event):
        log.append((yield event))

    event = env.event()
    processes = [env.process(waiting(event)) for _ in range(2)]
    env.run()
    assert event.callbacks == [process._resume for process in processes]
    event.callbacks.insert(0, lambda event: log.append(event.callbacks))
    event.callbacks.remove(processes[1]._resume)
    event.succeed("value")
    env.run()

    assert log == [None, "value"]
    assert (event.callbacks, event.processed, processes[1].is_alive) == (None, True, True)


def test_a_process_goes_on_at_once_from_what_has_happened(env, log):
    def program(event):
        log.append((yield event))
        log.append(env.now)

    event = env.timeout(1, value="v")
    env.run()
    env.process(program(event))
    env.run()
    assert log == ["v", 1]


def test_events_are_triggered_once(env):
    event = env.event()
    with pytest.raises(AttributeError, match=r"Value of <Event\(\) object at 0x\w+> is not yet available"):
        _ = event.value
    with pytest.raises(AttributeError):
        _ = event.ok
    with pytest.raises(TypeError, match=r"no exception is not an exception\."):
        event.fail("no exception")
    assert event.succeed(3) is event
    for again in (event.succeed, lambda: event.fail(KeyError())):
        with pytest.raises(RuntimeError, match="has already been triggered"):
            again()
    other = env.event()
    other.trigger(event)
    assert (other.value, other.ok, other.triggered, other.processed) == (3, True, True, False)


# Interrupts


def test_all_interrupts_of_an_instant_arrive_before_other_events(env, log):
    def sleeper():
        while len(log) < 3:
            try:
                yield env.timeout(1)
                log.append("slept")
            except simpy.Interrupt as interrupt:
                log.append((env.now, interrupt.cause))

    def interrupter():
        yield env.timeout(1)
        for cause in ("a", "b"):
            process.interrupt(cause)

    first = env.process(interrupter())
    process = env.process(sleeper())
    env.run()
    assert log == [(1, "a"), (1, "b"), "slept"]
    assert (first.is_alive, process.is_alive) == (False, False)


def test_an_interrupt_on_its_way_to_a_process_that_ends_is_dropped(env, log):
    def ends():
        try:
            yield env.event()
        except simpy.Interrupt:
            log.append("once")

    process = env.process(ends())
    env.run()
    process.interrupt()
    process.interrupt()
    env.run()
    assert log == ["once"]
    with pytest.raises(
        RuntimeError, match=r"<Process\(ends\) object at 0x\w+> has terminated and cannot be interrupted"
    ):
        process.interrupt()


def test_a_process_cannot_interrupt_itself(env):
    def program():
        yield env.timeout(0)
        env.active_process.interrupt()

    env.process(program())
    with pytest.raises(RuntimeError, match=r"A process is not allowed to interrupt itself\."):
        env.run()


def test_an_interrupted_process_no_longer_waits(env, log):
    def program():
        try:
            yield event
        except simpy.Interrupt as interrupt:
            log.append((interrupt.cause, process.target, event.callbacks))
            yield env.timeout(1)

    event = env.event()
    process = env.process(program())
    env.run()
    assert process.target is event
    process.interrupt("why")
    env.run()
    assert log == [("why", event, [])]


# Conditions


def test_conditions_hold_what_has_happened_by_then(env, log):
    def waits(condition):
        value = yield condition
        log.append((env.now, list(value.values()), len(value.todict())))

    one, two, three = (env.timeout(delay, value=delay) for delay in (1, 2, 3))
    for condition in (one | two, one & two, (one | two) & three, env.all_of([]), env.any_of([three, three])):
        env.process(waits(condition))
    env.run()
    assert log == [(0, [], 0), (1, [1], 1), (2, [1, 2], 2), (3, [1, 2, 3], 3), (3, [3, 3], 1)]
    assert {one.callbacks, two.callbacks, three.callbacks} == {None}


def test_a_condition_fails_with_its_events(env, log):
    def waits():
        try:
            yield env.event() | failing
        except ValueError as error:
            log.append((env.now, error.args))

    failing = env.event()
    env.process(waits())
    failing.fail(ValueError("one"))
    env.run()
    assert log == [(0, ("one",))]


def test_a_condition_of_an_own_kind_counts(names, env):
    events = [env.timeout(delay) for delay in range(1, 6)]
    enough = names.Condition(env, lambda events, count: count >= 3, events)
    assert len(env.run(until=enough).todict()) == 3
    assert env.now == 3


def test_events_of_two_environments_do_not_mix(names, env):
    with pytest.raises(ValueError, match="not allowed to mix events from different environments"):
        env.event() & names.Environment().event()
