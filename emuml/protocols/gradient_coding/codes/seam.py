"""What a code is: a declaration that is built for a number of workers, and then says who computes what.

A built code answers the questions of theory (``load``, ``stop_rule``), of the server (``decode``, ``combine``) and of
the workers (``task``). Most codes say which partitions a worker holds, with which factors, when a round closes and how
answers combine, and leave the rest as it is here.

Invariants: (1) the answer of worker ``w`` is ``sum_i B[w, i] g_i``, added in ascending order of partitions, so that
equal rows of ``B`` give answers that are equal bit for bit; (2) decoding depends on the set of those who answered,
never on the order; (3) the error of a decoding is that of the weights that it comes with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.shapes import Groups, StopRule
from emuml.task import Task

if TYPE_CHECKING:
    from emuml.protocol import Problem
    from emuml.protocols.gradient_coding.server import Server
    from emuml.protocols.gradient_coding.worker import Worker
    from emuml.rounds import Answers

NEGLIGIBLE = 2.0**-64
"""The cost of a task that has nothing to add up: tasks cost something, and this changes no sum of costs."""


ROUNDING = 1e-9
"""Decoding error up to which a decoding is exact but for rounding, in partitions."""


class Code(Protocol):
    """A declaration of who computes what; the protocol needs nothing else of it."""

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> BuiltCode:
        """Return the code for so many workers, whose rounds also close at ``collect`` answers."""


@dataclass(frozen=True, eq=False)
class Decoding:
    """How the answers of a round combine.

    Attributes
    ----------
    weights : ndarray of float64, shape (n_received,)
        One weight per received worker, in the order in which they were given.
    error : float
        ``||a^T B - 1||^2`` of these weights, in partitions.
    covered_groups : ndarray of int64
        Groups with at least one answer, ascending; of a code without replicas, the workers that answered.
    noise_gain : float
        ``sqrt(sum_w a_w^2 ||b_w||^2 / k)``: how much independent rounding of the answers grows. 1 for an exact decode
        of groups.
    """

    weights: NDArray[np.float64]
    error: float
    covered_groups: NDArray[np.int64]
    noise_gain: float

    @cached_property
    def covered(self) -> tuple[int, ...]:
        """The covered groups as a tuple."""
        return tuple(self.covered_groups.tolist())


class BuiltCode:
    """A code for a known number of workers; codes override what they do differently."""

    workers: int
    """Number of workers ``n``."""

    collect: int | None
    """Answers at which a round closes at the latest; ``None`` for no such limit."""

    in_rounds: bool = True
    """Whether a round is a question, independent work and a stop rule that needs to know of answers only whose."""

    answers_once: bool = True
    """Whether a worker answers once a round, when its work is done: what :class:`emuml.shapes.Round` describes."""

    @property
    def partitions(self) -> int:
        """Number of partitions ``k`` of the data."""
        raise NotImplementedError

    @property
    def load(self) -> float:
        """Work of a worker, in units of ``1/workers`` of the data; of the one that has most, if they differ."""
        raise NotImplementedError

    @property
    def loads(self) -> NDArray[np.float64]:
        """Work of each worker, shape (workers,), in units of ``1/workers`` of the data."""
        return np.full(self.workers, self.load)

    @property
    def groups(self) -> Groups:
        """Workers whose answers are equal, by group: every worker its own, unless a code has replicas."""
        return tuple((worker,) for worker in range(self.workers))

    @property
    def encode_matrix(self) -> NDArray[np.float64]:
        """The matrix ``B``, read-only, of shape (workers, partitions)."""
        raise NotImplementedError

    @property
    def remarks(self) -> tuple[str, ...]:
        """What plans and reports say of this code, in words; what one should fear begins with "warning"."""
        return ()

    def assignment(self, worker: int) -> tuple[int, ...]:
        """Return the partitions of a worker, ascending; there may be none."""
        raise NotImplementedError

    def coefficients(self, worker: int) -> tuple[float, ...]:
        """Return the factor of each of the worker's partitions in its answer."""
        raise NotImplementedError

    def stop_rule(self) -> StopRule:
        """Return when a round of this code closes."""
        raise NotImplementedError

    def decode(self, received: Iterable[int]) -> Decoding:
        """Combine the answers of some workers.

        Parameters
        ----------
        received : iterable of int
            Distinct workers whose answers are at hand, in any order.

        Returns
        -------
        Decoding
            Weights in the order of ``received``.

        Raises
        ------
        UserError
            If a worker is unknown or given twice.
        """
        raise NotImplementedError

    def decode_honest(self, received: Iterable[int]) -> Decoding:
        """Combine answers of workers none of whom lies, as a round does that closes with them; see :meth:`decode`.

        Codes that take no worker's word for a sum leave out what is not confirmed.
        """
        return self.decode(received)

    def task(self, workload: Problem, parameters: NDArray[Any], worker: int, draw: int) -> Task:
        """Return what a worker computes when it is asked at these parameters in round ``draw``."""
        owned = self.assignment(worker)
        if not owned:
            return Task(_nothing, (parameters.shape,), NEGLIGIBLE, parameters.shape, draw=draw)
        factors = tuple(self.coefficients(worker))
        given = None if factors.count(1.0) == len(factors) else factors
        found: Task = workload.gradient(parameters, owned, self.partitions, given, draw=draw)
        return found

    def answer_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of an answer, for parameters of a shape."""
        return shape

    def of(self, shape: tuple[int, ...]) -> BuiltCode:
        """Return the code for parameters of a shape; most codes do not ask for it."""
        return self

    def combine(self, answers: Answers, decoding: Decoding) -> NDArray[Any] | None:
        """Return the gradient that a decoding makes of answers; ``None`` for zeros."""
        return answers.combine(decoding.weights)

    def roles(self) -> tuple[type[Server], type[Worker]]:
        """Return the classes of the server and of the workers."""
        from emuml.protocols.gradient_coding.server import Server
        from emuml.protocols.gradient_coding.worker import Worker

        return Server, Worker


def _nothing(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the sum of no gradients."""
    return np.zeros(shape)


def checked(received: Iterable[int], workers: int) -> NDArray[np.int64]:
    """Return the workers that were received as an array, in the order in which they were given.

    Raises
    ------
    UserError
        If a worker is unknown or given twice.
    """
    given = received if isinstance(received, np.ndarray) else list(received)
    found = np.array(given, dtype=None if len(given) else np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise UserError(f"got {given!r:.80}", "decode", "worker numbers")
    outside = found[(found < 0) | (found >= workers)]
    if outside.size:
        raise UserError(f"there is no worker {outside[0]}", "decode", f"workers 0..{workers - 1}")
    repeated = np.flatnonzero(np.bincount(found, minlength=1) > 1)
    if repeated.size:
        raise UserError(f"worker {repeated[0]} is given twice", "decode", "each received worker once")
    return found.astype(np.int64, copy=False)


def check_workers(workers: int) -> None:
    """Refuse a code for nobody.

    Raises
    ------
    UserError
        If there is no worker.
    """
    if workers < 1:
        raise UserError(f"got {workers} workers", "workers", "an integer >= 1", "the nearest is 1")


def check_collect(collect: int | None, workers: int) -> None:
    """Refuse to collect from more than all workers, or from nobody.

    Raises
    ------
    UserError
        If ``collect`` is not in ``1..workers``.
    """
    if collect is not None and not 1 <= collect <= workers:
        nearest = min(max(collect, 1), workers)
        raise UserError(f"got {collect}", "collect", f"an integer in 1..{workers}", f"the nearest is {nearest}")
