"""Losses and other measures of the parameters, over rounds and over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from emuml.report.charts import Series, lines
from emuml.report.facts import is_quality
from emuml.report.figure import Column, Shown, by_round, grid, words
from emuml.report.markup import tag
from emuml.report.view import View

_MAY_LOG = ("loss", "mse")
_PARTS = ("train_", "validation_")
_FIRST = ("loss", "accuracy", "auc", "mse")
_HEADINGS = {"auc": "Area under the ROC curve", "mse": "Mean square error"}
_AXES = {"auc": "AUC", "mse": "mean square error"}


class Line(NamedTuple):
    """One measure of one run."""

    label: str
    view: View
    name: str


def section(shown: Shown) -> Element | None:
    """Show a figure for each kind of measure; several runs share it."""
    if not shown.logged:
        return None
    names = {name for view in shown.logged for name in view.metrics if is_quality(name)}
    kinds = sorted({kind(name) for name in names}, key=lambda one: (*(one != first for first in _FIRST), one))
    return tag("section", tag("h2", "Loss and accuracy"), grid(_figure(shown, one) for one in kinds))


def kind(name: str) -> str:
    """Return what a measure measures, whatever rows it is taken over.

    Examples
    --------
    >>> kind("validation_auc"), kind("train_loss")
    ('auc', 'loss')
    """
    for part in _PARTS:
        name = name.removeprefix(part)
    return name


def chosen(shown: Shown, which: str) -> list[Line]:
    """Return the lines of a figure: all of a single run; one of each of several, of held-back rows but for losses."""
    found = []
    for view in shown.logged:
        names = [name for name in view.metrics if kind(name) == which and is_quality(name)]
        names.sort(key=lambda name: name.startswith("validation_") == (which == "loss" or shown.is_single))
        if not shown.is_single:
            names = names[:1]
        found += [Line(words(name) if shown.is_single else view.label, view, name) for name in names]
    return found


def _figure(shown: Shown, which: str) -> Element:
    picked = chosen(shown, which)
    axis = _AXES.get(which, words(which)) if shown.is_single else words(picked[0].name)
    heading = _HEADINGS.get(which, words(which).capitalize()) if shown.is_single else axis.capitalize()
    drawn, key = [], _series(picked, "round")
    for column, x_label in (("round", "round"), ("time_s", "seconds on the engine's clock")):
        over = "rounds" if column == "round" else "time"
        series, title = _series(picked, column), f"{heading} over {over}"
        drawn.append(lines(series, title, x_label, axis, may_log=which in _MAY_LOG))  # scores are no powers of ten
    numbers = by_round(_columns(picked, shown), heading, shown.rows_max)
    return shown.figure(f"{heading} over rounds and over time", drawn, numbers, key)


def _series(picked: Sequence[Line], column: str) -> list[Series]:
    return [Series(one.label, one.view.metrics[column], one.view.metrics[one.name]) for one in picked]


def _columns(picked: Sequence[Line], shown: Shown) -> list[Column]:
    found = []
    for i, one in enumerate(picked):
        rounds, prefix = one.view.metrics["round"], "" if shown.is_single else f"{one.label}: "
        if i == 0 or not shown.is_single:
            found.append(Column(f"{prefix}seconds", rounds, one.view.metrics["time_s"]))
        found.append(Column(f"{prefix}{words(one.name)}", rounds, one.view.metrics[one.name]))
    return found
