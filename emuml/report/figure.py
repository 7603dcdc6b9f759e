"""A figure of a page: drawings, the key to their lines, and, folded away, their numbers and the command for them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from emuml.report.charts import Series, legend
from emuml.report.markup import table, tag
from emuml.report.statistics import Floats
from emuml.report.view import View

ROWS_MAX = 200


@dataclass(frozen=True)
class Shown:
    """What a page shows.

    Attributes
    ----------
    views : sequence of View
    command : str
        What makes the page again.
    """

    views: Sequence[View]
    command: str

    @classmethod
    def of(cls, views: Sequence[View], command: str = "") -> Shown:
        """Show runs; the command is that of the only run's folder, or what the runs were made by."""
        if not command and len(views) == 1 and views[0].run_dir is not None:
            command = f"emuml report {shlex.quote(str(views[0].run_dir))}"
        made_by = dict.fromkeys(str(view.provenance.get("command", "")) for view in views)
        return cls(views, command or "; ".join(filter(None, made_by)) or "a program in Python")

    @cached_property
    def logged(self) -> list[View]:
        """Runs that finished a round."""
        return [view for view in self.views if len(view.round_times_s)]

    @property
    def is_single(self) -> bool:
        """Whether there is but one run."""
        return len(self.views) == 1

    @property
    def rows_max(self) -> int:
        """Rows of a table: runs share them, so that pages stay small."""
        return max(ROWS_MAX // max(len(self.views), 1), 20)

    def of_run(self, view: View, words: str) -> str:
        """Return the caption of a figure of one run; of several, it names the run."""
        return words if self.is_single else f"{words}: {view.label}"

    def figure(
        self, caption: str, drawn: Sequence[Element], numbers: Element, key: Sequence[Series] = (), said: str = ""
    ) -> Element:
        """Return drawings with all that belongs to them; several stand side by side."""
        made = tag("p", "Made by ", tag("code", self.command), class_="note")
        summary = tag("summary", "Numbers and command", aria_label=f"Numbers and command: {caption}")
        parts = [tag("figcaption", caption)]
        parts += [tag("p", said)] if said else []
        parts += [legend(key)] if key else []
        parts += drawn if len(drawn) == 1 else [tag("div", *drawn, class_="beside")]
        kind = {} if len(drawn) == 1 and drawn[0].tag == "svg" else {"class_": "full"}
        return tag("figure", *parts, tag("details", summary, numbers, made), **kind)


def grid(figures: Iterable[Element]) -> Element:
    """Put figures side by side where there is room."""
    return tag("div", *figures, class_="beside")


class Column(NamedTuple):
    """Values by round, under a heading."""

    head: str
    rounds: Floats
    values: Floats


def by_round(columns: Sequence[Column], caption: str, rows_max: int = ROWS_MAX) -> Element:
    """Return columns as a table with a row for each round, or for each of ``rows_max`` rounds at equal distances."""
    rounds = np.unique(np.concatenate([column.rounds for column in columns]))
    kept = rounds[np.unique(np.linspace(0, len(rounds) - 1, min(len(rounds), rows_max)).round().astype(int))]
    known = [dict(zip(column.rounds.tolist(), column.values.tolist(), strict=True)) for column in columns]
    rows = [[f"{at:g}", *(cell(values.get(at)) for values in known)] for at in kept.tolist()]
    return table(
        ["round", *(column.head for column in columns)], rows, f"{caption}: {len(kept)} of {len(rounds)} rounds"
    )


def cell(value: float | None) -> str:
    """Return a number with six digits; a dash for none.

    Examples
    --------
    >>> cell(0.12345678), cell(None), cell(float("nan")), cell(float("-inf"))
    ('0.123457', '-', '-', '-∞')
    """
    return "-" if value is None or value != value else f"{value:.6g}".replace("inf", "∞")


def words(name: str) -> str:
    """Return the name of a column as words."""
    return name.replace("_", " ")
