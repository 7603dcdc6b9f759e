"""Histograms and bars as small SVG elements; the rules of :mod:`emuml.report.charts` hold."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from emuml.report.charts import BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, Series, axes, points, svg
from emuml.report.markup import tag
from emuml.report.scales import Scale
from emuml.report.statistics import Floats

BARS_MAX = 150


def bins(values: Floats) -> Floats:
    """Return edges of 8 to 30 bars of one width that hold all values."""
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-9 * max(abs(high), 1e-300):
        return np.linspace(0.9 * low, 1.1 * high, 8) if high > 0 else np.linspace(0.0, 1.0, 8)
    return np.linspace(low, high, int(np.clip(len(values) ** 0.5, 8, 30)) + 1)


def histogram(
    values: Floats,
    edges: Floats,
    title: str,
    x_label: str,
    colour: int = 0,
    mark: float | None = None,
    expected: Floats | None = None,
    height: int = HEIGHT,
) -> Element:
    """Draw how often values fall between edges, with their mean as a line and ``mark`` as a dashed one.

    ``expected`` counts, one for each pair of edges, are drawn as a line over the bars.
    """
    counts, _ = np.histogram(values, edges)
    bottom = height - 40.0
    x = Scale(float(edges[0]), float(edges[-1]), LEFT, RIGHT)
    most = max(counts.max(), 1) if expected is None else max(counts.max(), expected.max(), 1)
    y = Scale(0.0, float(most), bottom, TOP, is_whole=True)
    drawn = [
        _bar(x(float(low)), x(float(high)), y(count), bottom, f"bar s{colour % COLOURS}")
        for low, high, count in zip(edges, edges[1:], counts.tolist(), strict=False)
        if count
    ]
    mean = float(values.mean())
    words = f"{len(values)} rounds, mean {mean:.4g} s"
    drawn += _upright(x(mean), bottom, "mean")
    if expected is not None:
        line = Series("", (edges[1:] + edges[:-1]) / 2, expected)
        drawn += [tag("polyline", points=points(line, x, y), class_=f"line {kind}") for kind in ("halo", "theory")]
    if mark is not None:
        drawn += _upright(x(mark), bottom, "mark")
        words += f", closed form {mark:.4g} s"
    return svg(height, title, f"{words}.", *axes(x, y, x_label, "rounds"), *drawn)


class Band(NamedTuple):
    """What each bar is expected to reach: a value, and the limits that chance allows; three arrays."""

    value: Floats
    low: Floats
    high: Floats

    def excludes(self, values: Floats) -> NDArray[np.bool_]:
        """Return which values lie outside."""
        return (values < self.low) | (values > self.high)


def bars(values: Floats, title: str, x_label: str, y_label: str, band: Band | None = None, top: float = 1.0) -> Element:
    """Draw a bar for each share, and the band around its expected value; bars outside have another colour.

    The axis ends at ``top``. Of more than ``BARS_MAX`` shares each bar is the least of its neighbours.
    """
    n_bars = min(len(values), BARS_MAX)
    ends = np.linspace(0, len(values), n_bars + 1).round().astype(int).tolist()
    x = Scale(-0.5, len(values) - 0.5, LEFT, RIGHT, is_whole=True)
    y = Scale(0.0, top, BOTTOM, TOP)
    outside = np.zeros(len(values), bool) if band is None else band.excludes(values)
    drawn, marks = [], []
    for first, last in pairwise(ends):
        i = first + int(np.argmin(values[first:last]))
        left, right = x(first - 0.5), x(last - 0.5)
        # A bar of no height would be overlooked, and nothing matters more.
        height = min(y(float(values[i])), BOTTOM - 2)
        drawn.append(_bar(left, right, height, BOTTOM, "bar bad" if outside[i] else "bar s0"))
        if band is not None:
            marks += _limits(left, right, *(y(float(one[i])) for one in band))
    words = f"{len(values)} shares from {values.min():.4g} to {values.max():.4g}"
    words += f", {outside.sum()} outside of their bands." if band is not None else "."
    return svg(HEIGHT, title, words, *axes(x, y, x_label, y_label), *drawn, *marks)


def _limits(left: float, right: float, middle: float, low: float, high: float) -> list[Element]:
    box = tag("rect", x=left, y=high, width=right - left, height=max(low - high, 1.0), class_="band")
    return [box, tag("line", x1=left, x2=right, y1=middle, y2=middle, class_="mark")]


def _bar(left: float, right: float, top: float, bottom: float, kind: str) -> Element:
    gap = min(1.0, 0.2 * (right - left))
    return tag("rect", x=left, y=top, width=max(right - left - gap, 0.5), height=bottom - top, class_=kind)


def _upright(at: float, bottom: float, kind: str) -> list[Element]:
    # The halo keeps a line apart from the bars that it crosses.
    return [tag("line", x1=at, x2=at, y1=TOP - 6, y2=bottom, class_=which) for which in ("halo", kind)]
