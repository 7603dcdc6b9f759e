"""How strongly an objective curves at most, which settles the default rate. Only launchers ask, so scipy may serve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emuml.streams import generator
from emuml.workloads.csr import CsrMatrix, Matrix

Vector = NDArray[np.float64]

SMALL = 200
"""Up to so many columns a sparse matrix is squared in full: the iteration needs room for its vectors."""


def largest_eigenvalue(features: Matrix) -> float:
    """Return the largest eigenvalue of X'X, never below 0; infinite if it is beyond float64.

    A sparse X is never squared: Lanczos' iteration (ARPACK) asks for products with X and X' alone, from a fixed start
    whose entries are random, so that it is orthogonal to no eigenvector that data are likely to have.

    Examples
    --------
    >>> largest_eigenvalue(np.array([[3.0, 0.0], [0.0, 2.0]]))
    9.0
    """
    if not isinstance(features, CsrMatrix):
        return _by_squaring(features)
    return _by_iteration(features) if features.columns > SMALL else _by_squaring(features.to_scipy().toarray())


def _by_squaring(features: Vector) -> float:
    rows, columns = features.shape
    with np.errstate(over="ignore", invalid="ignore"):
        gram = features.T @ features if columns <= rows else features @ features.T
    return max(float(np.linalg.eigvalsh(gram)[-1]), 0.0) if np.isfinite(gram).all() else float("inf")


def _by_iteration(features: CsrMatrix) -> float:
    from scipy.sparse.linalg import LinearOperator, eigsh

    rows, columns = range(len(features)), features.columns
    shrink = _shrink(features)

    def gram_times(vector: Vector) -> Vector:
        product = np.zeros(columns)
        slopes = shrink * features.predictions(rows, shrink * vector.reshape(columns))
        features.accumulate(rows, slopes, product)
        return product

    start = generator(0, "", "largest-eigenvalue").standard_normal(columns)
    if not gram_times(start).any():
        return 0.0  # without entries there is nothing to iterate on
    gram = LinearOperator((columns, columns), gram_times, dtype=np.float64)
    found = eigsh(gram, k=1, which="LA", v0=start, tol=1e-10, return_eigenvectors=False)
    return max(float(found[0]), 0.0) / shrink / shrink


def _shrink(features: CsrMatrix) -> float:
    """Return a power of two, which changes no digit, that makes the largest entry about 1: squares then stay finite."""
    if features.values is None or not features.values.any():
        return 1.0
    _, exponent = np.frexp(np.abs(features.values).max())
    return float(np.ldexp(1.0, int(np.clip(-exponent, -1000, 1000))))
