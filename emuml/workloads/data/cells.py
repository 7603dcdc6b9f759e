"""Tables in text: columns of CSV files, and what the text of their cells means."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emuml.errors import UserError
from emuml.workloads.data.files import opened, refusing

_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_PADDED = re.compile(r"[+-]?0[0-9]+")
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|nan|inf(inity)?)", re.IGNORECASE)

_EXACT = 2**53
"""From here on float64 has not every whole number."""


def typed(cells: Sequence[str]) -> NDArray[Any]:
    """Return the cells of one column as int64 or float64 if all of them are numbers, else as text.

    What float64 would merge is text, so that ids stay apart: whole numbers that begin with 0, or are too large.

    Examples
    --------
    >>> typed(["7", "9007199254740993"]), typed(["7", "7.5"])
    (array([               7, 9007199254740993]), array([7. , 7.5]))
    >>> typed(["007", "7"]), typed(["1_0", "10"])
    (array(['007', '7'], dtype='<U3'), array(['1_0', '10'], dtype='<U3'))
    """
    whole = [cell for cell in cells if _WHOLE.fullmatch(cell)]
    if len(whole) == len(cells):
        return _int64(cells)
    is_exact = all(-_EXACT <= int(cell) <= _EXACT for cell in whole if len(cell) > 15)
    if is_exact and all(_NUMBER.fullmatch(cell) and not _PADDED.fullmatch(cell) for cell in cells):
        return np.array(cells).astype(np.float64)
    return np.array(cells)


def text_columns(path: Path, names: Sequence[str], where: str) -> list[NDArray[Any]]:
    """Return the named columns of a CSV file with a header, each as :func:`typed` makes it.

    Raises
    ------
    UserError
        If it cannot be read, a column is missing or there twice, a cell is empty, or a row has another number of cells
        than the header.
    """
    allowed = f"a CSV file whose header names {', '.join(names)}"
    with refusing(path, where, allowed), opened(path) as file:
        rows = csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline=""))
        header = [name.strip() for name in next(rows, [])]
        for name in names:
            if (count := header.count(name)) != 1:
                found = "no column" if not count else f"{count} columns"
                raise UserError(f"{path} has {found} {name!r}", where, allowed)
        places = [header.index(name) for name in names]
        cells: list[list[str]] = []
        for row in rows:
            if len(row) == len(header):
                cells.append(picked := [row[place].strip() for place in places])
                if "" in picked:
                    empty = f"{path}, line {rows.line_num}: {names[picked.index('')]} is empty"
                    raise UserError(empty, where, "numbers or text", "leave the row out, or name what is unknown")
            elif row:
                raise UserError(f"{path}, line {rows.line_num}: {len(row)} cells", where, f"{len(header)} cells")
        if not cells:
            raise UserError(f"{path} has no rows", where, allowed)
    return [typed(column) for column in zip(*cells, strict=True)]


def number_columns(path: Path, names: Sequence[str], where: str) -> list[NDArray[Any]]:
    """Return the columns of a CSV file of whole numbers only, which may begin with a header.

    Parameters
    ----------
    path : Path
    names : sequence of str
        Of the columns. A first line is a header if it names all but the last of them, in this order; copies of a file
        differ in how they number columns and call the last one.
    where : str
        Path of the setting, for errors.

    Raises
    ------
    UserError
        If it cannot be read, has another number of columns, or anything but whole numbers and a header.
    """
    allowed = f"a CSV file with {len(names)} whole numbers in each row, and if with a header, then {names[0]}, ..."
    with refusing(path, where, allowed), opened(path) as file:
        text = io.TextIOWrapper(file, "utf-8-sig")
        first = text.readline()
        lines = text if _is_header(first, names) else chain([first], text)
        with warnings.catch_warnings(action="ignore"):  # that there are no rows; that is said below
            table = np.loadtxt(lines, np.int32, delimiter=",", ndmin=2, comments=None)
    if table.shape[1] != len(names) or not len(table):
        raise UserError(f"{path} has {len(table)} rows of {table.shape[1]} numbers", where, allowed)
    return list(table.T)


def _int64(cells: Sequence[str]) -> NDArray[Any]:
    try:
        return np.array([int(cell) for cell in cells], np.int64)
    except OverflowError:
        return np.array(cells)


def _is_header(line: str, names: Sequence[str]) -> bool:
    found = [_letters(name) for name in line.split(",")]
    return len(found) == len(names) and found[:-1] == [_letters(name) for name in names[:-1]]


def _letters(name: str) -> str:
    return re.sub("[^a-z]", "", name.lower())
