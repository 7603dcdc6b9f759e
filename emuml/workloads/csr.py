"""Matrices in compressed sparse row form, as one-hot tables are: few entries in each row, most of them 1.

1. A matrix is checked once, when it is made; from then on its entries exist and its columns lie within it, so that
   kernels need not look again.
2. Rows keep the order in which their entries are stored, and every sum goes in that order: equal content gives equal
   bits. A column that occurs twice in a row counts twice, as the sum of its entries.
3. Node processes map the arrays from files and never copy them.

Only numpy is needed; scipy is imported where a matrix comes from it or goes to it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from emuml._kernels import csr_accumulate, csr_predict
from emuml.errors import UserError
from emuml.memory import owned, rebuilt, sealed
from emuml.spec import Inputs, check, to_spec
from emuml.workloads.partitions import Rows

Vector = NDArray[np.float64]

ROWS_AT_ONCE = 4096
"""Rows that are copied together."""


@dataclass(frozen=True, eq=False)
class CsrMatrix:
    """A sparse matrix by rows; two are equal if they have the same entries stored in the same way.

    So the order in a row counts, and ones that are given as ``values`` are not the same as no values. Arrays of the
    right type are taken as they are if they and who owns their memory are read-only, as mapped files are; others are
    copied.

    Parameters
    ----------
    indptr : ndarray of int64, shape (rows + 1,)
        Row i has the entries ``indptr[i] .. indptr[i + 1] - 1``; starts with 0, never falls, ends with the number of
        entries.
    indices : ndarray of int32, shape (entries,)
        Column of each entry. Rows need not be sorted, and a column may repeat: its entries then count as their sum.
    columns : int
        How many columns there are, at least 1.
    values : ndarray of float64, shape (entries,), optional
        Of the entries, finite. Default: all are 1.

    Raises
    ------
    UserError
        If the arrays are not such a matrix; the message says which and where.

    Examples
    --------
    >>> matrix = CsrMatrix(np.array([0, 2, 3]), np.array([0, 2, 1]), columns=3)
    >>> matrix.shape, matrix.nnz, len(matrix)
    ((2, 3), 3, 2)
    >>> matrix.predictions(range(2), np.array([1.0, 10.0, 100.0]))
    array([101.,  10.])
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    columns: Annotated[int, Ge(1), Le(2**31 - 1)]
    values: Vector | None = None

    def __post_init__(self) -> None:
        check(self)
        starts, entries = _whole(self.indptr, "indptr"), _whole(self.indices, "indices")
        _check_rows(starts, len(entries))
        _check_columns(entries, self.columns)
        object.__setattr__(self, "indptr", owned(starts, np.int64))
        object.__setattr__(self, "indices", owned(entries, np.int32))
        if self.values is not None:
            object.__setattr__(self, "values", _finite(self.values, len(entries)))

    def __reduce__(self) -> tuple[type[Any], tuple[Any, ...]]:
        return rebuilt(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CsrMatrix):
            return NotImplemented
        return self is other or (self.shape == other.shape and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash((self.shape, self.nnz))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: of the canonical spec, which names the digests of the arrays."""
        return hashlib.sha256(json.dumps(to_spec(self, Inputs())).encode()).hexdigest()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), self.columns

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self.indices)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def predictions(self, rows: Rows, parameters: Vector) -> Vector:
        """Return the product of some rows with a vector, each sum in the order of the stored entries.

        Parameters
        ----------
        rows : range or ndarray of int64
            A contiguous range, or chosen rows.
        parameters : ndarray of float64, shape (columns,)
            Entries that no row refers to are not read.

        Returns
        -------
        ndarray of float64, shape (len(rows),)
        """
        self._check_vector(parameters)
        out = np.empty(len(rows))
        csr_predict(*self._bounds(rows), self.indices, self.values, _plain(parameters), out)
        return out

    def accumulate(self, rows: Rows, slopes: Vector, out: Vector) -> None:
        """Add ``slopes[i]`` times row ``rows[i]`` to ``out``, for each row in order.

        Parameters
        ----------
        rows : range or ndarray of int64
            A contiguous range, or chosen rows.
        slopes : ndarray of float64, shape (len(rows),)
        out : ndarray of float64, shape (columns,)
            Contiguous and writable; only the columns of these rows are touched.
        """
        self._check_vector(out)
        if slopes.shape != (len(rows),):
            raise ValueError(f"got slopes of shape {slopes.shape} for {len(rows)} rows")
        csr_accumulate(*self._bounds(rows), self.indices, self.values, _plain(slopes), out)

    def take(self, rows: Rows) -> CsrMatrix:
        """Return the matrix of some rows, in the order given; rows may repeat.

        Examples
        --------
        >>> CsrMatrix(np.array([0, 2, 3]), np.array([0, 2, 1]), columns=3).take(np.array([1])).indices
        array([1], dtype=int32)
        """
        starts, stops = self._bounds(rows)
        indptr = np.concatenate([[0], np.cumsum(stops - starts)])
        values = None if self.values is None else _gathered(self.values, starts, indptr)
        return CsrMatrix(sealed(indptr), _gathered(self.indices, starts, indptr), self.columns, values)

    def with_constant_column(self) -> CsrMatrix:
        """Return the matrix with a column of ones appended, each row's 1 stored last.

        Examples
        --------
        >>> CsrMatrix(np.array([0, 2, 3]), np.array([0, 2, 1]), columns=3).with_constant_column().indices
        array([0, 2, 3, 1, 3], dtype=int32)
        """
        indptr = self.indptr + np.arange(len(self.indptr))
        indices = np.insert(self.indices, self.indptr[1:], self.columns)
        values = None if self.values is None else sealed(np.insert(self.values, self.indptr[1:], 1.0))
        return CsrMatrix(sealed(indptr), sealed(indices), self.columns + 1, values)

    @classmethod
    def from_scipy(cls, matrix: Any) -> CsrMatrix:
        """Return the content of a ``scipy.sparse`` matrix or array of any format; where all entries are 1, no values.

        Raises
        ------
        UserError
            If it is no sparse matrix of real, finite numbers with at least one column.
        """
        from scipy import sparse

        allowed = "a scipy.sparse matrix of real numbers, of shape (rows, columns)"
        if not sparse.issparse(matrix) or matrix.ndim != 2:
            raise UserError(f"got {type(matrix).__name__} of shape {np.shape(matrix)}", "CsrMatrix", allowed)
        if matrix.dtype.kind not in "biuf":
            raise UserError(f"has dtype {matrix.dtype}", "CsrMatrix", allowed)
        rows = matrix.tocsr()
        values = None if (rows.data == 1).all() else rows.data
        return cls(rows.indptr, rows.indices, rows.shape[1], values)

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.csr_array`` of the same entries in the same order; its arrays are copies."""
        from scipy import sparse

        values = np.ones(self.nnz) if self.values is None else self.values
        return sparse.csr_array((values, self.indices, self.indptr), self.shape, copy=True)

    def _bounds(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the entries of each row begin and end."""
        if isinstance(rows, range):
            if rows.step != 1 or (rows and not 0 <= rows.start <= rows.stop <= len(self)):
                raise IndexError(f"{rows} is no contiguous range of {len(self)} rows")
            return self.indptr[rows.start : rows.stop], self.indptr[rows.start + 1 : rows.stop + 1]
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"rows {rows.min()} to {rows.max()} are not all among {len(self)} rows")
        return self.indptr[rows], self.indptr[rows + 1]

    def _check_vector(self, vector: Vector) -> None:
        if vector.shape != (self.columns,):
            raise ValueError(f"got a vector of shape {vector.shape} for {self.columns} columns")


Matrix = Vector | CsrMatrix
"""Rows of a regression, dense or sparse."""


def _whole(array: NDArray[Any], name: str) -> NDArray[Any]:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise UserError(
            f"has dtype {array.dtype} and shape {array.shape}", f"CsrMatrix.{name}", "whole numbers in one dimension"
        )
    return array


def _check_rows(indptr: NDArray[Any], entries: int) -> None:
    allowed = f"from 0, never falling, to the number of entries, {entries}"
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != entries:
        ends = f"goes from {indptr[0]} to {indptr[-1]}" if len(indptr) else "is empty"
        raise UserError(ends, "CsrMatrix.indptr", allowed)
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falls):
        at = int(falls[0])
        raise UserError(f"falls from {indptr[at]} to {indptr[at + 1]} after row {at}", "CsrMatrix.indptr", allowed)


def _check_columns(indices: NDArray[Any], columns: int) -> None:
    if len(indices) and not 0 <= indices.min() <= indices.max() < columns:
        at = int(np.flatnonzero((indices < 0) | (indices >= columns))[0])
        raise UserError(f"indices[{at}] is {indices[at]}", "CsrMatrix.indices", f"columns from 0 to {columns - 1}")


def _finite(values: NDArray[Any], entries: int) -> Vector:
    """Return values as an array of its own, checked after they are made float64, of which more are infinite."""
    if values.dtype.kind not in "biuf" or values.shape != (entries,):
        raise UserError(
            f"has dtype {values.dtype} and shape {values.shape}",
            "CsrMatrix.values",
            f"real numbers, shape ({entries},), one for each entry",
        )
    with np.errstate(over="ignore"):
        own = owned(values)
    if not np.isfinite(own).all():
        at = int(np.flatnonzero(~np.isfinite(own))[0])
        raise UserError(f"values[{at}] is {values[at]!s}", "CsrMatrix.values", "finite numbers of float64")
    return own


def _gathered(array: NDArray[Any], starts: NDArray[np.int64], indptr: NDArray[np.int64]) -> NDArray[Any]:
    """Return the entries of rows that begin at ``starts``, one row after the other, as many as ``indptr`` says."""
    out = np.empty(indptr[-1], array.dtype)
    # A part after the other, because the positions of all entries take more memory than the matrix.
    for first in range(0, len(starts), ROWS_AT_ONCE):
        bounds = indptr[first : first + ROWS_AT_ONCE + 1]
        positions = np.repeat(starts[first : first + ROWS_AT_ONCE] - bounds[:-1], np.diff(bounds))
        positions += np.arange(bounds[0], bounds[-1])
        out[bounds[0] : bounds[-1]] = array[positions]
    return sealed(out)


def _plain(vector: Vector) -> Vector:
    """Return a contiguous, aligned float64 vector; what came in a message may lie at an odd address."""
    return np.require(vector, np.float64, ["C", "A"])
