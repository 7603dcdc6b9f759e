"""One plain page on one run or several: no scripts, no network, no fonts; every figure has its numbers beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from emuml.report.facts import headline, troubles
from emuml.report.figure import Shown
from emuml.report.markup import tag, to_text
from emuml.report.sections import (
    coverage,
    decoding,
    origin,
    quality,
    round_times,
    sent,
    staleness,
    stragglers,
    timelines,
    weights,
)
from emuml.report.style import FIGURE, PAGE
from emuml.report.view import View

SECTIONS: tuple[Callable[[Shown], Element | None], ...] = (
    quality.section,
    round_times.section,
    stragglers.section,
    staleness.section,
    coverage.section,
    weights.section,
    decoding.section,
    sent.section,
    timelines.section,
    origin.what,
    origin.origins,
)


def write_report(
    views: Sequence[View],
    path: str | Path,
    title: str = "",
    conclusion: str = "",
    sections: Sequence[Element] = (),
    command: str = "",
) -> Path:
    """Write the page and return its path; parameters as for :func:`page`."""
    path = Path(path)
    path.write_text(page(views, title, conclusion, sections, command), encoding="utf-8")
    return path


def page(
    views: Sequence[View], title: str = "", conclusion: str = "", sections: Sequence[Element] = (), command: str = ""
) -> str:
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
    command : str
        What makes the page again, to be told beside each figure; found in the runs when left out.
    """
    title = title or views[0].experiment.name
    shown = Shown.of(views, command)
    made = [part for part in (build(shown) for build in SECTIONS) if part is not None]
    if not shown.logged:
        made.insert(0, tag("p", "No round was finished."))
    said = [f"{view.label}: {headline(view)}" if len(views) > 1 else headline(view).capitalize() for view in views]
    summary = [tag("p", line) for line in ([conclusion] if conclusion else said)]
    summary += [part for view in views for part in _warnings(view, len(views) == 1)]
    parts = [*sections, *made]
    body = tag("body", tag("main", tag("h1", title), *summary, _contents(parts), *parts))
    return "<!doctype html>\n" + to_text(tag("html", _head(title), body, lang="en")) + "\n"


def _warnings(view: View, is_single: bool) -> list[Element]:
    """Return what to know before reading on, and where nodes were when a run failed."""
    whose = "" if is_single else f"{view.label}: "
    said = [tag("p", f"{whose}{line}", class_="warning") for line in troubles(view)]
    if "\n" not in view.failure:
        return said
    whole = tag("pre", view.failure, tabindex="0", role="region", aria_label=f"{whose}Why the run failed")
    return [*said, tag("details", tag("summary", f"{whose}Where the nodes were"), whole)]


def _head(title: str) -> Element:
    # The policy forbids the page to load anything at all.
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{title} · emuml"),
        tag("style", PAGE + FIGURE),
    )


def _contents(parts: Sequence[Element]) -> Element:
    """Return links to the sections; headings get the ids that they need for it."""
    headings = [heading for part in parts for heading in part.iter("h2")]
    items: list[Element] = []
    for heading in headings:
        text = "".join(heading.itertext())
        slug = re.sub(r"\W+", "-", text.lower()).strip("-")
        taken = {one.get("id") for one in headings}
        heading.set("id", heading.get("id") or (slug if slug not in taken else f"{slug}-{len(items)}"))
        items.append(tag("li", tag("a", text, href=f"#{heading.get('id')}")))
    return tag("nav", tag("ul", *items), aria_label="Sections")
