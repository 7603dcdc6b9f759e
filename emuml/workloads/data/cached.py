"""Data that scikit-learn's loaders have fetched before: taken from their cache, never from the network.

``fetch_openml`` has no switch against downloading and fetches again what it finds damaged. So each file that it would
ask for is checked here first, with the checksum that the loader itself will want, and it is called for what is whole.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Sequence
from hashlib import file_digest
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.workloads.data.cells import typed


class Found(NamedTuple):
    """Columns, targets and in words the loader that gave them."""

    columns: list[NDArray[Any]]
    y: NDArray[Any]
    source: str


def covertype(where: str) -> Found | None:
    """Return Covertype as ``fetch_covtype`` has kept it, all rows and classes, or None if it has not.

    Raises
    ------
    UserError
        If it is there and cannot be loaded.
    """
    files = [_home() / "covertype" / name for name in ("samples_py3", "targets_py3")]
    if not all(file.is_file() for file in files):
        return None
    found = _fetched("fetch_covtype", where, files[0].parent, data_home=str(_home()), download_if_missing=False)
    whole = np.asarray(found.data).astype(np.int32)
    return Found(list(whole.T), np.asarray(found.target), f"{_version()}, fetch_covtype() of {files[0].parent}")


def openml(ids: Sequence[int], names: Sequence[str], where: str) -> Found | None:
    """Return named columns and the target of the first of some OpenML data sets that ``fetch_openml`` has kept.

    Raises
    ------
    UserError
        If one is there and damaged, cannot be loaded, or lacks a column.
    """
    root = _home() / "openml" / "openml.org"
    for number in ids:
        if _is_kept(root, number, where):
            options = {"data_id": number, "data_home": str(_home()), "as_frame": False, "parser": "liac-arff"}
            found = _fetched("fetch_openml", where, root, **options)
            columns = [_decoded(found, name, where) for name in names]
            y = typed(np.asarray(found.target).astype(str).tolist())
            return Found(columns, y, f"{_version()}, fetch_openml(data_id={number}) of {root}")
    return None


def _home() -> Path:
    # As scikit-learn's get_data_home, which would create the folder.
    return Path(os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")).expanduser()


def _is_kept(root: Path, number: int, where: str) -> bool:
    """Tell whether all four files of a data set are there; a damaged one is an error."""
    parts = [root / f"api/v1/json/data/{part}{number}.gz" for part in ("", "features/", "qualities/")]
    if not all(part.is_file() for part in parts):
        return False
    part = parts[0]
    try:
        for part in parts:
            json.loads(gzip.decompress(part.read_bytes()))
        description = json.loads(gzip.decompress(parts[0].read_bytes()))["data_set_description"]
        part = root / f"{urlparse(description['url']).path.lstrip('/')}.gz"
        if not part.is_file():
            return False
        with gzip.open(part) as file:
            digest = file_digest(file, "md5").hexdigest()
        if digest != description["md5_checksum"]:
            raise ValueError(f"MD5 is {digest}, its description says {description['md5_checksum']}")
    except (OSError, EOFError, ValueError, LookupError, TypeError, zlib.error) as error:
        raise UserError(f"{part} is damaged ({error})", where, "", "delete it and fetch it again") from error
    return True


def _fetched(loader: str, where: str, folder: Path, **options: Any) -> Any:
    try:
        datasets: Any = import_module("sklearn.datasets")
    except ImportError as error:
        what = f"the data in {folder} need scikit-learn, which is not installed"
        raise UserError(what, where, hint="pip install emuml[data]") from error
    try:
        return getattr(datasets, loader)(**options)
    except Exception as error:  # whatever a pickle or a table from elsewhere may raise
        raise UserError(f"{loader} cannot load what is in {folder}: {error}", where, hint="delete it") from error


def _decoded(found: Any, name: str, where: str) -> NDArray[Any]:
    """Return a column with its values, in place of which the loader may give their positions in a list."""
    if name not in found.feature_names:
        raise UserError(f"{found.details['name']} has no column {name!r}", where, ", ".join(found.feature_names))
    column = np.asarray(found.data[:, found.feature_names.index(name)])
    categories = (found.categories or {}).get(name)
    if categories is None:
        return typed(column.astype(str).tolist()) if column.dtype.kind == "O" else column
    return typed([str(categories[code]) for code in column.astype(np.int64)])


def _version() -> str:
    return f"scikit-learn {import_module('sklearn').__version__}"
