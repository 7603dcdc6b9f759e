"""Gradient sums of parts of a regression's rows: the pure functions that tasks are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from emuml.task import Cancelled, never_cancelled
from emuml.workloads.csr import CsrMatrix
from emuml.workloads.losses import LOSSES, add_gradients, gradient_sum
from emuml.workloads.partitions import Rows, batch_rows, partition_rows

if TYPE_CHECKING:
    from emuml.workloads.problem import RegressionProblem

Vector = NDArray[np.float64]


def partition_gradient(
    problem: RegressionProblem,
    parameters: Vector,
    owned: tuple[int, ...],
    partitions: int,
    coefficients: tuple[float, ...] | None = None,
    draw: int | None = None,
    cancelled: Cancelled = never_cancelled,
) -> Vector:
    """Evaluate what :meth:`RegressionProblem.gradient` describes; a pure function of its arguments.

    Returns
    -------
    ndarray of float64, shape (n_parameters,)
        ``sum_i coefficients[i] * (gradient sum of partition owned[i])``, added in the order of ``owned``. Of sparse
        rows each is added by itself, times its coefficient.

    Raises
    ------
    TaskCancelled
        When ``cancelled()`` was true before a block of rows.
    """
    shares = []
    for position, partition in enumerate(owned):
        rows, factor = batch_rows(
            partition_rows(problem.rows, partition, partitions), problem.batch, problem.seed, partition, draw
        )
        shares.append((rows, factor if coefficients is None else coefficients[position] * factor))
    with np.errstate(over="ignore", invalid="ignore"):  # A diverging run must end by its losses, not by a warning.
        if isinstance(problem.features, CsrMatrix):
            return _sparse_sum(problem, problem.features, parameters, shares, cancelled)
        return _dense_sum(problem, problem.features, parameters, shares, cancelled)


Shares = list[tuple[Rows, float]]
"""Rows of each partition, and the factor of their gradients."""


def share_gradient(
    problem: RegressionProblem,
    parameters: Vector,
    share: int,
    shares: int,
    draw: int | None,
    cancelled: Cancelled = never_cancelled,
) -> Vector:
    """Evaluate what :meth:`RegressionProblem.push` describes; a pure function of its arguments.

    Returns
    -------
    ndarray of float64, shape (n_parameters,)
        The gradient sum of one partition, plus ``2 l2 parameters`` for each of its rows.

    Raises
    ------
    TaskCancelled
        When ``cancelled()`` was true before a block of rows.
    """
    total = partition_gradient(problem, parameters, (share,), shares, None, draw, cancelled)
    if problem.l2:
        with np.errstate(over="ignore", invalid="ignore"):
            total += (2.0 * problem.l2 * len(partition_rows(problem.rows, share, shares))) * parameters
    return total


def _dense_sum(
    problem: RegressionProblem, features: Vector, parameters: Vector, shares: Shares, cancelled: Cancelled
) -> Vector:
    loss, total = LOSSES[problem.model], None
    for rows, factor in shares:
        part = gradient_sum(loss, features, problem.targets, rows, parameters, problem.chunk_rows, cancelled)
        if factor != 1.0:
            part *= factor
        total = part if total is None else np.add(total, part, out=total)
    assert total is not None, "a gradient needs at least one partition"
    return total


def _sparse_sum(
    problem: RegressionProblem, features: CsrMatrix, parameters: Vector, shares: Shares, cancelled: Cancelled
) -> Vector:
    loss, total = LOSSES[problem.model], np.zeros(problem.n_parameters)
    for rows, factor in _joined(shares):
        targets, chunk_rows = problem.targets, problem.chunk_rows
        add_gradients(loss, features, targets, rows, parameters, factor, total, chunk_rows, cancelled)
    return total


def _joined(shares: Shares) -> Shares:
    """Return the same rows in the same order, ranges that follow each other as one: many small blocks cost most."""
    found: Shares = []
    for rows, factor in shares:
        last, last_factor = found[-1] if found else (None, 0.0)
        if isinstance(last, range) and isinstance(rows, range) and last.stop == rows.start and factor == last_factor:
            found[-1] = range(last.start, rows.stop), factor
        else:
            found.append((rows, factor))
    return found
