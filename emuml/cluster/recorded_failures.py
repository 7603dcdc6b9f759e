"""Failures as they were recorded: which node was down from when until when, as an array or a table in a file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from emuml.cluster.failure_laws import FailureLaw
from emuml.cluster.faults import Crash, Fault, Start
from emuml.errors import UserError
from emuml.memory import rebuilt, sealed
from emuml.node import NodeId

HEADER = ("node", "down_s", "up_s")
_WHERE = "recorded-failures.array"
_ALLOWED = "rows of node, down_s, up_s: a whole number >= 0, and times with down_s < up_s"


@dataclass(frozen=True, eq=False)
class RecordedFailures(FailureLaw):
    """Replay spells in which nodes were down.

    Spells of one node that meet or overlap are one. Who is down when the run begins starts at the end of that spell.

    Parameters
    ----------
    array : ndarray of shape (spells, 3), str or Path
        Index of the node, when it went down and when it was up again, in seconds; never, if that is infinite. Text
        names a table with the header ``node,down_s,up_s``; nodes are indices or names such as ``worker-3``, and an
        empty ``up_s`` is never. It is read at once; a run keeps the numbers.
    until_s : float
        Spells that begin later are left out, in seconds of the engine's clock.
    from_s : float
        Time of the recording that is second 0 of the run.
    speed : float
        How many recorded seconds pass in one of the run: months of a cluster may be lived through in an hour.
    role : str
        Whose nodes fail; nodes that the run does not have are left out.

    Raises
    ------
    UserError
        If the array or file is not of that kind, with the place in it.
    """

    array: NDArray[np.float64] | str | Path
    until_s: Annotated[float, Gt(0), Le(1e12)]
    from_s: Annotated[float, Ge(-1e12), Le(1e12)] = 0.0
    speed: Annotated[float, Gt(0), Le(1e12)] = 1.0
    role: str = "worker"

    def __post_init__(self) -> None:
        given = _read(Path(self.array)) if isinstance(self.array, str | Path) else _numbers(self.array)
        object.__setattr__(self, "array", sealed(given))
        super().__post_init__()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordedFailures):
            return NotImplemented
        return self._settings == other._settings and np.array_equal(self.spells, other.spells)

    def __hash__(self) -> int:
        return hash((self._settings, self.spells.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    @property
    def _settings(self) -> tuple[object, ...]:
        return self.until_s, self.from_s, self.speed, self.role

    @property
    def spells(self) -> NDArray[np.float64]:
        """The rows, read-only."""
        return cast("NDArray[np.float64]", self.array)

    def faults(self, ids: Iterable[NodeId], seed: int) -> Iterator[Fault]:
        """See :class:`FailureLaw`; nothing is drawn."""
        known = {id.index: id for id in ids}
        by_node: dict[int, list[tuple[float, float]]] = {}
        for index, down_s, up_s in self.spells.tolist():
            if int(index) in known:
                spell = ((down_s - self.from_s) / self.speed, (up_s - self.from_s) / self.speed)
                by_node.setdefault(int(index), []).append(spell)
        for index in sorted(by_node):
            yield from self._of_node(str(known[index]), _merged(by_node[index]))

    def roughly(self, nodes: int) -> float:
        """See :class:`FailureLaw`."""
        return len(self.spells)

    def _of_node(self, node: str, spells: list[tuple[float, float]]) -> Iterator[Fault]:
        for down_s, up_s in spells:
            ends = up_s < np.inf
            if down_s > 0 and down_s < self.until_s:
                yield Crash(node, at_s=down_s, restart_after_s=up_s - down_s if ends else None)
            elif down_s <= 0 < up_s:
                if not ends:
                    raise UserError(f"{node} is down from the start for ever", _WHERE, "a cluster without it")
                yield Start(node, at_s=up_s)


def _merged(spells: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the spells of one node in order, those that meet or overlap as one."""
    found: list[tuple[float, float]] = []
    for down_s, up_s in sorted(spells):
        if found and down_s <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], up_s)
        else:
            found.append((down_s, up_s))
    return found


def _numbers(given: Any) -> NDArray[np.float64]:
    """Return a checked copy of an array of spells."""
    try:
        array = np.array(given, np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise UserError(f"not an array of numbers ({error})", _WHERE, _ALLOWED) from None
    if array.ndim != 2 or array.shape[1] != len(HEADER):
        raise UserError(f"got shape {array.shape}", _WHERE, _ALLOWED)
    for row, (index, down_s, up_s) in enumerate(array.tolist()):
        _check_row(index, down_s, up_s, f"row {row}")
    return array


def _check_row(index: float, down_s: float, up_s: float, place: str) -> None:
    is_index = index >= 0 and float(index).is_integer()
    if not is_index or not abs(down_s) < np.inf or not down_s < up_s:
        raise UserError(f"{place} is {index:g}, {down_s:g}, {up_s:g}", _WHERE, _ALLOWED)


def _read(path: Path) -> NDArray[np.float64]:
    """Return the spells of a table in a file."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}", _WHERE, ",".join(HEADER)) from None
    rows = [(n, cells) for n, cells in enumerate(csv.reader(lines), 1) if cells and not cells[0].startswith("#")]
    if not rows or tuple(cell.strip() for cell in rows[0][1]) != HEADER:
        found = ",".join(rows[0][1]) if rows else "nothing"
        raise UserError(f"{path} begins with {found[:60]!r}", _WHERE, f"the header {','.join(HEADER)}")
    return np.array([_row(cells, f"{path}, line {number}") for number, cells in rows[1:]]).reshape(-1, len(HEADER))


def _row(cells: list[str], place: str) -> tuple[float, float, float]:
    try:
        node, down, up = (cell.strip() for cell in cells)
        index = float(NodeId.parse(node).index if "-" in node[1:] else int(node))
        row = index, float(down), float(up) if up else float("inf")
    except ValueError:
        raise UserError(f"{place} is {','.join(cells)[:60]!r}", _WHERE, _ALLOWED) from None
    _check_row(*row, place)
    return row
