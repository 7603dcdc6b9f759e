"""Sequential gradient coding as a protocol: jobs begin one a round and are decoded some rounds later.

Rounds have a soft deadline, ``1 + wait`` times what the fastest worker needed. Whoever is later is given up, as long as
the code stands the pattern of stragglers so far; otherwise the round waits for everybody. So every job is decoded in
time, always exactly, and rounds rarely wait for stragglers that come in bursts.

Job ``t``, the gradient of step ``t``, is computed at the newest parameters at the start of round ``t``: those after
all steps that could be made until then, at least ``t - T`` with ``T`` the code's delay. Steps are made in the order of
the jobs. So a step may use a gradient that is up to ``T`` steps old; its ``staleness`` is logged.

References
----------
Krishnan, Ebrahimi and Khisti, "Sequential gradient coding for straggler mitigation", arXiv:2211.13802. They
train ``T + 1`` models in turn instead, so that no gradient is old.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar

from annotated_types import Ge
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.node import Factory, NodeId
from emuml.protocol import Outcome, Problem, Promise
from emuml.protocols.gradient_coding import Uncoded
from emuml.protocols.gradient_coding.codes import Code
from emuml.protocols.sequential_coding.plain import Plain
from emuml.protocols.sequential_coding.seam import Sequence, SequentialCode
from emuml.protocols.sequential_coding.server import Server
from emuml.protocols.sequential_coding.worker import Worker
from emuml.roster import Roster
from emuml.spec import check

SERVER = NodeId("server", 0)


@dataclass(frozen=True)
class SequentialGradientCoding:
    """Synchronous training with gradients that may take several rounds.

    Parameters
    ----------
    code : SelectiveRepetition, MultiplexedCoding, or a gradient code
        A gradient code, such as ``FractionalRepetition(4)``, is used in every round by itself, with the same deadline.
    wait : float
        ``mu``: whoever needs more than ``1 + wait`` times as long as the fastest worker is late.

    Examples
    --------
    >>> from emuml.protocols.sequential_coding import MultiplexedCoding
    >>> SequentialGradientCoding(code=MultiplexedCoding(burst=1, window=2, stragglers=2)).wait
    1.0
    """

    survives: ClassVar[frozenset[str]] = frozenset()
    """No worker may be lost for good: the code counts on those who straggled to come back."""

    code: SequentialCode | Code = field(default_factory=Uncoded)
    wait: Annotated[float, Ge(0)] = 1.0

    def __post_init__(self) -> None:
        check(self)

    def sequence(self, workers: int, seed: int = 0) -> Sequence:
        """Return the code for so many workers."""
        if isinstance(self.code, SequentialCode):
            return self.code.sequence(workers, seed)
        return Plain(self.code.build(workers, seed))

    def nodes(self, workload: Problem, roster: Roster) -> dict[NodeId, tuple[str, Factory]]:
        """Return one server and the workers of the roster.

        Raises
        ------
        UserError
            If the roster has no single server, or the code does not fit the number of workers or of rows.
        """
        if tuple(roster.of("server")) != (SERVER,):
            raise UserError(f"got {len(roster.of('server'))} servers", "cluster.servers", "1 for sequential coding")
        code = self.sequence(len(roster.of("worker")), roster.seed)
        workload.partition_bounds(code.partitions)  # refuses more partitions than rows before anything runs
        found: dict[NodeId, tuple[str, Factory]] = {
            SERVER: ("server", partial(Server, code, workload, roster, self.wait))
        }
        for worker in roster.of("worker"):
            found[worker] = ("worker", partial(Worker, code, workload, worker.index))
        return found

    def parameters(self, result: Outcome) -> NDArray[Any]:
        """Return the parameters that were published last."""
        return result.published[-1][1]

    def shape(self, roster: Roster, problem: Problem | None = None) -> None:
        """Return None: when a round ends depends on the rounds before it."""
        self.sequence(len(roster.of("worker")), roster.seed)  # refuses what does not fit

    def oracles(self) -> tuple[Promise, ...]:
        """Return nothing: :func:`emuml.theory.sequential.sequential_rounds` follows given delays instead."""
        return ()

    def redo(self, lost: frozenset[NodeId]) -> tuple[str, ...]:
        """Return what is done again after a loss: the open round of a worker, everything of the server."""
        return tuple("training from the start" if n == SERVER else f"the open round of {n}" for n in sorted(lost))
