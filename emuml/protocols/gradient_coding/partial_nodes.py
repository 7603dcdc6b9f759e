"""The nodes of partial work: a worker sends each share of its task as it is done, the server counts partitions.

What becomes of a worker's work when a round closes is said by the semantics of stragglers, at the ends of shares: under
``"skip-stale"`` a worker goes on with the newest parameters after the share that it is at.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from emuml.message import Array, Message
from emuml.node import NodeId
from emuml.protocol import Problem
from emuml.protocols.gradient_coding.codes.partial import PartialCode
from emuml.protocols.gradient_coding.codes.seam import Decoding
from emuml.protocols.gradient_coding.messages import Parameters
from emuml.protocols.gradient_coding.server import Server
from emuml.protocols.gradient_coding.worker import Worker
from emuml.rounds import Answers
from emuml.shapes import Stragglers
from emuml.task import Task

if TYPE_CHECKING:
    from emuml.context import Context


class Share(Message):
    """What a worker has after ``position + 1`` of its partitions: the gradient of the last, or the sum of all."""

    life: int
    round: int
    position: int
    value: Array


class PartialServer(Server):
    """Closes a round once enough different partitions are there, and adds each of them once."""

    messages: ClassVar[tuple[type[Message], ...]] = (Parameters, Share)
    code: PartialCode

    def open(self, ctx: Context) -> None:
        """Ask everybody for the next round."""
        self.shares: list[list[Array]] = [[] for _ in range(self.code.workers)]
        self.there: set[int] = set()
        super().open(ctx)

    def on_message(self, ctx: Context, sender: NodeId, message: Share) -> None:  # type: ignore[override]
        """Take a share of the open round; one of a closed round or for a former life changes no parameters."""
        worker, is_last = sender.index, message.position == self.code.declared.replication - 1
        if ctx.now >= self.due_s:  # at this instant; the timer is about to fire
            self.overdue(ctx)
        if (message.life, message.round) != (ctx.incarnation, self.round):
            self.stale += 1
        elif self.closed:
            self.stale += worker not in self.idle
            if is_last:
                self.is_idle(ctx, worker)
        elif message.position == len(self.shares[worker]):  # who came back says again what it has said
            is_first = not self.there
            self.shares[worker].append(message.value)
            self.there.add(self.code.order(worker)[message.position])
            if is_last:
                self.idle.add(worker)
                self.answers[worker] = message.value
            self.close_if_decided(ctx)
            if is_first and not self.closed:
                self.allow_longer(ctx)

    def close_if_decided(self, ctx: Context) -> None:
        """Close the round at enough partitions, or if nobody who lives can add to them."""
        silent = sum(worker not in self.answers for worker in self.down)
        nobody_left = silent > 0 and len(self.answers) + silent == self.code.workers
        is_enough = len(self.there) >= self.code.needed
        if is_enough or (nobody_left and self.there):
            self.lost_rounds += not is_enough
            self.close(ctx)

    def close(self, ctx: Context, by_clock: bool = False) -> None:
        """Add what is there and step; what arrives from now on changes no parameters."""
        self.terms = self.code.terms({worker: len(sent) for worker, sent in enumerate(self.shares) if sent})
        values = [self.shares[worker][position] for worker, position, _ in self.terms]
        answers = Answers(np.arange(len(values)), values.__getitem__)
        answers.by_clock = by_clock
        self.take(ctx, answers)

    def decode(self, answers: Answers) -> Decoding:
        """Return how the messages that close a round combine."""
        there = np.array(sorted(self.there), np.int64)
        weights = np.array([weight for _, _, weight in self.terms])
        missing = self.code.partitions - there.size
        return Decoding(weights, float(missing), there, (there.size / self.code.partitions) ** 0.5)

    def report(self, ctx: Context) -> None:
        """Log the closed round: as arrivals, of how many workers there is a message."""
        self.arrivals = sum(map(bool, self.shares))
        super().report(ctx)


class PartialWorker(Worker):
    """Computes its partitions one after the other, and sends each result, or the sum so far."""

    messages: ClassVar[tuple[type[Message], ...]] = (Parameters, Share)
    code: PartialCode

    def __init__(self, code: PartialCode, workload: Problem, index: int, stragglers: Stragglers = "cancel") -> None:
        super().__init__(code, workload, index, stragglers)
        self.todo: list[Task] = []
        self.sent: list[Share] = []

    def on_message(self, ctx: Context, sender: NodeId, message: Parameters) -> None:
        """Begin, keep for later, or repeat the shares of a round that was asked for again."""
        if (message.life, message.round) > self.newest:
            super().on_message(ctx, sender, message)
            return
        for share in self.sent:
            if (share.life, share.round) == (message.life, message.round):
                ctx.send(sender, share)

    def begin(self, ctx: Context) -> None:
        """Begin with the first partition of the oldest question that is kept."""
        asked, *later = self.mailbox
        self.open, self.mailbox = asked, tuple(later)
        self.sent = []
        self.todo = self.code.shares(self.workload, asked.value, self.index, asked.round)
        self.go_on(ctx)

    def go_on(self, ctx: Context) -> None:
        """Compute the next share."""
        task = self.todo.pop(0)
        if self.sent and self.code.declared.send == "prefix":
            task = added(self.sent[-1].value, task)
        ctx.compute("gradient", task)

    def on_computed(self, ctx: Context, tag: Hashable, result: Array) -> None:
        """Send a share, and go on with the next one, or with what the server asked meanwhile."""
        assert self.open is not None
        assert self.server is not None
        self.sent.append(Share(self.open.life, self.open.round, len(self.sent), result))
        ctx.send(self.server, self.sent[-1])
        if self.todo and not (self.skips and self.mailbox):
            self.go_on(ctx)
            return
        self.open = None
        self.next(ctx)


def added(so_far: Array, task: Task) -> Task:
    """Return the task that computes another one, and adds its value to what there is."""
    return replace(task, function=_added, inputs=(so_far, task.function, *task.inputs))


def _added(so_far: NDArray[Any], function: Any, *inputs: Any) -> NDArray[Any]:
    """Return the sum so far and the value of one more task."""
    found: NDArray[Any] = so_far + function(*inputs)
    return found
