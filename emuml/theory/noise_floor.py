"""Where training with approximate gradients settles: a bound for smooth losses, an exact recursion for quadratics.

Both take moments of ``agc.py`` or ``absence.py``. The estimate is the gradient, or without scaling a shorter one, plus
noise, so training goes as gradient descent down to a floor; it has none when every group's gradient vanishes at the
optimum or nothing is missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, Protocol

import numpy as np

from emuml.errors import UserError
from emuml.theory.agc import check_scale
from emuml.theory.arguments import check_integer, check_number


class Moments(Protocol):
    """Moments of an estimate that is ``1 - miss`` of the gradient on average."""

    @property
    def groups(self) -> int:
        """Number of sums that a gradient consists of."""
        ...

    @property
    def miss(self) -> float:
        """What is missing of the gradient on average."""
        ...

    def second_moment(self) -> tuple[float, float]:
        """Return ``a, b`` of ``E||estimate||^2 = a ||g||^2 + b sum_j ||G_j||^2``."""
        ...


def largest_step(smoothness: float, moments: Moments) -> float:
    """Return the step size below which :func:`descent_factor` shrinks and :func:`noise_floor` holds."""
    check_number(smoothness, "smoothness", above=0.0)
    return 2.0 * (1.0 - moments.miss) / (smoothness * moments.second_moment()[0])


def descent_factor(step: float, pl_constant: float, smoothness: float, moments: Moments) -> float:
    """Return the factor by which the expected suboptimality shrinks per round, apart from the noise.

    For a loss whose gradient is Lipschitz with constant ``smoothness`` (``beta``) and that satisfies the
    Polyak-Lojasiewicz inequality with ``pl_constant`` (``mu``, at most ``beta``), unscaled estimates and step size
    ``step`` (``gamma``):
    ``1 - 2 mu gamma (1-p) + mu beta gamma^2 A`` with ``A = 1 - 2p + q``.
    """
    _check_loss(step, pl_constant, smoothness)
    shrunk = 2.0 * pl_constant * step * (1.0 - moments.miss)
    return 1.0 - shrunk + pl_constant * smoothness * step**2 * moments.second_moment()[0]


def noise_floor(step: float, pl_constant: float, smoothness: float, moments: Moments, group_norms: float) -> float:
    """Return the suboptimality that training does not exceed in the long run.

    Parameters
    ----------
    step, pl_constant, smoothness : float
        As for :func:`descent_factor`; ``step`` below :func:`largest_step`.
    moments : AgcMoments or StochasticMoments
        Moments of the estimate.
    group_norms : float
        Least upper bound of ``sum_j ||G_j||^2`` along the way, >= 0.

    Returns
    -------
    float
        ``beta gamma b / (4 mu (1-p) - 2 mu beta gamma A)`` with ``b = (p-q) group_norms``; in units of the loss.
    """
    _check_loss(step, pl_constant, smoothness)
    check_number(step, "step", above=0.0, below=largest_step(smoothness, moments))
    check_number(group_norms, "group_norms", least=0.0)
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
        """The mean square distance in the long run: without bound, and so infinite, if the factor is 1 or more."""
        return self.noise / (1.0 - self.factor) if self.factor < 1.0 else inf

    def after(self, rounds: int, start: float) -> float:
        """Return the mean square distance after some rounds from a squared distance ``start``."""
        check_integer(rounds, "rounds", 0)
        check_number(start, "start", least=0.0)
        with np.errstate(over="ignore"):
            grown = np.float64(self.factor) ** rounds
        added = rounds if self.factor == 1.0 else (1.0 - grown) / (1.0 - self.factor)
        return float(grown * start + self.noise * added)


def second_moment_recursion(
    step: float,
    moments: Moments,
    curvature: float = 1.0,
    spread: float = 1.0,
    scale: Literal["none", "unbiased"] = "none",
) -> SecondMomentRecursion:
    """Return the exact recursion for one quadratic ``(h/2) ||x - c_j||^2`` per group.

    Parameters
    ----------
    step : float
        Step size on the sum of the groups' gradients.
    moments : AgcMoments or StochasticMoments
        Moments of the estimate.
    curvature : float
        ``h``, of every group.
    spread : float
        ``sum_j ||c_j - x*||^2`` with ``x*`` the mean of the ``c_j``.
    scale : str
        Scaling of the estimate; ``"unbiased"`` lengthens the step by ``1/(1-p)``.
    """
    check_number(step, "step", above=0.0)
    check_number(curvature, "curvature", above=0.0)
    check_number(spread, "spread", least=0.0)
    check_scale(scale, ("none", "unbiased"))
    length = step * curvature / (1.0 - moments.miss if scale == "unbiased" else 1.0)
    whole, groups = moments.second_moment()
    m = moments.groups
    factor = 1.0 - 2.0 * length * m * (1.0 - moments.miss) + length**2 * (whole * m**2 + groups * m)
    return SecondMomentRecursion(factor, length**2 * groups * spread)


def _check_loss(step: float, pl_constant: float, smoothness: float) -> None:
    for name, value in (("step", step), ("pl_constant", pl_constant), ("smoothness", smoothness)):
        check_number(value, name, above=0.0)
    if pl_constant > smoothness:
        raise UserError(f"got {pl_constant}", "pl_constant", f"at most the smoothness, {smoothness:g}")
