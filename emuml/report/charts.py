"""Line charts as small SVG elements, and what all drawings are made of.

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
LEFT, RIGHT, TOP, BOTTOM = 60, 380, 28, 210
POINTS_MAX = 400
COLOURS = 6


class Series(NamedTuple):
    """One line: a name and its points; ``style`` is a class of the style sheet, by default one after the other."""

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    style: str = ""


def level(name: str, value: float, x: NDArray[np.float64]) -> Series:
    """Return the dashed line of an expected value over the extent of ``x``."""
    ends = np.array([x.min(), x.max()]) if len(x) else np.zeros(0)
    return Series(name, ends, np.full(len(ends), value), "mark")


def styles(series: Sequence[Series]) -> list[str]:
    """Return the class of each line."""
    return [one.style or f"s{i % COLOURS}" for i, one in enumerate(series)]


def lines(
    series: Sequence[Series],
    title: str,
    x_label: str,
    y_label: str,
    *,
    from_zero: bool = False,
    top: float | None = None,
    x_from_zero: bool = True,
    may_log: bool = True,
    x_is_log: bool = False,
) -> Element:
    """Draw lines.

    The vertical axis begins at 0 if ``from_zero`` asks for it, and reaches to ``top``; otherwise it is logarithmic when
    values are positive, span more than a factor of four, and it ``may_log``. What is no finite number is not drawn, but
    the horizontal axis has room for it; a line of a single point is a dot. ``x_is_log`` makes that axis logarithmic,
    of positive values.
    """
    thinned = [_thin(one) for one in series]
    ys = [float(y) for one in thinned for y in one.y]
    is_log = bool(ys) and min(ys) > 0 and max(ys) > 4 * min(ys) and may_log and not from_zero
    x = scale_for(_extent(series), LEFT, RIGHT, is_log=x_is_log, from_zero=x_from_zero and not x_is_log)
    y = scale_for([*ys, *([] if top is None else [top])], BOTTOM, TOP, is_log=is_log, from_zero=from_zero)
    drawn = [
        _dot(one, x, y, style, i)
        if len(one.x) == 1
        else tag("polyline", points=points(one, x, y), class_=f"line {style}")
        for i, (one, style) in enumerate(zip(thinned, styles(series), strict=True))
    ]
    if not ys:
        drawn.append(tag("text", "nothing here is a finite number", x=(LEFT + RIGHT) / 2, y=120, class_="middle"))
    ends = ", ".join(_end(*pair, x_label) for pair in zip(series, thinned, strict=True)) or "no lines"
    label = f"{y_label} (logarithmic)" if is_log else y_label
    return svg(HEIGHT, title, f"{y_label} over {x_label}: {ends}.", *axes(x, y, x_label, label), *drawn)


def _extent(series: Sequence[Series]) -> list[float]:
    """Return the ends of all lines, with the points that are not drawn."""
    finite = [one.x[np.isfinite(one.x)] for one in series]
    return [float(end) for x in finite if len(x) for end in (x.min(), x.max())]


def _dot(one: Series, x: Scale, y: Scale, style: str, i: int) -> Element:
    """Draw a line of one point; later ones are smaller, so that all of those in one place are seen."""
    return tag("circle", cx=x(float(one.x[0])), cy=y(float(one.y[0])), r=max(6.0 - 1.5 * i, 2.0), class_=f"dot {style}")


def _end(given: Series, finite: Series, x_label: str) -> str:
    """Say where a line ends."""
    if not len(finite.x):
        return f"{given.name} has no finite number"
    if finite.x[-1] == given.x[-1]:
        return f"{given.name} ends at {finite.y[-1]:.4g}"
    return f"{given.name} is finite up to {x_label} {finite.x[-1]:.4g}, where it is {finite.y[-1]:.4g}"


def steps(name: str, values: NDArray[np.float64], style: str = "") -> Series:
    """Return the share of values that are at most ``x``, as a line of steps."""
    ordered = np.sort(values)
    at = np.linspace(0, len(ordered), min(len(ordered), POINTS_MAX // 2) + 1).round().astype(int)
    shares = at / len(ordered)
    places = ordered[at[1:] - 1]
    return Series(name, np.repeat(places, 2), np.column_stack((shares[:-1], shares[1:])).ravel(), style)


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
    return [
        *drawn,
        tag("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"),
        tag("text", x_label, x=(left + right) / 2, y=bottom + 34, class_="middle"),
        tag("text", y_label, x=2, y=11),  # above the axis, where it reads well and meets no number
    ]


def legend(series: Sequence[Series]) -> Element:
    """Return the key to the lines, in words that wrap; what has no finite point is not drawn and has no key."""
    items = []
    for one, style in zip(series, styles(series), strict=True):
        n_points = int((np.isfinite(one.x) & np.isfinite(one.y)).sum())
        if n_points == 0 and len(one.x):  # without any points it stands for something else than a line
            continue
        sample = tag("polyline", points="0,6 26,6", class_=f"line {style}")
        if n_points == 1:
            sample = tag("circle", cx=13, cy=6, r=4.5, class_=f"dot {style}")
        items.append(tag("li", tag("svg", sample, viewBox="0 0 26 12", aria_hidden="true"), one.name))
    return tag("ul", *items, class_="legend")


def _thin(series: Series) -> Series:
    finite = np.isfinite(series.x) & np.isfinite(series.y)
    x, y = series.x[finite], series.y[finite]
    if len(x) <= POINTS_MAX:
        return Series(series.name, x, y)
    # The least and the largest of each stretch: no peak is lost.
    stretches = np.array_split(np.arange(len(x)), POINTS_MAX // 2 - 1)
    kept = [0, len(x) - 1, *(one[pick(y[one])] for one in stretches for pick in (np.argmin, np.argmax))]
    index = np.unique(np.array(kept))
    return Series(series.name, x[index], y[index])


def points(series: Series, x: Scale, y: Scale) -> str:
    """Return the points of a line as SVG wants them."""
    pairs = zip(series.x.tolist(), series.y.tolist(), strict=True)
    return " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in pairs if math.isfinite(b))
