"""How stale updates were, what the barrier cost, and whom: histograms, shares of workers, and seconds of waiting."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from emuml.report.bars import bars
from emuml.report.charts import Series, lines
from emuml.report.figure import Column, Shown, by_round, grid
from emuml.report.markup import table, tag
from emuml.report.statistics import Floats
from emuml.report.view import View

_NOTE = (
    "Staleness: updates that the server applied between the version that a worker had fetched and its own update. "
    "Lead: iterations by which a worker was ahead of the slowest when it was given parameters; the barrier bounds it."
)


def section(shown: Shown) -> Element | None:
    """Show runs whose updates may be stale."""
    views = [view for view in shown.logged if "staleness_mean" in view.metrics]
    if not views:
        return None
    figures = [figure for view in views for figure in _of_view(shown, view)]
    said = [tag("p", summary(shown, view)) for view in views]
    return tag("section", tag("h2", "Staleness"), tag("p", _NOTE, class_="note"), *said, grid(figures))


def summary(shown: Shown, view: View) -> str:
    """Say how stale the updates of a run were."""
    tally = view.tally("staleness")
    total = max(tally.total(), 1)
    mean = sum(value * times for value, times in tally.items()) / total
    waited_s = float(np.nansum(view.metrics["blocked_s"]))
    text = (
        f"{tally.total():,} updates, on average {mean:.4g} versions stale, at most {max(tally, default=0)}; "
        f"workers waited {waited_s:.4g} s in all for others."
    )
    return text if shown.is_single else f"{view.label}: {text}"


def _of_view(shown: Shown, view: View) -> list[Element]:
    return [
        _histogram(shown, view, "staleness", "Updates by staleness", "versions"),
        _histogram(shown, view, "lead", "Reads by lead over the slowest worker", "iterations"),
        _over_rounds(shown, view),
        *([_of_workers(shown, view)] if view.tally("worker_updates") else []),
    ]


def _histogram(shown: Shown, view: View, name: str, words: str, unit: str) -> Element:
    tally, caption = view.tally(name), shown.of_run(view, words)
    values = np.arange(max(tally, default=0) + 1)
    shares = np.array([tally[value] for value in values.tolist()]) / max(tally.total(), 1)
    drawn = bars(shares, caption, unit, "share", top=float(shares.max()) or 1.0)
    kept = sorted(tally, key=lambda value: (-tally[value], value))[: shown.rows_max]
    rows = [[str(value), f"{tally[value]:,}", f"{tally[value] / tally.total():.4g}"] for value in sorted(kept)]
    return shown.figure(caption, [drawn], table([unit, "count", "share"], rows, f"{caption}, of {tally.total():,}"))


def _of_workers(shown: Shown, view: View) -> Element:
    """Show whose updates were applied: slow workers that are left behind have small shares."""
    tally, waited_s = view.tally("worker_updates"), view.sums("worker_blocked_s")
    caption = shown.of_run(view, "Updates by worker")
    workers = range(max(tally.keys() | waited_s.keys(), default=0) + 1)
    shares = np.array([tally[worker] for worker in workers]) / max(tally.total(), 1)
    drawn = bars(shares, caption, "worker", "share", top=float(shares.max()) or 1.0)
    least = sorted(workers, key=lambda worker: (tally[worker], worker))[: shown.rows_max]
    rows = [[str(w), f"{tally[w]:,}", f"{shares[w]:.4g}", f"{waited_s.get(w, 0.0):.4g}"] for w in sorted(least)]
    columns = ["worker", "count", "share", "seconds waited"]
    return shown.figure(caption, [drawn], table(columns, rows, f"{caption}, of {tally.total():,}"))


def _over_rounds(shown: Shown, view: View) -> Element:
    rounds = _of_rounds(view, "round")
    series = [
        Series("mean", rounds, _of_rounds(view, "staleness_mean")),
        Series("most", rounds, _of_rounds(view, "staleness_max")),
    ]
    caption = shown.of_run(view, "Staleness of the updates of each round")
    columns = [Column(one.name, rounds, one.y) for one in series]
    columns.append(Column("seconds waited", rounds, _of_rounds(view, "blocked_s")))
    drawn = lines(series, caption, "round", "versions", from_zero=True)
    return shown.figure(caption, [drawn], by_round(columns, caption, shown.rows_max), series)


def _of_rounds(view: View, name: str) -> Floats:
    """Return a column without the rows before the first round."""
    return view.metrics[name][np.isfinite(view.metrics["staleness_mean"])]
