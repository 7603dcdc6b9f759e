"""Partial work: workers send the gradient of each partition as it is ready, so that slow ones contribute, too.

A worker does its partitions in an order of its own, and what it has done when the round closes is used. With a whole
task that takes ``T``, message ``j`` of ``r`` leaves after ``j T / r``. A round closes once enough different partitions
are there; every partition enters the sum once.

References
----------
Ozfatura, Ulukus, Gunduz, "Coded distributed computing with partial recovery", arXiv:2007.02191 (messages as parts are
done); Ramamoorthy, Meng and Girimaji, arXiv:2405.19509 (partial stragglers, and the order of partitions).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Lt
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.seam import BuiltCode, Decoding, check_workers, checked
from emuml.protocols.gradient_coding.rules.partitions import Distinct
from emuml.spec import check
from emuml.task import Task

if TYPE_CHECKING:
    from emuml.protocol import Problem
    from emuml.protocols.gradient_coding.server import Server
    from emuml.protocols.gradient_coding.worker import Worker

Send = Literal["each", "prefix"]
Placement = Literal["cyclic", "groups"]


@dataclass(frozen=True)
class PartialWork:
    """Workers send each partition's gradient when it is ready; the server stops at enough different ones.

    Parameters
    ----------
    replication : int
        Workers that hold each partition, in ``1..workers``.
    tolerance : float
        ``q``: a round closes at ``ceil((1 - q) k)`` of the ``k = workers`` partitions. 0 is exact.
    send : {"each", "prefix"}
        Whether a message is the gradient of one partition or the sum of all that its worker has done so far. Sums of
        single ones are added in the order of the partitions: exact rounds then give the bits of a single process.
    placement : {"cyclic", "groups"}
        Which partitions a worker holds, and in which order it does them: ``w, w+1, ...`` around, or those of its group
        of ``replication`` workers, each member beginning with another one.

    Examples
    --------
    >>> code = PartialWork(replication=2).build(4)
    >>> [code.order(worker) for worker in range(4)]
    [(0, 1), (1, 2), (2, 3), (3, 0)]
    """

    replication: Annotated[int, Ge(1)]
    tolerance: Annotated[float, Ge(0), Lt(1)] = 0.0
    send: Send = "each"
    placement: Placement = "cyclic"

    def __post_init__(self) -> None:
        check(self)

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> PartialCode:
        """Return the code for ``workers`` workers; ``seed`` is not used.

        Raises
        ------
        UserError
            If there are fewer workers than replicas, groups of ``replication`` do not divide the workers, or
            ``collect`` is given: messages are counted by their partitions here.
        """
        check_workers(workers)
        if collect is not None:
            raise UserError(
                f"got {collect}, but partial work counts partitions", "collect", "nothing", "PartialWork.tolerance"
            )
        allowed = [r for r in range(1, workers + 1) if self.placement == "cyclic" or workers % r == 0]
        if self.replication not in allowed:
            nearest = min(allowed, key=lambda r: abs(r - self.replication))
            what = f"{self.replication} replicas among {workers} workers"
            which = f"1..{workers}" if self.placement == "cyclic" else f"{allowed}"
            raise UserError(what, "PartialWork.replication", which, f"the nearest is {nearest}")
        return PartialCode(workers, self)


@dataclass(frozen=True)
class PartialCode(BuiltCode):
    """Partial work for a known number of workers, with as many partitions.

    Parameters
    ----------
    workers : int
    declared : PartialWork
    """

    workers: int
    declared: PartialWork

    in_rounds = False
    answers_once = False
    collect = None

    @property
    def partitions(self) -> int:
        """Number of partitions ``k`` of the data: that of the workers."""
        return self.workers

    @property
    def load(self) -> float:
        """Work of each worker, in units of ``1/workers`` of the data, if it does all of it."""
        return float(self.declared.replication)

    @property
    def needed(self) -> int:
        """How many different partitions close a round."""
        return self.partitions - int(self.declared.tolerance * self.partitions + 1e-9)

    def order(self, worker: int) -> tuple[int, ...]:
        """Return the partitions of a worker in the order in which it does them."""
        r, n = self.declared.replication, self.workers
        if self.declared.placement == "cyclic":
            return tuple((worker + j) % n for j in range(r))
        first, place = worker - worker % r, worker % r
        return tuple(first + (place + j) % r for j in range(r))

    def assignment(self, worker: int) -> tuple[int, ...]:
        """Return the partitions of a worker, ascending."""
        return tuple(sorted(self.order(worker)))

    def coefficients(self, worker: int) -> tuple[float, ...]:
        """Return the factor of each of the worker's partitions in its whole sum: ones."""
        return (1.0,) * self.declared.replication

    @cached_property
    def encode_matrix(self) -> NDArray[np.float64]:
        """Who holds which partition, read-only, of shape (workers, partitions)."""
        found = np.zeros((self.workers, self.partitions))
        for worker in range(self.workers):
            found[worker, list(self.order(worker))] = 1.0
        found.flags.writeable = False
        return found

    def stop_rule(self) -> Distinct:
        """Return when a round would close if workers sent nothing before they have done everything."""
        return Distinct(tuple(map(self.order, range(self.workers))), self.needed)

    def decode(self, received: Iterable[int]) -> Decoding:
        """Refuse: the server adds messages of partitions, of which whole answers of workers are no sum.

        Raises
        ------
        UserError
            Always.
        """
        found = checked(received, self.workers)
        hint = "GradientCoding(code=PartialWork(...)) adds each partition once"
        raise UserError(f"whole answers of {found.size} workers overlap", "decode", "messages of partitions", hint)

    def shares(self, workload: Problem, parameters: NDArray[Any], worker: int, draw: int) -> list[Task]:
        """Return the tasks of a worker in a round, in its order: gradients of a partition each, shares of a whole."""
        k = self.partitions
        tasks = [workload.gradient(parameters, (partition,), k, draw=draw) for partition in self.order(worker)]
        whole = sum(task.cost for task in tasks)
        return [replace(task, whole=whole) for task in tasks]

    def terms(self, sent: dict[int, int]) -> list[tuple[int, int, float]]:
        """Return what makes the sum of all partitions that are there, each once, in a fixed order.

        Parameters
        ----------
        sent : dict of int to int
            How many messages of each worker are there.

        Returns
        -------
        list of (worker, position, weight)
            Position of the message in the order of its worker.
        """
        owner: dict[int, tuple[int, int]] = {}
        for worker in sorted(sent):
            for position, partition in enumerate(self.order(worker)[: sent[worker]]):
                owner.setdefault(partition, (worker, position))
        if self.declared.send == "each":
            return [(*owner[partition], 1.0) for partition in sorted(owner)]
        used = set(owner.values())
        found: list[tuple[int, int, float]] = []
        for worker, position in sorted(used):  # a run of positions is the sum at its end less that before its begin
            if (worker, position + 1) not in used:
                found.append((worker, position, 1.0))
            if position and (worker, position - 1) not in used:
                found.append((worker, position - 1, -1.0))
        return found

    def roles(self) -> tuple[type[Server], type[Worker]]:
        """Return the classes of the server and of the workers."""
        from emuml.protocols.gradient_coding.partial_nodes import PartialServer, PartialWorker

        return PartialServer, PartialWorker
