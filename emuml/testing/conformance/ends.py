"""Ends of a run: a stop in the middle of effects, a deadlock, an error of the author's (contract 12)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from emuml.blocks import Saved
from emuml.cluster.faults import Crash, FaultPlan
from emuml.context import Context
from emuml.errors import Deadlock, NodeFailed
from emuml.message import Array, Message
from emuml.node import Node, NodeId, PeerState
from emuml.task import Task
from emuml.testing.conformance.engine import WORKERS, RunNodes, equal, expect, rows_of, stopped


class Word(Message):
    """A number in a conversation."""

    number: int


class Quiet(Node):
    """Does nothing; of this module, so that it knows the same messages as the others."""


class Stopper(Node):
    """Stops in the middle of its effects."""

    def on_message(self, ctx: Context, sender: NodeId, message: Word) -> None:
        """Record effects around the stop."""
        ctx.log(before=message.number)
        ctx.send(sender, Word(100))
        ctx.stop("first")
        ctx.log(after=message.number)
        ctx.send(sender, Word(200))
        ctx.stop("second")


class Chatter(Node):
    """Sends ten words at once."""

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Send them."""
        for number in range(10):
            ctx.send(NodeId("stopper", 0), Word(number))


def a_stop_takes_effect_at_its_place(run: RunNodes) -> None:
    """K17 (12.2): effects before the stop are executed, none after it; nothing more is handed over; first reason."""
    found = stopped(
        run({"stopper-0": ("stopper", Stopper), "chatter-0": ("chatter", Chatter)}, cluster=WORKERS), "first"
    )
    equal([dict(item.metrics) for item in found.logs], [{"before": 0}], "logs")
    rows = rows_of(found, "stopper-0")
    expected = [
        ("start", 1),
        ("receive", "chatter-0"),
        ("log", {"before": 0}),
        ("send", "chatter-0"),
        ("stop", "first"),
    ]
    equal(rows, expected, "what the stopping node did")
    equal([step.kind for step in found.journals["stopper-0", 1].steps], ["start", "message"], "its journal")


class Mourner(Node):
    """Stops the run when it hears that a peer is down."""

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Log what the fault plan waits for."""
        ctx.log(step=1)

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Stop at the first news."""
        ctx.stop(state.value)


def nothing_is_handed_over_after_a_stop_in_on_peer(run: RunNodes) -> None:
    """K17 (12.2, 3.4): DOWN and RESTARTED of one peer are two events; a stop at the first keeps the second back."""
    faults = FaultPlan((Crash("victim-0", after=("step", 1), restart_after=("step", 1)),))
    found = stopped(
        run({"mourner-0": ("mourner", Mourner), "victim-0": ("victim", Quiet)}, cluster=WORKERS, faults=faults), "down"
    )
    steps = [(step.kind, *step.details[:2]) for step in found.journals["mourner-0", 1].steps[1:]]
    equal(steps, [("peer", "victim-0", "down")], "events after the start")


class Waiter(Node):
    """Waits for a word that nobody sends."""

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Do one thing, so that there is a last event with a time."""
        ctx.set_timer("first", 0.01)

    def waiting_for(self) -> str:
        """Say it."""
        return "a word from its peer"


def a_deadlock_says_what_each_node_waits_for(run: RunNodes) -> None:
    """K17 (12.3): nothing pending and not stopped is a Deadlock; it names each node, its life, event, wait."""
    found = run({f"waiter-{i}": ("waiter", Waiter) for i in range(3)}, cluster=WORKERS)
    if not isinstance(found.error, Deadlock):
        raise AssertionError(f"the run ended with {found.error!r}, not with Deadlock")
    lines = {line.split(" ")[0]: line for line in found.error.report.splitlines()}
    equal(sorted(lines), [f"waiter-{i}" for i in range(3)], "nodes in the report")
    for line in lines.values():
        for part in ("life 1", "on_timer('first')", "a word from its peer"):
            expect(part in line, f"{part!r} is not in the report: {line}")


class Patient(Node):
    """Has a timer pending for longer than the patience of any deadlock watch of a test."""

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Set it."""
        ctx.set_timer("long", 1.5)

    def on_timer(self, ctx: Context, name: str) -> None:
        """End well."""
        ctx.stop("done")


