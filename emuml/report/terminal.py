"""The box that a run leaves in the terminal: what came out, in a dozen lines."""

from __future__ import annotations

from rich import box
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from emuml.errors import printable
from emuml.report.facts import facts, seconds
from emuml.report.view import View

_LEFT_OUT = ("workload", "cluster")


def summary(view: View) -> Panel:
    """Return the box; it takes the width of the terminal into account."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    rows = facts(view)
    if view.summary:  # on the page it would make equal runs differ
        rows.append(("wall time", seconds(view.summary["wall_s"])))
    for name, value in rows:
        if name not in _LEFT_OUT:
            grid.add_row(name, Text(printable(value)))  # never markup: values may hold brackets
    return Panel(grid, title=Text(printable(view.label)), title_align="left", box=box.ROUNDED, expand=False)
