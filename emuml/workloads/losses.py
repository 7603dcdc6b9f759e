"""Losses of linear models on matrices: sums of losses and of gradients over rows, in blocks and in a fixed order.

Node processes run this, so it needs numpy and our kernels alone. The blocks are part of a workload's declaration: every
engine makes the same BLAS calls and gets the same bits, and a cancelled task stops between two of them. Sparse rows are
summed by our kernels row by row, so there blocks change no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emuml.errors import TaskCancelled
from emuml.task import Cancelled, never_cancelled
from emuml.workloads.csr import CsrMatrix, Matrix
from emuml.workloads.partitions import Rows

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """A loss of a row as a function of its prediction ``z = x . parameters`` and its target ``y``.

    Parameters
    ----------
    value : callable
        ``(z, y)`` -> loss of each row.
    slope : callable
        ``(z, y)`` -> derivative of each row's loss by ``z``; a row's gradient is this times ``x``.
    curvature : float
        Upper bound of the second derivative by ``z``.
    """

    value: Callable[[Vector, Vector], Vector]
    slope: Callable[[Vector, Vector], Vector]
    curvature: float


def _logistic_value(predictions: Vector, targets: Vector) -> Vector:
    value: Vector = np.logaddexp(0.0, -targets * predictions)
    return value


def _logistic_slope(predictions: Vector, targets: Vector) -> Vector:
    # exp overflows beyond 709; at 700 a slope of 1e-304 stands for an even smaller one.
    margins = np.minimum(targets * predictions, 700.0)
    np.exp(margins, out=margins)
    margins += 1.0
    value: Vector = -targets / margins
    return value


def _squared_value(predictions: Vector, targets: Vector) -> Vector:
    value: Vector = (targets - predictions) ** 2
    return value


def _squared_slope(predictions: Vector, targets: Vector) -> Vector:
    return -2.0 * (targets - predictions)


LOSSES = {
    "logistic": Loss(_logistic_value, _logistic_slope, 0.25),
    "linear": Loss(_squared_value, _squared_slope, 2.0),
}
"""Logistic: log(1 + exp(-y z)) with targets -1 and +1. Linear: (y - z)^2."""


def predict(features: Matrix, parameters: Vector, chunk_rows: int) -> Vector:
    """Return ``features @ parameters``, made in blocks of ``chunk_rows`` rows.

    Equal rows get equal predictions, which scores of ranks depend on; with BLAS the last bit would depend on where in
    its block a row stands.
    """
    if isinstance(features, CsrMatrix):
        return features.predictions(range(len(features)), parameters)
    predictions = np.empty(len(features))
    for block in _blocks(range(len(features)), chunk_rows):
        np.add.reduce(features[_index(block)] * parameters, axis=1, out=predictions[_index(block)])
    return predictions


def gradient_sum(
    loss: Loss,
    features: Vector,
    targets: Vector,
    rows: Rows,
    parameters: Vector,
    chunk_rows: int,
    cancelled: Cancelled = never_cancelled,
) -> Vector:
    """Return the sum of the gradients of some rows, blocks added in order.

    Parameters
    ----------
    loss : Loss
    features : ndarray of float64, shape (all rows, parameters)
    targets : ndarray of float64, shape (all rows,)
    rows : range or ndarray of int64
        Which rows, ascending and at least one.
    parameters : ndarray of float64, shape (parameters,)
    chunk_rows : int
        Rows of a block.
    cancelled : callable
        Asked before each block.

    Returns
    -------
    ndarray of float64, shape (parameters,)

    Raises
    ------
    TaskCancelled
        When ``cancelled()`` was true before a block.
    """
    total: Vector | None = None
    for block in _blocks(rows, chunk_rows, cancelled):
        part = features[_index(block)]
        summand = part.T @ loss.slope(part @ parameters, targets[_index(block)])
        total = summand if total is None else np.add(total, summand, out=total)
    assert total is not None, "a gradient needs at least one row"
    return total


def add_gradients(
    loss: Loss,
    features: CsrMatrix,
    targets: Vector,
    rows: Rows,
    parameters: Vector,
    factor: float,
    out: Vector,
    chunk_rows: int,
    cancelled: Cancelled = never_cancelled,
) -> None:
    """Add ``factor`` times the gradient of each of some sparse rows to ``out``, row by row in order.

    Parameters are those of :func:`gradient_sum`. Of ``out``, shape (parameters,), only the columns of these rows are
    touched: no vector as long as the parameters is made.

    Raises
    ------
    TaskCancelled
        When ``cancelled()`` was true before a block; ``out`` then holds a part.
    """
    for block in _blocks(rows, chunk_rows, cancelled):
        slopes = loss.slope(features.predictions(block, parameters), targets[_index(block)])
        if factor != 1.0:
            slopes *= factor
        features.accumulate(block, slopes, out)


def _blocks(rows: Rows, chunk_rows: int, cancelled: Cancelled = never_cancelled) -> Iterator[Rows]:
    for start in range(0, len(rows), chunk_rows):
        if cancelled():
            raise TaskCancelled("a gradient was cancelled between two blocks of rows")
        yield rows[start : start + chunk_rows]


def _index(rows: Rows) -> slice | NDArray[np.int64]:
    return slice(rows.start, rows.stop) if isinstance(rows, range) else rows
