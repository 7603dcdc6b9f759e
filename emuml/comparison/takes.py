"""What the runs of a comparison will take, side by side, before anything starts."""

from __future__ import annotations

from collections.abc import Sequence

from emuml.comparison.plan import Plan
from emuml.comparison.tables import seeds
from emuml.comparison.words import NO_BREAK, Words
from emuml.experiment.plan import Plan as RunPlan
from emuml.experiment.plan import plan
from emuml.experiment.plan_wording import size
from emuml.experiment.training import Range
from emuml.report.facts import number


def plans(comparison: Plan) -> list[RunPlan]:
    """Return what a run of each contestant takes, with the first seed."""
    found = []
    for one in comparison.contestants:
        with one.loaded.pointing():
            found.append(plan(one.experiment(comparison.seeds[0]), one.loaded.engine, one.loaded.runtime))
    return found


def table(comparison: Plan, found: Sequence[RunPlan]) -> Words:
    """Return the plans as a table: a row for each contestant."""
    head = ["", "seconds", "stands on", "messages", "sent", "load", "covered"]
    notes = dict.fromkeys(f"{each.name}: {note}." for each in found for note in each.notes)
    runs = f"{seeds(comparison.seeds)} each; the figures are of one run. Brackets: 95 % intervals."
    title = "What a run will take; nothing is started"
    return Words(title, "Plans", head, [_row(each) for each in found], "\n".join([runs, *notes]))


def _row(each: RunPlan) -> list[str]:
    total = sum(sent.total_bytes.mean for sent in each.messages)
    count = sum(sent.count.mean for sent in each.messages)
    return [
        each.name,
        "-" if each.duration_s is None else _range(each.duration_s),
        each.basis,
        f"{count:,.0f}" if each.messages else "-",
        size(total).replace(" ", NO_BREAK) if each.messages else "-",
        "-" if each.load is None else number(each.load[1]),
        "-" if each.decoding is None else f"{100 * each.decoding.covered:.4g}{NO_BREAK}%",
    ]


def _range(value: Range) -> str:
    if value.low == value.high:
        return number(value.mean)
    return f"{number(value.mean)}{NO_BREAK}[{number(value.low)},{NO_BREAK}{number(value.high)}]"
