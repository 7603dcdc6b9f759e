"""What workers did in the first rounds."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from emuml.report.figure import Shown
from emuml.report.markup import table, tag
from emuml.report.timeline import KINDS, ROUNDS_MAX, WORKERS_MAX, spans, timeline

RUNS_MAX = 6
"""More timelines would make the page large and nobody the wiser."""

_NOTE = (
    f"The first {ROUNDS_MAX} rounds of at most {WORKERS_MAX} workers. Thick bars: computed in time. Grey bars, less "
    "thick: computed too late, the round was over. Thin grey bars: cancelled. Thin red bars: lost in a crash; red "
    "lines: down. Gaps: waiting. Vertical lines: a round closes."
)


def section(shown: Shown) -> Element | None:
    """Show a timeline of each of the first runs."""
    drawn: list[Element] = []
    for view in shown.views[:RUNS_MAX]:
        found = spans(view.trace)
        chart = timeline(view.trace, f"Workers of {view.label} in the first rounds", found=found)
        if chart is not None:
            name = f"Timeline of {view.label}"
            box = tag("div", chart, class_="scroll", tabindex="0", role="region", aria_label=name)
            counts = [span.kind for span in found if span.node.startswith("worker-")]
            rows = [[words, str(counts.count(kind))] for kind, words in KINDS.items()]
            drawn.append(
                shown.figure(name, [box], table(["what", "times"], rows, "Tasks of the workers in the whole run"))
            )
    if not drawn:
        return None
    left_out = [tag("p", f"Shown for the first {RUNS_MAX} runs.")] if len(shown.views) > RUNS_MAX else []
    return tag("section", tag("h2", "Who did what"), tag("p", _NOTE, class_="note"), *left_out, *drawn)
