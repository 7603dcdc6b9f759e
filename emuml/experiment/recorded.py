"""What a run directory holds, read back and checked: whoever shows or replays a run may rely on what comes from here.

Whatever ends a run early leaves files that stop in the middle: a last row of metrics, a last record of the trace, a
summary on a full disk. Those are no damage; anything else that cannot be read is, and the error names file and place.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import msgspec

from emuml.errors import FormatError
from emuml.trace import read_encoded, read_rows

Rows = list[tuple[Any, ...]]


class _Provenance(TypedDict, total=False):
    versions: dict[str, str]
    inputs_sha256: list[str]
    sources_sha256: str
    data: str
    command: str
    runtime: dict[str, Any]
    tier: str


class _Summary(TypedDict):
    parameters_sha256: str
    duration_s: float
    wall_s: float
    events: int
    lost: list[str]
    tier: NotRequired[str]
    provenance: NotRequired[_Provenance]


_SETS = re.compile("0x[0-9a-f]+")
_PLACES = ("time_s", "round")
"""Columns without which a row of metrics stands nowhere."""


def provenance_of(folder: Path) -> dict[str, Any]:
    """Return what a run was made from.

    Raises
    ------
    FormatError
        If the file is missing or damaged.
    """
    path = folder / "provenance.json"
    return _checked(_parsed(_text(path), path), _Provenance, path)


def summary_of(folder: Path) -> dict[str, Any] | None:
    """Return the summary of a run; None for a run without one, and for one whose summary was cut as it was written.

    Raises
    ------
    FormatError
        If the file is damaged.
    """
    path = folder / "summary.json"
    if not path.exists():
        return None
    text = _text(path)
    try:
        found = _parsed(text, path)
    except FormatError:
        if text.endswith("\n}\n") or text.lstrip()[:1] not in ("", "{"):  # its end is there, or it never was a summary
            raise
        return None
    return _checked(found, _Summary, path)


def failure_of(folder: Path) -> str:
    """Return why a run failed, as :meth:`~emuml.experiment.run_dir.RunDir.fail` wrote it down; else nothing."""
    path = folder / "error.txt"
    return _text(path).strip() if path.exists() else ""


def trace_of(path: Path, without: frozenset[str] = frozenset()) -> Rows:
    """Return the rows of a trace, as far as they go, without those of some kinds.

    Raises
    ------
    FormatError
        If the file is no trace, or damaged.
    """
    try:
        rows = [row for row in read_rows(path) if not (len(row) > 2 and row[2] in without)]
    except (OSError, TypeError, msgspec.DecodeError) as error:
        raise FormatError(f"this trace cannot be read: {_why(error)}", str(path)) from None
    broken = next((i for i, row in enumerate(rows) if len(row) < 3 or not isinstance(row[0], int | float)), None)
    if broken is not None:
        raise FormatError(f"record {broken} of this trace is none: {rows[broken]!r}", str(path))
    return rows


def encoded_of(path: Path) -> Iterator[bytes]:
    """Yield the records of a trace as they are encoded.

    Raises
    ------
    FormatError
        If there is no such file, or it is no trace.
    """
    try:
        yield from read_encoded(path)
    except OSError as error:
        raise FormatError(f"this trace cannot be read: {_why(error)}", str(path)) from None


def metrics_of(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of metrics; a last row that was cut is left out. A folder without the file has none.

    Raises
    ------
    FormatError
        If the file is damaged.
    """
    path = folder / "metrics.csv"
    if not path.exists():
        return []
    text = _text(path)
    try:
        cells = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise FormatError(f"this is no table of metrics: {error}", str(path)) from None
    if not text.endswith("\n"):
        cells = cells[:-1]
    if not cells:
        return []
    head, *body = cells
    for name in _PLACES:
        if name not in head:
            raise FormatError(f"there is no column {name}", str(path))
    for i, row in enumerate(body, 2):
        if len(row) != len(head):
            raise FormatError(f"{len(row)} cells in {len(head)} columns", f"{path}:{i}")
    columns = {name: _column(name, [row[i] for row in body], path) for i, name in enumerate(head)}
    known = ({name: values[i] for name, values in columns.items()} for i in range(len(body)))
    return [{name: value for name, value in row.items() if value is not None} for row in known]


def _column(name: str, cells: list[str], path: Path) -> list[float | str | None]:
    """Return a column as numbers, or as text if its first value is none."""
    numbers = [_number(cell) for cell in cells]
    first = next((i for i, cell in enumerate(cells) if cell), None)
    is_text = name not in _PLACES and first is not None and numbers[first] is None
    for i, (cell, number) in enumerate(zip(cells, numbers, strict=True), 2):
        if name in _PLACES and (number is None or not math.isfinite(number)):
            raise FormatError(f"column {name}: got {cell!r}", f"{path}:{i}", "a finite number")
        if cell and number is None and not is_text:
            raise FormatError(f"column {name}: got {cell!r}", f"{path}:{i}", "a number, as in the rows above")
        if cell and name == "covered_set" and not _SETS.fullmatch(cell):
            raise FormatError(f"column {name}: got {cell!r}", f"{path}:{i}", "a hexadecimal number, such as 0x3ff")
    return [cell or None for cell in cells] if is_text else [*numbers]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot be read: {_why(error)}", str(path)) from None


def _parsed(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"cannot be read as JSON: {error}", str(path)) from None


def _checked(found: Any, form: type, path: Path) -> dict[str, Any]:
    try:
        msgspec.convert(found, form)
    except msgspec.ValidationError as error:
        raise FormatError(f"this is not what a run writes: {error}", str(path)) from None
    return dict(found)


def _why(error: Exception) -> str:
    """Return the reason without the path, which stands before it."""
    return getattr(error, "strerror", None) or str(error)
