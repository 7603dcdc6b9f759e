"""A node that does what it is told, and one life of it, for tests of lives."""

import numpy as np
import pytest

from emuml import effects as fx
from emuml.blocks import Saved
from emuml.directory import Directory
from emuml.errors import (
    NodeFailed,
)
from emuml.life import Life
from emuml.message import Array, Message
from emuml.node import Node, NodeId
from emuml.roster import Roster
from emuml.task import Task

ROSTER = Roster.of_counts(seed=7, client=1, server=1, worker=3)
LINKS = {"client": frozenset({"server"}), "server": frozenset({"worker"}), "worker": frozenset({"worker"})}
ME, SERVER, CLIENT = NodeId("worker", 1), NodeId("server", 0), NodeId("client", 0)
WORKERS = (NodeId("worker", 0), NodeId("worker", 2))


class Note(Message):
    text: str
    value: Array


class Text(Message):
    text: str


def note(text="hello", value=(1.0, 2.0)):
    return Note(text, np.array(value))


def ones(size):
    return np.ones(size)


def task(size=2, **options):
    return Task(ones, (size,), 1.0, (size,), **options)


class Obedient(Node):
    """Does what ``order`` says in its next handler, and remembers every call."""

    def __init__(self):
        self.calls = []
        self.order = lambda ctx: None

    def _called(self, ctx, *call):
        self.calls.append(call)
        self.order(ctx)

    def on_start(self, ctx, saved):
        self._called(ctx, "start", dict(saved))

    def on_message(self, ctx, sender, message):
        self._called(ctx, "message", sender, message)

    def on_timer(self, ctx, name):
        self._called(ctx, "timer", name)

    def on_computed(self, ctx, tag, result):
        self._called(ctx, "computed", tag, result)

    def on_saved(self, ctx, tag):
        self._called(ctx, "saved", tag)

    def on_loaded(self, ctx, tag, blocks):
        self._called(ctx, "loaded", tag, dict(blocks))

    def on_peer(self, ctx, peer, state):
        self._called(ctx, "peer", peer, state)

    def waiting_for(self):
        return "orders"


def life(checker=None, incarnation=1):
    return Life(Obedient(), ME, incarnation, Directory(ROSTER, LINKS), checker)


def do(living, order, event=None, now=1.0):
    """Hand an event over to a node that does ``order`` in its handler, and return the effects."""
    living.node.order = order
    return living.handle(event or fx.Started(Saved()), now)


def caught_in(living, order):
    """Return the exception that ``order`` raised in the handler."""
    with pytest.raises(NodeFailed) as failed:
        do(living, order)
    return failed.value.__cause__
