"""Draws ``sequential.svg`` of the page on sequential codes: ``python docs/figures/sequential.py``.

Left: what a round of M-SGC(2,3,4) works on, a row for each round and a column for each job; full squares are chunks of
a worker's own, hollow ones repeat what was missed or are coded. Right: seconds of 200 jobs on 20 workers, of whom
so many straggle in every other round, on the delays of the page.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from emuml.protocols.gradient_coding import FractionalRepetition, Uncoded
from emuml.protocols.sequential_coding import MultiplexedCoding, SelectiveRepetition
from emuml.protocols.sequential_coding.plain import Plain
from emuml.report.charts import Series, lines
from emuml.report.markup import tag, to_text
from emuml.report.style import FIGURE
from emuml.theory.sequential import sequential_rounds

FIGURE_PATH = Path(__file__).with_suffix(".svg")
SHARED = runpy.run_path(str(Path(__file__).with_name("codes.py")))
WORKERS, JOBS = 20, 200
BURST, WINDOW = 2, 3
ROUNDS = 9


def draw() -> str:
    """Return the figure."""
    times = list(of_codes())
    chart = lines(times, "Seconds of 200 jobs", "stragglers in every other round", "seconds", from_zero=True)
    side = SHARED["SIDE"]
    parts = [*schedule(side), *SHARED["_panel"](chart, "Seconds of 200 jobs, 20 workers", side + 60, 410)]
    parts += SHARED["key"](times)
    background = tag("rect", width="100%", height="100%", style="fill: var(--back)")
    title = "Sequential codes: what rounds work on, and how long jobs take with stragglers in bursts"
    box = {"viewBox": f"0 0 800 {side + 120}", "role": "img", "xmlns": "http://www.w3.org/2000/svg"}
    return to_text(tag("svg", tag("title", title), tag("style", FIGURE), background, *parts, **box)) + "\n"


def of_codes() -> Iterator[Series]:
    """Yield the seconds of each code against the number of stragglers."""
    codes = {
        "uncoded": Plain(Uncoded().build(WORKERS)),
        "fractional repetition, load 5": Plain(FractionalRepetition(5).build(WORKERS)),
        "SR-SGC(1,2,4), load 3": SelectiveRepetition(burst=1, window=2, stragglers=4).sequence(WORKERS),
        "M-SGC(1,2,4), load 1.67": MultiplexedCoding(burst=1, window=2, stragglers=4).sequence(WORKERS),
    }
    counts = np.arange(9)
    for name, code in codes.items():
        seconds = [sequential_rounds(delays(n), code, jobs=JOBS, slope_s=0.1).seconds for n in counts.tolist()]
        yield Series(name, counts.astype(float), np.array(seconds))


def delays(stragglers: int) -> np.ndarray:
    """Return seconds of each worker in each round."""
    random = np.random.default_rng(4)
    found = 1.0 + 0.1 * random.exponential(size=(JOBS + 10, WORKERS))
    for row in found[::2]:
        row[random.choice(WORKERS, size=stragglers, replace=False)] += 4.0
    return found


def schedule(side: int) -> Iterator[Element]:
    """Yield a square for each slot of each round."""
    step = side / ROUNDS
    yield tag("text", f"M-SGC({BURST},{WINDOW},4): rounds down, jobs across", x=30, y=24, style=SHARED["_HEAD"])
    for round in range(ROUNDS):
        for slot in range(min(WINDOW - 1 + BURST, round + 1)):
            own = slot < WINDOW - 1
            at = {"x": f"{30 + (round - slot + 0.1) * step:.1f}", "y": f"{40 + (round + 0.1) * step:.1f}"}
            size = {"width": f"{0.8 * step:.1f}", "height": f"{0.8 * step:.1f}"}
            yield tag(
                "rect", class_="bar s0" if own else "line s0", **at, **size, **({} if own else {"style": "fill: none"})
            )
    yield tag("rect", class_="axis", style="fill: none", x=30, y=40, width=side, height=side)


if __name__ == "__main__":
    FIGURE_PATH.write_text(draw(), encoding="utf-8")
