"""The tables of a comparison as rows of words: the same in the terminal and on the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from emuml.comparison.analysis import Comparison, Pair
from emuml.comparison.contestants import Contestant
from emuml.comparison.measures import ROUND, TARGET, measure
from emuml.comparison.numbers import digits, interval, plus_minus
from emuml.comparison.plan import Plan
from emuml.comparison.statistics import Paired, t_interval
from emuml.comparison.verdict import PERCENT, targets

COLUMNS_MAX = 3
"""Contestants beside each other in a terminal of 80 columns."""


_OVER = {
    "rounds": "round by round",
    "batches of rounds": "by the means of batches of rounds, because a round depends on the one before",
    "dependent rounds": "without an interval, because a round depends on the one before and there are too few",
}


class Words(NamedTuple):
    """A table: a title, what its numbers are, the heads of its columns, its rows, and a note below."""

    title: str
    caption: str
    head: list[str]
    rows: list[list[str]]
    note: str = ""


def differences(plan: Plan) -> Words:
    """Return what differs between the contestants; the sentences on what is shared are the note."""
    # A space lets narrow columns break before the parameters.
    rows = [[row.setting, *(value.replace("(", " (", 1) for value in row.values)] for row in plan.differences]
    rows = rows or [["nothing", *("" for _ in plan.contestants)]]
    return Words("What differs", "Settings of the contestants", ["", *_names(plan)], rows, shared(plan))


def shared(plan: Plan) -> str:
    """Say what the runs of one seed have in common, and what to beware of."""
    lines = [f"Common at each seed: {'; '.join(plan.shared.common)}."]
    lines += [f"Warning: {text}." for text in plan.shared.warnings]
    return "\n".join(lines)


def seeds(plan_seeds: Sequence[int]) -> str:
    """Return seeds in words.

    Examples
    --------
    >>> seeds((7, 8, 9)), seeds((7,)), seeds((1, 4))
    ('3 seeds (7 to 9)', '1 seed (7)', '2 seeds (1, 4)')
    """
    count = f"{len(plan_seeds)} seed{'s' if len(plan_seeds) > 1 else ''}"
    in_a_row = len(plan_seeds) > 2 and plan_seeds[-1] - plan_seeds[0] == len(plan_seeds) - 1
    shown = f"{plan_seeds[0]} to {plan_seeds[-1]}" if in_a_row else ", ".join(map(str, plan_seeds))
    return f"{count} ({shown})"


def measured(comparison: Comparison) -> Words:
    """Return what each contestant has: means over the seeds, with what theory says beside the seconds per round."""
    rows = []
    for name in comparison.measures:
        rows.append([_title(comparison, name), *(_cell(comparison, one.name, name) for one in _all(comparison))])
        if name == ROUND:
            rows.append(["  in closed form", *(_closed_form(comparison, one.name) for one in _all(comparison))])
    rows.append(["load of a worker", *(_load(one) for one in _all(comparison))])
    many = len(comparison.seeds) > 1
    note = f"±: {PERCENT} intervals of the means over the seeds, each contestant by itself." if many else ""
    means = "means of " if many else ""
    title = f"Measured: {means}{seeds(comparison.seeds)}, losses and scores at the end"
    return Words(title, "By contestant", ["", *_names(comparison.plan)], rows, note)


def against_baseline(comparison: Comparison) -> Iterator[Words]:
    """Yield a table for each contestant but the first: paired differences and ratios."""
    baseline = comparison.plan.baseline.name
    for one in comparison.plan.contestants[1:]:
        pairs = [pair for pair in comparison.pairs if pair.contestant == one.name]
        head = ["", "difference", "ratio", "pairing\nsaves"]
        rows = [_pair_row(pair) for pair in pairs]
        yield Words(f"{one.name} against {baseline}", "Paired by seed", head, rows)


def explained(comparison: Comparison) -> str:
    """Say how to read the paired tables."""
    if len(comparison.seeds) > 1:
        return (
            f"± and brackets: {PERCENT} intervals, each by itself, by Student's t on the {len(comparison.seeds)} "
            "paired differences, for ratios on those of the logarithms; without one: the same at every seed. Pairing "
            "saves: so many times the seeds would be needed for the same interval without common random numbers."
        )
    over = [pair.paired.over for pair in comparison.pairs if pair.measure == ROUND and pair.paired is not None]
    how = " or ".join(_OVER[each] for each in dict.fromkeys(over))
    return (
        f"One seed: seconds per round are paired {how}; other measures have no interval. ± and brackets: "
        f"{PERCENT} intervals, each by itself. More seeds say more: --seeds 5."
    )


def chunks(words: Words) -> Iterator[Words]:
    """Split a table with a column for each contestant so that it fits a terminal of 80 columns."""
    for start in range(1, len(words.head), COLUMNS_MAX):
        part = slice(start, start + COLUMNS_MAX)
        rows = [[row[0], *row[part]] for row in words.rows]
        yield Words(words.title if start == 1 else "", words.caption, [words.head[0], *words.head[part]], rows)


def _names(plan: Plan) -> list[str]:
    return [one.name for one in plan.contestants]


def _all(comparison: Comparison) -> tuple[Contestant, ...]:
    return comparison.plan.contestants


def _title(comparison: Comparison, name: str) -> str:
    if name != TARGET:
        return measure(name).title
    return f"seconds to {comparison.plan.metric.replace('_', ' ')} {targets(comparison)}"


def _cell(comparison: Comparison, contestant: str, name: str) -> str:
    values = comparison.values(contestant, name)
    there = [value for value in values if value is not None]
    if len(there) < len(values):
        if name != TARGET:
            return "-"
        return "not reached" if not there else f"not reached on {len(values) - len(there)} of {len(values)} seeds"
    return plus_minus(t_interval(there), measure(name).scale)


def _closed_form(comparison: Comparison, contestant: str) -> str:
    expected_s = comparison.expected_round_s[contestant]
    return "-" if expected_s is None else digits(expected_s)


def _load(contestant: Contestant) -> str:
    load = load_of(contestant)
    return "-" if load is None else digits(load)


def load_of(contestant: Contestant) -> float | None:
    """Return the work of a worker in a round, in equal shares of the data, if the protocol has a shape that tells."""
    experiment = contestant.loaded.experiment
    load = getattr(experiment.protocol.shape(experiment.roster()), "compute", None)
    return None if load is None else float(load)


def _pair_row(pair: Pair) -> list[str]:
    title, compared = measure(pair.measure).title, pair.paired
    if compared is None:
        return [title, pair.missing, "-", "-"]
    if compared.constant and compared.difference.value == 0:
        return [title, "none", "1" if compared.ratio else "-", "-"]
    scale = measure(pair.measure).scale
    ratio = "-" if compared.ratio is None else interval(compared.ratio)
    return [title, plus_minus(compared.difference, scale), ratio, _saving(compared)]


def _saving(compared: Paired) -> str:
    if compared.saving is None:
        return "-"
    if math.isinf(compared.saving):
        return "all"
    return f"{compared.saving:,.0f}x" if compared.saving >= 10 else f"{compared.saving:.2g}x"
