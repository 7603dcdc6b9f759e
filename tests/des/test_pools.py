"""Events whose memory is used again: nothing is lost, doubled or kept, whatever classes users derive from them."""

import gc
import sys
import weakref

import pytest

from tests.des.simpy_names import OURS

if "compiled" not in OURS:
    pytest.skip("the kernels are not compiled", allow_module_level=True)

NAMES = OURS["compiled"]
KEPT = 1024


class Loud(NAMES.Timeout):
    """A user's class, with a field and a finaliser."""

    dropped = 0

    def __init__(self, env, delay):
        super().__init__(env, delay)
        self.field = [self]

    def __del__(self):
        Loud.dropped += 1


def filled(store):
    store.put("item")
    return store


MADE = {
    "event": lambda env: env.event(),
    "timeout": lambda env: env.timeout(1),
    "put": lambda env: NAMES.Store(env).put(1),
    "get": lambda env: filled(NAMES.Store(env)).get(),
    "release": lambda env: NAMES.Resource(env).release("nothing"),
    "fill": lambda env: NAMES.Container(env).put(1),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_used_memory_shows_nothing_of_its_former_object(make):
    env = NAMES.Environment()
    first = make(env)
    first.mine, first.defused = 3, True
    watch, seen = weakref.ref(first), []
    first.callbacks.append(seen.append)
    env.run()
    address = id(first)
    del first
    seen.clear()
    assert watch() is None

    again = make(env)
    assert id(again) == address
    assert not hasattr(again, "mine")
    assert not again.defused
    assert not again.processed
    assert weakref.ref(again)() is again
    assert gc.is_tracked(again)
    env.run()
    assert seen == []


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_classes_are_referred_to_once_by_each_object(make):
    env = NAMES.Environment()
    kind = type(make(env))
    env.run()
    before = sys.getrefcount(kind)
    for count in (1, 3 * KEPT, 2):
        things = [make(env) for _ in range(count)]
        assert sys.getrefcount(kind) == before + count
        env.run()
        del things
        gc.collect()
        assert sys.getrefcount(kind) == before


def test_more_objects_than_are_kept_are_freed():
    env = NAMES.Environment()
    for _ in range(3):
        events = [env.event() for _ in range(4 * KEPT)]
        assert len({id(event) for event in events}) == 4 * KEPT
        assert all(event.callbacks == [] for event in events)
        del events


def test_objects_of_users_classes_are_dropped_with_their_fields():
    env, Loud.dropped = NAMES.Environment(), 0
    for _ in range(10):
        Loud(env, 1)
    called = [NAMES.Timeout(env, 1), NAMES.Store(env).get(), NAMES.Event(env)]
    watch = [weakref.ref(event) for event in called]
    env.run()
    del called
    gc.collect()
    assert (Loud.dropped, [ref() for ref in watch]) == (10, [None] * 3)


def test_long_chains_are_dropped_without_recursion():
    env = NAMES.Environment()
    event = None
    for _ in range(200_000):
        event = env.timeout(0, value=event)
    env.run()
    del event
    event = env.event()
    for _ in range(200_000):
        following = env.event()
        event.extra, event = following, event
        event = following
    del event, following


def test_the_collector_takes_circles_of_pooled_objects():
    env, watch = NAMES.Environment(), []
    for _ in range(3 * KEPT):
        event, other = env.event(), env.event()
        event.other, other._value = other, event
        watch.append(weakref.ref(event))
    del event, other
    gc.collect()
    assert not any(ref() for ref in watch)
