"""Draws the figures of the README from ``figures/numbers.json``: ``python papers/erasurehead/figures.py``.

``python papers/erasurehead/reproduce.py --figures`` makes the numbers anew and draws them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

if __package__ in (None, ""):  # as a script; its own folder would hide the standard library's modules
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from emuml.report.charts import BOTTOM, COLOURS, LEFT, RIGHT, TOP, Series, axes, lines, points, svg
from emuml.report.markup import tag, to_text
from emuml.report.scales import Scale, scale_for
from emuml.report.style import FIGURE

FOLDER = Path(__file__).with_name("figures")
NUMBERS = FOLDER / "numbers.json"
WIDTH, PANEL = 840, 410
Numbers = Mapping[str, Any]


def figure(title: str, height: float, *parts: Element) -> str:
    """Return a whole SVG file.

    The reader's colour scheme may differ from that of the page around, so a figure has its own background.
    """
    background = tag("rect", width="100%", height="100%", style="fill: var(--back)")
    box = {"viewBox": f"0 0 {WIDTH} {height:g}", "role": "img", "xmlns": "http://www.w3.org/2000/svg"}
    return to_text(tag("svg", tag("title", title), tag("style", FIGURE), background, *parts, **box)) + "\n"


def panel(drawing: Element, caption: str, x: float, y: float, width: float = PANEL) -> list[Element]:
    """Place a drawing under its caption."""
    _, _, inner, height = map(float, str(drawing.get("viewBox")).split())
    for name, value in (("x", x), ("y", y + 22), ("width", width), ("height", width * height / inner)):
        drawing.set(name, f"{value:.1f}")
    return [tag("text", caption, x=x + 8, y=y + 14, style="font-size: 14px; font-weight: 600"), drawing]


def key(
    names: Sequence[str], x: float, y: float, step: float = 150, kind: str = "line", first: int = 0
) -> list[Element]:
    """Say which colour is which, in a row; ``first`` is the number of its first colour."""
    drawn = []
    for i, name in enumerate(names):
        at, style = x + step * i, f"s{(first + i) % COLOURS}"
        if kind == "line":
            drawn.append(tag("polyline", points=f"{at},{y} {at + 28},{y}", class_=f"line {style}"))
        else:
            drawn.append(tag("rect", x=at + 8, y=y - 6, width=12, height=12, class_=f"bar {style}"))
        drawn.append(tag("text", name, x=at + 34, y=y + 4))
    return drawn


LOSS_SCHEMES = ("uncoded", "ignore 3", "FRC r=3", "AGC r=3 c=15", "AGC covered", "AGC r=3 c=15, wait-all")
LOSS_SETS = ("amazon-access", "covertype", "kc-house", "two-gaussians:3600x100")

LOSS_UNTIL_S = {"two-gaussians:3600x100": 40.0}
"""Nothing more happens later."""


def drawn_line(name: str, curve: Mapping[str, Sequence[float]], limit_s: float) -> Series:
    """Return the line of a scheme up to a time."""
    time_s, values = np.array(curve["time_s"]), np.array(curve["loss"])
    return Series(name, time_s[time_s <= limit_s], values[time_s <= limit_s])


def loss(numbers: Numbers) -> str:
    """Draw loss against time on each data set; the twin where that is what was trained on."""
    parts: list[Element] = []
    for i, name in enumerate(LOSS_SETS):
        curves = numbers.get(name) or numbers[f"{name}-twin"]
        shown = name if name in numbers else f"{name}-twin"
        series = [drawn_line(one, curves[one], LOSS_UNTIL_S.get(name, np.inf)) for one in LOSS_SCHEMES]
        drawing = lines(series, shown, "seconds", "training loss")
        parts += panel(drawing, shown, 430 * (i % 2), 285 * (i // 2))
    parts += key(LOSS_SCHEMES[:3], 40, 590, 250) + key(LOSS_SCHEMES[3:], 40, 615, 250, first=3)
    return figure("Training loss over seconds by scheme, on four data sets", 635, *parts)


CLOCKS = ("logged", "cancel", "skip-stale", "carry-over", "wait-all")


def rounds(numbers: Numbers) -> str:
    """Draw seconds per round by scheme, and by what becomes of stragglers."""
    times = numbers["trace"]
    drawing = grouped(times, CLOCKS, "Seconds per round", "seconds per round")
    said = ["the program's clock", *CLOCKS[1:]]
    return figure(
        "Seconds per round on the built-in delays by scheme and semantics",
        10 + 22 + grouped_height(len(times), len(CLOCKS), 6) + 6,
        *key(said, 40, 16, 155, "bar"),
        *panel(drawing, "", 0, 10, WIDTH),
    )


def loads(numbers: Numbers) -> str:
    """Draw seconds per round by scheme, under both models of load."""
    times = numbers["loads"]
    parts: list[Element] = []
    for i, shift_s in enumerate(("0.05", "0.5")):
        laws = (f"A {shift_s}", f"B {shift_s}")
        drawing = grouped(times, laws, f"Shift {shift_s} s", "seconds per round", width=PANEL, bar=7)
        parts += panel(drawing, f"shift {shift_s} s", 430 * i, 30)
    height = 30 + 22 + grouped_height(len(times), 2, 7) + 6
    names = ("model A: delay independent of load", "model B: delay scaled by load")
    return figure("Seconds per round under both models of load", height, *key(names, 40, 16, 300, "bar"), *parts)


def sizes(numbers: Numbers) -> str:
    """Draw the gain over uncoded against the number of workers, emulated and in theory."""
    measured, theory = numbers["sizes"]["measured"], numbers["sizes"]["theory"]
    workers = sorted({int(name.rpartition("/")[2]) for name in theory})
    rules = [rule for rule in dict.fromkeys(name.rpartition("/")[0] for name in theory) if rule not in ("uncoded",)]
    x = np.array(workers, np.float64)
    series, dots = [], []
    scale_y = Scale(0.0, 16.0, BOTTOM, TOP)
    scale_x = scale_for(x.tolist(), LEFT, RIGHT, is_log=True)
    for i, rule in enumerate(rules):
        gains = np.array([theory[f"uncoded/{n}"] / theory[f"{rule}/{n}"] for n in workers])
        series.append(Series(rule, x, gains))
        dots.append(tag("polyline", points=points(series[-1], scale_x, scale_y), class_=f"line s{i}"))
        for n in workers:
            gain = measured[f"uncoded/{n}"][0] / measured[f"{rule}/{n}"][0]
            dots.append(tag("circle", cx=scale_x(n), cy=scale_y(gain), r=5.0 - i, class_=f"dot s{i}"))
    ends = ", ".join(f"{one.name} ends at {one.y[-1]:.3g}" for one in series)
    head = axes(scale_x, scale_y, "workers (logarithmic)", "gain over uncoded, seconds per round")
    drawing = svg(250, "Gain against workers", f"{ends}.", *head, *dots)
    names = {"half": "first half of the workers", "nine tenths": "first nine tenths", "AGC r=3": "AGC r=3 c=n/2"}
    shown = [f"{names.get(rule, rule)}" for rule in rules]
    said = tag(
        "text", "Lines: closed forms. Dots: emulated.", x=520, y=60 + 30 * len(shown) + 10, style="font-size: 13px"
    )
    parts = panel(drawing, "Gain over uncoded", 0, 6, 480)
    for i, name in enumerate(shown):
        y = 60 + 30 * i
        parts.append(tag("polyline", points=f"520,{y} 560,{y}", class_=f"line s{i}"))
        parts.append(tag("text", name, x=572, y=y + 5, style="font-size: 13px"))
    return figure("Gain over uncoded rounds against the number of workers", 340, *parts, said)


def grouped_height(groups: int, bars: int, bar: float) -> float:
    """Return how high a drawing of grouped bars is."""
    return groups * (bars * bar + 8) + 44


def grouped(
    values: Mapping[str, Mapping[str, float]],
    shown: Sequence[str],
    title: str,
    x_label: str,
    width: float = WIDTH,
    bar: float = 6,
) -> Element:
    """Draw horizontal bars, a group for each name and a bar for each of what is shown of it."""
    left, right = 110.0, width - 20.0
    height = grouped_height(len(values), len(shown), bar)
    most = max(each[one] for each in values.values() for one in shown)
    x = Scale(0.0, most, left, right)
    drawn: list[Element] = []
    bottom = height - 40.0
    for tick in x.ticks():
        drawn.append(tag("line", x1=x(tick), x2=x(tick), y1=4.0, y2=bottom, class_="grid"))
        drawn.append(tag("text", f"{tick:g}", x=x(tick), y=bottom + 17, class_="middle"))
    for i, (name, each) in enumerate(values.items()):
        top = i * (len(shown) * bar + 8) + 6
        drawn.append(tag("text", name, x=left - 8, y=top + len(shown) * bar / 2 + 4, class_="end"))
        for j, one in enumerate(shown):
            size = {"width": x(each[one]) - left, "height": bar - 1}
            drawn.append(tag("rect", x=left, y=top + j * bar, **size, class_=f"bar s{j}"))
    drawn.append(tag("text", x_label, x=(left + right) / 2, y=bottom + 34, class_="middle"))
    words = "; ".join(
        f"{name}: {', '.join(f'{one} {each[one]:.3g}' for one in shown)}" for name, each in values.items()
    )
    return svg(height, title, f"{words}.", *drawn, width=width)


FIGURES: dict[str, Callable[[Numbers], str]] = {"loss": loss, "rounds": rounds, "loads": loads, "sizes": sizes}
"""Figures by name: ``figures/NAME.svg``."""


def read() -> dict[str, Any]:
    """Return the numbers that are kept."""
    found: dict[str, Any] = json.loads(NUMBERS.read_text(encoding="utf-8")) if NUMBERS.is_file() else {}
    return found


def keep(numbers: Numbers) -> None:
    """Keep numbers beside those of other parts, and draw all figures."""
    FOLDER.mkdir(exist_ok=True)
    kept = read() | dict(numbers)
    text = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(kept.items()))
    NUMBERS.write_text("{\n" + text + "\n}\n", encoding="utf-8")
    for name, draw in FIGURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(kept), encoding="utf-8")


if __name__ == "__main__":
    keep({})
