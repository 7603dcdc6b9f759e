r"""Where training on the gradients of a code settles: the expected excess of the loss in the long run.

Near the optimum the step is linear in the distance ``e`` from it. With ``gamma_i`` the weight of partition ``i`` in a
decoded sum, ``g_i`` its gradient at the optimum, ``N`` rows, step ``eta``, ``c`` the mean weight, ``H`` the Hessian of
the mean loss and ``l`` the penalty's:

    e <- (1 - eta (c H + 2 l)) e - eta (b + x),
    b = sum_i (E gamma_i - 1) g_i / N,   Cov x = G^T Cov(gamma) G / N^2.

In the eigenvectors of ``H`` the stationary mean square splits into ``b_j^2 / h_j^2`` and
``eta C_jj / (h_j (2 - eta h_j))`` with ``h_j = c lambda_j + 2 l``, as for any stable linear recursion. What the noise
depends on ``e`` is left out: it vanishes with ``e``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from emuml.workloads.csr import CsrMatrix
from emuml.workloads.losses import predict
from emuml.workloads.optimizers import Constant, GradientDescent
from emuml.workloads.problem import RegressionProblem

Floats = NDArray[np.float64]

PARAMETERS = 600
"""So many parameters at most: the Hessian is decomposed."""

STEPS = 60
"""Of Newton's method, at most."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimum of a problem, and how the loss curves there.

    Attributes
    ----------
    problem : RegressionProblem
    parameters : ndarray of float64, shape (d,)
    hessian : ndarray of float64, shape (d, d)
        Of the mean loss, without the penalty.
    """

    problem: RegressionProblem
    parameters: Floats
    hessian: Floats

    @cached_property
    def axes(self) -> tuple[Floats, Floats]:
        """Curvatures, shape (d,), and eigenvectors in columns, shape (d, d)."""
        curvatures, vectors = np.linalg.eigh(self.hessian)
        return np.maximum(curvatures, 0.0), vectors

    def gradients(self, partitions: int) -> Floats:
        """Return the gradient sums of the partitions at the optimum, shape (partitions, d)."""
        tasks = (self.problem.gradient(self.parameters, (i,), partitions, draw=0) for i in range(partitions))
        return np.array([task.run() for task in tasks])

    def excess(self, weights: Floats) -> float | None:
        """Return the excess loss in the long run.

        Parameters
        ----------
        weights : ndarray of float64, shape (rounds, partitions)
            Of the partitions in the decoded sums of some rounds.

        Returns
        -------
        float or None
            In units of the loss; None if the step is too long for the curvature, no curvature holds what is biased, or
            nothing is decoded.
        """
        problem, rows = self.problem, self.problem.rows
        step, penalty = problem.optimizer.rate_at(0), 2.0 * problem.l2
        curvatures, vectors = self.axes
        along = self.gradients(weights.shape[1]) @ vectors / rows
        if not weights.any():  # nothing is learned, far from the optimum
            return None
        mean = weights.mean(axis=0)
        away = (weights - mean) @ along
        noise = away.var(axis=0, ddof=1)
        shift = (mean - 1.0) @ along
        pull = float(mean.mean()) * curvatures + penalty
        moves = (noise > 0) | (np.abs(shift) > 1e-15 * np.abs(along).max())
        if np.any(pull[moves] <= 0) or np.any(step * pull >= 2.0):
            return None
        pull = np.where(pull > 0, pull, 1.0)
        heights = np.where(moves, (curvatures + penalty) / 2.0, 0.0)
        spread = float(heights @ (step * noise / (pull * (2.0 - step * pull))))
        return spread + _of_bias(shift, away, heights / pull**2)


def _of_bias(shift: Floats, away: Floats, heights: Floats) -> float:
    """Return what the bias adds to the loss: ``heights @ shift^2`` but for the sample's own distance from its mean.

    Flat directions make much of that distance; what is within two standard errors of nothing counts as nothing.

    Parameters
    ----------
    shift : ndarray of float64, shape (d,)
        Mean of the rounds.
    away : ndarray of float64, shape (rounds, d)
        Their distance from it.
    heights : ndarray of float64, shape (d,)
    """
    rounds = len(away)
    scaled = away * np.sqrt(heights)
    covariance = scaled.T @ scaled / (rounds * (rounds - 1))  # of the mean
    found = float(heights @ shift**2) - float(np.trace(covariance))
    return found if found > 2.0 * np.sqrt(2.0) * np.linalg.norm(covariance) else 0.0


def optimum(problem: object) -> Optimum | str:
    """Return the optimum of a problem by Newton's method, or why it is not asked for, as the end of a sentence."""
    if not isinstance(problem, RegressionProblem):
        return "the workload is no regression"
    if not (isinstance(problem.optimizer, GradientDescent) and isinstance(problem.optimizer.schedule, Constant)):
        return "the step is not that of gradient descent at a constant rate"
    if problem.batch is not None:
        return "batches add noise of their own"
    if isinstance(problem.features, CsrMatrix) or problem.n_parameters > PARAMETERS:
        return f"it is known for dense data of at most {PARAMETERS} columns"
    found = _newton(problem)
    return found if found is not None else "the objective has no optimum that Newton's method finds"


def _newton(problem: RegressionProblem) -> Optimum | None:
    parameters = np.array(problem.initial)
    for _ in range(STEPS):
        slope = problem.gradient(parameters, (0,), 1, draw=0).run() / problem.rows + 2.0 * problem.l2 * parameters
        hessian = _hessian(problem, parameters)
        full = hessian + 2.0 * problem.l2 * np.eye(len(parameters))
        step: Floats = np.linalg.lstsq(full, slope, rcond=1e-13)[0].astype(np.float64, copy=False)
        length = _length(problem, parameters, step, float(slope @ step))
        parameters = parameters - length * step
        if float(slope @ step) <= 1e-20 * max(problem.loss(parameters), 1e-300):
            return Optimum(problem, parameters, hessian)
        if not np.isfinite(parameters).all():
            return None
    return None


def _length(problem: RegressionProblem, parameters: Floats, step: Floats, slope: float) -> float:
    """Return 1, halved until the loss falls by a quarter of what its slope says (Armijo's rule)."""
    length, loss = 1.0, problem.loss(parameters)
    while length > 1e-6 and problem.loss(parameters - length * step) > loss - 0.25 * length * slope + 1e-15 * abs(loss):
        length /= 2.0
    return length


def _hessian(problem: RegressionProblem, parameters: Floats) -> Floats:
    """Return the second derivative of the mean loss."""
    assert not isinstance(problem.features, CsrMatrix)
    bends: Floats | float = 2.0
    if problem.model == "logistic":
        chances = 1.0 / (1.0 + np.exp(-np.clip(predict(problem.features, parameters, problem.chunk_rows), -700, 700)))
        bends = (chances * (1.0 - chances))[:, None]
    return np.asarray(problem.features.T @ (bends * problem.features) / problem.rows)
