"""Files with data: where they are looked for, and their content as arrays. Nothing is written or unpacked on disk."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import os
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError

Arrays = dict[str, NDArray[Any]]

_UNREADABLE = (ValueError, OSError, EOFError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, csv.Error)


def data_folder(where: str) -> Path | None:
    """Return the folder that ``EMUML_DATA`` names, if it names one.

    Raises
    ------
    UserError
        If it names something else: who set it meant it.
    """
    named = os.environ.get("EMUML_DATA")
    if named and not Path(named).is_dir():
        raise UserError(f"EMUML_DATA names {named!r}, which is no folder", where, "a folder, or EMUML_DATA unset")
    return Path(named) if named else None


def find(name: str, where: str, kinds: str) -> Path:
    """Return the path of a file that a user names, also beneath ``EMUML_DATA``; ``kinds`` is what may be named.

    Raises
    ------
    UserError
        If there is none.
    """
    folder = data_folder(where)
    path = Path(name) if Path(name).is_file() or folder is None else folder / name
    if not path.is_file():
        raise UserError(f"there is no file {name!r}", where, f"{kinds}, also in the folder EMUML_DATA names")
    return path


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def plain_suffix(path: Path) -> str:
    """Return the suffix below that of the compression.

    Examples
    --------
    >>> plain_suffix(Path("houses.csv.xz"))
    '.csv'
    """
    return Path(path.stem).suffix if path.suffix in (".gz", ".xz") else path.suffix


def arrays(path: Path, where: str, wanted: str) -> Arrays:
    """Return all arrays of an ``.npz`` or ``.npz.xz`` file; ``wanted`` says which ones it should hold.

    Raises
    ------
    UserError
        If it cannot be read, holds objects, or is a single array.
    """
    with _refusing(path, where, f"an .npz file with {wanted}"), _opened(path) as file:
        # Opened here, because numpy leaves a file that is no archive open.
        stored = np.load(file, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            raise UserError(f"{path} holds a single array", where, wanted)
        return {name: stored[name] for name in stored.files}


def text_columns(path: Path, names: Sequence[str], where: str) -> list[NDArray[Any]]:
    """Return the named columns of a CSV file with a header: as numbers where all cells are, as text otherwise.

    Raises
    ------
    UserError
        If it cannot be read, a column is missing, or a row has another number of cells than the header.
    """
    allowed = f"a CSV file whose header names {', '.join(names)}"
    with _refusing(path, where, allowed), _opened(path) as file:
        rows = csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline=""))
        header = next(rows, [])
        missing = [name for name in names if name not in header]
        if missing:
            raise UserError(f"{path} has no column {missing[0]!r}", where, allowed)
        places = [header.index(name) for name in names]
        cells: list[list[str]] = []
        for row in rows:
            if len(row) == len(header):
                cells.append([row[place] for place in places])
            elif row:
                raise UserError(f"{path}, line {rows.line_num}: {len(row)} cells", where, f"{len(header)} cells")
        if not cells:
            raise UserError(f"{path} has no rows", where, allowed)
    return [typed(np.array(column)) for column in zip(*cells, strict=True)]


def number_columns(path: Path, columns: int, where: str) -> list[NDArray[Any]]:
    """Return the columns of a CSV file of whole numbers only; a header is passed over.

    Raises
    ------
    UserError
        If it cannot be read or has another number of columns.
    """
    allowed = f"a CSV file with {columns} whole numbers in each row"
    with _refusing(path, where, allowed), _opened(path) as file:
        text = io.TextIOWrapper(file, "utf-8-sig")
        first = text.readline()
        is_header = not first.split(",")[0].strip().lstrip("-").isdecimal()
        lines = text if is_header else _chained(first, text)
        with warnings.catch_warnings(action="ignore"):  # that there are no rows; that is said below
            table = np.loadtxt(lines, np.int32, delimiter=",", ndmin=2)
    if table.shape[1] != columns or not len(table):
        raise UserError(f"{path} has {len(table)} rows of {table.shape[1]} numbers", where, allowed)
    return list(table.T)


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def typed(cells: NDArray[Any]) -> NDArray[Any]:
    """Return text as numbers, if all of it is numbers."""
    try:
        return cells.astype(np.float64)
    except ValueError:
        return cells


def _opened(path: Path) -> IO[bytes]:
    if path.suffix == ".xz":
        # numpy goes back and forth in an archive, which a compressed stream does slowly.
        return io.BytesIO(lzma.open(path).read()) if plain_suffix(path) == ".npz" else lzma.open(path)
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


@contextmanager
def _refusing(path: Path, where: str, allowed: str) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one sentence."""
    try:
        yield
    except _UNREADABLE as error:
        raise UserError(f"{path} cannot be read: {error}", where, allowed) from error
