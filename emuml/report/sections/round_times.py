"""How long rounds take: what was measured, and the closed form drawn over it where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

import numpy as np

from emuml.report.bars import bins, histogram
from emuml.report.charts import COLOURS, Series, lines, steps
from emuml.report.figure import Shown, cell, grid
from emuml.report.markup import table, tag
from emuml.report.statistics import Floats, ks_bound, ks_distance, standard_error
from emuml.report.view import View

FRESH = ("cancel", "wait-all")
"""Ways to treat stragglers by which rounds do not depend on each other."""

THEORY = ("closed form", "difference", "KS", "KS bound")
"""Columns that are left out where nothing of it is known."""

_POINTS = 200
_LEVELS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


def section(shown: Shown) -> Element | None:
    """Show how round times are spread, and compare them with theory."""
    if not shown.logged:
        return None
    parts = [
        tag("h2", "Round times"),
        tag("p", _note(shown.logged), class_="note"),
        _comparison(shown),
        *(tag("p", line) for line in unknown(shown)),
        grid([_shares(shown), *(_histogram(shown, view, i) for i, view in enumerate(shown.logged))]),
    ]
    return tag("section", *parts)


def unknown(shown: Shown) -> list[str]:
    """Say which runs are drawn without closed forms, and why."""
    said = []
    for view in shown.logged:
        law = view.round_law
        if law.reason:
            what = "closed forms" if law.mean_s is None else "the distribution in closed form"
            said.append(f"{'This run' if shown.is_single else view.label} is drawn without {what}: {law.reason}.")
    return said


def _note(views: Sequence[View]) -> str:
    text = (
        "Closed forms are for workers of one law, independent of each other and of the past, with equal shares of the "
        "data, and for messages that take no time."
    )
    if any(view.round_law.cdf is not None for view in views):
        text += (
            " KS is the Kolmogorov-Smirnov distance, the largest gap between the share of rounds done and the closed "
            "form; if the closed form is right, it exceeds its bound in 5 % of all runs."
        )
    return text


def _comparison(shown: Shown) -> Element:
    head = ["run", "rounds", "mean", "± error", *THEORY, "least", "median", "90 %", "most"]
    rows = [_compared(view) for view in shown.logged]
    kept = [i for i in range(len(head)) if head[i] not in THEORY or any(row[i] != "-" for row in rows)]
    head, rows = [head[i] for i in kept], [[row[i] for i in kept] for row in rows]
    if shown.is_single:
        head, rows = head[1:], [row[1:] for row in rows]
    told = "; differences in standard errors" if "difference" in head else ""
    return table(head, rows, f"Seconds per round{told}")


def _compared(view: View) -> list[str]:
    times, law = view.round_times_s, view.round_law
    error = standard_error(times)
    difference = None
    if law.mean_s is not None and error > 0 and view.stragglers != "carry-over":  # its rounds depend on each other
        difference = (float(times.mean()) - law.mean_s) / error
    distance = None if law.cdf is None else ks_distance(times, law.cdf)
    bound = ks_bound(len(times)) if law.cdf is not None and view.stragglers in FRESH else None
    quantiles = np.quantile(times, (0.0, 0.5, 0.9, 1.0)).tolist()
    numbers = [float(times.mean()), error, law.mean_s, None, distance, bound, *quantiles]
    cells = ["-" if value is None or value != value else f"{value:.4g}" for value in numbers]
    cells[3] = "-" if difference is None else f"{difference:+.2f}"
    return [view.label, str(len(times)), *cells]


def _shares(shown: Shown) -> Element:
    """Draw the shares of rounds done within a time, with the closed forms over them."""
    measured = [steps(view.label, view.round_times_s, f"s{i % COLOURS} wide") for i, view in enumerate(shown.logged)]
    theory = [_curve(view) for view in shown.logged if view.round_law.cdf is not None]
    title, x_label = "Share of rounds done within a time", "seconds per round"
    drawn = lines([*measured, *theory], title, x_label, "share of rounds", from_zero=True, top=1.0, x_from_zero=False)
    key = [*measured, *theory[:1]]
    if shown.is_single:
        key[0] = key[0]._replace(name="measured")
    rows = [
        [
            view.label,
            f"{100 * level:g} %",
            cell(at),
            cell(None if law.cdf is None else float(law.cdf(np.array([at]))[0])),
        ]
        for view in shown.logged
        for law in (view.round_law,)
        for level, at in zip(_LEVELS, np.quantile(view.round_times_s, _LEVELS).tolist(), strict=True)
    ]
    head = ["run", "share of rounds", "within seconds", "share in closed form"]
    return shown.figure(title, [drawn], table(head, rows, title), key)


def _curve(view: View) -> Series:
    times, cdf = view.round_times_s, view.round_law.cdf
    assert cdf is not None
    low, high = float(times.min()), float(times.max())
    room = 0.05 * (high - low)
    x = np.linspace(max(low - room, 0.0), high + room, _POINTS)
    return Series("closed form", x, cdf(x), "theory")


def _histogram(shown: Shown, view: View, i: int) -> Element:
    times, law = view.round_times_s, view.round_law
    edges = bins(times)
    expected = None if law.cdf is None else len(times) * np.diff(law.cdf(edges))
    inside = law.mean_s if law.mean_s is not None and edges[0] <= law.mean_s <= edges[-1] else None
    caption = shown.of_run(view, "Round times")
    drawn = histogram(times, edges, caption, "seconds per round", i, inside, expected)
    return shown.figure(caption, [drawn], _counts(times, edges, expected, caption), _key(inside, expected))


def _key(mark: float | None, expected: Floats | None) -> list[Series]:
    none = np.zeros(0)
    key = [Series("mean of the run", none, none, "mean")]
    key += [] if mark is None else [Series("mean in closed form", none, none, "mark")]
    return key + ([] if expected is None else [Series("rounds expected by the closed form", none, none, "theory")])


def _counts(times: Floats, edges: Floats, expected: Floats | None, caption: str) -> Element:
    counts, _ = np.histogram(times, edges)
    wanted = [None] * len(counts) if expected is None else expected.tolist()
    rows = [
        [cell(low), cell(high), str(count), "-" if value is None else f"{value:.2f}"]
        for low, high, count, value in zip(edges, edges[1:], counts.tolist(), wanted, strict=False)
    ]
    return table(["from s", "to s", "rounds", "expected"], rows, caption)
