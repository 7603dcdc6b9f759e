"""Bytes: how much was sent, of what and in which direction, by round, in total and over time."""

from __future__ import annotations

from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from emuml.report.charts import Series, lines
from emuml.report.figure import Column, Shown, by_round
from emuml.report.markup import table, tag
from emuml.report.statistics import Floats
from emuml.report.traffic import Traffic, traffic
from emuml.report.view import View

_UNITS = ("B", "kB", "MB", "GB", "TB")


class Sent(NamedTuple):
    """The traffic of one run."""

    view: View
    traffic: Traffic

    @property
    def rounds(self) -> Floats:
        """Numbers of the rounds, from 1."""
        return np.arange(1.0, len(self.traffic.total_bytes) + 1)

    @property
    def ends_s(self) -> Floats:
        """When each round was over."""
        at = dict(zip(self.view.metrics["round"].tolist(), self.view.metrics["time_s"].tolist(), strict=True))
        return np.array([at.get(one, np.nan) for one in self.rounds.tolist()])


def section(shown: Shown) -> Element | None:
    """Show what was sent; None when no message left a record."""
    sent = [Sent(view, traffic(view.trace, view.rounds)) for view in shown.logged]
    sent = [one for one in sent if one.traffic.size_bytes]
    if not sent:
        return None
    note = "Sizes are those of the messages on the wire, frames included."
    return tag(
        "section",
        tag("h2", "Bytes sent"),
        tag("p", note, class_="note"),
        _totals(shown, sent),
        _figure(shown, sent),
    )


def unit_of(largest: float) -> tuple[float, str]:
    """Return the unit in which a number of bytes has one to three digits before the point.

    Examples
    --------
    >>> unit_of(52_000.0)
    (1000.0, 'kB')
    """
    power = min(max(int(np.log10(max(largest, 1.0)) / 3), 0), len(_UNITS) - 1)
    return 1000.0**power, _UNITS[power]


def in_units(size: float) -> str:
    """Return a number of bytes for people."""
    factor, unit = unit_of(size)
    return f"{size / factor:.4g} {unit}"


def _totals(shown: Shown, sent: list[Sent]) -> Element:
    rows = []
    for view, counted in sent:
        for flow, sizes in counted.size_bytes.items():
            messages, total = float(counted.messages[flow].sum()), float(sizes.sum())
            numbers = [f"{messages:,.0f}", in_units(total), in_units(total / messages), in_units(float(sizes.mean()))]
            rows.append([view.label, flow.message, f"{flow.sender} to {flow.receiver}", *numbers])
        total = float(counted.total_bytes.sum())
        messages = float(sum(one.sum() for one in counted.messages.values()))
        each = [
            f"{messages:,.0f}",
            in_units(total),
            in_units(total / messages),
            in_units(total / len(counted.total_bytes)),
        ]
        rows.append([view.label, "all", "", *each])
        if counted.after_bytes:
            rows.append([view.label, "all", "after the last round", "", in_units(counted.after_bytes), "", ""])
    head = ["run", "message", "direction", "messages", "sent", "per message", "per round"]
    if shown.is_single:
        head, rows = head[1:], [row[1:] for row in rows]
    return table(head, rows, "Messages and bytes sent until the last round was over")


def _figure(shown: Shown, sent: list[Sent]) -> Element:
    per_round = _sizes(shown, sent)
    sums = [(name, one, np.cumsum(sizes)) for name, one, sizes in per_round]
    drawn = []
    for values, over, y_label in ((per_round, "round", "sent in the round"), (sums, "time", "sent so far")):
        factor, unit = unit_of(max(float(sizes.max()) for *_, sizes in values))
        series = [
            Series(name, one.rounds if over == "round" else one.ends_s, sizes / factor) for name, one, sizes in values
        ]
        x_label = "round" if over == "round" else "seconds on the engine's clock"
        drawn.append(lines(series, f"Bytes {y_label}", x_label, f"{unit} {y_label}", from_zero=True))
    columns = [Column(f"{name}, bytes", one.rounds, sizes) for name, one, sizes in per_round]
    caption = "Bytes sent in each round, and so far over time"
    return shown.figure(caption, drawn, by_round(columns, "Bytes sent in each round", shown.rows_max), series)


def _sizes(shown: Shown, sent: list[Sent]) -> list[tuple[str, Sent, Floats]]:
    """Return the lines of the figure: flows of a single run, or the totals of several."""
    if shown.is_single:
        return [(str(flow), sent[0], sizes) for flow, sizes in sent[0].traffic.size_bytes.items()]
    return [(one.view.label, one, one.traffic.total_bytes) for one in sent]