def a_pending_timer_is_no_deadlock(run: RunNodes) -> None:
    """K17 (12.3): a timer that is still to come keeps the run alive, however quiet it is."""
    stopped(run({"patient-0": ("patient", Patient), "waiter-0": ("waiter", Quiet)}, cluster=WORKERS))


class AuthorsError(Exception):
    """An exception whose constructor takes two arguments and passes on one, as exceptions of authors do."""

    def __init__(self, node: str, at_s: float) -> None:
        super().__init__(f"{node} at {at_s}")
        self.node, self.at_s = node, at_s


class Raiser(Node):
    """Raises such an exception, in a handler or in a task, and remembers it."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.raised: BaseException | None = None

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Raise by way of a timer or a task."""
        if self.where == "handler":
            ctx.set_timer("raise", 0.001)
        else:
            ctx.compute("raise", Task(self.fail, (), 1.0, (1,)))

    def on_timer(self, ctx: Context, name: str) -> None:
        """Raise in the handler."""
        self.fail()

    def fail(self) -> Array:
        """Raise."""
        self.raised = AuthorsError("raiser-0", 2.5)
        raise self.raised

    def on_computed(self, ctx: Context, tag: Any, result: Array) -> None:
        """Read the value that cannot be there."""
        np.asarray(result)
        ctx.stop("a failed task was delivered")


def _failure(run: RunNodes, where: str) -> tuple[NodeFailed, BaseException, Any]:
    found = run({"raiser-0": ("raiser", partial(Raiser, where)), "other-0": ("other", Quiet)}, cluster=WORKERS)
    error = found.error
    if not isinstance(error, NodeFailed):
        raise AssertionError(f"the run ended with {error!r} and stop {found.stopped!r}, not with NodeFailed")
    equal((error.node, error.incarnation), ("raiser-0", 1), "node and life of the error")
    if error.__cause__ is None:
        raise AssertionError("the error has no cause")
    return error, error.__cause__, found.nodes.get(NodeId("raiser", 0))


def an_error_of_a_handler_names_node_and_event(run: RunNodes) -> None:
    """K16 (12.1): NodeFailed names node, life, time and event, and its cause tells of the author's class and text."""
    error, cause, _ = _failure(run, "handler")
    expect(error.event == "on_timer('raise')" and error.now >= 0.001, f"event {error.event!r} at {error.now}")
    expect("raiser-0 at 2.5" in str(cause), f"the cause says {cause}")
    expect("AuthorsError" in f"{type(cause).__name__} {cause}", f"the cause is {cause!r}")


def an_error_of_a_task_names_node_and_tag(run: RunNodes) -> None:
    """K16 (12.1, 8.7b): the same for a task that raises."""
    error, cause, _ = _failure(run, "task")
    expect("'raise'" in error.event, f"the event {error.event!r} does not name the tag")
    expect("raiser-0 at 2.5" in str(cause), f"the cause says {cause}")


def the_cause_is_the_very_exception_object(run: RunNodes) -> None:
    """K16 (12.1): in one process the cause is the object that was raised; its traceback ends in the author's line."""
    for where in ("handler", "task"):
        _, cause, node = _failure(run, where)
        expect(cause is node.raised, f"{where}: the cause {cause!r} is not the object that was raised")
        equal((type(cause), cause.args, vars(cause)["at_s"]), (AuthorsError, ("raiser-0 at 2.5",), 2.5), "its content")
        names, frame = [], cause.__traceback__
        while frame is not None:
            names.append(frame.tb_frame.f_code.co_name)
            frame = frame.tb_next
        equal(names[-1], "fail", f"{where}: innermost function of its traceback")
