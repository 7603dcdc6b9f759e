"""The server of sequential coding: opens rounds, ends them at a soft deadline, decodes jobs, and steps in their order.

What it knows of who does what, and of whether a round may end without those who are late, it asks the code's schedule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from emuml.lazy import array_of, combine
from emuml.message import Array
from emuml.node import Node, NodeId, PeerState
from emuml.parameters import ParameterBlocks
from emuml.protocol import Problem
from emuml.protocols.sequential_coding.messages import Job, Results, Work
from emuml.protocols.sequential_coding.seam import Sequence
from emuml.roster import Roster

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context

ENDLESS = 2**40
"""So many jobs there are where nothing says how many."""

Delivered = dict[tuple[int, int], tuple[Array, int]]
"""Results of a job by (worker, part): an answer, and the row in it."""


class Server(Node):
    """Tells workers what to do in each round, and trains with the gradients of the jobs that are decoded."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"worker"})
    messages = (Job, Work, Results)

    def __init__(self, code: Sequence, workload: Problem, roster: Roster, wait: float) -> None:
        self.code, self.workload, self.stop, self.wait = code, workload, roster.stop, wait
        self.workers = roster.of("worker")

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin with the initial parameters."""
        self.parameters = ParameterBlocks(self.workload.initial)
        self.parameters.state = self.workload.start()
        self.schedule = self.code.schedule(self.stop.steps_max() or ENDLESS)
        self.asked_at: dict[int, tuple[int, Array]] = {}  # of each job that is not stepped: version, parameters
        self.delivered: dict[int, Delivered] = {}  # of each job that is not decoded
        self.gradients: dict[int, tuple[int, NDArray[Any], float]] = {}  # of those that wait: round, gradient, error
        self.stale = 0
        ctx.publish(0, self.parameters.values)
        self.open(ctx)

    def open(self, ctx: Context) -> None:
        """Begin a round: tell everybody of its job, and who has work what it is."""
        round, self.work = self.schedule.round, self.schedule.work()
        self.answers: dict[int, Array] = {}
        self.opened_s, self.is_overdue = ctx.now, False
        if round < self.schedule.jobs:
            self.asked_at[round] = self.parameters.version, self.parameters.values
            self.delivered[round] = {}
            ctx.broadcast("worker", self.job(ctx, round))
        self.asked = {worker for worker, chunks in enumerate(self.work) if chunks}
        for worker in sorted(self.asked):
            ctx.send(self.workers[worker], self.question(ctx, worker))
        if not self.asked:
            self.close(ctx)

    def job(self, ctx: Context, job: int) -> Job:
        """Return the parameters of a job."""
        return Job(ctx.incarnation, job, self.asked_at[job][1])

    def question(self, ctx: Context, worker: int) -> Work:
        """Return what a worker does in the open round."""
        jobs, parts = zip(*self.work[worker], strict=True)
        return Work(ctx.incarnation, self.schedule.round, jobs, parts)

    def on_message(self, ctx: Context, sender: NodeId, message: Results) -> None:
        """Take results of the open round; those of another one, or for a former life, change no parameters."""
        worker = sender.index
        if (message.life, message.round) != (ctx.incarnation, self.schedule.round):
            self.stale += 1
        elif worker in self.asked and worker not in self.answers:
            self.answers[worker] = message.value
            if len(self.answers) == len(self.asked):
                self.close(ctx)
            elif len(self.answers) == 1:
                ctx.set_timer("deadline", self.wait * (ctx.now - self.opened_s))

    def on_timer(self, ctx: Context, name: str) -> None:
        """End the round without those who are late, or wait for all of them if the code would not stand it."""
        if self.schedule.tolerates(self.late()):
            self.close(ctx)
        else:
            self.is_overdue = True

    def late(self) -> NDArray[np.bool_]:
        """Return who was asked and has not delivered, shape (workers,)."""
        found = np.zeros(self.code.workers, np.bool_)
        found[sorted(self.asked - self.answers.keys())] = True
        return found

    def close(self, ctx: Context) -> None:
        """End the round; what arrives from now on changes no parameters."""
        ctx.cancel_timer("deadline")
        for worker, value in sorted(self.answers.items()):
            for row, (job, part) in enumerate(self.work[worker]):
                if job in self.delivered:
                    self.delivered[job][worker, part] = value, row
        late, round = self.late(), self.schedule.round
        for job in self.schedule.close(late):
            self.gradients[job] = round, *self.gradient(self.delivered.pop(job))
        self.step(ctx, int(np.count_nonzero(late)))

    def gradient(self, delivered: Delivered) -> tuple[NDArray[Any], float]:
        """Return the gradient of a job, added in a fixed order, and the error of its decoding."""
        terms, error = self.code.decode(delivered)
        rows = [array_of(value)[row] for value, row in (delivered[key] for key, _ in terms)]
        return combine([weight for _, weight in terms], rows), error

    def step(self, ctx: Context, late: int) -> None:
        """Take the steps whose turn has come, and go on unless training is over."""
        while self.parameters.version in self.gradients:
            job = self.parameters.version
            round, gradient, error = self.gradients.pop(job)
            asked_at, _ = self.asked_at.pop(job)
            state, values = self.workload.step(self.parameters.state, self.parameters.values, gradient, job)
            self.parameters.on_step(values, state)
            ctx.log(
                round=job + 1,
                rounds_taken=round - job + 1,
                staleness=job - asked_at,
                arrivals=len(self.answers),
                late=late,
                waited=int(self.is_overdue),
                decode_error=error,
                stale=self.stale,
            )
            self.stale = 0
            ctx.publish(job + 1, values)
            if self.stop.reached(job + 1, job + 1, ctx.now):
                ctx.stop(f"{job + 1} jobs done")
                return
        self.open(ctx)

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Tell a worker that came back all that it needs; without it the round goes on as without one that is late."""
        if state in (PeerState.UP, PeerState.RESTARTED):
            for job in sorted(self.asked_at):
                ctx.send(peer, self.job(ctx, job))
            if peer.index in self.asked and peer.index not in self.answers:
                ctx.send(peer, self.question(ctx, peer.index))

    def waiting_for(self) -> str:
        """Name the workers whose results are missing."""
        missing = sorted(self.asked - self.answers.keys())
        shown = ", ".join(f"worker-{worker}" for worker in missing[:8])
        more = " ..." if len(missing) > 8 else ""
        return f"results of round {self.schedule.round + 1} from {shown}{more}"
