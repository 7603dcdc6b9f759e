"""Gradient coding as a protocol: a server closes each round as soon as the answers can be decoded.

Workers hold coded sums of partitions (``server.py``, ``worker.py``). New parameters are the signal that a round is
closed; what a straggler does with it is the protocol's choice. A late answer never changes parameters.

References
----------
Tandon et al., "Gradient coding", arXiv:1612.03301; Wang et al., "ErasureHead", arXiv:1901.09671 (stopping early).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt
from numpy.typing import NDArray

from emuml.deadlines import Deadline
from emuml.errors import UserError
from emuml.message import size_bytes
from emuml.node import Factory, NodeId, Nodes
from emuml.protocol import Outcome, Problem, Promise
from emuml.protocols.gradient_coding.codes import BuiltCode, Code, PartialWork, Uncoded
from emuml.protocols.gradient_coding.messages import Gradient, Parameters
from emuml.protocols.gradient_coding.worker import answer_to, costs_of, task_of
from emuml.roster import Makers, Roster
from emuml.rounds import RoundNodes
from emuml.shapes import Round, Stragglers
from emuml.spec import check

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
    stragglers : {"cancel", "skip-stale", "carry-over", "wait-all"}
        What a worker does when a round closes before it has answered. ``"cancel"``: it drops its work when the next
        parameters arrive and starts on them. ``"skip-stale"``: it finishes its work in vain, then starts on the newest
        parameters; rounds in between it never computes. ``"carry-over"``: it finishes its work and every round in
        between, in order, as programs do that post the next broadcast without waiting; after the last round the server
        waits for what is still queued and logs ``drain_s``. ``"wait-all"``: the next round opens only when everybody
        has finished, as in the program of ErasureHead; ``decided_s`` is logged beside the time that really passed.
    deadline_s : float, optional
        Close a round so many seconds after its question was sent, with the answers that came before; a round without
        any is a step of no gradient. ``overdue`` is logged as 1 of rounds that were closed so.
    first_times : float, optional
        Close a round when it has taken so many times as long as its first answer took, above 1.

    Examples
    --------
    >>> from emuml.protocols.gradient_coding import FractionalRepetition
    >>> GradientCoding(code=FractionalRepetition(replication=3), collect=15).collect
    15
    """

    survives: ClassVar[frozenset[str]] = frozenset({"worker"})
    """Roles of which all nodes may be lost for good without that nobody can go on."""

    code: Code = field(default_factory=Uncoded)
    collect: Annotated[int, Gt(0)] | None = None
    stragglers: Stragglers = "cancel"
    deadline_s: Annotated[float, Gt(0)] | None = None
    first_times: Annotated[float, Gt(1)] | None = None

    def __post_init__(self) -> None:
        check(self)

    @property
    def deadline(self) -> Deadline:
        """When a round closes at the latest, by the clock."""
        return Deadline(self.deadline_s, self.first_times)

    def _built(self, roster: Roster) -> BuiltCode:
        if tuple(roster.of("server")) != (SERVER,):
            raise UserError(f"got {len(roster.of('server'))} servers", "cluster.servers", "1 for gradient coding")
        return self.code.build(len(roster.of("worker")), roster.seed, self.collect)

    def nodes(self, workload: Problem, roster: Roster) -> Nodes:
        """Return one server and the workers of the roster.

        Raises
        ------
        UserError
            If the roster has no single server, or the code does not fit the number of workers or of rows.
        """
        code = self._built(roster)
        workload.partition_bounds(code.partitions)  # refuses more partitions than rows before anything runs
        of_server, of_worker = code.roles()

        def server(index: int) -> Factory:
            return partial(of_server, code, workload, roster, self.stragglers, self.deadline)

        def worker(index: int) -> Factory:
            return partial(of_worker, code, workload, index, self.stragglers)

        return Makers(roster, {"server": server, "worker": worker})

    def in_rounds(self, workload: Problem, roster: Roster) -> RoundNodes | None:
        """Return what an array tier needs, or None if rounds need all their events; see :class:`emuml.rounds.InRounds`.

        They do if the server must know what answers say before it can close a round.
        """
        code = self._built(roster)
        if not code.in_rounds:
            return None
        return RoundNodes(
            server=SERVER,
            factory=partial(code.roles()[0], code, workload, roster, self.stragglers, self.deadline),
            rule=code.stop_rule(),
            stragglers=self.stragglers,
            deadline=self.deadline,
            task=partial(task_of, code, workload),
            answer=answer_to,
            costs=partial(costs_of, code, workload),
        )

    def parameters(self, result: Outcome) -> NDArray[Any]:
        """Return the parameters that were published last."""
        return result.published[-1][1]

    def shape(self, roster: Roster, problem: Problem | None = None) -> Round | None:
        """Return how a round looks; message sizes, those of the first round, are 0 without a problem.

        None if workers answer piece by piece.
        """
        code, sizes = self._built(roster), (0, 0)
        if not code.answers_once:
            return None
        if problem is not None:
            answer = np.zeros(code.answer_shape(problem.initial.shape))
            sizes = size_bytes(Parameters(1, 0, problem.initial)), size_bytes(Gradient(1, 0, answer))
        return Round(sizes[0], code.load, code.stop_rule(), sizes[1], self.stragglers, self.deadline)

    def oracles(self) -> tuple[Promise, ...]:
        """Return what theory can say of rounds.

        That is the mean, variance and distribution function (of ``t``) of their durations and, of codes that add what
        has arrived at a deadline, the expected error. Of partial work :mod:`emuml.theory.partial` draws durations.
        """
        if isinstance(self.code, PartialWork):
            return ()
        home, source = "emuml.theory", "order statistics; Tandon et al. 2017, Wang et al. 2019"
        arguments: dict[str, Any] = {"code": self.code, "collect": self.collect, "stragglers": self.stragglers}
        errors: tuple[Promise, ...] = ()
        if self.deadline:
            arguments["deadline"] = self.deadline
            errors = (Promise("decode_error", f"{home}:error_at_deadline", arguments, "Bitar et al. 2020"),)
        return (
            Promise("round_s", f"{home}:expected_round_time", arguments, source),
            Promise("round_s_variance", f"{home}:round_time_variance", arguments, source),
            Promise("round_s_cdf", f"{home}:round_time_cdf", arguments, source),
            *errors,
        )

    def redo(self, lost: frozenset[NodeId]) -> tuple[str, ...]:
        """Return what is done again after a loss: the open round of a worker, everything of the server."""
        return tuple("training from the start" if n == SERVER else f"the open round of {n}" for n in sorted(lost))
