"""Line charts and histograms as small SVG elements.

Why not a plotting library: a report must open anywhere without scripts or fonts, follow the reader's light or dark
scheme by CSS, carry titles for screen readers, and be the same bytes for the same run; matplotlib would add 30 MB and a
second of import for less of that. Colours stand in ``style.py``; series also differ by their dashes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from emuml.report.markup import tag
from emuml.report.scales import Scale, scale_for

WIDTH, HEIGHT = 400, 250
LEFT, RIGHT, TOP, BOTTOM = 52, 388, 12, 210
POINTS_MAX = 400
COLOURS = 6


class Series(NamedTuple):
    """One line: a name and its points."""

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]


def lines(series: Sequence[Series], title: str, x_label: str, y_label: str) -> Element:
    """Draw lines; the vertical axis is logarithmic when values are positive and span more than a factor of four."""
    thinned = [_thin(one) for one in series]
    ys = [float(y) for one in thinned for y in one.y]
    is_log = bool(ys) and min(ys) > 0 and max(ys) > 4 * min(ys)
    x = scale_for([float(x) for one in thinned for x in one.x], LEFT, RIGHT, from_zero=True)
    y = scale_for(ys, BOTTOM, TOP, is_log=is_log)
    drawn = [tag("polyline", points=_points(one, x, y), class_=f"line s{i % COLOURS}") for i, one in enumerate(thinned)]
    ends = ", ".join(f"{one.name} ends at {one.y[-1]:.4g}" for one in thinned if len(one.y))
    label = f"{y_label} (logarithmic)" if is_log else y_label
    return svg(HEIGHT, title, f"{y_label} over {x_label}: {ends}.", *axes(x, y, x_label, label), *drawn)


def histogram(
    values: NDArray[np.float64],
    edges: NDArray[np.float64],
    title: str,
    x_label: str,
    colour: int = 0,
    mark: float | None = None,
    height: int = 150,
) -> Element:
    """Draw how often values fall between edges, with their mean as a line and ``mark`` as a dashed one."""
    counts, _ = np.histogram(values, edges)
    bottom = height - 40.0
    x = Scale(float(edges[0]), float(edges[-1]), LEFT, RIGHT)
    y = Scale(0.0, float(max(counts.max(), 1)), bottom, TOP, is_whole=True)
    bars = [
        tag(
            "rect",
            x=x(float(low)),
            y=y(count),
            width=max(x(float(high)) - x(float(low)) - 1, 0.5),
            height=bottom - y(count),
            class_=f"bar s{colour % COLOURS}",
        )
        for low, high, count in zip(edges, edges[1:], counts.tolist(), strict=False)
        if count
    ]
    mean = float(values.mean())
    words = f"{len(values)} rounds, mean {mean:.4g} s"
    marks = _upright(x(mean), bottom, "mean")
    if mark is not None:
        marks += _upright(x(mark), bottom, "mark")
        words += f", closed form {mark:.4g} s"
    return svg(height, title, f"{words}.", *axes(x, y, x_label, "rounds"), *bars, *marks)


def _upright(at: float, bottom: float, kind: str) -> list[Element]:
    # The halo keeps a line apart from the bars that it crosses.
    return [tag("line", x1=at, x2=at, y1=TOP - 6, y2=bottom, class_=which) for which in ("halo", kind)]


def svg(height: float, title: str, description: str, *drawn: Element, width: float = WIDTH) -> Element:
    """Return a drawing with a name and a description for those who do not see it."""
    head = (tag("title", title), tag("desc", description))
    return tag(
        "svg", *head, *drawn, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=f"{title}. {description}"
    )


def axes(x: Scale, y: Scale, x_label: str, y_label: str) -> list[Element]:
    """Draw the grid, the numbers and the names of two axes."""
    drawn: list[Element] = []
    bottom, left, right = y.start, x.start, x.end
    for tick in y.ticks():
        drawn.append(tag("line", x1=left, x2=right, y1=y(tick), y2=y(tick), class_="grid"))
        drawn.append(tag("text", f"{tick:g}", x=left - 6, y=y(tick) + 4, class_="end"))
    for tick in x.ticks():
        drawn.append(tag("line", x1=x(tick), x2=x(tick), y1=bottom, y2=bottom + 4, class_="axis"))
        drawn.append(tag("text", f"{tick:g}", x=x(tick), y=bottom + 17, class_="middle"))
    middle = (y.start + y.end) / 2
    return [
        *drawn,
        tag("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"),
        tag("text", x_label, x=(left + right) / 2, y=bottom + 34, class_="middle"),
        tag("text", y_label, x=0, y=0, class_="middle", transform=f"translate(12 {middle:.1f}) rotate(-90)"),
    ]


def legend(labels: Sequence[str]) -> Element:
    """Return the key to the lines, in words that wrap."""
    items = []
    for i, label in enumerate(labels):
        sample = tag("polyline", points="0,6 26,6", class_=f"line s{i % COLOURS}")
        items.append(tag("li", tag("svg", sample, viewBox="0 0 26 12", aria_hidden="true"), label))
    return tag("ul", *items, class_="legend")


def bins(values: Sequence[NDArray[np.float64]], count: int = 28) -> NDArray[np.float64]:
    """Return edges that hold all values, equal for every histogram of a page."""
    top = max((float(one.max()) for one in values if len(one)), default=1.0)
    return np.linspace(0.0, top if top > 0 else 1.0, count + 1)


def _thin(series: Series) -> Series:
    finite = np.isfinite(series.x) & np.isfinite(series.y)
    x, y = series.x[finite], series.y[finite]
    kept = np.unique(np.linspace(0, len(x) - 1, POINTS_MAX).round().astype(int)) if len(x) > POINTS_MAX else slice(None)
    return Series(series.name, x[kept], y[kept])


def _points(series: Series, x: Scale, y: Scale) -> str:
    pairs = zip(series.x.tolist(), series.y.tolist(), strict=True)
    return " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in pairs if math.isfinite(b))
