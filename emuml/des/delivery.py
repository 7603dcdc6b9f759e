"""The compiled delivery of events, and what it takes from the floors above; ``emuml._kernels.delivery`` has the loops.

It serves runs that nobody explores, checks or keeps journals of, on a network without contention. The Python path
serves all others, and here, too, whatever is rare: the same functions, called on the compiled objects.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from emuml import effects as fx
from emuml._kernels import contexts, durations, lives
from emuml._kernels import delivery as _kernel
from emuml._kernels.messages import message_classes
from emuml.blocks import Saved, checked_tag
from emuml.context import MESSAGE_BYTES_MAX, frozen_task
from emuml.context import Context as Plain
from emuml.des.handlers import lasting
from emuml.des.machine import Machine as PlainMachine
from emuml.des.machine import instantly
from emuml.durations import VectorLaw
from emuml.durations import durations as durations_of
from emuml.effects import Received
from emuml.errors import NodeFailed, StaleContext
from emuml.life import Life
from emuml.links import Links
from emuml.message import freeze
from emuml.node import Node
from emuml.roster import listed
from emuml.task import Task

if TYPE_CHECKING:
    from emuml.des.emulator import Emulator

__all__ = ["MESSAGE_BYTES_MAX", "Context", "NodeFailed", "Plain", "Post", "Received", "Saved", "StaleContext", "Task",
           "checked_tag", "freeze", "frozen_task", "listed", "message_classes"]  # fmt: skip

dispatch = Life._dispatch
describe = PlainMachine.describe
describe_life = Life.describe


class Context(contexts.Context):
    """The compiled context with the rare effects of the plain one."""

    __slots__ = ()

    _outgoing = Plain._outgoing
    rng = Plain.rng
    send_latest = Plain.send_latest
    save = Plain.save
    load = Plain.load
    log = Plain.log
    publish = Plain.publish
    stop = Plain.stop


def rest(machine: Any) -> PlainMachine:
    """Return the rare parts of a machine, as of one whose run has had no fault yet."""
    plain = PlainMachine(machine.id, Node, instantly)  # lives begin in the compiled machine
    plain.links = Links(False, machine.id, machine.incarnation)
    return plain


def passes(sender: Any, to: Any, left_s: float, life: int) -> bool:
    """Tell whether a message that was sent before the first fault still arrives."""
    link = to.links.of(sender.id)
    session = life if sender is to else 0
    return bool(left_s <= sender.ended.get(life, left_s) and link.carries and link.session == session)


def result(emulator: Emulator, machine: Any, tag: Any, task: Task) -> Any:
    """Return the result of a task that ended."""
    return emulator.slots.result(task, tag, machine.id)


def evaluate(emulator: Emulator, machine: Any, tag: Any, task: Task, result: Any) -> None:
    """Evaluate a result now."""
    emulator.slots.evaluate(machine, fx.Compute(tag, task, 0, 0), result)


def handlers(kind: type) -> Any:
    """Return the handlers that are looked up once for all nodes of a class, or None."""
    functions = lasting(kind)
    return None if functions is None else lives.Handlers(*functions)


class Post(_kernel.Post):
    """Hands events to the nodes of one run and executes what they record."""

    def __init__(self, emulator: Emulator) -> None:
        linked = emulator.directory.linked
        matrix = bytearray(second in linked[first] for first in linked for second in linked)
        super().__init__(emulator, list(linked), matrix)
        emulator._execute |= {
            fx.Send: self.execute_send,
            fx.SendLatest: self.execute_send,
            fx.Broadcast: self.execute_broadcast,
            fx.SetTimer: self.execute_set_timer,
            fx.Compute: self.execute_compute,
        }

    def ready(self, emulator: Emulator) -> None:
        """Take what was built after this object."""
        law, workers = emulator.cluster.compute, emulator.roster.of("worker")
        size = workers[-1].index + 1 if workers else 0
        vectors = None
        if isinstance(law, VectorLaw) and size:
            vectors = durations.Durations(durations_of(law, emulator.roster.seed, size), np.empty, size)
        self.begin(emulator.machines, vectors, emulator.still_most)


lives.configure(sys.modules[__name__])
