"""What the treatment of stragglers costs: seconds that a program logs against those that pass, and answers in vain."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from emuml.report.charts import Series, lines
from emuml.report.facts import seconds
from emuml.report.figure import Column, Shown, by_round, grid
from emuml.report.markup import tag
from emuml.report.statistics import Floats
from emuml.report.view import View

MEANINGS = {
    "cancel": "work on a closed round is dropped as the next parameters arrive",
    "skip-stale": "a worker finishes work on a closed round in vain, then starts on the newest parameters",
    "carry-over": "a worker finishes work on closed rounds in vain, one round after the other",
    "wait-all": "a round is decided by its stop rule, but the next one starts when every worker has finished",
}


def section(shown: Shown) -> Element | None:
    """Show runs in which stragglers are not cancelled, or whose answers came too late."""
    views = [view for view in shown.logged if view.stragglers != "cancel" or late(view).any()]
    if not views:
        return None
    parts = [part for view in views for part in _of_view(shown, view)]
    return tag("section", tag("h2", "Stragglers"), *parts)


def late(view: View) -> Floats:
    """Return for each round how many answers were dropped because their round was over, since the round before."""
    return _of_rounds(view, "stale") if "stale" in view.metrics else np.zeros(0)


def _of_view(shown: Shown, view: View) -> list[Element]:
    figures = [_logged_and_elapsed(shown, view)] if "decided_s" in view.metrics else []
    figures += [_late(shown, view)] if late(view).any() else []
    heading = [] if shown.is_single else [tag("h3", view.label)]
    return [*heading, tag("p", " ".join(said(view))), grid(figures)]


def said(view: View) -> list[str]:
    """Say how stragglers are treated, and what that costs."""
    found = [f"{view.stragglers}: {MEANINGS.get(view.stragglers, 'as the protocol says')}."]
    if "decided_s" in view.metrics:
        logged, elapsed = (float(np.nansum(one)) for one in durations(view))
        found.append(
            f"Rounds were decided in {seconds(logged)} in all, which is what such a program logs; "
            f"{seconds(elapsed)} passed, {elapsed / logged:.3g} times as much."
        )
    if late(view).any():
        found.append(f"{late(view).sum():,.0f} answers came to rounds that were over and were dropped.")
    if view.drain_s is not None:
        found.append(
            f"After the last round workers needed {seconds(view.drain_s)} more to finish what they had queued."
        )
    return found


def durations(view: View) -> tuple[Floats, Floats]:
    """Return seconds from the start of each round until it was decided, and until the next one started."""
    return view.decided_round_times_s, view.round_times_s


def _logged_and_elapsed(shown: Shown, view: View) -> Element:
    rounds = view.metrics["round"][1:]
    logged, elapsed = durations(view)
    series = [
        Series("logged: until the round was decided", rounds, logged),
        Series("elapsed: until the next one started", rounds, elapsed),
    ]
    columns = [Column("logged s", rounds, logged), Column("elapsed s", rounds, elapsed)]
    caption = shown.of_run(view, "Seconds of each round, logged and elapsed")
    drawn = lines(series, caption, "round", "seconds", from_zero=True)
    return shown.figure(caption, [drawn], by_round(columns, caption, shown.rows_max), series)


def _late(shown: Shown, view: View) -> Element:
    series = [Series("answers dropped", _of_rounds(view, "round"), late(view))]
    caption = shown.of_run(view, "Answers dropped because their round was over")
    drawn = lines(series, caption, "round", "answers", from_zero=True)
    columns = [Column("answers dropped", series[0].x, series[0].y)]
    return shown.figure(caption, [drawn], by_round(columns, caption, shown.rows_max))


def _of_rounds(view: View, name: str) -> Floats:
    """Return a column without the rows before the first round."""
    return view.metrics[name][np.isfinite(view.metrics["stale"])]
