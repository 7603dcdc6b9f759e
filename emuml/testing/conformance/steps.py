"""Steps: effects are executed after the handler, in call order, entirely or not at all (contract 2.1-2.4, 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from emuml.blocks import Saved
from emuml.context import Context
from emuml.errors import ContractError, MessageError, NodeFailed, StaleContext, TagInUse, UnknownPeer
from emuml.lazy import combine
from emuml.message import Array, Message
from emuml.node import Node, NodeId
from emuml.task import Task
from emuml.testing.conformance.engine import WORKERS, RunNodes, equal, expect, ids, rows_of, stopped

LISTENERS = 12


class Note(Message):
    """A number."""

    number: int


def ones(count: int) -> Array:
    """Return ones; the function of tasks whose value does not matter."""
    return np.ones(count)


class Quiet(Node):
    """Does nothing; of this module, so that it knows the same messages as the others."""


class Recorder(Node):
    """Records effects of every kind in one step, in the order of :func:`recorded`; raises at its end if told to."""

    def __init__(self, raises: bool = False) -> None:
        self.raises = raises
        self.ended: set[str] = set()

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Bring the step about by a message to itself."""
        ctx.send(ctx.id, Note(0))

    def on_message(self, ctx: Context, sender: NodeId, message: Note) -> None:
        """Record everything."""
        if message.number > 0:
            return
        ctx.log(step=1)
        ctx.send(NodeId("listener", 1), Note(1))
        ctx.broadcast("listener", Note(2))
        ctx.send_latest(NodeId("listener", 0), Note(3), "key")
        ctx.set_timer("later", 60.0)
        ctx.set_timer("never", 60.0)
        ctx.cancel_timer("never")
        ctx.compute("kept", Task(ones, (3,), 1.0, (3,)))
        ctx.compute("dropped", Task(ones, (4,), 1.0, (4,)))
        ctx.cancel("dropped")
        ctx.save("save", {"block": 1})
        ctx.load("load", ("block", "absent"))
        ctx.publish(7, np.zeros(2))
        ctx.send(ctx.id, Note(4))
        ctx.log(step=2)
        if self.raises:
            raise ValueError("after all effects")

    def on_computed(self, ctx: Context, tag: Any, result: Array) -> None:
        """Only the task that was not cancelled ends."""
        equal(tag, "kept", "task that ended")
        self._end(ctx, "computed")

    def on_loaded(self, ctx: Context, tag: Any, blocks: Saved) -> None:
        """The load sees the save that was recorded before it."""
        equal(dict(blocks), {"block": 1}, "blocks")
        self._end(ctx, "loaded")

    def _end(self, ctx: Context, what: str) -> None:
        self.ended.add(what)
        if len(self.ended) == 2:
            ctx.stop("done")


def recorded() -> list[tuple[str, Any]]:
    """Return the trace of that step: kinds and first details."""
    listeners = [("send", str(peer)) for peer in ids("listener", LISTENERS)]
    return [
        ("log", {"step": 1}), ("send", "listener-1"), *listeners, ("send", "listener-0"), ("set_timer", "later"),
        ("set_timer", "never"), ("cancel_timer", "never"), ("compute", "kept"), ("compute", "dropped"),
        ("cancel", "dropped"), ("save", "save"), ("load", "load"), ("publish", 7), ("send", "recorder-0"),
        ("log", {"step": 2}),
    ]  # fmt: skip


def _recorders(raises: bool) -> dict[str, tuple[str, Callable[[], Node]]]:
    listeners = {str(peer): ("listener", Quiet) for peer in ids("listener", LISTENERS)}
    return {"recorder-0": ("recorder", partial(Recorder, raises)), **listeners}


def effects_are_executed_in_call_order(run: RunNodes) -> None:
    """K1 (2.1, 2.2): the trace of a step with effects of every kind is their call order, with nothing in between."""
    rows = rows_of(stopped(run(_recorders(False), cluster=WORKERS)), "recorder-0")
    first = rows.index(("receive", "recorder-0")) + 1
    equal(rows[first : first + len(recorded())], recorded(), "effects in the trace")


def a_handler_that_raises_leaves_no_effect(run: RunNodes) -> None:
    """K1 (2.3): the same step with an exception at its end: none of its effects is executed."""
    found = run(_recorders(True), cluster=WORKERS)
    expect(isinstance(found.error, NodeFailed), f"the run ended with {found.error!r}, not with NodeFailed")
    rows = rows_of(found, "recorder-0")
    equal(rows[rows.index(("receive", "recorder-0")) + 1 :], [], "effects in the trace")
    equal((found.logs, found.published), ([], []), "what was logged and published")
    expect(not any(row[2] == "receive" and row[1] != "recorder-0" for row in found.trace.rows), "a message left")


