"""The tables of a comparison as rows of words: the same in the terminal and on the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from emuml.comparison.analysis import Comparison, Pair
from emuml.comparison.contestants import Contestant
from emuml.comparison.measures import ERROR, FINAL, ROUND, TARGET, measure
from emuml.comparison.numbers import compact, digits, interval, plus_minus, times
from emuml.comparison.plan import Plan
from emuml.comparison.ranking import Place, ranking
from emuml.comparison.statistics import Paired, t_interval
from emuml.comparison.verdict import PERCENT, target
from emuml.comparison.words import NO_BREAK, Words, joined

_MEASURED_ALONE = (ERROR, "covered")
"""Measures of the code, which are read as they are."""
_PLACES = {True: "yes", False: "no", None: "-"}


def differences(plan: Plan) -> Words:
    """Return what differs between the contestants; the sentences on what is shared are the note."""
    parts = {row.setting.partition(".")[0] for row in plan.differences if "." in row.setting}
    one = parts.pop() if len(parts) == 1 and all("." in row.setting for row in plan.differences) else ""
    # A space lets narrow columns break before the parameters.
    rows = [
        [row.setting.removeprefix(f"{one}."), *(value.replace("(", " (") for value in row.values)]
        for row in plan.differences
    ]
    title = f"What differs: settings of the {one}" if one else "What differs" if rows else "Nothing differs"
    return Words(title, "Settings of the contestants", ["", *_names(plan)], rows, shared(plan))


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


def order(comparison: Comparison) -> Words:
    """Return the contestants in order, fastest first, with their times and how far they are behind the leader."""
    found = ranking(comparison)
    columns = [(measure(name).title, name) for name in (TARGET, ROUND) if name in comparison.measures]
    head = ["", *(title for title, _ in columns), "times the first one's", "told apart"]
    rows = []
    for place in found.places:
        cells = [_cell(comparison, place.name, name) for _, name in columns]
        rows.append([place.name, *cells, _behind(place), _PLACES[place.is_apart]])
    what = "seconds per round" if found.measure == ROUND else f"time to {target(comparison)}"
    many = len(comparison.seeds) > 1
    title = f"Ranking by {what}: {'means of ' if many else ''}{seeds(comparison.seeds)}"
    several = found.measure != ROUND and len(set(comparison.targets.values())) > 1
    note = "Each seed has a target of its own, the one that all contestants reach." if several else ""
    return Words(title, "Fastest first", head, rows, note)


def measured(comparison: Comparison) -> Words:
    """Return what else each contestant has: means over the seeds, where they are not the same for all."""
    contestants, rounds = comparison.plan.contestants, _rounds(comparison)
    left_out = {ROUND, TARGET} if rounds is None else {ROUND, TARGET, "duration_s"}
    forms = [_closed_form(comparison, one.name) for one in contestants]
    rows = [["round in closed form, s", *forms]] if set(forms) != {"-"} else []
    rows += [
        [measure(name).title, *(_cell(comparison, one.name, name) for one in contestants)]
        for name in comparison.measures
        if name not in left_out
    ]
    rows.append(["largest load of a worker", *map(_load, contestants)])
    same = [f"{row[0]} {row[1]}" for row in rows if len(set(row[1:])) == 1]
    note = f"The same for all: {', '.join(same)}." if same else ""
    each = "" if rounds is None else f" of {rounds:,} rounds"
    title = f"Measured: losses and scores at the end{each}"
    rows = [row for row in rows if len(set(row[1:])) > 1]
    return Words(title, "By contestant", ["", *_names(comparison.plan)], rows, note)


def against_baseline(comparison: Comparison) -> Words:
    """Return all against the baseline, where anybody differs: amounts as ratios, the rest as differences."""
    plan, shown, equal, unsure = comparison.plan, [], [], []
    for name in comparison.measures:
        pairs = [pair for pair in comparison.pairs if pair.measure == name]
        there = [pair.paired for pair in pairs if pair.paired is not None]
        if not there or name in _MEASURED_ALONE or (name == "duration_s" and _rounds(comparison) is not None):
            continue
        if all(map(_is_none, pairs)):
            equal.append(measure(name).title)
        elif len(there) == len(pairs) and not any(map(_differs, there)):
            unsure.append(measure(name).title)
        else:
            shown.append([_compared_as(name), *map(_compared, pairs)])
    notes = [f"Nobody differs in {joined(equal)}."] if equal else []
    notes += [f"No difference can be told in {joined(unsure)}."] if unsure else []
    title = f"Against {plan.baseline.name}: ratios (x) of seconds and bytes, else differences (-)"
    head = ["", *(one.name for one in plan.others)]
    return Words(title, "Paired by seed", head, shown, "\n".join([" ".join(notes), *explained(comparison)]).strip())


def explained(comparison: Comparison) -> Iterator[str]:
    """Yield how to read the tables, and what pairing was good for."""
    if len(comparison.seeds) > 1:
        yield (
            f"± and brackets: {PERCENT} intervals, each by itself; of pairs by Student's t on {len(comparison.seeds)} "
            "differences, for ratios on those of the logarithms; none: the same at every seed."
        )
        if saved := list(_saved(comparison)):
            yield (
                "Had each file delays and data of its own, they would take so many times the seeds: "
                f"{', '.join(saved)}."
            )
        return
    rounds = [pair for pair in comparison.pairs if pair.measure == ROUND]
    how = joined(list(dict.fromkeys(_paired_over(pair) for pair in rounds)), "or")
    yield (
        f"One seed: seconds per round are paired {how}; other measures have no interval. ± and brackets: "
        f"{PERCENT} intervals, each by itself. More seeds say more: --seeds 5."
    )


def _paired_over(pair: Pair) -> str:
    over = "" if pair.paired is None else pair.paired.over
    if over == "batches of rounds":
        return f"by the means of batches of rounds ({pair.dependence})"
    if over == "dependent rounds":
        return f"without an interval ({pair.dependence}, and there are too few rounds for batches)"
    return "round by round"


def _saved(comparison: Comparison) -> Iterator[str]:
    """Yield how many times the seeds would be needed without pairing, in times and in the metric."""
    for name in (ROUND, TARGET, FINAL + comparison.plan.metric):
        found = [pair.paired.saving for pair in comparison.pairs if pair.measure == name and pair.paired is not None]
        finite = sorted(value for value in found if value is not None and math.isfinite(value))
        if finite:
            ends = list(dict.fromkeys([times(finite[0]), times(finite[-1])]))
            yield f"{measure(name).title} {' to '.join(ends)}"


def _names(plan: Plan) -> list[str]:
    return [one.name for one in plan.contestants]


def _rounds(comparison: Comparison) -> int | None:
    """Return the rounds of every run, if they are as many; then seconds in all say what seconds per round say."""
    counts = {its[seed].rounds for its in comparison.runs.values() for seed in comparison.seeds}
    return counts.pop() if len(counts) == 1 else None


def _cell(comparison: Comparison, contestant: str, name: str) -> str:
    values = comparison.values(contestant, name)
    there = [value for value in values if value is not None]
    if len(there) < len(values):
        if name != TARGET:
            return "-"
        return "not reached" if not there else f"not reached on {len(values) - len(there)} of {len(values)} seeds"
    return _unbroken(plus_minus(t_interval(there), measure(name).scale))


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


def _behind(place: Place) -> str:
    if place.behind is None or place.behind.paired is None:
        return "-"
    ratio = place.behind.paired.ratio
    return "-" if ratio is None else _unbroken(interval(ratio))


def _compared_as(name: str) -> str:
    return f"{measure(name).title}{NO_BREAK}{'(x)' if measure(name).is_amount else '(-)'}"


def _compared(pair: Pair) -> str:
    if pair.paired is None:
        return "not reached" if pair.measure == TARGET else "-"
    if _is_none(pair):
        return "1" if measure(pair.measure).is_amount else "0"
    if measure(pair.measure).is_amount:
        return "-" if pair.paired.ratio is None else _unbroken(compact(pair.paired.ratio))
    return _unbroken(plus_minus(pair.paired.difference, measure(pair.measure).scale))


def _is_none(pair: Pair) -> bool:
    """Tell whether there is no difference, on any seed."""
    compared = pair.paired
    return compared is not None and compared.difference.value == 0 and (compared.constant or compared.pairs == 1)


def _differs(compared: Paired) -> bool:
    """Tell whether a difference is seen: outside of its interval, or where there is none."""
    difference = compared.difference
    return difference.value != 0 if difference.low is None else difference.excludes(0.0)


def _unbroken(text: str) -> str:
    return text.replace(" ", NO_BREAK)
