"""Stochastic gradient coding for workers that are not equally reliable: those that are seldom missing count for more.

Worker ``w`` is absent by itself with probability ``p_w`` and sends ``sum_(i in w) a_wi g_i``; the server adds what
arrives. Among the factors that are right on average, ``sum_w (1-p_w) a_wi = 1`` for each partition ``i``,

    a_wi = (1/p_w) / sum_v (1-p_v)/p_v        over the workers v that hold i

have the least variance of every coefficient, ``1 / sum_v (1-p_v)/p_v``. With equal chances that is
:class:`StochasticCode`. Workers that are never missing share their partitions alone.

The question is that of arXiv:2510.22539 (stragglers of different chances, no bias, least residual); the factors follow
by Lagrange's multipliers, one for each partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Lt
from numpy.typing import ArrayLike, NDArray

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.designs import placement
from emuml.protocols.gradient_coding.codes.linear import LinearCode
from emuml.protocols.gradient_coding.codes.seam import check_collect, check_workers
from emuml.protocols.gradient_coding.codes.stochastic import check_replication, sum_code
from emuml.spec import check

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeterogeneousCode:
    """Every partition at ``replication`` workers, weighted by how seldom each of them is missing.

    Parameters
    ----------
    replication : int
        Workers per partition, in ``1..workers``; placed as by :class:`StochasticCode`.
    absence : tuple of float
        Probability of each worker to be missing in a round, below 1, one for each worker.
        :func:`estimate_absence` has them from rounds that were observed.

    Examples
    --------
    >>> code = HeterogeneousCode(replication=2, absence=(0.5, 0.25)).build(2)
    >>> code.encode_matrix.round(3).tolist()
    [[0.5, 0.5], [1.0, 1.0]]
    """

    replication: Annotated[int, Ge(1)]
    absence: tuple[Annotated[float, Ge(0), Lt(1)], ...]

    def __post_init__(self) -> None:
        check(self)

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> LinearCode:
        """Return the code for ``workers`` workers; ``seed`` draws the placement where no difference set is known.

        Raises
        ------
        UserError
            If there is not one chance for each worker, if there are fewer workers than replicas, or if ``collect`` is
            not in ``1..workers``.
        """
        check_workers(workers)
        check_collect(collect, workers)
        if len(self.absence) != workers:
            raise UserError(
                f"got {len(self.absence)} chances for {workers} workers",
                "HeterogeneousCode.absence",
                f"{workers} probabilities below 1, one for each worker",
            )
        check_replication(self.replication, workers, "HeterogeneousCode")
        holders = placement(workers, self.replication, seed, "code/stochastic")
        return sum_code(holders, _factors(np.array(self.absence)[holders]), workers, collect)


def _factors(absence: Floats) -> Floats:
    """Return the factors of least variance for the chances of each partition's workers, of the same shape.

    Odds ``p_least / p_w`` instead of ``1 / p_w``: they stay in [0, 1], and workers that are never missing need no rule
    of their own.
    """
    least = absence.min(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        odds = np.where(absence == least, 1.0, least / absence)
    found: Floats = odds / np.sum((1.0 - absence) * odds, axis=1, keepdims=True)
    return found


@dataclass(frozen=True)
class AbsenceEstimate:
    """How often workers were missing, and what to use of it.

    Attributes
    ----------
    observed : tuple of float
        Share of the rounds in which each worker was missing.
    used : tuple of float
        The same, but no less than ``floor`` and no more than ``1 - floor``: what was never seen is not impossible.
    rounds : int
        Rounds that were observed.
    floor : float
    """

    observed: tuple[float, ...]
    used: tuple[float, ...]
    rounds: int
    floor: float


def estimate_absence(answered: ArrayLike, floor: float | None = None) -> AbsenceEstimate:
    """Return the chances of workers to be missing, from rounds that were observed.

    Parameters
    ----------
    answered : array_like of bool, shape (rounds, workers)
        Whether each worker's answer was there; see :func:`answered_in`.
    floor : float, optional
        Least chance that is used, above 0 and at most 1/2; by default ``1 / (rounds + 2)``, the chance by Laplace's
        rule of what has not been seen in so many rounds.

    Raises
    ------
    UserError
        If there is no round or no worker, or the floor is no such number.

    Examples
    --------
    >>> found = estimate_absence([[True, True], [False, True]], floor=0.125)
    >>> found.observed, found.used
    ((0.5, 0.0), (0.5, 0.125))
    """
    flags = np.asarray(answered)
    if flags.ndim != 2 or not flags.size or not np.all((flags == 0) | (flags == 1)):
        raise UserError(f"got shape {flags.shape}", "answered", "flags of at least one round and worker, shape (r, n)")
    least = 1.0 / (len(flags) + 2.0) if floor is None else floor
    if not 0.0 < least <= 0.5:
        raise UserError(f"got {floor}", "floor", "a number above 0 and at most 0.5")
    observed = 1.0 - flags.mean(axis=0)
    used = np.clip(observed, least, 1.0 - least)
    return AbsenceEstimate(tuple(observed.tolist()), tuple(used.tolist()), len(flags), least)


def answered_in(covered_sets: list[str] | tuple[str, ...], workers: int) -> NDArray[np.bool_]:
    """Return whose answers were there, from the ``covered_set`` that is logged of each round.

    Parameters
    ----------
    covered_sets : sequence of str
        Hexadecimal numbers, bit ``w`` for worker ``w``; of codes without replicas, or with each worker a group.
    workers : int

    Returns
    -------
    ndarray of bool, shape (rounds, workers)

    Examples
    --------
    >>> answered_in(["0x3", "0x4"], workers=3).tolist()
    [[True, True, False], [False, False, True]]
    """
    numbers = [int(bits, 16) for bits in covered_sets]
    return np.array([[bool(number >> worker & 1) for worker in range(workers)] for number in numbers], np.bool_)
