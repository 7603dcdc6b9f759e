"""Dense tables: ``.npz`` files, the small sets of scikit-learn, and a synthetic one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from emuml.errors import UserError
from emuml.streams import generator
from emuml.workloads.data.files import arrays, data_folder, find
from emuml.workloads.data.limits import check_fits, whole_number
from emuml.workloads.data.table import Table, csr_arrays, table_arrays

NAMED = {"breast-cancer": "load_breast_cancer", "digits": "load_digits", "diabetes": "load_diabetes"}
"""Named data sets and their loaders in ``sklearn.datasets``. The labels of digits are 1 for odd digits, 0 for even."""

SYNTHETIC = "two-gaussians"
"""Also ``two-gaussians:ROWSxCOLUMNS``; 3000 x 100 if not given."""


def named(name: str, where: str) -> Table:
    """Load one of the :data:`NAMED` sets, from ``NAME.npz`` in the data folder if that is there.

    Raises
    ------
    UserError
        If scikit-learn would be needed and is not installed.
    """
    folder = data_folder(where)
    if folder is not None and (folder / f"{name}.npz").is_file():
        return from_file(str(folder / f"{name}.npz"), where)
    return _from_scikit_learn(name, where)


def from_file(name: str, where: str) -> Table:
    """Load ``X`` and ``y`` of an ``.npz`` file; in place of ``X`` it may hold a CSR matrix as ``save_npz`` stores it.

    Raises
    ------
    UserError
        If there is no such file, or what it holds is no table.
    """
    path = find(name, where, "an .npz file")
    stored = arrays(path, where, "arrays X and y")
    inside = f"{where} ({path})"
    is_csr = "X" not in stored and "indptr" in stored
    for wanted in ("y",) if is_csr else ("X", "y"):
        if wanted not in stored:
            raise UserError(f"{path} has no array {wanted}", where, "arrays X and y")
    X = csr_arrays(stored, inside) if is_csr else stored["X"]
    return Table(*table_arrays(X, stored["y"], inside), f"file {path}")


def synthetic(data: str, seed: int, where: str) -> Table:
    """Make the synthetic set that ``two-gaussians`` or ``two-gaussians:ROWSxCOLUMNS`` names."""
    return two_gaussians(*_size(data, where), seed)


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


def _size(data: str, where: str) -> tuple[int, int]:
    sizes = (data.partition(":")[2] or "3000x100").split("x")
    numbers = [number for size in sizes if (number := whole_number(size))]
    if len(sizes) != 2 or len(numbers) != 2:
        raise UserError(f"got {data!r}", where, f"{SYNTHETIC}:ROWSxCOLUMNS, such as {SYNTHETIC}:3000x100")
    rows, columns = numbers
    check_fits(8 * rows * columns, data, where)
    return rows, columns
