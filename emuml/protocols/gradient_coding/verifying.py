"""The server that believes no single worker: it takes a group's sum when enough members sent the same bits.

A worker has one vote a round, and what it sends is looked at before it is counted: an answer of another shape or dtype,
or a message that is no answer, is a vote for nothing. Where the next round waits for everybody, late answers are looked
at, too: they may contradict what was taken. On the array tier nobody lies, because workers are no nodes
there: each group's first answers are equal, and only how many there are matters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from emuml.errors import Unresolved
from emuml.message import Array
from emuml.node import NodeId
from emuml.protocols.gradient_coding.codes.seam import Decoding
from emuml.protocols.gradient_coding.codes.verified import VerifiedCode
from emuml.protocols.gradient_coding.messages import Gradient
from emuml.protocols.gradient_coding.server import Server
from emuml.protocols.gradient_coding.votes import Votes
from emuml.rounds import Answers

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context


class VerifyingServer(Server):
    """Asks all workers for sums, and takes those that are confirmed."""

    code: VerifiedCode
    tracker: Votes

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin with the initial parameters."""
        task = self.code.task(self.workload, self.workload.initial, 0, 0)
        self.outline = task.shape, np.dtype(task.dtype)
        self.suspects: set[int] = set()
        super().on_start(ctx, saved)

    def open(self, ctx: Context) -> None:
        """Ask everybody for the next round; nothing that was said before counts in it."""
        super().open(ctx)
        self.tracker = Votes(self.code, self.code.needed)
        self.rejected = 0

    def on_message(self, ctx: Context, sender: NodeId, message: Gradient) -> None:
        """Take an answer; anything else that a worker may have sent is rejected."""
        if type(message) is not Gradient:
            self.reject(sender.index)
            return
        is_late = self.closed and self.stragglers == "wait-all" and not self.tracker.has_voted(sender.index)
        if is_late and (message.life, message.round) == (ctx.incarnation, self.round):
            self.vote(sender.index, message.value)
        super().on_message(ctx, sender, message)

    def reject(self, worker: int) -> None:
        """Note that a worker sent what is no answer."""
        self.rejected += 1
        self.suspects.add(worker)

    def count(self, worker: int, value: Array) -> None:
        """Take the first answer of a worker to the open round; see :meth:`vote`."""
        self.answers[worker] = value
        self.vote(worker, value)

    def vote(self, worker: int, value: Array) -> None:
        """Count the vote of a worker.

        Raises
        ------
        Unresolved
            If its group can have no value any more, and the code does not say to go on without.
        """
        is_value = (value.shape, value.dtype) == self.outline
        if not is_value:
            self.reject(worker)
        group = self.tracker.cast(worker, value if is_value else None)
        if self.code.on_unresolved == "stop" and (doubt := self.tracker.doubt(group)):
            members = ", ".join(f"worker-{member}" for member in self.code.groups[group])
            raise Unresolved(self.round + 1, group, members, doubt)

    def decode(self, answers: Answers) -> Decoding:
        """Return how the verified sums combine; other answers have no weight."""
        workers = answers.workers
        if not self.tracker.n_arrived:
            return self.code.decode_honest(workers)
        chosen = np.array(list(self.tracker.verified().values()), np.int64)
        decoding, weights = self.code.decode(chosen), np.zeros(workers.size)
        weights[np.searchsorted(workers, chosen)] = decoding.weights
        return replace(decoding, weights=weights)

    def notes(self) -> dict[str, float | str]:
        """Return what else is logged: groups without a value, answers that differ or are none, and whose they are."""
        self.suspects.update(self.tracker.dissenters())
        doubtful = sum(bool(self.tracker.doubt(group)) for group in range(self.code.n_groups))
        return {
            **super().notes(),
            "unresolved": doubtful,
            "dissent": len(self.tracker.dissenters()),
            "rejected": self.rejected,
            "suspects": hex(sum(1 << worker for worker in self.suspects)),
        }
