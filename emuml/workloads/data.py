"""Tables of numbers for regressions: arrays, files, named data sets and a synthetic one.

A file or a named set is looked for where the caller says, then in the folder that ``EMUML_DATA`` names, then in an
installed loader; the source that was taken is kept in words, and nothing is ever downloaded or replaced by something
else. Only launchers come here: scikit-learn is imported inside the function that needs it.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emuml.errors import UserError, did_you_mean
from emuml.streams import generator

Vector = NDArray[np.float64]

NAMED = {"breast-cancer": "load_breast_cancer", "digits": "load_digits", "diabetes": "load_diabetes"}
"""Named data sets and their loaders in ``sklearn.datasets``. The labels of digits are 1 for odd digits, 0 for even."""

SYNTHETIC = "two-gaussians"
"""Also ``two-gaussians:ROWSxCOLUMNS``; 3000 x 100 if not given."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers with one target each.

    Parameters
    ----------
    X : ndarray of float64, shape (rows, columns)
    y : ndarray of float64, shape (rows,)
    source : str
        Where they come from.
    names : tuple of str
        Of the columns; may be empty.
    """

    X: Vector
    y: Vector
    source: str
    names: tuple[str, ...] = ()


def load(data: str | tuple[Vector, Vector], seed: int, where: str) -> Table:
    """Load a table.

    Parameters
    ----------
    data : str or (X, y)
        A name, a path that ends with ``.npz`` (with arrays X and y), or arrays.
    seed : int
        Of the synthetic set.
    where : str
        Path of the setting, for errors.

    Raises
    ------
    UserError
        If there is no such data, or they are not finite numbers of fitting shapes.
    """
    if not isinstance(data, str):
        return Table(*table_arrays(*data, where), "arrays given by the caller")
    if data.endswith(".npz"):
        return _from_file(data, where)
    if data.partition(":")[0] == SYNTHETIC:
        return two_gaussians(*_size(data, where), seed)
    if data not in NAMED:
        allowed = ", ".join((*NAMED, SYNTHETIC, "a path that ends with .npz", "(X, y)"))
        raise UserError(f"{data!r} is unknown", where, allowed, did_you_mean(data, (*NAMED, SYNTHETIC)))
    folder = _data_folder(where)
    if folder is not None and (folder / f"{data}.npz").is_file():
        return _from_file(str(folder / f"{data}.npz"), where)
    return _from_scikit_learn(data, where)


def two_gaussians(rows: int, columns: int, seed: int) -> Table:
    """Return artificial data like those of ErasureHead's program.

    A random vector b of -1 and +1; each row is drawn around +-(1.5/columns) b with noise of standard deviation
    10/sqrt(columns); its label is 1 with probability 1/(1 + exp(-row . b)), else 0.

    Examples
    --------
    >>> two_gaussians(6, 2, seed=0).X.shape
    (6, 2)
    """
    draws = generator(seed, "", f"data/{SYNTHETIC}/{rows}x{columns}")
    direction = 2.0 * draws.integers(0, 2, columns) - 1.0
    side = 2.0 * draws.integers(0, 2, rows) - 1.0
    noise = draws.standard_normal((rows, columns))
    X = side[:, None] * (1.5 / columns) * direction + (10.0 / np.sqrt(columns)) * noise
    y = (draws.random(rows) < 1.0 / (1.0 + np.exp(-(X * direction).sum(axis=1)))).astype(np.float64)
    return Table(X, y, f"synthetic {SYNTHETIC}, {rows} rows x {columns} columns, seed {seed}")


def table_arrays(X: ArrayLike, y: ArrayLike, where: str) -> tuple[Vector, Vector]:
    """Return X and y as float64 arrays.

    Raises
    ------
    UserError
        If they are not numbers, not finite, empty, or of shapes that do not fit together.
    """
    features, targets = _numbers(X, f"{where}.X"), _numbers(y, f"{where}.y")
    if features.ndim != 2 or 0 in features.shape:
        raise UserError(f"has shape {features.shape}", f"{where}.X", "shape (rows, columns), both at least 1")
    if targets.shape != (len(features),):
        raise UserError(f"has shape {targets.shape}", f"{where}.y", f"shape ({len(features)},), one for each row of X")
    for name, array in (("X", features), ("y", targets)):
        if not np.isfinite(array).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            index = ", ".join(map(str, at))
            raise UserError(f"{name}[{index}] is {array[at]}", f"{where}.{name}", "finite numbers")
    return features, targets


def _numbers(values: ArrayLike, where: str) -> Vector:
    allowed = "a dense array of real numbers"
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise UserError(str(error), where, allowed) from error
    if array.dtype.kind not in "biuf":
        raise UserError(f"has dtype {array.dtype}", where, allowed)
    return np.ascontiguousarray(array, np.float64)


def _from_file(name: str, where: str) -> Table:
    folder = _data_folder(where)
    path = Path(name) if Path(name).is_file() or folder is None else folder / name
    if not path.is_file():
        raise UserError(f"there is no file {name!r}", where, "an .npz file, also in the folder EMUML_DATA names")
    try:
        # Opened here, because numpy leaves a file that is no archive open.
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                raise UserError(f"{path} holds a single array", where, "arrays X and y")
            X, y = stored["X"], stored["y"]
    except KeyError as error:
        raise UserError(f"{path} has no array {error.args[0].split()[0]}", where, "arrays X and y") from error
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} cannot be read: {error}", where, "an .npz file with arrays X and y") from error
    return Table(*table_arrays(X, y, f"{where} ({path})"), f"file {path}")


def _from_scikit_learn(name: str, where: str) -> Table:
    try:
        datasets: Any = import_module("sklearn.datasets")
    except ImportError as error:
        raise UserError(
            f"{name!r} comes with scikit-learn, which is not installed",
            where,
            f"a path to an .npz file with X and y; {name}.npz in the folder EMUML_DATA names; {SYNTHETIC!r}",
            "pip install emuml[data]",
        ) from error
    found = getattr(datasets, NAMED[name])()
    y = found.target % 2 if name == "digits" else found.target
    source = f"scikit-learn {import_module('sklearn').__version__}, {NAMED[name]}()"
    return Table(*table_arrays(found.data, y, where), source, tuple(map(str, found.feature_names)))


def _data_folder(where: str) -> Path | None:
    """Return the folder that ``EMUML_DATA`` names, if it names one."""
    named = os.environ.get("EMUML_DATA")
    if named and not Path(named).is_dir():
        raise UserError(f"EMUML_DATA names {named!r}, which is no folder", where, "a folder, or EMUML_DATA unset")
    return Path(named) if named else None


def _size(data: str, where: str) -> tuple[int, int]:
    rows, _, columns = (data.partition(":")[2] or "3000x100").partition("x")
    if not (rows.isdecimal() and columns.isdecimal() and int(rows) > 0 and int(columns) > 0):
        raise UserError(f"got {data!r}", where, f"{SYNTHETIC}:ROWSxCOLUMNS, such as {SYNTHETIC}:3000x100")
    return int(rows), int(columns)
