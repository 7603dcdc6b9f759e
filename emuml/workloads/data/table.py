"""A table: rows of features, dense or sparse, with one target each; and the check that arrays are one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emuml.errors import UserError
from emuml.workloads.csr import CsrMatrix

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers with one target each.

    Parameters
    ----------
    X : ndarray of float64, shape (rows, columns), or CsrMatrix
    y : ndarray of float64, shape (rows,)
    source : str
        Where they come from.
    names : tuple of str
        Of the columns; may be empty.
    """

    X: Vector | CsrMatrix
    y: Vector
    source: str
    names: tuple[str, ...] = ()


def table_arrays(X: ArrayLike | CsrMatrix, y: ArrayLike, where: str) -> tuple[Vector | CsrMatrix, Vector]:
    """Return y, and X if it is dense, as float64 arrays; a matrix of ``scipy.sparse`` becomes a CsrMatrix.

    Raises
    ------
    UserError
        If they are not numbers, not finite, empty, or of shapes that do not fit together.
    """
    features, targets = _features(X, f"{where}.X"), _numbers(y, f"{where}.y")
    if len(features.shape) != 2 or 0 in features.shape:
        raise UserError(f"has shape {features.shape}", f"{where}.X", "shape (rows, columns), both at least 1")
    if targets.shape != (len(features),):
        raise UserError(f"has shape {targets.shape}", f"{where}.y", f"shape ({len(features)},), one for each row of X")
    if not isinstance(features, CsrMatrix):  # which is finite
        _check_finite("X", features, where)
    _check_finite("y", targets, where)
    return features, targets


def csr_arrays(stored: dict[str, NDArray[Any]], where: str) -> CsrMatrix:
    """Return the matrix whose arrays are named as ``scipy.sparse.save_npz`` names them.

    Raises
    ------
    UserError
        If an array is missing, the format is another one, or they are no such matrix.
    """
    missing = [name for name in ("data", "indices", "indptr", "shape") if name not in stored]
    if missing:
        raise UserError(f"has no array {missing[0]}", where, "data, indices, indptr, shape and y, of a CSR matrix")
    form = np.asarray(stored.get("format", "csr")).tolist()
    if form not in ("csr", b"csr"):
        shown = form.decode("ascii", "replace") if isinstance(form, bytes) else form
        raise UserError(f"holds a matrix in the format {shown!r}", where, "'csr', which scipy's tocsr() returns")
    shape = stored["shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise UserError(f"shape is {shape.tolist()}", where, "two whole numbers, rows and columns")
    matrix = _csr(stored["indptr"], stored["indices"], int(shape[1]), stored["data"], where)
    if len(matrix) != shape[0]:
        raise UserError(f"shape says {shape[0]} rows, indptr {len(matrix)}", where, "equal numbers")
    return matrix


def _features(X: Any, where: str) -> Vector | CsrMatrix:
    if isinstance(X, CsrMatrix):
        return X
    if not hasattr(X, "tocsr"):
        return _numbers(X, where)
    if len(X.shape) != 2 or 0 in X.shape:
        raise UserError(f"has shape {X.shape}", where, "shape (rows, columns), both at least 1")
    rows = X.tocsr()
    return _csr(rows.indptr, rows.indices, int(rows.shape[1]), rows.data, where)


def _csr(indptr: Any, indices: Any, columns: int, values: Any, where: str) -> CsrMatrix:
    """Make a matrix without values if all are 1; what is wrong is said of ``where``."""
    ones = values.dtype.kind in "biuf" and values.shape == indices.shape and bool((values == 1).all())
    try:
        return CsrMatrix(indptr, indices, columns, None if ones else values)
    except UserError as error:
        field = error.where.rpartition(".")[2]
        raise UserError(f"{field}: {error.what}", where, error.allowed, error.hint) from error


def _numbers(values: ArrayLike, where: str) -> Vector:
    allowed = "an array of real numbers, dense or of scipy.sparse" if where.endswith(".X") else "an array of numbers"
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise UserError(str(error), where, allowed) from error
    if array.dtype.kind not in "biuf":
        raise UserError(f"has dtype {array.dtype}", where, allowed)
    with np.errstate(over="ignore"):  # which is found when all are checked to be finite
        return np.ascontiguousarray(array, np.float64)


def _check_finite(name: str, array: Vector, where: str) -> None:
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        index = ", ".join(map(str, at))
        raise UserError(f"{name}[{index}] is {array[at]}", f"{where}.{name}", "finite numbers")
