"""Asynchronous training: which updates may meet which version of the parameters, and when.

Every worker computes gradients of its own share of the data at its own pace, held back by a barrier. Servers
apply the updates and answer reads (``server.py``, ``worker.py``), each for its own slice of the parameters.

References
----------
Dai et al., "Toward understanding the impact of staleness in distributed machine learning", arXiv:1810.03264; Ho et al.,
NIPS 2013 (stale synchronous parallel).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.message import size_bytes
from emuml.node import Factory, NodeId, Nodes
from emuml.protocol import Outcome, Problem, Promise
from emuml.protocols.async_updates.barriers import BSP, Barrier
from emuml.protocols.async_updates.messages import Read, Update, View
from emuml.protocols.async_updates.pool_server import PoolServer, costs_of
from emuml.protocols.async_updates.problem import SharedProblem
from emuml.protocols.async_updates.server import OnLost, Server
from emuml.protocols.async_updates.worker import Worker
from emuml.pushes import PushNodes
from emuml.roster import Makers, Roster
from emuml.shapes import Push
from emuml.spec import check


@dataclass(frozen=True)
class AsyncUpdates:
    """Training in which workers push updates at their own pace.

    A round is as many pushes as there are workers.

    Parameters
    ----------
    barrier : Barrier
        ``BSP()``, ``SSP(staleness)`` or ``ASP()``.
    on_lost : {"wait", "evict"}
        What a worker that is down means to the barrier: it holds the others back until it returns, or it does not
        count until it reads again; then it goes on no earlier than the slowest of the others.

    Examples
    --------
    >>> from emuml.protocols.async_updates import SSP
    >>> AsyncUpdates(barrier=SSP(3)).barrier.slack
    3
    """

    survives: ClassVar[frozenset[str]] = frozenset({"worker"})
    """Roles of which all nodes may be lost for good without that nobody can go on."""

    barrier: Barrier = field(default_factory=BSP)
    on_lost: OnLost = "wait"

    def __post_init__(self) -> None:
        check(self)

    def nodes(self, workload: Problem, roster: Roster) -> Nodes:
        """Return one server and the workers of the roster.

        Raises
        ------
        UserError
            If the roster has no single server, the workload has fewer rows than workers, or steps depend on former
            steps where a worker has to make them on its own copy.
        """
        workers = roster.of("worker")
        servers = roster.of("server")
        self._check_servers(roster)
        workload.partition_bounds(len(workers))
        if not isinstance(workload, SharedProblem):
            raise UserError(f"{type(workload).__name__} cannot be cut into shares", "workload", "push() and apply()")
        if self.barrier.slack and workload.has_state:
            raise UserError(
                f"{type(self.barrier).__name__} makes steps on copies of the parameters, and these depend on the past",
                "workload.optimizer",
                "an optimizer without state, such as gradient-descent",
                "BSP, SSP(0) and ASP fetch parameters before each step, and take any",
            )
        if len(servers) > workload.initial.shape[0]:
            most = workload.initial.shape[0]
            raise UserError(f"got {len(servers)} for {most} parameters", "cluster.servers", f"1 to {most}")

        def server(index: int) -> Factory:
            return partial(Server, self.barrier, workload, roster, self.on_lost)

        def worker(index: int) -> Factory:
            return partial(Worker, self.barrier, workload, index, len(workers))

        return Makers(roster, {"server": server, "worker": worker})

    def in_pushes(self, workload: Problem, roster: Roster) -> PushNodes | None:
        """Return what an array tier needs; see :class:`emuml.pushes.InPushes`."""
        if len(roster.of("server")) != 1 or not isinstance(workload, SharedProblem):
            return None
        return PushNodes(
            server=roster.of("server")[0],
            factory=partial(PoolServer, self.barrier, workload, roster, self.on_lost),
            costs=partial(costs_of, workload, len(roster.of("worker"))),
        )

    def _check_servers(self, roster: Roster) -> None:
        count = len(roster.of("server"))
        if count < 1 or (count > 1 and self.on_lost == "evict"):
            raise UserError(f"got {count} servers", "cluster.servers", "1 where lost workers are evicted, else any")

    def parameters(self, result: Outcome) -> NDArray[Any]:
        """Return the parameters that were published last."""
        return result.published[-1][1]

    def shape(self, roster: Roster, problem: Problem | None = None) -> Push:
        """Return how a push looks; message sizes, those of the first iteration, are 0 without a problem."""
        self._check_servers(roster)
        pull = push = ask = 0
        if problem is not None:
            value = np.zeros(-(-problem.initial.shape[0] // len(roster.of("server"))))
            pull, push = size_bytes(View(1, 0, 0, 0, value)), size_bytes(Update(1, 0, 0, True, value))
            ask = size_bytes(Read(-1))
        return Push(pull, 1.0, push, self.barrier, ask)

    def oracles(self) -> tuple[Promise, ...]:
        """Return what theory can say of it in the long run: seconds per update, and per round."""
        home, source = "emuml.theory", "Ho et al. 2013 (the barrier); order statistics, and a Markov chain of leads"
        arguments = {"barrier": self.barrier}
        return (
            Promise("update_s", f"{home}:expected_update_time", arguments, source),
            Promise("round_s", f"{home}:expected_pushes_time", arguments, source),
        )

    def redo(self, lost: frozenset[NodeId]) -> tuple[str, ...]:
        """Return what is done again after a loss: the open iteration of a worker, everything of the server."""
        return tuple(
            f"training of the parameters of {n}" if n.role == "server" else f"the open iteration of {n}"
            for n in sorted(lost)
        )
