"""Who is first: contestants in order, and the leader against each of the others, corrected for their number.

The leader is chosen by the very data that are tested. It is called the fastest only if it is told apart from all
others. Where several are equally fast that is no oftener than the level allows, because one has to win against all of
them at once. Whether it is told apart from a single one holds for that pair alone: of six equal ones some pair is told
apart in 8 % of the comparisons with five seeds.

References
----------
Hsu, "Multiple Comparisons: Theory and Methods", Chapman and Hall 1996, chapter 4 (comparisons with the best).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from emuml.comparison.analysis import Comparison, Pair
from emuml.comparison.measures import ROUND, TARGET
from emuml.comparison.statistics import LEVEL, Paired, holm


@dataclass(frozen=True)
class Place:
    """One contestant in the order.

    Attributes
    ----------
    name : str
    behind : Pair or None
        Against the leader: a ratio of 1.1 takes 1.1 times as long; ``None`` for the leader, and where there is none.
    is_apart : bool or None
        Whether the difference stands when all are claimed together; ``None`` where nothing tells.
    """

    name: str
    behind: Pair | None = None
    is_apart: bool | None = None


@dataclass(frozen=True)
class Ranking:
    """The order in one measure.

    Attributes
    ----------
    measure : str
        ``TARGET``, or ``ROUND``.
    places : tuple of Place
        Fastest first; those without a number for every seed at the end.
    has_leader : bool
        Whether anybody has a number for every seed.
    tested : int
        How many comparisons were corrected for.
    """

    measure: str
    places: tuple[Place, ...]
    has_leader: bool
    tested: int

    @property
    def leader(self) -> str:
        """Who is first."""
        return self.places[0].name


def ranking(comparison: Comparison) -> Ranking:
    """Rank by time to the target where anybody reaches it, else by seconds per round."""
    names = [one.name for one in comparison.plan.contestants]
    reached = any(comparison.mean(name, TARGET) is not None for name in names)
    return ranked_by(comparison, TARGET if reached else ROUND)


def ranked_by(comparison: Comparison, measure: str) -> Ranking:
    """Rank by a measure, then by seconds per round, then as the files were given."""

    def key(name: str) -> tuple[float, ...]:
        means = (comparison.mean(name, each) for each in (measure, ROUND))
        return tuple(math.inf if mean is None else mean for mean in means)

    names = sorted((one.name for one in comparison.plan.contestants), key=key)
    leader, has_leader = names[0], comparison.mean(names[0], measure) is not None
    if not has_leader:
        return Ranking(measure, tuple(map(Place, names)), has_leader, 0)
    pairs = [comparison.against(name, leader, measure) for name in names[1:]]
    apart, tested = told_apart(pairs)
    places = [Place(pair.contestant, pair, told) for pair, told in zip(pairs, apart, strict=True)]
    return Ranking(measure, (Place(leader), *places), has_leader, tested)


def told_apart(pairs: Sequence[Pair]) -> tuple[list[bool | None], int]:
    """Return which differences stand when all are claimed together, and how many were tested.

    The interval of the ratio must agree. Differences that are the same for every seed need no test.
    """
    tested = [i for i, pair in enumerate(pairs) if pair.paired is not None and pair.paired.p_value is not None]
    adjusted = dict(zip(tested, holm([_p_value(pairs[i]) for i in tested]), strict=True))
    return [_is_apart(pair.paired, adjusted.get(i)) for i, pair in enumerate(pairs)], len(tested)


def _p_value(pair: Pair) -> float:
    assert pair.paired is not None
    assert pair.paired.p_value is not None
    return pair.paired.p_value


def _is_apart(paired: Paired | None, adjusted: float | None) -> bool | None:
    if paired is None:
        return None
    if paired.constant:
        return paired.difference.value != 0
    if adjusted is None:
        return None
    return adjusted < 1 - LEVEL and (paired.ratio is None or paired.ratio.excludes(1.0))
