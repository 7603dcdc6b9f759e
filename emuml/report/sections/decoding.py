"""The decoding error of each round, its mean so far, and what to expect."""

from __future__ import annotations

from functools import partial
from xml.etree.ElementTree import Element

import numpy as np

from emuml.protocols.gradient_coding.codes.seam import ROUNDING
from emuml.report.charts import Series, level, lines
from emuml.report.expected import are_alike, decode_error, group_code, remarks
from emuml.report.facts import decoding, number
from emuml.report.figure import Column, Shown, by_round, grid
from emuml.report.markup import tag
from emuml.report.statistics import Floats, running_mean
from emuml.report.view import View

_NOTE = (
    "The error is ‖aB - 1‖², the squared distance of the partitions' weights in the decoded sum from 1, in partitions: "
    "where the rest of them have weight 1, as many as are missing. "
    "Dashed: its mean in closed form, if every set of workers is equally likely to answer first."
)


def section(shown: Shown) -> Element | None:
    """Show the errors of runs that were not always exact."""
    views = [view for view in shown.logged if "decode_error" in view.metrics]
    if not views:
        return None
    inexact = [view for view in views if (errors(view)[1] > ROUNDING).any()]
    said = [_said(shown, view) for view in views if view not in inexact]
    said += [_remark(shown, view, remark) for view in views for remark in remarks(view.experiment)]
    note = [tag("p", _NOTE, class_="note")] if inexact else []
    return tag(
        "section",
        tag("h2", "Decoding error"),
        *said,
        *note,
        grid(map(partial(_of_view, shown), inexact)),
    )


def errors(view: View) -> tuple[Floats, Floats]:
    """Return rounds and their errors, where one was logged."""
    values = view.metrics["decode_error"]
    known = np.isfinite(values)
    return view.metrics["round"][known], values[known]


def _said(shown: Shown, view: View) -> Element:
    text = f"{decoding(view)}: every decoded gradient was the full one."
    return tag("p", text.capitalize() if shown.is_single else f"{view.label}: {text}")


def _remark(shown: Shown, view: View, remark: str) -> Element:
    text = f"{remark[0].upper()}{remark[1:]}." if shown.is_single else f"{view.label}: {remark}."
    return tag("p", text, class_="warning" if remark.startswith("warning") else "note")


def _of_view(shown: Shown, view: View) -> Element:
    rounds, values = errors(view)
    code = group_code(view.experiment)
    expected = decode_error(code) if code is not None and are_alike(view.experiment) else None
    series = [
        Series("error of the round", rounds, values, "s0 thin"),
        Series("mean so far", rounds, running_mean(values), "s2"),
    ]
    columns = [Column(one.name, rounds, one.y) for one in series]
    if expected is not None:
        series.append(level(f"expected, {number(expected)}", expected, rounds))
    caption = shown.of_run(view, "Decoding error")
    drawn = lines(series, caption, "round", "error in partitions", from_zero=True)
    mean = f"mean {number(float(values.mean()))}"
    known = "no closed form is known for it" if expected is None else f"in closed form {number(expected)}"
    said = f"{decoding(view).split(';')[0]}: {mean} partitions, {known}."
    return shown.figure(caption, [drawn], by_round(columns, caption, shown.rows_max), series, said)