class Keeper(Node):
    """Uses a context that it kept: in a later handler, and in a task."""

    def __init__(self) -> None:
        self.kept: Context | None = None

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Keep the context."""
        self.kept = ctx
        ctx.set_timer("later", 0.0)

    def on_timer(self, ctx: Context, name: str) -> None:
        """Try it in a later handler, and have a task try it."""
        equal(refusals(self.kept), EVERY_CALL, "calls refused in a later handler")
        ctx.compute("try", Task(self._try, (), 1.0, (1,)))

    def _try(self) -> Array:
        return np.array([float(len(refusals(self.kept)))])

    def on_computed(self, ctx: Context, tag: Any, result: Array) -> None:
        """Read what the task found."""
        equal(combine([1.0], [result])[0], float(len(EVERY_CALL)), "calls refused in a task")
        ctx.stop("done")


_CALLS: dict[str, Callable[[Context], object]] = {
    "peers": lambda ctx: ctx.peers("keeper"),
    "rng": lambda ctx: ctx.rng("stream"),
    "send": lambda ctx: ctx.send(ctx.id, Note(1)),
    "send_latest": lambda ctx: ctx.send_latest(ctx.id, Note(1), "key"),
    "broadcast": lambda ctx: ctx.broadcast("keeper", Note(1)),
    "set_timer": lambda ctx: ctx.set_timer("stale", 0.0),
    "cancel_timer": lambda ctx: ctx.cancel_timer("stale"),
    "compute": lambda ctx: ctx.compute("stale", Task(ones, (1,), 1.0, (1,))),
    "cancel": lambda ctx: ctx.cancel("stale"),
    "save": lambda ctx: ctx.save("stale", {}),
    "load": lambda ctx: ctx.load("stale", ()),
    "log": lambda ctx: ctx.log(stale=1),
    "publish": lambda ctx: ctx.publish(1, np.zeros(1)),
    "stop": lambda ctx: ctx.stop("stale"),
}  # fmt: skip
EVERY_CALL = sorted(_CALLS)


def refusals(ctx: Context | None) -> list[str]:
    """Return the calls that a context refuses as stale, by name."""
    found = []
    for name, call in _CALLS.items():
        try:
            call(ctx)  # type: ignore[arg-type]
        except StaleContext as error:
            expect(error.effect == name and error.node.startswith("keeper"), f"{name} was refused as {error}")
            found.append(name)
    return sorted(found)


def a_kept_context_refuses_every_call(run: RunNodes) -> None:
    """K2 (2.4): a context of an earlier event raises StaleContext in a later one and in a task, and does nothing."""
    found = stopped(run({"keeper-0": ("keeper", Keeper), "keeper-1": ("keeper", Quiet)}, cluster=WORKERS))
    equal(found.logs, [], "what stale contexts logged")


class Careless(Node):
    """Makes the mistakes that must be raised at the call, catches them, and goes on."""

    talks_to = frozenset({"friend"})

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Make every mistake."""
        task = Task(ones, (1,), 1.0, (1,))
        ctx.compute("taken", task)
        for name, (error, call) in _mistakes(ctx, task).items():
            try:
                call()
            except error:
                ctx.log(refused=name)
            else:
                raise AssertionError(f"not refused: {name}")
        ctx.stop("done")


def _mistakes(ctx: Context, task: Task) -> dict[str, tuple[type[Exception], Callable[[], object]]]:
    anything: Any = "text"
    return {
        "unknown id": (UnknownPeer, lambda: ctx.send(NodeId("friend", 9), Note(1))),
        "role without a link": (UnknownPeer, lambda: ctx.send(NodeId("stranger", 0), Note(1))),
        "no message": (MessageError, lambda: ctx.send(NodeId("friend", 0), anything)),
        "numpy integer": (MessageError, lambda: ctx.send(NodeId("friend", 0), Note(np.int64(1)))),  # type: ignore[arg-type]
        "negative time": (ContractError, lambda: ctx.set_timer("timer", -1e-9)),
        "no time": (ContractError, lambda: ctx.set_timer("timer", float("nan"))),
        "endless time": (ContractError, lambda: ctx.set_timer("timer", float("inf"))),
        "no task": (ContractError, lambda: ctx.compute("tag", anything)),
        "tag in use": (TagInUse, lambda: ctx.compute("taken", task)),
        "task without cost": (ContractError, lambda: Task(ones, (1,), 0.0, (1,))),
        "logged object": (ContractError, lambda: ctx.log(value=anything.encode())),
        "saved object": (ContractError, lambda: ctx.save("tag", {"block": object()})),
        "saved numpy number": (ContractError, lambda: ctx.save("tag", {"block": np.float64(1)})),
        "block id": (ContractError, lambda: ctx.save("tag", {1.5: 1})),
    }


class Stranger(Node):
    """Has no links of its own."""

    talks_to = frozenset()


def mistakes_are_raised_at_the_call(run: RunNodes) -> None:
    """K8 (4.1, 6.2, 8.1, 8.2, 9.1): an author's mistake raises in the author's line; what else was recorded goes on."""
    nodes = {
        "careless-0": ("careless", Careless),
        "friend-0": ("friend", Stranger),
        "stranger-0": ("stranger", Stranger),
    }
    found = stopped(run(nodes, cluster=WORKERS))
    kinds = [kind for kind, _ in rows_of(found, "careless-0")]
    equal(set(kinds), {"start", "compute", "log", "stop"}, "kinds in the trace")
