"""The box of a plan in the terminal: what a run will take, and on what each figure stands."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from emuml.errors import printable
from emuml.experiment.expectations import Messages
from emuml.experiment.plan import Plan
from emuml.experiment.plan_wording import size
from emuml.experiment.training import Range
from emuml.report.facts import number, seconds


def box_of(plan: Plan) -> Panel:
    """Return the box; it takes the width of the terminal into account."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows(plan):
        grid.add_row(name, Text(printable(value)))  # never markup: values may hold brackets
    return Panel(grid, title=Text(f"plan of {printable(plan.name)}"), title_align="left", box=box.ROUNDED, expand=False)


def rows(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield name and value of what there is to say."""
    tier = f", {plan.tier} tier ({plan.tier_reason})" if plan.tier else ""
    yield "engine", {"des": "emulator", "tcp": "TCP"}[plan.engine] + tier
    processes = f"; {plan.processes} processes" if plan.processes else ""
    yield "nodes", ", ".join(f"{count:,} {role}{'s' * (count > 1)}" for role, count in plan.nodes.items()) + processes
    yield "ends", plan.ends
    if plan.load is not None:
        yield "load", f"{_span(*plan.load)} equal shares of the data per worker and round"
    for each in plan.messages:
        yield each.kind, _sent(each)
    yield f"{'emulated' if plan.engine == 'des' else 'real'} duration", _duration(plan)
    if plan.round_s is not None:
        travel = f", of which messages travel {seconds(plan.travel_s)}" if plan.travel_s else ""
        yield "seconds per round", f"{number(plan.round_s)} s{travel}"
    if plan.drain_s:
        yield "drain", f"{seconds(plan.drain_s)} more for work that nobody needs"
    if plan.decoding is not None:
        error = "" if plan.decoding.error is None else f", mean error {number(plan.decoding.error)} partitions"
        yield "decoding", f"{100 * plan.decoding.covered:.4g} % of the data covered{error} ({plan.decoding.basis})"
    if plan.wall_s is not None:
        yield "wall time", f"about {seconds(plan.wall_s)} on this machine, without loading data and the report"
    folder = next(iter(plan.writes)).rpartition("/")[0]
    yield "writes", f"{folder}: {', '.join(sorted(path[len(folder) + 1 :] for path in plan.writes))}"
    for source in plan.sources:
        yield "theory", source
    for note in plan.notes:
        yield "note", note


def _sent(each: Messages) -> str:
    count, one = each.count, size(each.most_bytes)
    if count.low == count.high:
        return f"{count.mean:,.0f} of {one}, {size(each.total_bytes.mean)} ({each.basis})"
    if each.basis == "bound":
        return f"{count.low:,.0f} to {count.high:,.0f} of {one}, at most {size(each.total_bytes.high)}"
    interval = f"95 %: {count.low:,.0f} to {count.high:,.0f}"
    return f"{count.mean:,.0f} of {one}, {size(each.total_bytes.mean)} ({interval}; {each.basis})"


def _duration(plan: Plan) -> str:
    detail = f"{plan.basis}: {plan.detail}" if plan.detail else plan.basis
    if plan.duration_s is None:
        return f"not known ({detail})" if plan.round_s is None else "as many rounds as it takes"
    return f"{_interval(plan.duration_s)} ({detail})"


def _interval(value: Range) -> str:
    if value.low == value.high:
        return f"{number(value.mean)} s"
    return f"{number(value.mean)} s, 95 %: {number(value.low)} to {number(value.high)} s"


def _span(least: float, most: float) -> str:
    return number(most) if number(least) == number(most) else f"{number(least)} to {number(most)}"
