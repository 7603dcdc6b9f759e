"""Moments of sums of whatever arrives, when every worker is missing by itself with a chance of its own.

The sum is linear in who is there, so its mean and variance are exact for every matrix ``B``: with ``p_w`` the chance of
worker ``w`` to be missing and ``m_w`` what it sends,

    E[sum] = sum_w (1-p_w) m_w        E||sum - E[sum]||^2 = sum_w p_w (1-p_w) ||m_w||^2

References
----------
Bitar, Wootters and El Rouayheb, "Stochastic gradient coding for straggler mitigation in distributed learning", IEEE
JSAIT 2020. For chances that differ, arXiv:2510.22539. The forms are checked against all outcomes of small cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from emuml.deadlines import Deadline
from emuml.errors import UserError
from emuml.shapes import Stragglers
from emuml.theory import arguments
from emuml.theory.capped import absence_at
from emuml.theory.closing import Floats
from emuml.theory.seams import Code, ComputeLaw, NoClosedForm, OneStepDecoder, check_independent


@dataclass(frozen=True, eq=False)
class SumMoments:
    """What the sum of the answers is on average.

    Attributes
    ----------
    mean : ndarray of float64, shape (partitions,)
        Mean coefficient of each partition's gradient; 1 where the sum has no bias.
    variance : ndarray of float64, shape (partitions,)
        Variance of each coefficient.
    weighted : ndarray of float64, shape (workers, partitions)
        ``sqrt(p_w (1-p_w)) B[w, i]``.
    """

    mean: Floats
    variance: Floats
    weighted: Floats

    @property
    def error(self) -> float:
        """The expected ``||a^T B - 1||^2``, in partitions."""
        return float(np.sum((self.mean - 1.0) ** 2) + np.sum(self.variance))

    def bias(self, gradients: ArrayLike) -> Floats:
        """Return ``E[sum] - g`` for partition gradients of shape (partitions, columns)."""
        found: Floats = (self.mean - 1.0) @ np.asarray(gradients, np.float64)
        return found

    def mean_square_error(self, gradients: ArrayLike) -> float:
        """Return ``E||sum - g||^2`` for partition gradients of shape (partitions, columns)."""
        given = np.asarray(gradients, np.float64)
        return float(np.sum(self.bias(given) ** 2) + np.sum((self.weighted @ given) ** 2))


def sum_moments(matrix: ArrayLike, absence: ArrayLike) -> SumMoments:
    """Return the moments of the sum of the answers that arrive.

    Parameters
    ----------
    matrix : array_like, shape (workers, partitions)
        The matrix ``B``; that of a built code is its ``encode_matrix``.
    absence : array_like, shape () or (workers,)
        Chance of each worker to be missing, from 0 to 1.

    Examples
    --------
    >>> moments = sum_moments([[0.5, 0.5], [1.0, 1.0]], [0.5, 0.25])
    >>> moments.mean.tolist(), moments.variance.round(12).tolist()
    ([1.0, 1.0], [0.25, 0.25])
    """
    code = np.asarray(matrix, np.float64)
    if code.ndim != 2:
        raise UserError(f"got shape {code.shape}", "matrix", "shape (workers, partitions)")
    missing = arguments.chances(absence)
    if missing.shape not in ((), (len(code),)):
        raise UserError(f"got shape {missing.shape}", "absence", f"shape () or ({len(code)},)")
    missing = np.broadcast_to(missing, len(code))
    weighted = np.sqrt(missing * (1.0 - missing))[:, None] * code
    return SumMoments((1.0 - missing) @ code, np.sum(weighted**2, axis=0), weighted)


@dataclass(frozen=True)
class StochasticMoments:
    """Moments of stochastic gradient coding on a design, in the form in which :func:`noise_floor` takes them.

    Attributes
    ----------
    groups : int
        Number of partitions.
    whole, parts : float
        ``E||sum - g||^2 = whole ||g||^2 + parts sum_i ||g_i||^2``.
    """

    groups: int
    whole: float
    parts: float

    @property
    def miss(self) -> float:
        """What is missing of the gradient on average: nothing."""
        return 0.0

    def mean_square_error(self) -> tuple[float, float]:
        """Return the coefficients of ``E||sum - g||^2``."""
        return self.whole, self.parts

    def second_moment(self) -> tuple[float, float]:
        """Return the coefficients of ``E||sum||^2``."""
        return 1.0 + self.whole, self.parts


def stochastic_moments(workers: int, replication: int, absence: float) -> StochasticMoments:
    """Return the moments of stochastic gradient coding where any two partitions share equally many workers.

    With ``d`` workers a partition, ``lambda = d (d-1)/(n-1)`` shared by two of the ``n`` partitions, and chance ``p``:
    ``E||sum - g||^2 = p/(1-p) ((1/d - lambda/d^2) sum_i ||g_i||^2 + lambda/d^2 ||g||^2)``. Without a design, as many
    are shared on average; :func:`sum_moments` has the moments of the placement that there is.

    Parameters
    ----------
    workers : int
        Number of workers and of partitions, ``n``.
    replication : int
        ``d``, in ``1..workers``.
    absence : float
        ``p``, below 1.

    Examples
    --------
    >>> moments = stochastic_moments(workers=7, replication=3, absence=0.5)  # the Fano plane
    >>> round(moments.whole, 6), round(moments.parts, 6)
    (0.111111, 0.222222)
    """
    arguments.check_integer(workers, "workers", 1)
    arguments.check_integer(replication, "replication", 1, workers)
    arguments.check_absence(absence)
    odds, d = absence / (1.0 - absence), replication
    shared = d * (d - 1) / (workers - 1) if workers > 1 else 0.0
    return StochasticMoments(workers, odds * shared / d**2, odds * (1.0 / d - shared / d**2))


def error_at_deadline(
    code: Code,
    workers: int,
    compute: ComputeLaw,
    deadline: Deadline,
    collect: int | None = None,
    stragglers: Stragglers = "cancel",
    seed: int = 0,
) -> float:
    """Return the expected ``||a^T B - 1||^2`` of rounds that add what has arrived at a deadline, in partitions.

    Workers are independent, start together, and are late by the law of their own load; messages take no time.

    Parameters
    ----------
    code : Code
        Declaration of a code whose answers have weight 1 and that waits for all, such as ``StochasticCode``.
    workers : int
        Number of workers.
    compute : ComputeLaw
        Law of each worker's time.
    deadline : Deadline
        With ``after_s`` only.
    collect, stragglers
        As for the protocol.
    seed : int
        Draws the placement, as that of the experiment does.

    Raises
    ------
    NoClosedForm
        For other codes, other deadlines, and where stale work delays rounds.

    Examples
    --------
    >>> from emuml.cluster import ShiftedExponential
    >>> from emuml.protocols.gradient_coding import StochasticCode
    >>> law = ShiftedExponential(shift_s=0.0, mean_s=1.0)
    >>> round(error_at_deadline(StochasticCode(3, absence=0.5), 7, law, Deadline(after_s=0.6931471805599453)), 6)
    2.333333
    """
    check_independent(compute)
    built: Any = code.build(workers, seed, collect)
    decoder = getattr(built, "decoder", None)
    is_sum = isinstance(decoder, OneStepDecoder) and decoder.weight(1) == decoder.weight(workers + 1) == 1.0
    is_fresh = stragglers in ("cancel", "wait-all") and deadline.first_times is None
    if not is_sum or collect is not None or not is_fresh or deadline.after_s is None:
        raise NoClosedForm(
            f"no closed form is known for the error of {type(code).__name__} with such a deadline",
            "decode error",
            "codes that add what arrives, deadline_s alone, cancel or wait-all",
            "round_ends(delays, rule, stragglers, deadline=deadline) simulates who is there",
        )
    late = {load: absence_at(compute, deadline.after_s, load) if load else 0.0 for load in set(built.loads.tolist())}
    return sum_moments(built.encode_matrix, [late[load] for load in built.loads.tolist()]).error
