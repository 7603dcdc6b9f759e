"""Gradient coding as a protocol: a server closes each round as soon as the answers can be decoded.

Workers hold coded sums of partitions. New parameters are the cancel signal: a worker that receives them drops what it
was computing and starts the new round, so no answer of a closed round is ever made. Sums are formed in worker order.

References
----------
Tandon et al., "Gradient coding", arXiv:1612.03301; Wang et al., "ErasureHead", arXiv:1901.09671 (stopping early).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Gt
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.lazy import combine
from emuml.message import Array
from emuml.node import Factory, Node, NodeId, PeerState
from emuml.parameters import ParameterBlocks
from emuml.protocol import Outcome, Problem, Promise
from emuml.protocols.gradient_coding.codes import Code, Uncoded
from emuml.protocols.gradient_coding.group_code import Decoding, GroupCode
from emuml.protocols.gradient_coding.messages import Gradient, Parameters
from emuml.roster import Roster
from emuml.shapes import Round
from emuml.spec import check

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context

SERVER = NodeId("server", 0)


@dataclass(frozen=True)
class GradientCoding:
    """Synchronous training that needs no answer from stragglers.

    Parameters
    ----------
    code : Code
        Who computes what, and how answers combine. ``Uncoded()`` is plain bulk-synchronous training.
    collect : int, optional
        Stop a round at so many answers, replicas counted, even if they cannot be decoded exactly.
    stragglers : str
        ``"cancel"``: work on a closed round is dropped when the next parameters arrive.

    Examples
    --------
    >>> from emuml.protocols.gradient_coding import FractionalRepetition
    >>> GradientCoding(code=FractionalRepetition(replication=3), collect=15).collect
    15
    """

    code: Code = field(default_factory=Uncoded)
    collect: Annotated[int, Gt(0)] | None = None
    stragglers: Literal["cancel"] = "cancel"

    def __post_init__(self) -> None:
        check(self)

    def _built(self, roster: Roster) -> GroupCode:
        if roster.of("server") != (SERVER,):
            raise UserError(f"got {len(roster.of('server'))} servers", "cluster.servers", "1 for gradient coding")
        return self.code.build(len(roster.of("worker")), roster.seed, self.collect)

    def nodes(self, workload: Problem, roster: Roster) -> dict[NodeId, tuple[str, Factory]]:
        """Return one server and the workers of the roster.

        Raises
        ------
        UserError
            If the roster has no single server, or the code does not fit the number of workers or of rows.
        """
        code = self._built(roster)
        workload.partition_bounds(code.partitions)  # refuses more partitions than rows before anything runs
        found: dict[NodeId, tuple[str, Factory]] = {SERVER: ("server", partial(Server, code, workload, roster))}
        for worker in roster.of("worker"):
            found[worker] = ("worker", partial(Worker, code, workload, worker.index))
        return found

    def parameters(self, result: Outcome) -> NDArray[Any]:
        """Return the parameters that were published last."""
        return result.published[-1][1]

    def shape(self, roster: Roster) -> Round:
        """Return how a round looks; message sizes are not counted here."""
        code = self._built(roster)
        return Round(0, code.load, code.stop_rule(), stragglers=self.stragglers)

    def oracles(self) -> tuple[Promise, ...]:
        """Return what theory can say of it: the mean and the variance of a round's duration."""
        home, source = "emuml.theory", "order statistics; Tandon et al. 2017, Wang et al. 2019"
        arguments = {"code": self.code, "collect": self.collect}
        return (
            Promise("round_s", f"{home}:expected_round_time", arguments, source),
            Promise("round_s_variance", f"{home}:round_time_variance", arguments, source),
        )

    def redo(self, lost: frozenset[NodeId]) -> tuple[str, ...]:
        """Return what is done again after a loss: the open round of a worker, everything of the server."""
        return tuple("training from the start" if n == SERVER else f"the open round of {n}" for n in sorted(lost))


