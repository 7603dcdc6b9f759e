"""The worker of sequential coding: keeps the parameters of recent jobs, and computes what it is told in each round."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar

from emuml.message import Array
from emuml.node import Node, NodeId
from emuml.protocol import Problem
from emuml.protocols.sequential_coding.chunks import task_of
from emuml.protocols.sequential_coding.messages import Job, Results, Work
from emuml.protocols.sequential_coding.seam import Chunk, Sequence

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context


class Worker(Node):
    """Computes the chunks of the newest round."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"server"})
    messages = (Job, Work, Results)

    def __init__(self, code: Sequence, workload: Problem, index: int) -> None:
        self.code, self.workload, self.index = code, workload, index
        self.newest = (0, -1)
        self.life = 0
        self.parameters: dict[int, Array] = {}
        self.server: NodeId | None = None
        self.answer: Results | None = None

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Wait to be asked."""

    def on_message(self, ctx: Context, sender: NodeId, message: Job | Work) -> None:
        """Keep a job's parameters, or begin a round; one that was answered before is answered again."""
        if message.life < self.life:
            return
        if message.life > self.life:  # a server in a new life knows of nothing that was asked before
            self.life, self.answer = message.life, None
            self.parameters.clear()
        if isinstance(message, Job):
            self.keep(message)
        elif (message.life, message.round) > self.newest:
            self.begin(ctx, sender, message)
        elif self.answer is not None and message.round == self.answer.round:
            ctx.send(sender, self.answer)

    def keep(self, message: Job) -> None:
        """Keep the parameters of a job, and forget those of jobs that are over by now."""
        self.parameters[message.job] = message.value
        for job in [job for job in self.parameters if job < message.job - self.code.delay]:
            del self.parameters[job]

    def begin(self, ctx: Context, server: NodeId, message: Work) -> None:
        """Give up what is not done, and compute the chunks of this round."""
        ctx.cancel("chunks")
        self.newest, self.server, self.answer = (message.life, message.round), server, None
        chunks = [Chunk(job, part) for job, part in zip(message.jobs, message.parts, strict=True)]
        ctx.compute("chunks", task_of(self.code, self.workload, self.index, chunks, self.parameters, message.round))

    def on_computed(self, ctx: Context, tag: Hashable, result: Array) -> None:
        """Answer the server."""
        assert self.server is not None
        self.answer = Results(*self.newest, result)
        ctx.send(self.server, self.answer)

    def waiting_for(self) -> str:
        """Say that it waits for the server."""
        return "work of a newer round"
