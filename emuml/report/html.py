"""One plain page on one run or several: no scripts, no network, no fonts; every figure has its numbers beside it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from emuml.report.charts import Series, bins, histogram, legend, lines
from emuml.report.facts import facts, headline
from emuml.report.markup import table, tag, to_text
from emuml.report.style import FIGURE, PAGE
from emuml.report.timeline import ROUNDS_MAX, WORKERS_MAX, timeline
from emuml.report.view import View

ROWS_MAX = 200


def write_report(
    views: Sequence[View],
    path: str | Path,
    title: str = "",
    conclusion: str = "",
    sections: Sequence[Element] = (),
) -> Path:
    """Write the page and return its path; parameters as for :func:`page`."""
    path = Path(path)
    path.write_text(page(views, title, conclusion, sections), encoding="utf-8")
    return path


def page(views: Sequence[View], title: str = "", conclusion: str = "", sections: Sequence[Element] = ()) -> str:
    """Return the page as text.

    Parameters
    ----------
    views : sequence of View
        Runs to show, side by side.
    title : str
        Heading; the name of the first run when left out.
    conclusion : str
        A sentence to put on top, in place of a sentence on each run.
    sections : sequence of Element
        Further sections, each a ``section`` that begins with an ``h2``; they come before those made here.
    """
    title = title or views[0].experiment.name
    logged = [view for view in views if len(view.round_times_s)]
    parts = [_losses(logged), _round_times(logged)] if logged else [tag("p", "No round was finished.")]
    parts = [*sections, *parts, *_timelines(views), _facts(views), *map(_provenance, views)]
    said = [f"{view.label}: {headline(view)}" if len(views) > 1 else headline(view).capitalize() for view in views]
    summary = [tag("p", conclusion)] if conclusion else [tag("p", line) for line in said]
    body = tag("body", tag("main", tag("h1", title), *summary, *parts))
    # The policy forbids the page to load anything at all.
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{title} · emuml"),
        tag("style", PAGE + FIGURE),
    )
    return "<!doctype html>\n" + to_text(tag("html", head, body, lang="en")) + "\n"


def _losses(views: Sequence[View]) -> Element:
    single = len(views) == 1
    chosen = [(view, name) for view in views for name in (view.losses if single else view.losses[:1])]
    labels = [name.replace("_", " ") if single else view.label for view, name in chosen]
    what = "loss" if single else "training loss"
    drawn = []
    for column, x_label in (("round", "round"), ("time_s", "seconds on the engine's clock")):
        series = [
            Series(label, view.metrics[column], view.metrics[name])
            for label, (view, name) in zip(labels, chosen, strict=True)
        ]
        over = "rounds" if column == "round" else "time"
        drawn.append(_figure(f"{what.capitalize()} over {over}", lines(series, f"Loss over {over}", x_label, what)))
    data = [_rows(view, len(views) > 1) for view in views]
    return tag("section", tag("h2", "Loss"), legend(labels), tag("div", *drawn, class_="charts"), *data)


def _round_times(views: Sequence[View]) -> Element:
    drawn, rows = [], []
    edges = bins([view.round_times_s for view in views])
    for i, view in enumerate(views):
        times, expected = view.round_times_s, view.expected_round_s()
        inside = expected if expected is not None and expected <= edges[-1] else None
        chart = histogram(times, edges, f"Round times of {view.label}", "seconds per round", i, inside)
        drawn.append(_figure(view.label, chart))
        quantiles = np.quantile(times, (0.0, 0.5, 0.9, 1.0)).tolist()
        numbers = [float(times.mean()), expected, *quantiles]
        rows.append([view.label, *("-" if value is None else f"{value:.4g}" for value in numbers)])
    note = "Solid line: mean of the run. Dashed line: mean in closed form, for equal shares and free messages."
    head = ["run", "mean", "closed form", "least", "median", "90 %", "most"]
    numbers_table = table(head, rows, "Seconds per round")
    return tag(
        "section",
        tag("h2", "Round times"),
        tag("p", note, class_="note"),
        tag("div", *drawn, class_="charts"),
        numbers_table,
    )


def _timelines(views: Sequence[View]) -> list[Element]:
    drawn: list[Element] = []
    for view in views:
        chart = timeline(view.trace, f"Workers of {view.label} in the first rounds")
        if chart is not None:
            box = tag(
                "div", chart, class_="scroll", tabindex="0", role="region", aria_label=f"Timeline of {view.label}"
            )
            drawn.append(_figure(view.label, box))
    if not drawn:
        return []
    note = (
        f"The first {ROUNDS_MAX} rounds of at most {WORKERS_MAX} workers. Thick bars: computed in time. Thin grey "
        "bars: cancelled as the round closed. Thin red bars: lost in a crash; red lines: down. Gaps: waiting. "
        "Vertical lines: a round closes."
    )
    return [tag("section", tag("h2", "Timeline of workers"), tag("p", note, class_="note"), *drawn)]


def _facts(views: Sequence[View]) -> Element:
    columns = [dict(facts(view)) for view in views]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [[name, *(column.get(name, "-") for column in columns)] for name in names]
    return tag(
        "section",
        tag("h2", "Facts"),
        table(["", *(view.label for view in views)], rows, "What was run, and what came out"),
    )


def _provenance(view: View) -> Element:
    known = view.provenance
    versions = " · ".join(f"{name} {version}" for name, version in known.get("versions", {}).items())
    rows = [["seed", str(view.experiment.seed)], ["data", str(known.get("data", "-"))], ["versions", versions or "-"]]
    rows += [[f"input {name}", str(digest)] for name, digest in dict(known.get("inputs", {})).items()]
    rows.append(["made by", str(known.get("command", "-"))])
    parts = [tag("h2", f"Provenance of {view.label}"), table(["", ""], rows, "What decides the numbers")]
    if view.run_dir is not None:
        command = f"emuml run {shlex.quote(str(view.run_dir / 'config.yaml'))}"
        parts += [tag("p", "Run it again:"), tag("pre", command)]
    parts.append(tag("details", tag("summary", "Complete configuration"), tag("pre", view.config())))
    return tag("section", *parts)


def _rows(view: View, named: bool) -> Element:
    rows = view.metrics.rows
    kept = rows if len(rows) <= ROWS_MAX else rows[:: -(-len(rows) // ROWS_MAX)]
    names = list(view.metrics)
    names.sort(key=lambda name: name != "round")
    cells = [[f"{row[name]:.6g}" if isinstance(row.get(name), float | int) else "-" for name in names] for row in kept]
    which = f"Numbers of {view.label}" if named else "Numbers"
    caption = f"{len(kept)} of {len(rows)} logged points"
    return tag("details", tag("summary", which), table([name.replace("_", " ") for name in names], cells, caption))


def _figure(caption: str, drawn: Element) -> Element:
    return tag("figure", tag("figcaption", caption), drawn)
