"""Recorded delays in files: ``.npy``, ``.npz`` with one array, or text with a line for each round.

What stands in a text is not guessed at: what may be the number of a round or of a worker, and no delay, is refused with
its line and column.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError

FILES = "text (rounds x workers, by comma, semicolon, tab or blanks), .npy, or .npz with one array"
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf(inity)?)", re.IGNORECASE)
_NUMERIC = re.compile(r"[+-]?\.?[0-9]|[+-]?inf", re.IGNORECASE)
_WHOLE = re.compile(r"[0-9]{1,15}")
_MISSING = ("", "na", "n/a", "nan", "null", "none")
_NO_WORKERS = ("", "round", "rounds", "iteration", "step", "epoch", "index", "time", "timestamp")
_COUNTED = 3
"""From so many on whole numbers that go up by one are taken to count something."""


class Recording(NamedTuple):
    """Delays as they stand in a file.

    Attributes
    ----------
    array : ndarray
        As stored; of a text float64 of shape (rounds, workers), nan where a value is missing.
    path : Path
    sha256 : str
        Of the file, in hexadecimal digits.
    lines : tuple of int
        Of a text: the line of each round, from 1.
    """

    array: NDArray[Any]
    path: Path
    sha256: str
    lines: tuple[int, ...] = ()

    def place(self, draw: int, worker: int) -> str:
        """Return where a value stands."""
        if self.lines:
            return f"{self.path}, line {self.lines[draw]}, column {worker + 1}"
        return f"{self.path}, entry [{draw}, {worker}]"


class _Row(NamedTuple):
    line: int
    cells: list[str]


def read(path: Path, where: str) -> Recording:
    """Read a file of delays; its suffix says whether it is ``.npy`` or ``.npz``, and else it is text.

    Parameters
    ----------
    path : Path
    where : str
        Path of the setting, for errors.

    Raises
    ------
    UserError
        If there is no such file, or it is of another form.
    """
    if not _is_file(path):
        raise UserError(f"there is no file {str(path)!r}", where, FILES)
    try:
        with path.open("rb") as file:
            sha256 = file_digest(file, "sha256").hexdigest()
        if path.suffix.lower() in (".npy", ".npz"):
            return Recording(_stored(path, where), path, sha256)
        rows = _rounds(_rows(path), path, where)
        table = np.array([[_number(row, i, path, where) for i in range(len(row.cells))] for row in rows], np.float64)
        return Recording(table, path, sha256, tuple(row.line for row in rows))
    except UserError:
        raise
    except Exception as error:  # whatever damaged bytes make numpy or an archive raise
        raise UserError(f"{path} cannot be read: {error}", where, FILES) from error


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # names that no file can have
        return False


def _stored(path: Path, where: str) -> NDArray[Any]:
    """Return the one array of an ``.npy`` or ``.npz`` file."""
    with path.open("rb") as file:  # opened here, because numpy leaves a file that is no archive open
        stored = np.load(file, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return stored
        if len(stored.files) != 1:
            held = ", ".join(stored.files) or "none"
            raise UserError(f"{path} has {len(stored.files)} arrays ({held})", where, "one array, rounds x workers")
        return np.asarray(stored[stored.files[0]])


# Text


def _rows(path: Path) -> list[_Row]:
    """Return the cells of each line that is neither empty nor a comment."""
    text = path.read_text("utf-8-sig").splitlines()
    lines = [(number, line) for number, line in enumerate(text, 1) if line.strip() and not line.startswith("#")]
    separator = _separator([line for _, line in lines[:2]])
    return [_Row(number, _cells(line, separator)) for number, line in lines]


def _separator(first: Sequence[str]) -> str:
    """Return what separates cells in the last of the first lines, which is no header if there are two."""
    return next((each for each in ";\t," if any(each in line for line in first[-1:])), "")


def _cells(line: str, separator: str) -> list[str]:
    cells = next(csv.reader([line], delimiter=separator)) if separator else line.split()
    return [cell.strip() for cell in cells]


def _rounds(rows: list[_Row], path: Path, where: str) -> list[_Row]:
    """Return the rows without a header, after checking that they are a table of nothing but delays."""
    has_header = bool(rows) and _is_header(rows[0].cells)
    if len(rows) == has_header:
        raise UserError(f"{path} has no rounds", where, FILES)
    for row in rows[1:]:
        if len(row.cells) != len(rows[0].cells):
            what = f"{path}, line {row.line} has {len(row.cells)} cells, line {rows[0].line} has {len(rows[0].cells)}"
            raise UserError(what, where, "one delay for each worker in each line")
    rounds = rows[has_header:]
    if has_header and rows[0].cells[0].lower() in _NO_WORKERS and len(rows[0].cells) > 1:
        what = f"{path}, line {rows[0].line}, column 1 is called {rows[0].cells[0]!r}, which is no worker"
        raise UserError(what, where, "delays only", "leave it out")
    if _count([row.cells[0] for row in rounds]):
        what = f"{path}, column 1 counts from {rounds[0].cells[0]} to {rounds[-1].cells[0]}, as numbers of rounds do"
        raise UserError(what, where, "delays only", "leave it out; if it holds seconds, write 1.0 for 1")
    if not has_header and _count(rounds[0].cells):
        first, last = rounds[0].cells[0], rounds[0].cells[-1]
        what = f"{path}, line {rounds[0].line} counts from {first} to {last}, as a header of numbers does"
        raise UserError(what, where, "names in a header", "leave it out; if it holds seconds, write 1.0 for 1")
    return rounds


def _is_header(cells: Sequence[str]) -> bool:
    """Tell whether a line names workers: nothing in it begins as a number does, and something is there."""
    is_empty = all(cell.lower() in _MISSING for cell in cells)
    numbered = cells[0] == "" and _count(cells[1:])  # as tables with numbers of rows have
    return numbered or not (is_empty or any(map(_NUMERIC.match, cells)))


def _count(cells: Sequence[str]) -> bool:
    """Tell whether cells are whole numbers that go up by one, which delays hardly do."""
    if len(cells) < _COUNTED or not all(map(_WHOLE.fullmatch, cells)):
        return False
    numbers = list(map(int, cells))
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _number(row: _Row, column: int, path: Path, where: str) -> float:
    cell = row.cells[column]
    if _NUMBER.fullmatch(cell):
        return float(cell)
    if cell.lower() in _MISSING:
        return float("nan")
    hint = "write decimals with a point" if _NUMBER.fullmatch(cell.replace(",", ".", 1)) else ""
    what = f"{path}, line {row.line}, column {column + 1} is {cell[:40]!r}"
    raise UserError(what, where, "seconds, in decimal digits", hint)
