"""A protocol that computes with the answers it receives means the same on both engines (8.7)."""

import numpy as np
import pytest

from emuml import Array, Message, Node, Task
from tests.conformance.engines import ENGINES


class Ask(Message):
    point: Array


class Answer(Message):
    value: Array


def square(point):
    return point * point


class Reader(Node):
    messages = (Ask, Answer)

    def on_start(self, ctx, saved):
        ctx.send(ctx.peers("worker")[0], Ask(np.arange(3.0)))

    def on_message(self, ctx, sender, message):
        step = message.value * 2.0 + np.sqrt(message.value)
        ctx.log(first=float(message.value[1]), norm=float(np.linalg.norm(step)), total=step.sum())
        ctx.compute("again", Task(np.cumsum, (message.value,), 1.0, (3,)))

    def on_computed(self, ctx, tag, result):
        ctx.log(last=float(result[-1]))
        ctx.stop("read")


class Squarer(Node):
    messages = (Ask, Answer)

    def on_message(self, ctx, sender, message):
        ctx.compute("square", Task(square, (message.point,), 1.0, (3,)))

    def on_computed(self, ctx, tag, result):
        ctx.send(ctx.peers("server")[0], Answer(result))


@pytest.mark.parametrize("engine", ENGINES)
def test_answers_are_read_as_arrays(engine):
    run = ENGINES[engine]({"server-0": ("server", Reader), "worker-0": ("worker", Squarer)})

    assert run.error is None
    step = np.array([0.0, 1.0, 4.0]) * 2.0 + np.array([0.0, 1.0, 2.0])
    logged = {name: value for item in run.logs for name, value in item.metrics.items()}
    assert logged == {"first": 1.0, "norm": float(np.linalg.norm(step)), "total": 13.0, "last": 5.0}
