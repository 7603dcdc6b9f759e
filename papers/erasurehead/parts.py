"""What a part of the reproduction leaves: numbers to compare, numbers to draw, a table, a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.table import Table

from benchmarks.harness import Figure
from papers.erasurehead.expected import Check, Sampled, compare

Say = Callable[[str], None]
"""Called with what a part is about to do."""


@dataclass(frozen=True)
class Part:
    """One part that was reproduced.

    Attributes
    ----------
    found : mapping of str to mapping
        Numbers by group of ``expected.json``.
    table : Table
    said : str
        What the numbers show, in words.
    numbers : mapping
        What figures are drawn from; plain data.
    measured : mapping
        Figures of this machine, such as seconds of its clock: they are told, and decide nothing.
    """

    found: Mapping[str, Mapping[str, float | Sampled]]
    table: Table
    said: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, Figure] = field(default_factory=dict)

    def checks(self) -> list[Check]:
        """Compare what was found."""
        return [check for group, found in self.found.items() for check in compare(group, found)]


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a boxed table whose first column names its rows."""
    made = Table(title=title, title_justify="left", title_style="bold", box=box.ROUNDED, padding=(0, 1))
    for i, head in enumerate(heads):
        made.add_column(head, justify="right" if i else "left", no_wrap=True, vertical="bottom")
    for row in rows:
        made.add_row(*row)
    return made
