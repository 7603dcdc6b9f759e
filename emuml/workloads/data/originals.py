"""The three real data sets of ErasureHead's experiments, one-hot encoded to the shapes of the original.

They are looked for at the path that the user gives, else in the folder ``EMUML_DATA``, else among what scikit-learn has
kept. Nothing is downloaded, and no twin stands in unasked.

Source of encodings and splits: ErasureHead, arXiv:1901.09671, and its program's preparation of data.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.workloads.csr import CsrMatrix
from emuml.workloads.data import cached, cells, files
from emuml.workloads.data.encoding import one_hot
from emuml.workloads.data.facts import ORIGINALS
from emuml.workloads.data.table import Table, csr_arrays, table_arrays

Columns = Sequence[NDArray[Any]]

KINDS = "a file that ends with .npz or .csv, also with .xz or .gz"


def load(name: str, path: str | None, where: str) -> Table:
    """Load a named set and encode it.

    Parameters
    ----------
    name : str
        One of :data:`ORIGINALS`.
    path : str, optional
        A file to take it from, and no other.
    where : str
        Path of the setting, for errors.

    Raises
    ------
    UserError
        If it is nowhere to be had (the message says what to do) or what is there cannot be used.
    """
    original = ORIGINALS[name]
    if path is not None:
        return _from_file(name, files.find(path, where, KINDS), where)
    folder = files.data_folder(where)
    candidates = [folder / file for file in original.files] if folder is not None else []
    for candidate in candidates:
        if candidate.is_file():
            return _from_file(name, candidate, where)
    found = cached.openml(original.openml, original.columns, where) if original.openml else cached.covertype(where)
    if found is not None:
        return _encoded(name, found.columns, found.y, found.source, where)
    raise UserError(
        f"{name!r} is not on this machine, and nothing is downloaded unasked",
        where,
        f"'{name}:PATH' with {KINDS}; a folder EMUML_DATA with {original.files[0]}; what scikit-learn keeps after "
        f'python -c "{original.fetch}"',
        f"made without any data: '{name}-twin'",
    )


def _from_file(name: str, path: Path, where: str) -> Table:
    source = f"file {path} (SHA-256 {files.sha256(path)})"
    suffix = files.plain_suffix(path)
    if suffix == ".npz":
        return _from_arrays(name, files.arrays(path, where, _LAYOUTS), f"{where} ({path})", source)
    original = ORIGINALS[name]
    if name == "covertype" and suffix in (".csv", ".data"):
        *columns, y = cells.number_columns(path, (*original.columns, original.target), where)
        return _encoded(name, columns, y, source, f"{where} ({path})")
    if suffix == ".csv":
        *columns, y = cells.text_columns(path, (*original.columns, original.target), where)
        return _encoded(name, columns, y, source, f"{where} ({path})")
    raise UserError(f"{path} is of no known kind", where, KINDS)


_LAYOUTS = "arrays X and y, or a CSR matrix as save_npz stores it and y"


def _from_arrays(name: str, stored: files.Arrays, where: str, source: str) -> Table:
    """Take the input columns as ``X``, Covertype's planes of bytes, or a matrix that is encoded already."""
    if "y" not in stored:
        raise UserError("has no array y", where, _LAYOUTS)
    if name == "covertype" and {"lo", "hi", "wild", "soil"} <= stored.keys():
        return _encoded(name, _from_planes(stored, where), stored["y"], source, where)
    if "X" in stored:
        X, wanted = stored["X"], len(ORIGINALS[name].columns)
        if X.ndim != 2 or X.shape[1] != wanted:
            raise UserError(f"X has shape {X.shape}", where, f"(rows, {wanted}), the columns before they are encoded")
        return _encoded(name, list(X.T), stored["y"], source, where)
    matrix = csr_arrays(stored, where)
    _is_kept(name, stored["y"], False, where)
    return Table(*table_arrays(matrix, stored["y"], where), _described(name, source, matrix))


def _from_planes(stored: files.Arrays, where: str) -> list[NDArray[Any]]:
    """Return Covertype's 54 columns from high and low bytes of ten measures and the codes of two indicators."""
    rows = stored["y"].size
    for plane, (shape, least, most) in {
        "lo": ((10, rows), 0, 255),
        "hi": ((10, rows), -128, 255),
        "wild": ((rows,), 0, 3),
        "soil": ((rows,), 0, 39),
    }.items():
        array = stored[plane]
        if array.dtype.kind not in "iu" or array.shape != shape:
            found = f"{plane} has dtype {array.dtype} and shape {array.shape}"
            raise UserError(found, where, f"whole numbers, shape {shape}")
        if rows and not least <= array.min() <= array.max() <= most:
            raise UserError(f"{plane} goes from {array.min()} to {array.max()}", where, f"{least} to {most}")
    measures = list(stored["hi"].astype(np.int16) * 256 + stored["lo"])
    return [
        *measures,
        *(stored["wild"] == area for area in range(4)),
        *(stored["soil"] == soil for soil in range(40)),
    ]


def _encoded(name: str, columns: Columns, y: NDArray[Any], source: str, where: str) -> Table:
    """Keep the rows of the set's classes and encode them."""
    original = ORIGINALS[name]
    if y.shape != (len(columns[0]),):
        raise UserError(f"{original.target} has dtype {y.dtype} and shape {y.shape}", where, "a number for each row")
    kept = _is_kept(name, y, original.has_others, where)
    if not kept.all():
        columns, y = [column[kept] for column in columns], y[kept]
    X = one_hot(columns, original.pairs, where)
    return Table(*table_arrays(X, y / original.unit, where), _described(name, source, X))


def _is_kept(name: str, y: NDArray[Any], has_others: bool, where: str) -> NDArray[np.bool_]:
    """Tell which rows belong to the set by their targets: at least one, and all unless there may be others."""
    original = ORIGINALS[name]
    allowed = " and ".join(map(str, original.labels)) or "a number for each row"
    if y.dtype.kind not in "iuf":
        raise UserError(f"{original.target} has dtype {y.dtype} and shape {y.shape}", where, allowed)
    if not original.labels:
        return np.ones(y.shape, np.bool_)
    kept = np.isin(y, original.labels)
    if not kept.any():
        raise UserError("there are no rows of these classes", where, allowed)
    if not (has_others or kept.all()):
        row = int(np.flatnonzero(~kept)[0])
        raise UserError(f"{original.target} of row {row} is {y[row]}", where, allowed)
    return kept


def _described(name: str, source: str, X: CsrMatrix) -> str:
    """Say where a set comes from, and how its shape differs from the original's if it does."""
    original = ORIGINALS[name]
    wanted = (original.rows, original.one_hot_columns)
    shape = f"{X.shape[0]} rows x {X.shape[1]} one-hot columns"
    differs = "" if X.shape == wanted else f", where the original has {wanted[0]} x {wanted[1]}"
    return f"{name}: {source}, {shape}{differs}"
