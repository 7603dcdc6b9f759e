"""Check mode: clocks, ambient randomness, threads and state outside of instances are caught where they are used."""

import os
import random
import time
import uuid
from threading import Event, Thread

import numpy as np
import pytest

from emuml.blocks import Saved
from emuml.checks import Checker
from emuml.directory import Directory
from emuml.effects import Started
from emuml.errors import ForbiddenCall, HiddenState, NodeFailed
from emuml.life import Life
from emuml.node import Node, NodeId
from emuml.roster import Roster

ME = NodeId("worker", 0)


class Does(Node):
    shared = ["untouched"]  # noqa: RUF012

    def __init__(self, action):
        self.action = action

    def on_start(self, ctx, saved):
        self.action(self)


class Inherits(Does):
    pass


@pytest.fixture
def checker():
    return Checker()


@pytest.fixture(autouse=True)
def _as_it_was():
    yield
    Does.shared[:] = ["untouched"]
    for cls in (Does, Inherits):
        if "counter" in vars(cls):
            del cls.counter


def start(checker, action, cls=Does):
    life = Life(cls(action), ME, 1, Directory(Roster((ME,)), {"worker": None}), checker)
    return life.handle(Started(Saved()), 0.0)


def caught(checker, action, cls=Does):
    with pytest.raises(NodeFailed) as failed:
        start(checker, action, cls)
    return failed.value.__cause__


FORBIDDEN = {
    "time.time": lambda: time.time(),
    "time.perf_counter_ns": lambda: time.perf_counter_ns(),
    "time.sleep": lambda: time.sleep(0),
    "random.random": lambda: random.random(),
    "random.expovariate": lambda: random.expovariate(1.0),
    "random.getrandbits": lambda: random.getrandbits(8),
    "numpy.random.rand": lambda: np.random.rand(),  # noqa: NPY002
    "numpy.random.standard_normal": lambda: np.random.standard_normal(),  # noqa: NPY002
    "numpy.random.seed": lambda: np.random.seed(1),  # noqa: NPY002
    "os.urandom": lambda: os.urandom(4),
    "uuid.uuid4": lambda: uuid.uuid4(),
    "uuid.uuid1": lambda: uuid.uuid1(),
    "threading.Thread.start": lambda: Thread(target=print).start(),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_forbidden_call_in_a_handler_is_named(checker, name):
    FORBIDDEN[name]()
    refusal = caught(checker, lambda node: FORBIDDEN[name]())

    assert isinstance(refusal, ForbiddenCall)
    assert refusal.args == ("worker-0", name)
    FORBIDDEN[name]()


def test_calls_that_the_standard_library_makes_for_itself_are_exempt(checker):
    assert start(checker, lambda node: random.Random(3).random()) == []
    assert start(checker, lambda node: uuid.uuid5(uuid.NAMESPACE_DNS, "x")) == []
    assert start(checker, lambda node: __import__("logging").LogRecord("a", 1, "p", 1, "m", (), None)) == []


def test_other_threads_may_read_clocks_while_a_handler_runs(checker):
    go, done, found = Event(), Event(), []

    def reads():
        go.wait()
        found.append(time.time())
        done.set()

    thread = Thread(target=reads)
    thread.start()
    start(checker, lambda node: (go.set(), done.wait()))
    thread.join()

    assert len(found) == 1


def test_without_checks_nothing_is_caught():
    assert start(None, lambda node: time.time()) == []


@pytest.mark.parametrize("cls", [Does, Inherits])
def test_state_outside_of_instances_is_named(checker, cls):
    refusal = caught(checker, lambda node: node.shared.append("changed"), cls)

    assert isinstance(refusal, HiddenState)
    assert refusal.args == ("worker-0", f"{cls.__name__}.shared")


def test_new_class_attributes_are_named(checker):
    refusal = caught(checker, lambda node: setattr(type(node), "counter", 1))

    assert isinstance(refusal, HiddenState)
    assert refusal.attribute == "Does.counter"


def test_state_of_the_instance_is_its_own_affair(checker):
    assert start(checker, lambda node: setattr(node, "counter", 1)) == []


def test_what_a_handler_raised_itself_is_not_hidden_by_the_checks(checker):
    def both(node):
        node.shared.append("changed")
        raise KeyError("mine")

    assert isinstance(caught(checker, both), KeyError)
