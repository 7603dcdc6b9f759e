"""Where training with approximate gradients settles: a bound for smooth losses, an exact recursion for quadratics.

Both take the moments of ``agc.py``. The estimate without scaling is a shorter gradient plus noise, so training goes as
gradient descent down to a floor; it has none when every group's gradient vanishes at the optimum or no group is missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from emuml.theory.agc import AgcMoments


def largest_step(smoothness: float, moments: AgcMoments) -> float:
    """Return the largest step size for which :func:`descent_factor` and :func:`noise_floor` hold."""
    return 2.0 * (1.0 - moments.miss) / (smoothness * moments.second_moment()[0])


def descent_factor(step: float, pl_constant: float, smoothness: float, moments: AgcMoments) -> float:
    """Return the factor by which the expected suboptimality shrinks per round, apart from the noise.

    For a loss whose gradient is Lipschitz with constant ``smoothness`` (``beta``) and that satisfies the
    Polyak-Lojasiewicz inequality with ``pl_constant`` (``mu``), unscaled estimates and step size ``step`` (``gamma``):
    ``1 - 2 mu gamma (1-p) + mu beta gamma^2 A`` with ``A = 1 - 2p + q``.
    """
    shrunk = 2.0 * pl_constant * step * (1.0 - moments.miss)
    return 1.0 - shrunk + pl_constant * smoothness * step**2 * moments.second_moment()[0]


def noise_floor(step: float, pl_constant: float, smoothness: float, moments: AgcMoments, group_norms: float) -> float:
    """Return the suboptimality that training does not exceed in the long run.

    Parameters
    ----------
    step, pl_constant, smoothness : float
        As for :func:`descent_factor`; ``step`` at most :func:`largest_step`.
    moments : AgcMoments
        Moments of the estimate.
    group_norms : float
        Least upper bound of ``sum_j ||G_j||^2`` along the way.

    Returns
    -------
    float
        ``beta gamma b / (4 mu (1-p) - 2 mu beta gamma A)`` with ``b = (p-q) group_norms``; in units of the loss.
    """
    whole, groups = moments.second_moment()
    noise = smoothness * step * groups * group_norms
    return noise / (4.0 * pl_constant * (1.0 - moments.miss) - 2.0 * pl_constant * smoothness * step * whole)


@dataclass(frozen=True)
class SecondMomentRecursion:
    """``E||e_(t+1)||^2 = factor E||e_t||^2 + noise``, with ``e`` the distance from the optimum.

    Attributes
    ----------
    factor : float
        Contraction per round.
    noise : float
        Added per round, in squared parameter units.
    """

    factor: float
    noise: float

    @property
    def stationary(self) -> float:
        """The mean square distance in the long run."""
        return self.noise / (1.0 - self.factor)

    def after(self, rounds: int, start: float) -> float:
        """Return the mean square distance after some rounds from a squared distance ``start``."""
        return self.stationary + self.factor**rounds * (start - self.stationary)


def second_moment_recursion(
    step: float,
    moments: AgcMoments,
    curvature: float = 1.0,
    spread: float = 1.0,
    scale: Literal["none", "unbiased"] = "none",
) -> SecondMomentRecursion:
    """Return the exact recursion for one quadratic ``(h/2) ||x - c_j||^2`` per group.

    Parameters
    ----------
    step : float
        Step size on the sum of the groups' gradients.
    moments : AgcMoments
        Moments of the estimate.
    curvature : float
        ``h``, of every group.
    spread : float
        ``sum_j ||c_j - x*||^2`` with ``x*`` the mean of the ``c_j``.
    scale : str
        Scaling of the estimate; ``"unbiased"`` lengthens the step by ``1/(1-p)``.
    """
    length = step * curvature / (1.0 - moments.miss if scale == "unbiased" else 1.0)
    whole, groups = moments.second_moment()
    m = moments.groups
    factor = 1.0 - 2.0 * length * m * (1.0 - moments.miss) + length**2 * (whole * m**2 + groups * m)
    return SecondMomentRecursion(factor, length**2 * groups * spread)
