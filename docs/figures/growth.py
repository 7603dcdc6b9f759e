"""Measures and draws ``growth.svg``, the picture of the page of tiers: ``python docs/figures/growth.py``.

Seconds of a worker-round against workers, as ``benchmarks/growth.py`` measures them. What was measured last stands in
``growth.json``, of which the figure and the page's table are made; ``--draw`` draws it again without measuring.
"""

import json
import sys
from pathlib import Path

import numpy as np

from emuml.report.charts import COLOURS, Series, lines
from emuml.report.markup import tag, to_text
from emuml.report.style import FIGURE

FIGURE_PATH = Path(__file__).with_suffix(".svg")
NUMBERS_PATH = Path(__file__).with_suffix(".json")


def numbers() -> dict:
    """Return what was measured last: workers, names, and microseconds of a worker-round by name."""
    return json.loads(NUMBERS_PATH.read_text())


def measured() -> dict:
    """Measure, which takes minutes."""
    from benchmarks import growth

    found = growth.seconds()
    us = {growth.NAMES[name]: [float(f"{1e6 * value:.3g}") for value in values] for name, values in found.items()}
    return {"workers": list(growth.SIZES), "us": us}


def draw() -> str:
    """Return the figure."""
    given = numbers()
    workers = np.array(given["workers"], float)
    series = [Series(name, workers, np.array(values)) for name, values in given["us"].items()]
    chart = lines(series, "Growth", "workers (logarithmic)", "µs of CPU per worker-round", x_is_log=True)
    for name, value in (("x", 0), ("y", 0), ("width", 480), ("height", 300), ("overflow", "visible")):
        chart.set(name, str(value))
    background = tag("rect", width="100%", height="100%", style="fill: var(--back)")
    title = "Time of a worker-round against the number of workers, by tier and in SimPy"
    box = {"viewBox": "0 0 800 300", "role": "img", "xmlns": "http://www.w3.org/2000/svg"}
    return to_text(tag("svg", tag("title", title), tag("style", FIGURE), background, chart, *key(series), **box)) + "\n"


def key(series: list[Series]) -> list:
    """Say which line is which."""
    drawn = []
    for i, one in enumerate(series):
        y = 90 + 26 * i
        drawn.append(tag("polyline", points=f"474,{y} 504,{y}", class_=f"line s{i % COLOURS}"))
        drawn.append(tag("text", one.name, x=514, y=y + 5, style="font-size: 13px"))
    return drawn


def table() -> str:
    """Return the numbers as the page shows them."""
    given = numbers()
    rows = [["workers", *(f"{workers:,}" for workers in given["workers"])]]
    rows += [[name, *(f"{value:g}" for value in values)] for name, values in given["us"].items()]
    rows.insert(1, ["---", *("---:" for _ in given["workers"])])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    if sys.argv[1:] != ["--draw"]:
        sys.path.insert(0, str(Path(__file__).parents[2]))
        NUMBERS_PATH.write_text(json.dumps(measured(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    FIGURE_PATH.write_text(draw(), encoding="utf-8")
    print(table())
