"""Which handlers are looked up once, and that a node may still put another in the place of one."""

from functools import partial, wraps

import pytest

from emuml.cluster import Cluster
from emuml.des.emulator import Emulator
from emuml.des.handlers import lasting
from emuml.message import Message
from emuml.node import Node, NodeId
from emuml.roster import Roster

SERVER = NodeId("server", 0)


class Count(Message):
    number: int


class Plain(Node):
    """Sends itself a few messages and keeps what came."""

    messages = (Count,)

    def __init__(self):
        self.seen = []

    def on_start(self, ctx, saved):
        for number in range(3):
            ctx.send(ctx.id, Count(number))
        ctx.set_timer("end", 1.0)

    def on_timer(self, ctx, name):
        ctx.stop(name)

    def on_message(self, ctx, sender, message):
        self.seen.append(message.number)


class Calling(Plain):
    def on_message(self, ctx, sender, message):
        super().on_message(ctx, sender, message)
        self.seen.append("called")


class Replacing(Plain):
    def on_message(self, ctx, sender, message):
        super().on_message(ctx, sender, message)
        self.on_message = self.on_next

    def on_next(self, ctx, sender, message):
        self.seen.append(-message.number)


class Naming(Plain):
    def on_message(self, ctx, sender, message):
        self.seen.append(message.number)
        setattr(self, "on_" + "message", self.on_next)

    def on_next(self, ctx, sender, message):
        self.seen.append(-message.number)


class Turning(Plain):
    def on_message(self, ctx, sender, message):
        self.seen.append(message.number)
        self.__class__ = Turned


class Turned(Plain):
    def on_message(self, ctx, sender, message):
        self.seen.append(-message.number)


def noted(handler):
    @wraps(handler)
    def note(self, *arguments):
        handler(self, *arguments)
        self.on_message = partial(lambda node, ctx, sender, message: node.seen.append(-message.number), self)

    return note


class Wrapped(Plain):
    @noted
    def on_message(self, ctx, sender, message):
        self.seen.append(message.number)


class Enclosing(Plain):
    def on_message(self, ctx, sender, message):
        def after():
            self.on_message = lambda ctx, sender, message: self.seen.append(-message.number)

        self.seen.append(message.number)
        after()


class Static(Plain):
    @staticmethod
    def on_message(ctx, sender, message):
        pass


class Catching(Plain):
    def __getattribute__(self, name):
        if name == "on_message" and len(self.seen) > 0:
            return lambda ctx, sender, message: self.seen.append(-message.number)
        return super().__getattribute__(name)


def patched():
    node = Plain()
    node.on_message = lambda ctx, sender, message: node.seen.append(-message.number)
    return node


def seen(factory):
    run = Emulator({SERVER: ("server", factory)}, Cluster(workers=1), Roster((SERVER,))).run()
    assert run.stopped == "end"
    return run.nodes[SERVER].seen


@pytest.mark.parametrize(
    ("factory", "expected"),
    [
        (Plain, [0, 1, 2]),
        (Calling, [0, "called", 1, "called", 2, "called"]),
        (Static, []),
        (patched, [0, -1, -2]),
        *[(kind, [0, -1, -2]) for kind in (Replacing, Naming, Turning, Wrapped, Enclosing, Catching)],
    ],
)
def test_a_message_goes_to_the_handler_that_its_node_has_now(factory, expected):
    assert seen(factory) == expected


def test_handlers_are_looked_up_once_where_no_code_of_the_class_replaces_them():
    assert lasting(Plain) == (Plain.on_message, Node.on_computed, Plain.on_timer)
    assert lasting(Calling)[0] is Calling.on_message


@pytest.mark.parametrize("kind", [Replacing, Naming, Turning, Wrapped, Enclosing, Static, Catching, int])
def test_handlers_of_other_classes_are_looked_up_for_each_event(kind):
    assert lasting(kind) is None
