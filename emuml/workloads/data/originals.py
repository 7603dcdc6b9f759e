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
from emuml.workloads.data import cached, files
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
        *columns, y = files.number_columns(path, len(original.columns) + 1, where)
        return _encoded(name, columns, y, source, where)
    if suffix == ".csv":
        *columns, y = files.text_columns(path, (*original.columns, original.target), where)
        return _encoded(name, columns, y, source, f"{where} ({path})")
    raise UserError(f"{path} is of no known kind", where, KINDS)


_LAYOUTS = "arrays X and y, or a CSR matrix as save_npz stores it and y"


def _from_arrays(name: str, stored: files.Arrays, where: str, source: str) -> Table:
    """Take the input columns as ``X``, Covertype's planes of bytes, or a matrix that is encoded already."""
    if "y" not in stored:
        raise UserError("has no array y", where, _LAYOUTS)
    if name == "covertype" and {"lo", "hi", "wild", "soil"} <= stored.keys():
        return _encoded(name, _from_planes(stored), stored["y"], source, where)
    if "X" in stored:
        X, wanted = stored["X"], len(ORIGINALS[name].columns)
        if X.ndim != 2 or X.shape[1] != wanted:
            raise UserError(f"X has shape {X.shape}", where, f"(rows, {wanted}), the columns before they are encoded")
        return _encoded(name, list(X.T), stored["y"], source, where)
    return Table(*table_arrays(csr_arrays(stored, where), stored["y"], where), f"{name}: {source}")


def _from_planes(stored: files.Arrays) -> list[NDArray[Any]]:
    """Return Covertype's 54 columns from high and low bytes of ten measures and the codes of two indicators."""
    measures = list(stored["hi"].astype(np.int16) * 256 + stored["lo"])
    return [
        *measures,
        *(stored["wild"] == area for area in range(4)),
        *(stored["soil"] == soil for soil in range(40)),
    ]


def _encoded(name: str, columns: Columns, y: NDArray[Any], source: str, where: str) -> Table:
    """Keep the rows of the set's classes, encode them, and say how the shape differs from the original's if it does."""
    original = ORIGINALS[name]
    if y.dtype.kind not in "biuf" or y.shape != (len(columns[0]),):
        raise UserError(f"{original.target} has dtype {y.dtype} and shape {y.shape}", where, "a number for each row")
    if original.classes:
        kept = np.isin(y, original.classes)
        if not kept.any():
            raise UserError("there are no rows of these classes", where, " and ".join(map(str, original.classes)))
        columns, y = [column[kept] for column in columns], y[kept]
    X = one_hot(columns, original.pairs, where)
    wanted = (original.rows, original.one_hot_columns)
    shape = f"{X.shape[0]} rows x {X.shape[1]} one-hot columns"
    differs = "" if X.shape == wanted else f", where the original has {wanted[0]} x {wanted[1]}"
    return Table(*table_arrays(X, y / original.unit, where), f"{name}: {source}, {shape}{differs}")