class Server(Node):
    """Asks all workers for coded sums, decodes the answers, takes a step, and asks again."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"worker"})
    messages = (Gradient, Parameters)

    def __init__(self, code: GroupCode, workload: Problem, roster: Roster) -> None:
        self.code, self.workload, self.stop = code, workload, roster.stop
        self.rule = code.stop_rule()

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Begin with the initial parameters."""
        self.parameters = ParameterBlocks(self.workload.initial)
        self.parameters.state = self.workload.start()
        self.down: set[int] = set()
        self.lost_rounds = 0
        self.round = 0
        ctx.publish(0, self.parameters.values)
        self.open(ctx)

    def open(self, ctx: Context) -> None:
        """Ask everybody for the next round."""
        self.tracker = self.rule.tracker()
        self.answers: dict[int, Array] = {}
        ctx.broadcast("worker", self.question(ctx))

    def question(self, ctx: Context) -> Parameters:
        """Return the question of the open round."""
        return Parameters(ctx.incarnation, self.round, self.parameters.values)

    def on_message(self, ctx: Context, sender: NodeId, message: Gradient) -> None:
        """Take an answer to the open round; others are of a closed round or a former life."""
        if (message.life, message.round) != (ctx.incarnation, self.round) or sender.index in self.answers:
            return
        self.answers[sender.index] = message.value
        self.tracker.arrived(sender.index)
        self.close_if_decided(ctx)

    def close_if_decided(self, ctx: Context) -> None:
        """Close the round if its rule says so, or if nobody who lives can add to it."""
        silent = sum(worker not in self.answers for worker in self.down)
        nobody_left = silent > 0 and len(self.answers) + silent == self.code.workers
        if self.tracker.closed or (nobody_left and self.answers):
            self.close(ctx)

    def close(self, ctx: Context) -> None:
        """Decode, step, and open the next round or stop."""
        received = sorted(self.answers)
        decoding = self.code.decode(received)
        used = [
            (weight, self.answers[w]) for w, weight in zip(received, decoding.weights.tolist(), strict=True) if weight
        ]
        if used:
            gradient = combine([weight for weight, _ in used], [value for _, value in used])
        else:
            gradient = np.zeros_like(self.parameters.values)
        self.lost_rounds += not self.tracker.closed
        state, values = self.workload.step(self.parameters.state, self.parameters.values, gradient, self.round)
        self.parameters.on_step(values, state)
        self.round += 1
        self.report(ctx, decoding)
        if self.stop.reached(self.round, self.parameters.version, ctx.now):
            ctx.stop(f"{self.round} rounds done")
        else:
            self.open(ctx)

    def report(self, ctx: Context, decoding: Decoding) -> None:
        """Log the closed round, then publish its parameters; rounds are counted from 1."""
        ctx.log(
            round=self.round,
            arrivals=len(self.answers),
            covered=len(decoding.covered),
            groups=len(self.code.groups),
            decode_error=decoding.error,
            down=len(self.down),
            lost_rounds=self.lost_rounds,
        )
        ctx.publish(self.round, self.parameters.values)

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Go on without a worker that is down; ask one that came back."""
        if state is PeerState.DOWN:
            self.down.add(peer.index)
            self.close_if_decided(ctx)
        elif state in (PeerState.UP, PeerState.RESTARTED):
            self.down.discard(peer.index)
            if peer.index not in self.answers:
                ctx.send(peer, self.question(ctx))

    def waiting_for(self) -> str:
        """Name the workers whose answers are missing."""
        missing = [w for w in range(self.code.workers) if w not in self.answers]
        shown = ", ".join(f"worker-{w}{' (down)' if w in self.down else ''}" for w in missing[:8])
        return f"answers of round {self.round + 1} from {shown}{' ...' if len(missing) > 8 else ''}"


class Worker(Node):
    """Computes the coded sum of its partitions at the newest parameters."""

    talks_to: ClassVar[frozenset[str] | None] = frozenset({"server"})
    messages = (Gradient, Parameters)

    def __init__(self, code: GroupCode, workload: Problem, index: int) -> None:
        self.workload = workload
        self.partitions = code.partitions
        self.owned = code.assignment(index)
        weights = tuple(code.coefficients(index))
        self.coefficients = None if all(weight == 1.0 for weight in weights) else weights

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Wait to be asked."""
        self.task = (0, -1)
        self.answer: Gradient | None = None

    def on_message(self, ctx: Context, sender: NodeId, message: Parameters) -> None:
        """Start a newer round at once; repeat an answer that was asked for again."""
        asked = (message.life, message.round)
        if asked > self.task:
            ctx.cancel("gradient")
            self.task, self.answer, self.server = asked, None, sender
            task = self.workload.gradient(
                message.value, self.owned, self.partitions, self.coefficients, draw=message.round
            )
            ctx.compute("gradient", task)
        elif asked == self.task and self.answer is not None:
            ctx.send(sender, self.answer)

    def on_computed(self, ctx: Context, tag: Hashable, result: Array) -> None:
        """Answer the server."""
        self.answer = Gradient(*self.task, result)
        ctx.send(self.server, self.answer)

    def waiting_for(self) -> str:
        """Say that it waits for the server."""
        return "parameters of a newer round"
