"""Draws ``stragglers.svg``, the picture of the README: ``python docs/figures/stragglers.py``.

Above: what 30 workers did in the first six seconds when the server waits for all of them, and with ErasureHead. Below:
the loss over time of the four schemes of ``emuml demo``. Everything comes from emulated runs.
"""

from pathlib import Path
from xml.etree.ElementTree import Element

import emuml
from emuml.cli.demo import schemes
from emuml.report.charts import COLOURS, Series, lines
from emuml.report.markup import tag, to_text
from emuml.report.style import FIGURE
from emuml.report.timeline import timeline
from emuml.report.view import View

FIGURE_PATH = Path(__file__).with_suffix(".svg")
WINDOW_S = 6.0
SIZE = {"until_s": WINDOW_S, "width": 410, "row": 6}


def draw() -> str:
    """Emulate the four schemes and return the figure."""
    views = [View.of_result(emuml.run(experiment)) for experiment in schemes().values()]
    wait, *_, coded = views
    loss = [Series(view.label, view.metrics["time_s"], view.metrics["train_loss"]) for view in views]
    parts = [
        *panel(timeline(wait.trace, "Waiting for all", **SIZE), said(wait), 0, 0, 410),
        *panel(timeline(coded.trace, "ErasureHead", **SIZE), said(coded), 430, 0, 410),
        *panel(
            lines(loss, "Loss over time", "seconds of emulated time", "training loss"), "Loss over time", 0, 275, 410
        ),
        *key(views, 490, 340),
    ]
    # The scheme of the reader's system may differ from that of the page around, so the figure has its own background.
    background = tag("rect", width="100%", height="100%", style="fill: var(--back)")
    title = "30 workers with exponential stragglers: waiting for all of them, and gradient coding"
    box = {"viewBox": "0 0 840 560", "role": "img", "xmlns": "http://www.w3.org/2000/svg"}
    return to_text(tag("svg", tag("title", title), tag("style", FIGURE), background, *parts, **box)) + "\n"


def said(view: View) -> str:
    """Return the caption of a timeline."""
    rounds = int((view.metrics["time_s"] <= WINDOW_S).sum()) - 1
    return f"{view.label}: {rounds} rounds in {WINDOW_S:g} s"


def panel(drawing: Element | None, caption: str, x: float, y: float, width: float) -> list[Element]:
    """Place a drawing under its caption."""
    assert drawing is not None
    _, _, inner, height = map(float, str(drawing.get("viewBox")).split())
    for name, value in (("x", x), ("y", y + 22), ("width", width), ("height", width * height / inner)):
        drawing.set(name, f"{value:.1f}")
    return [tag("text", caption, x=x + 8, y=y + 14, style="font-size: 14px; font-weight: 600"), drawing]


def key(views: list[View], x: float, y: float) -> list[Element]:
    """Say which line is which, and how long each scheme took."""
    drawn = []
    for i, view in enumerate(views):
        at = y + 34 * i
        drawn.append(tag("polyline", points=f"{x},{at} {x + 40},{at}", class_=f"line s{i % COLOURS}"))
        words = f"{view.label}: {view.rounds} rounds in {view.duration_s:.0f} s"
        drawn.append(tag("text", words, x=x + 52, y=at + 5, style="font-size: 14px"))
    words = "Thick: computed. Thin: cancelled. Gaps: waiting."
    return [*drawn, tag("text", words, x=x, y=y + 34 * len(views) + 16, style="font-size: 13px")]


if __name__ == "__main__":
    FIGURE_PATH.write_text(draw(), encoding="utf-8")
