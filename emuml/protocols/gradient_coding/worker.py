"""The worker of gradient coding: computes the coded sum of its partitions, and keeps what it is asked meanwhile.

What becomes of a question that comes while it computes is all that tells the semantics of stragglers apart here.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from emuml.message import Array, Message
from emuml.node import Node, NodeId
from emuml.protocol import Problem
from emuml.protocols.gradient_coding.codes.seam import BuiltCode
from emuml.protocols.gradient_coding.messages import Gradient, Parameters
from emuml.shapes import Stragglers

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context
    from emuml.task import Task


class Worker(Node):
    """Computes coded sums: of the newest parameters only, or of all it was asked for, in order."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"server"})
    messages: ClassVar[tuple[type[Message], ...]] = (Gradient, Parameters)

    def __init__(self, code: BuiltCode, workload: Problem, index: int, stragglers: Stragglers = "cancel") -> None:
        self.code, self.workload, self.index = code, workload, index
        self.interrupts = stragglers in ("cancel", "wait-all")
        self.skips = stragglers == "skip-stale"
        # Everything that it will ever have, here: a million of them then share their dictionaries' keys.
        self.server: NodeId | None = None
        self.newest = _name(0, -1)
        self.open: Parameters | None = None
        self.mailbox: tuple[Parameters, ...] = ()
        self.answer: Gradient | None = None

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Wait to be asked."""

    def on_message(self, ctx: Context, sender: NodeId, message: Parameters) -> None:
        """Begin, keep for later, or repeat an answer that was asked for again."""
        asked = _name(message.life, message.round)
        if asked <= self.newest:
            if self.answer is not None and asked == self.newest == (self.answer.life, self.answer.round):
                ctx.send(sender, self.answer)
            return
        is_new_life = message.life > self.newest[0]
        self.newest, self.server = asked, sender
        if self.interrupts or is_new_life:  # a server in a new life knows of nothing that was asked before
            ctx.cancel("gradient")
            self.open = None
            self.mailbox = ()
        self.keep(message)
        if self.open is None:
            self.begin(ctx)

    def keep(self, question: Parameters) -> None:
        """Put a question behind those that wait, or in their place."""
        self.mailbox = (question,) if self.skips else (*self.mailbox, question)

    def begin(self, ctx: Context) -> None:
        """Compute the oldest question that is kept, at the parameters that came with it."""
        asked, *later = self.mailbox
        self.open, self.mailbox = asked, tuple(later)
        ctx.compute("gradient", task_of(self.code, self.workload, asked, self.index))

    def on_computed(self, ctx: Context, tag: Hashable, result: Array) -> None:
        """Answer the server, and go on with what it asked meanwhile."""
        assert self.open is not None
        assert self.server is not None
        self.answer = answer_to(self.open, result)
        self.open = None
        ctx.send(self.server, self.answer)
        self.next(ctx)

    def next(self, ctx: Context) -> None:
        """Go on with what the server asked meanwhile."""
        if self.mailbox and self.skips:
            ctx.set_timer("next", 0.0)  # after whatever else happens now: a round that ends at this instant is skipped
        elif self.mailbox:
            self.begin(ctx)

    def on_timer(self, ctx: Context, name: str) -> None:
        """Begin what was asked for last, unless a newer question has done so."""
        if self.open is None and self.mailbox:
            self.begin(ctx)

    def waiting_for(self) -> str:
        """Say that it waits for the server."""
        return "parameters of a newer round"


@lru_cache(maxsize=64)
def _name(life: int, round: int) -> tuple[int, int]:
    """Return what names a question: one object for all who are asked it, as there may be a million of them."""
    return life, round


def task_of(code: BuiltCode, workload: Problem, question: Parameters, worker: int) -> Task:
    """Return what one worker of a code computes when it is asked."""
    return code.task(workload, question.value, worker, question.round)


def costs_of(code: BuiltCode, workload: Problem, question: Parameters) -> NDArray[np.float64]:
    """Return the costs of what all workers compute, shape (workers,); those of a group compute the same."""
    costs = [task_of(code, workload, question, group[0]).cost for group in code.groups]
    found = np.empty(code.workers)
    found[np.concatenate(code.groups)] = np.repeat(costs, [len(group) for group in code.groups])
    return found


def answer_to(question: Parameters, result: Array) -> Gradient:
    """Return what a worker says when it has computed."""
    return Gradient(question.life, question.round, result)
