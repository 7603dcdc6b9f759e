"""How long nodes are down before they start again: laws of repair, and the distributions that laws of failures use.

Draws are made of raw words by operations that give the same bits everywhere; see :mod:`emuml.streams`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Protocol

from annotated_types import Ge, Gt, Le

from emuml import _kernels
from emuml._kernels.reference_tails import NORMAL
from emuml.spec import check
from emuml.streams import halves, unit_exponential

Draw = Callable[[int, int], float]
"""Maps (key of a stream, position) to seconds."""


class Repair(Protocol):
    """How long a node is down."""

    def draw_s(self, key: int, position: int) -> float:
        """Return the draw at a position of a stream, in seconds."""
        ...

    def cdf(self, t_s: float) -> float:
        """Return the probability of at most so many seconds."""
        ...

    def mean(self) -> float:
        """Return the mean in seconds."""
        ...


@dataclass(frozen=True)
class FixedRepair:
    """A node is back after the same time always.

    Parameters
    ----------
    seconds : float
        From its crash to its next start.
    """

    seconds: Annotated[float, Ge(0), Le(1e12)]

    def __post_init__(self) -> None:
        check(self)

    def draw_s(self, key: int, position: int) -> float:
        """See :class:`Repair`."""
        return self.seconds

    def cdf(self, t_s: float) -> float:
        """See :class:`Repair`."""
        return float(t_s >= self.seconds)

    def mean(self) -> float:
        """See :class:`Repair`."""
        return self.seconds


@dataclass(frozen=True)
class ExponentialRepair:
    """Repair without memory.

    Parameters
    ----------
    mean_s : float
        In seconds.
    """

    mean_s: Annotated[float, Gt(0), Le(1e12)]

    def __post_init__(self) -> None:
        check(self)

    def draw_s(self, key: int, position: int) -> float:
        """See :class:`Repair`."""
        return self.mean_s * unit_exponential(key, position)

    def cdf(self, t_s: float) -> float:
        """See :class:`Repair`."""
        return exponential_cdf(t_s / self.mean_s)

    def mean(self) -> float:
        """See :class:`Repair`."""
        return self.mean_s


@dataclass(frozen=True)
class LognormalRepair:
    """The logarithm of the time of repair is normal: most are short, some take very long.

    Parameters
    ----------
    median_s : float
        Half of all repairs take at most so many seconds.
    sigma : float
        Standard deviation of the natural logarithm; of large clusters it is 1.1 to 1.2.
    """

    median_s: Annotated[float, Gt(0), Le(1e12)]
    sigma: Annotated[float, Gt(0), Le(10)]

    def __post_init__(self) -> None:
        check(self)

    def draw_s(self, key: int, position: int) -> float:
        """See :class:`Repair`."""
        return self.median_s * _kernels.unit_tail(NORMAL, self.sigma, *halves(key), position)

    def cdf(self, t_s: float) -> float:
        """See :class:`Repair`."""
        if t_s <= 0:
            return 0.0
        return 0.5 * math.erfc(-math.log(t_s / self.median_s) / (self.sigma * math.sqrt(2.0)))

    def mean(self) -> float:
        """See :class:`Repair`."""
        return self.median_s * math.exp(self.sigma**2 / 2)


def exponential_cdf(x: float) -> float:
    """Return the probability that a unit exponential is at most ``x``."""
    return -math.expm1(-x) if x > 0 else 0.0


def weibull_cdf(x: float, shape: float) -> float:
    """Return the probability that a Weibull time of scale 1 is at most ``x``."""
    return -math.expm1(-(x**shape)) if x > 0 else 0.0
