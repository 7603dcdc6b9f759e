"""Tags and timer names: what a journal can give back, and nothing else (8.2, 13.2)."""

import numpy as np
import pytest

from emuml import Array, Message, Node, NodeId, Task
from emuml.des.replay import Replayer
from emuml.errors import ContractError
from emuml.roster import Roster
from tests.conformance.engines import ENGINES


class Ask(Message):
    value: Array


def same(value):
    return value


class Tagger(Node):
    """Uses the sender in its tags, as the contract's own sketches do, and answers whom a tag names."""

    messages = (Ask,)

    def on_message(self, ctx, sender, message):
        ctx.compute((sender, 1), Task(same, (message.value,), 1.0, (2,)))

    def on_computed(self, ctx, tag, result):
        ctx.save((*tag, "saved"), {("value", 1): np.asarray(result)})

    def on_saved(self, ctx, tag):
        ctx.load((*tag, 2), [("value", 1)])

    def on_loaded(self, ctx, tag, blocks):
        ctx.send(tag[0], Ask(blocks["value", 1]))


class Asker(Node):
    messages = (Ask,)

    def on_start(self, ctx, saved):
        ctx.send(ctx.peers("server")[0], Ask(np.ones(2)))

    def on_message(self, ctx, sender, message):
        ctx.log(total=float(message.value.sum()))
        ctx.stop("answered")


NODES = {"server-0": ("server", Tagger), "worker-0": ("worker", Asker)}


@pytest.mark.parametrize("engine", ENGINES)
def test_tags_with_node_ids_are_replayed(engine):
    run = ENGINES[engine](NODES)
    assert (run.error, run.stopped) == (None, "answered")

    nodes = {NodeId.parse(id): given for id, given in NODES.items()}
    again = Replayer(nodes, Roster(tuple(sorted(nodes))), run.journals).run()
    assert [item.metrics for item in again.logs] == [{"total": 2.0}]


class Starter(Node):
    def __init__(self, act):
        self.act = act

    def on_start(self, ctx, saved):
        self.act(ctx)


@pytest.mark.parametrize("tag", [1.5, None, ["a"], 2**70, np.int64(3), frozenset({1}), ("a", 1.5)], ids=repr)
@pytest.mark.parametrize("effect", ["compute", "save", "load"])
def test_tags_that_no_journal_gives_back_are_refused_at_the_call(effect, tag):
    acts = {
        "compute": lambda ctx: ctx.compute(tag, Task(same, (np.ones(2),), 1.0, (2,))),
        "save": lambda ctx: ctx.save(tag, {"a": 1}),
        "load": lambda ctx: ctx.load(tag, ["a"]),
    }
    run = ENGINES["des"]({"server-0": ("server", lambda: Starter(acts[effect]))})
    assert isinstance(run.error.__cause__, ContractError)


def test_timers_have_text_for_names():
    run = ENGINES["des"]({"server-0": ("server", lambda: Starter(lambda ctx: ctx.set_timer(("a", 1), 1.0)))})
    assert isinstance(run.error.__cause__, ContractError)


@pytest.mark.parametrize("raised", [SystemExit, GeneratorExit])
def test_a_handler_that_tries_to_leave_ends_the_run_as_any_that_raises(raised):
    def leave(ctx):
        raise raised

    run = ENGINES["tcp"]({"server-0": ("server", lambda: Starter(leave))})
    assert isinstance(run.error.__cause__, raised)
