"""One-hot encoding: each distinct value of a column becomes a column of zeros and ones.

1. A row has exactly one entry for each input column and each crossed pair, in that order; each entry is 1.
2. The columns of one input column stand together, in ascending order of its values; numbers ascend as numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emuml.errors import UserError
from emuml.memory import sealed
from emuml.workloads.csr import CsrMatrix

Codes = NDArray[np.int64]
Coded = tuple[Codes, int]
"""Number of the value of each row, and how many values there are."""

Pairs = Sequence[tuple[int, int]]


def one_hot(columns: Sequence[ArrayLike], pairs: Pairs = (), where: str = "columns") -> CsrMatrix:
    """Encode columns, and pairs of them, by their distinct values.

    Parameters
    ----------
    columns : sequence of array_like, each of shape (rows,)
        Whole numbers, finite numbers or text.
    pairs : sequence of (int, int)
        Positions of two columns, whose combinations count as the values of one more.
    where : str
        Name of the columns, for errors.

    Returns
    -------
    CsrMatrix
        Of shape (rows, distinct values of all columns and pairs), without a constant column.

    Raises
    ------
    UserError
        If there is no row or column, lengths differ, or a value is no number and no text.

    Examples
    --------
    >>> matrix = one_hot([[30, 7, 30], ["b", "a", "b"]], pairs=[(0, 1)])
    >>> matrix.shape
    (3, 6)
    >>> matrix.indices.reshape(3, 3)
    array([[1, 3, 5],
           [0, 2, 4],
           [1, 3, 5]], dtype=int32)
    """
    arrays = [_column(column, f"{where}[{j}]") for j, column in enumerate(columns)]
    if not arrays or not len(arrays[0]):
        raise UserError("there are no rows", where, "at least one column with at least one row")
    rows, width = len(arrays[0]), len(arrays) + len(pairs)
    for j, array in enumerate(arrays):
        if len(array) != rows:
            raise UserError(f"has {len(array)} rows", f"{where}[{j}]", f"{rows}, like the first column")
    indices, first = np.empty(rows * width, np.int32), 0
    for slot, (codes, values) in enumerate(_blocks(arrays, pairs)):
        np.add(codes, first, out=indices[slot::width], casting="unsafe")
        first += values
    # Sealed, so that the matrix need not copy them.
    return CsrMatrix(sealed(np.arange(0, rows * width + 1, width)), sealed(indices), first)


def distinct_pairs(coded: Sequence[Coded], pairs: Pairs) -> int:
    """Count the combinations that occur, over all pairs."""
    total = 0
    for a, b in pairs:
        crossed = np.sort(_crossed(coded[a], coded[b]))
        total += 1 + int(np.count_nonzero(crossed[1:] != crossed[:-1]))
    return total


def _blocks(arrays: Sequence[NDArray[Any]], pairs: Pairs) -> Iterator[Coded]:
    """Yield the codes of columns and pairs, keeping those of columns that are in a pair and no others."""
    paired = {j for pair in pairs for j in pair}
    kept: dict[int, Coded] = {}
    for j, array in enumerate(arrays):
        coded = _coded(array)
        if j in paired:
            kept[j] = coded
        yield coded
    for a, b in pairs:
        yield _coded(_crossed(kept[a], kept[b]))


def _crossed(left: Coded, right: Coded) -> Codes:
    return left[0] * right[1] + right[0]


def _coded(column: NDArray[Any]) -> Coded:
    offsets = _offsets(column)
    if offsets is None:
        values, codes = np.unique(column, return_inverse=True)
        return codes.reshape(-1), len(values)
    occurs = np.zeros(int(offsets.max()) + 1, np.bool_)
    occurs[offsets] = True
    return (np.cumsum(occurs) - 1)[offsets], int(np.count_nonzero(occurs))


def _offsets(column: NDArray[Any]) -> Codes | None:
    """Return whole numbers above the least of them, if so few are possible that a table of them beats sorting."""
    if column.dtype.kind == "U" or max(-int(column.min()), int(column.max())) >= 2**31:
        return None
    whole = column.astype(np.int64)
    offsets: Codes = whole - whole.min()
    few = int(offsets.max()) <= 4 * len(column) + 1024
    return offsets if few and (whole == column).all() else None


def _column(values: ArrayLike, where: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind == "O":
        array = np.array([str(value) for value in array]) if all(isinstance(v, str) for v in array) else array
    if array.ndim != 1 or array.dtype.kind not in "biufU":
        found = f"has dtype {array.dtype} and shape {array.shape}"
        raise UserError(found, where, "numbers or text, shape (rows,)")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise UserError(f"row {row} is {array[row]}", where, "finite numbers")
    return array.view(np.uint8) if array.dtype.kind == "b" else array
