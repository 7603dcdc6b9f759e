"""How a step is formed from a summed gradient: plain and accelerated gradient descent, and schedules of their rate.

Steps are pure and element by element: state and parameters in, new arrays out, nothing changed in place, because
published versions of the parameters stay in use elsewhere. The recursions are those of ErasureHead
(arXiv:1901.09671) and of its program, with one repair that :class:`AcceleratedGradientDescent` describes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.spec import check

Vector = NDArray[np.float64]
State = tuple[Vector, ...]
"""What an optimizer carries from step to step: vectors as long as the parameters."""


@dataclass(frozen=True)
class Schedule:
    """Base of all schedules: a factor on the rate for each round."""

    def __post_init__(self) -> None:
        check(self)

    def factor(self, round_index: int) -> float:
        """Return the factor of round ``round_index``, counted from 0."""
        raise NotImplementedError


@dataclass(frozen=True)
class Constant(Schedule):
    """The same rate in every round."""

    def factor(self, round_index: int) -> float:
        """See :class:`Schedule`."""
        return 1.0


@dataclass(frozen=True)
class Exponential(Schedule):
    """Rate times ``decay`` to the power of the round.

    Parameters
    ----------
    decay : float
        Factor from one round to the next.
    """

    decay: Annotated[float, Gt(0), Le(1)]

    def factor(self, round_index: int) -> float:
        """See :class:`Schedule`.

        Examples
        --------
        >>> Exponential(0.5).factor(3)
        0.125
        """
        return float(self.decay**round_index)


@dataclass(frozen=True)
class InverseTime(Schedule):
    """Rate divided by ``1 + decay * round``.

    Parameters
    ----------
    decay : float
        How much is added to the divisor in each round.
    """

    decay: Annotated[float, Ge(0)]

    def factor(self, round_index: int) -> float:
        """See :class:`Schedule`.

        Examples
        --------
        >>> InverseTime(0.5).factor(2)
        0.5
        """
        return 1.0 / (1.0 + self.decay * round_index)


@dataclass(frozen=True)
class Optimizer:
    """Base of all optimizers; subclasses say what a step does.

    Parameters
    ----------
    rate : float, optional
        Step size, dimensionless. Default: 1/L, where L bounds the curvature of the workload's objective.
    schedule : Schedule
        Factor on the rate by round.
    """

    rate: Annotated[float | None, Gt(0)] = None
    schedule: Schedule = Constant()

    def __post_init__(self) -> None:
        check(self)

    def rate_at(self, round_index: int) -> float:
        """Return the step size of a round, counted from 0.

        Raises
        ------
        UserError
            If the rate was left to the workload and no workload has set it.
        """
        if self.rate is None:
            raise UserError("got None", f"{type(self).__name__}.rate", "a finite number > 0", "a workload sets 1/L")
        return self.rate * self.schedule.factor(round_index)

    def start(self, parameters: Vector) -> State:
        """Return the state before the first step from ``parameters``."""
        return ()

    def step(
        self, state: State, parameters: Vector, gradient: Vector, round_index: int, *, rows: int, l2: float
    ) -> tuple[State, Vector]:
        """Make one step.

        Parameters
        ----------
        state : tuple of ndarray
            From :meth:`start` or the step before.
        parameters, gradient : ndarray of float64, equal shapes
            ``gradient`` is a sum over rows at ``parameters``, without regulariser.
        round_index : int
            Counted from 0.
        rows : int
            The number of rows that the gradient is a sum over.
        l2 : float
            Weight of the squared norm of the parameters in the objective.

        Returns
        -------
        (state, parameters)
            New arrays.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class GradientDescent(Optimizer):
    """Gradient descent on ``(1/rows) sum(loss) + l2 * |parameters|^2``."""

    def step(
        self, state: State, parameters: Vector, gradient: Vector, round_index: int, *, rows: int, l2: float
    ) -> tuple[State, Vector]:
        """See :class:`Optimizer`.

        Examples
        --------
        >>> GradientDescent(rate=0.5).step((), np.array([2.0]), np.array([4.0]), 0, rows=4, l2=0.1)
        ((), array([1.3]))
        """
        rate = self.rate_at(round_index)
        return (), (1.0 - 2.0 * l2 * rate) * parameters - (rate / rows) * gradient


@dataclass(frozen=True)
class AcceleratedGradientDescent(Optimizer):
    """Accelerated gradient descent as ErasureHead's program has it, with the gradient taken at the parameters.

    In round i, with theta = 2/(i+2), rate eta, gradient g, parameters b and momentum point v:
    ``y = (1-theta) b + theta v``, ``b' = y - (eta/rows) g - 2 l2 eta b``, ``v' = b + (b'-b)/theta``.
    That program starts v at zero; since theta is 1 in round 0, its first step throws the initial parameters away. Here
    v starts at the initial parameters.
    """

    def start(self, parameters: Vector) -> State:
        """Return the momentum point, which starts at the parameters."""
        return (parameters.copy(),)

    def step(
        self, state: State, parameters: Vector, gradient: Vector, round_index: int, *, rows: int, l2: float
    ) -> tuple[State, Vector]:
        """See :class:`Optimizer`."""
        (momentum,) = state
        rate = self.rate_at(round_index)
        theta = 2.0 / (round_index + 2)
        ahead = (1.0 - theta) * parameters + theta * momentum
        stepped = ahead - (rate / rows) * gradient - (2.0 * l2 * rate) * parameters
        return (parameters + (stepped - parameters) / theta,), stepped
