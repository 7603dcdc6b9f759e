"""Moments of approximate gradient coding: fractional repetition stopped at a number of answers.

Workers are exchangeable, groups of equal size. With ``g`` the gradient and ``G_j`` the sum of group ``j``, every mean
square here is ``a ||g||^2 + b sum_j ||G_j||^2``, and the functions return ``(a, b)``. Stopping early at full coverage
changes no covered set, so the moments hold for the real loop.

Source: ErasureHead, arXiv:1901.09671, for the scheme; the forms are checked against all subsets of small cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from emuml.shapes import miss_probability
from emuml.theory import arguments
from emuml.theory.coverage import coverage_probabilities, covered_groups_distribution

Scale = Literal["none", "unbiased", "covered"]


def check_scale(scale: str, known: Sequence[str] = get_args(Scale)) -> None:
    """Refuse what is no factor on a sum of groups."""
    arguments.check_name(scale, "scale", known)


@dataclass(frozen=True)
class AgcMoments:
    """What a round of approximate gradient coding delivers on average.

    Attributes
    ----------
    groups : int
        Number of groups ``m``.
    miss : float
        ``p``, the probability that a given group has no answer.
    miss_pair : float
        ``q``, the probability that two given groups have none.
    exact_probability : float
        Probability that all groups have an answer.
    arrivals_mean : float
        Mean number of answers used, replicas counted.
    covered_error : float
        ``K``, so that the mean square error with ``scale="covered"`` is ``K (sum_j ||G_j||^2 - ||g||^2 / m)``.
    """

    groups: int
    miss: float
    miss_pair: float
    exact_probability: float
    arrivals_mean: float
    covered_error: float

    def mean_factor(self, scale: Scale = "none") -> float:
        """Return ``c`` in ``E[estimate] = c g``."""
        check_scale(scale)
        return 1.0 - self.miss if scale == "none" else 1.0

    def second_moment(self, scale: Scale = "none") -> tuple[float, float]:
        """Return the coefficients of ``E||estimate||^2``."""
        if scale == "none":
            return 1.0 - 2.0 * self.miss + self.miss_pair, self.miss - self.miss_pair
        whole, groups = self.mean_square_error(scale)
        return whole + 1.0, groups  # an unbiased estimate varies about the gradient itself

    def mean_square_error(self, scale: Scale = "none") -> tuple[float, float]:
        """Return the coefficients of ``E||estimate - g||^2``."""
        check_scale(scale)
        if scale == "none":
            return self.miss_pair, self.miss - self.miss_pair
        if scale == "covered":
            return -self.covered_error / self.groups, self.covered_error
        whole, groups = self.second_moment("none")
        kept = (1.0 - self.miss) ** 2
        return whole / kept - 1.0, groups / kept


def agc_moments(workers: int, replication: int, collect: int) -> AgcMoments:
    """Return the moments for ``workers`` in groups of ``replication``, stopped at ``collect`` answers.

    Raises
    ------
    UserError
        If ``replication`` does not divide ``workers`` or ``collect`` is not in ``1..workers``.

    Examples
    --------
    >>> moments = agc_moments(workers=6, replication=2, collect=3)
    >>> moments.miss, moments.miss_pair
    (0.2, 0.0)
    """
    _check(workers, replication, collect)
    groups = workers // replication
    reached = coverage_probabilities([replication] * groups, collect)
    return AgcMoments(
        groups=groups,
        miss=miss_probability(workers, replication, collect),
        miss_pair=miss_probability(workers, 2 * replication, collect) if groups > 1 else 0.0,
        exact_probability=float(reached[-1]),
        arrivals_mean=float((1.0 - reached[:-1]).sum()),
        covered_error=_covered_error(covered_groups_distribution(groups, replication, collect)),
    )


def independent_absence_error(replication: int, absence: float) -> float:
    """Return the coefficient of ``sum_j ||G_j||^2`` in the mean square error of the unbiased estimate.

    Every worker is absent by itself with probability ``absence``; a group is lost with ``p = absence^replication``, and
    the coefficient is ``p / (1 - p)``.
    """
    arguments.check_integer(replication, "replication", 1)
    arguments.check_absence(absence)
    lost = absence**replication
    return lost / (1.0 - lost)


def independent_absence_moments(workers: int, replication: int, absence: float) -> AgcMoments:
    """Return the moments when every worker is absent by itself with probability ``absence``, and nobody else is.

    ``p = absence^r`` and ``q = p^2``: groups are lost independently. Rounds in which nobody answers count, as a
    gradient of 0; with ``scale="covered"`` they bias the estimate, so ``covered_error`` is for the rounds in which
    somebody does.

    Examples
    --------
    >>> moments = independent_absence_moments(workers=6, replication=2, absence=0.5)
    >>> moments.miss, moments.miss_pair, moments.exact_probability
    (0.25, 0.0625, 0.421875)
    """
    _check(workers, replication, workers)
    arguments.check_absence(absence)
    groups, lost = workers // replication, absence**replication
    chances = np.ones(1)
    for _ in range(groups):
        chances = np.convolve(chances, [lost, 1.0 - lost])
    return AgcMoments(
        groups=groups,
        miss=lost,
        miss_pair=lost**2,
        exact_probability=(1.0 - lost) ** groups,
        arrivals_mean=workers * (1.0 - absence),
        covered_error=_covered_error((chances / (1.0 - chances[0])).tolist()),
    )


def _covered_error(chances: Sequence[float]) -> float:
    """Return ``K`` from the chances of ``0..m`` covered groups."""
    groups = len(chances) - 1
    return sum(chances[v] * groups * (groups - v) / (v * (groups - 1)) for v in range(1, groups))


def _check(workers: int, replication: int, collect: int) -> None:
    arguments.check_integer(workers, "workers", 1)
    arguments.check_integer(collect, "collect", 1, workers)
    arguments.check_divisor(replication, "replication", workers)
