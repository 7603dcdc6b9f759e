"""Columns of employees' roles in which a given number of pairs of values occur.

Rows copy profiles (a resource, a manager and what goes with the manager's place in the firm); single cells differ from
their profile. The more cells differ, the more pairs of values occur. So the cells are put in a random order, and the
number of those that differ is found by bisection; the last few pairs are had by cells whose effect on the count is
exactly what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from emuml.workloads.data.encoding import Pairs, distinct_pairs
from emuml.workloads.data.skew import Draws, Whole, skewed

PROFILES = 0.3
"""Profiles for each row."""

PROFILE_SKEW = 0.6
"""Exponent of the frequency of profiles. With 0.9 the original's gradient steps of 10 diverge for some seeds."""

DEVIATING = 0.06
"""Share of cells that differ from their profile where no number of pairs is asked for."""


class _Cells(NamedTuple):
    """Each cell's value in its profile, another one, and when its turn comes to take that; pinned ones have none."""

    profile: NDArray[np.int64]
    other: NDArray[np.int64]
    turn: NDArray[np.int64]

    def after(self, turns: int) -> NDArray[np.int64]:
        """Return the values after so many turns, shape (columns, rows)."""
        return np.where(self.turn < turns, self.other, self.profile)


def profiled(
    draws: Draws, rows: int, cardinalities: Sequence[int], pairs: Pairs, total: int | None = None
) -> list[Whole]:
    """Draw nine columns, as of the Amazon employee access data.

    Parameters
    ----------
    draws : numpy.random.Generator
    rows : int
    cardinalities : sequence of int
        Distinct values of each column, all of which occur; none above ``rows``.
    pairs : sequence of (int, int)
        Columns whose combinations are counted.
    total : int, optional
        How many combinations occur, over all pairs. Default: as many as it happens to be.

    Returns
    -------
    list of ndarray of int64, each of shape (rows,)

    Raises
    ------
    ValueError
        If so many combinations cannot be had.
    """
    cells = _cells(draws, np.array(_firm(draws, rows, cardinalities)))
    turns = int(np.count_nonzero(cells.turn < cells.turn.size))
    if total is None:
        return list(cells.after(int(DEVIATING * turns)))

    def count(values: NDArray[np.int64]) -> int:
        return distinct_pairs(list(zip(values, cardinalities, strict=True)), pairs)

    low, high = 0, turns
    if not count(cells.after(low)) <= total < count(cells.after(high)):
        raise ValueError(f"{total} pairs are not between those of no and of all deviations")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(cells.after(middle)) <= total else (low, middle)
    values = cells.after(low)
    return list(_filled(values, cells, low, total - count(values), pairs))


def _firm(draws: Draws, rows: int, cardinalities: Sequence[int]) -> list[Whole]:
    """Return the columns of rows that copy profiles without a difference."""
    resources, managers, rollups_1, rollups_2, departments, titles, descriptions, families, codes = cardinalities
    profiles = max(int(PROFILES * rows), resources, managers)
    manager = skewed(draws, profiles, managers)
    department = skewed(draws, managers, departments)[manager]
    rollup_2 = skewed(draws, departments, rollups_2)[department]
    description = skewed(draws, managers, descriptions)[manager]
    title = skewed(draws, descriptions, titles)[description]
    of_profile = (
        skewed(draws, profiles, resources),
        manager,
        skewed(draws, rollups_2, rollups_1)[rollup_2],
        rollup_2,
        department,
        title,
        description,
        skewed(draws, titles, families)[title],
        skewed(draws, titles, codes)[title],
    )
    profile = skewed(draws, rows, profiles, PROFILE_SKEW)
    return [column[profile] for column in of_profile]


def _cells(draws: Draws, profile: NDArray[np.int64]) -> _Cells:
    """Give each cell a value of another row, and a turn; one cell of each value is pinned, so that the value stays."""
    other = draws.permuted(profile, axis=1)
    pinned = np.zeros(profile.shape, np.bool_)
    for column, values in enumerate(profile):
        pinned[column, np.unique(values, return_index=True)[1]] = True
    turn = np.full(profile.shape, profile.size)
    free = np.flatnonzero(~pinned)
    turn.flat[free] = draws.permutation(len(free))
    return _Cells(profile, other, turn)


def _filled(values: NDArray[np.int64], cells: _Cells, turns: int, missing: int, pairs: Pairs) -> NDArray[np.int64]:
    """Let cells out of turn take their other value, if that adds at most what is missing, until nothing is."""
    rows = values.shape[1]
    for cell in np.argsort(cells.turn, axis=None, kind="stable")[turns:]:
        if not missing:
            break
        column, row = divmod(int(cell), rows)
        added = _added(values, column, row, int(cells.other[column, row]), pairs)
        if 0 < added <= missing and cells.turn[column, row] < cells.turn.size:
            values[column, row] = cells.other[column, row]
            missing -= added
    if missing:
        raise ValueError(f"{missing} pairs are missing")
    return values


def _added(values: NDArray[np.int64], column: int, row: int, new: int, pairs: Pairs) -> int:
    """Return how many more combinations occur when one cell takes a new value; at most 0 if it is the old one."""
    old = values[column, row]
    partners = [a + b - column for a, b in pairs if column in (a, b)]
    change = 0
    for partner in partners:
        alike = values[partner] == values[partner, row]
        change += int(not (alike & (values[column] == new)).any())
        change -= int(np.count_nonzero(alike & (values[column] == old)) == 1)
    return change
