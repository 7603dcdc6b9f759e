"""Stochastic gradient coding: workers send what is right on average, and the server adds what arrives.

No answer is waited for in particular, and nothing is decoded. If every worker is absent by itself with probability
``p``, the sum ``sum_w sum_(i in w) g_i / (d (1-p))`` over those that are there is the gradient on average, with
``E||sum - g||^2 = p/(1-p) sum_w ||sum_(i in w) g_i / d||^2``. The more evenly pairs of partitions are spread over the
workers, the smaller that is for gradients that are alike.

Source: Bitar, Wootters and El Rouayheb, "Stochastic gradient coding for straggler mitigation in distributed learning",
IEEE Journal on Selected Areas in Information Theory 1(1), 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Lt
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.designs import placement
from emuml.protocols.gradient_coding.codes.linear import LinearCode
from emuml.protocols.gradient_coding.codes.seam import ROUNDING, check_collect, check_workers
from emuml.protocols.gradient_coding.decoders.plain import PlainSum
from emuml.protocols.gradient_coding.decoders.seam import Rows
from emuml.shapes import All, Count
from emuml.spec import check


@dataclass(frozen=True)
class StochasticCode:
    """Every partition at ``replication`` workers; the sum of whatever answers arrive is right on average.

    Rounds close at a deadline (``GradientCoding(deadline_s=...)``) or at ``collect`` answers; otherwise everybody who
    lives is waited for. Where a difference set is known, as for 7 workers and replication 3 (the Fano plane), any two
    partitions meet at equally many workers and loads are equal; otherwise workers are drawn by the seed, and loads
    differ.

    Parameters
    ----------
    replication : int
        Workers per partition ``d``, in ``1..workers``.
    absence : float, optional
        Probability ``p`` of a worker to be missing in a round, below 1. By default the share that ``collect`` leaves
        out, ``1 - collect/workers``, and 0 without it. A round that nobody misses overshoots by ``1/(1-p)``.

    Examples
    --------
    >>> code = StochasticCode(replication=3, absence=0.25).build(7)
    >>> code.assignment(0), code.coefficients(0)[0].__round__(6)
    ((0, 4, 6), 0.444444)
    """

    replication: Annotated[int, Ge(1)]
    absence: Annotated[float, Ge(0), Lt(1)] | None = None

    def __post_init__(self) -> None:
        check(self)

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> SumCode:
        """Return the code for ``workers`` workers; ``seed`` draws the placement where no difference set is known.

        Raises
        ------
        UserError
            If there are fewer workers than replicas, or ``collect`` is not in ``1..workers``.
        """
        check_workers(workers)
        check_collect(collect, workers)
        check_replication(self.replication, workers, "StochasticCode")
        present = 1.0 - self.absence if self.absence is not None else (collect or workers) / workers
        holders = placement(workers, self.replication, seed, "code/stochastic")
        factors = np.full((workers, self.replication), 1.0 / (self.replication * present))
        return sum_code(holders, factors, workers, collect)


def check_replication(replication: int, workers: int, code: str) -> None:
    """Refuse more replicas than workers.

    Raises
    ------
    UserError
        With the nearest number.
    """
    if replication > workers:
        raise UserError(
            f"{replication} replicas need as many workers, got {workers}",
            f"{code}.replication",
            f"an integer in 1..{workers}",
            f"the nearest is {workers}",
        )


@dataclass(frozen=True, eq=False)
class SumCode(LinearCode):
    """A code whose answers are added as they are; see :class:`LinearCode`."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What plans and reports say: by how much the sum overshoots if nobody is missing."""
        error = self.decode(range(self.workers)).error
        if self.collect is not None or error <= ROUNDING:
            return ()
        return (
            f"answers are added as they are: the sum is right on average if workers are missing as often as stated, "
            f"and off by {error:.3g} partitions when all {self.workers} are there",
        )


def sum_code(holders: NDArray[np.int64], factors: NDArray[np.float64], workers: int, collect: int | None) -> SumCode:
    """Return the code whose answers are added as they are.

    Parameters
    ----------
    holders : ndarray of int64, shape (partitions, replication)
        Workers that hold each partition.
    factors : ndarray of float64, shape (partitions, replication)
        Factor of the partition in each of their answers; where it is 0 the worker does not hold the partition after
        all.
    workers : int
    collect : int or None
        Answers at which a round closes at the latest.
    """
    partition, position = np.nonzero(factors)
    worker = holders[partition, position]
    order = np.lexsort((partition, worker))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(worker, minlength=workers))])
    rows = Rows(len(holders), indptr, partition[order], factors[partition, position][order])
    rule = All(workers) if collect is None else Count(workers, collect)
    return SumCode(rows, rule, PlainSum(rows), collect)
