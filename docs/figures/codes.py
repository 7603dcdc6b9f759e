"""Draws ``code-NAME.svg`` of the pages in ``docs/codes``: ``python docs/figures/codes.py``.

Left: who holds what, a row for each worker and a column for each partition; the fuller a square, the larger the factor,
and hollow squares are negative ones. Right: seconds per round on 30 workers against the work of each, when the tail of
the workers' times is the same for every load and when it grows with the load; closed forms, or 400 sampled rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from emuml.cluster import ShiftedExponential
from emuml.errors import UserError
from emuml.explanation.sampling import sample
from emuml.protocols.gradient_coding import (
    BalancedRepetition,
    Bernoulli,
    CyclicMDS,
    CyclicRepetition,
    Expander,
    FractionalRepetition,
    GraphCode,
    HeterogeneousCode,
    IgnoreStragglers,
    PartialWork,
    StochasticCode,
    VerifiedRepetition,
    YeAbbe,
)
from emuml.protocols.gradient_coding.codes import Code
from emuml.protocols.gradient_coding.codes.graphs import Petersen, RandomRegular
from emuml.report.charts import COLOURS, Series, lines
from emuml.report.markup import tag, to_text
from emuml.report.style import FIGURE
from emuml.theory.partial import partial_round_times

HOME = Path(__file__).parent
WORKERS = 30
SIDE = 300
LAWS = {
    "the tail does not grow": ShiftedExponential(shift_s=0.05, mean_s=0.5),
    "the tail grows with the load": ShiftedExponential(shift_s=0.05, mean_s=0.5, tail="scaled"),
}


class Picture(NamedTuple):
    """What to draw of a code: an example for so many workers, and its members by load; ``collect`` answers suffice."""

    example: Code
    workers: int
    by_load: Callable[[int], Code]
    collect: int | None = None


PICTURES = {
    "ignore-stragglers": Picture(IgnoreStragglers(), 12, lambda load: IgnoreStragglers(), 27),
    "fractional-repetition": Picture(FractionalRepetition(3), 12, FractionalRepetition),
    "balanced-repetition": Picture(BalancedRepetition(2), 11, lambda load: BalancedRepetition(load - 1)),
    "cyclic-repetition": Picture(CyclicRepetition(2), 12, lambda load: CyclicRepetition(load - 1)),
    "cyclic-mds": Picture(CyclicMDS(3, order="natural"), 12, lambda load: CyclicMDS(load - 1)),
    "graph": Picture(GraphCode(Petersen()), 15, lambda load: GraphCode(RandomRegular(load))),
    "expander": Picture(Expander(Petersen()), 10, lambda load: Expander(RandomRegular(load)), 24),
    "bernoulli": Picture(Bernoulli(3.0), 12, lambda load: Bernoulli(float(load)), 24),
    "stochastic": Picture(StochasticCode(3, absence=0.2), 13, lambda load: StochasticCode(load, absence=0.2), 24),
    "heterogeneous": Picture(
        HeterogeneousCode(3, (0.05, 0.4) * 6), 12, lambda load: HeterogeneousCode(load, (0.05, 0.4) * 15), 24
    ),
    "verified-repetition": Picture(
        VerifiedRepetition(3, 1), 12, lambda load: VerifiedRepetition(load, (load - 1) // 2)
    ),
    "partial-work": Picture(PartialWork(3), 12, PartialWork),
    "ye-abbe": Picture(YeAbbe(stragglers=1, blocks=2), 12, lambda load: YeAbbe(load - 2, 2, allow_large=True)),
}


def draw(name: str) -> str:
    """Return the figure of a code."""
    picture = PICTURES[name]
    is_ignoring = isinstance(picture.example, IgnoreStragglers)
    times = [*of_ignoring()] if is_ignoring else [*of_code(name, picture), *for_comparison(name)]
    label = "workers ignored" if is_ignoring else "load: equal shares of the data per worker"
    chart = lines(times, "Seconds per round", label, "seconds", from_zero=True)
    parts = [*matrix(picture), *_panel(chart, "Seconds per round, 30 workers", SIDE + 60, 410), *key(times)]
    background = tag("rect", width="100%", height="100%", style="fill: var(--back)")
    title = f"{name.replace('-', ' ').capitalize()}: who holds what, and how long rounds take"
    box = {"viewBox": f"0 0 800 {SIDE + 120}", "role": "img", "xmlns": "http://www.w3.org/2000/svg"}
    return to_text(tag("svg", tag("title", title), tag("style", FIGURE), background, *parts, **box)) + "\n"


def of_code(name: str, picture: Picture) -> Iterator[Series]:
    """Yield the times of a code under both laws, where it can be built."""
    for said, law in LAWS.items():
        yield Series(f"{name}, {said}", *times_of(picture.by_load, picture.collect, law))


def of_ignoring() -> Iterator[Series]:
    """Yield the times without a code against how many workers are ignored; its load is 1, so both laws are one."""
    law, ignored = LAWS["the tail does not grow"], np.arange(16)
    seconds = [sample(IgnoreStragglers(), WORKERS, law, collect=WORKERS - n).round_s.mean for n in ignored.tolist()]
    yield Series("ignoring the last workers, load 1", ignored.astype(float), np.array(seconds))
    exact_s = sample(FractionalRepetition(3), WORKERS, law).round_s.mean
    yield Series("fractional repetition, load 3, exact", np.array([0.0, 15.0]), np.full(2, exact_s), "mark")


def for_comparison(name: str) -> Iterator[Series]:
    """Yield the times of fractional repetition where the tail does not grow, and of waiting for all without a code."""
    law = LAWS["the tail does not grow"]
    if name != "fractional-repetition":
        yield Series("fractional repetition, the tail does not grow", *times_of(FractionalRepetition, None, law))
    uncoded_s = sample(IgnoreStragglers(), WORKERS, law).round_s.mean
    yield Series("waiting for all, uncoded", np.array([1.0, 6.0]), np.full(2, uncoded_s), "mark")


def times_of(by_load: Callable[[int], Code], collect: int | None, law: ShiftedExponential) -> tuple[np.ndarray, ...]:
    """Return loads and seconds per round of those members of a family that there are."""
    found: dict[float, float] = {}
    for load in range(1, 7):
        try:
            one = round_of(by_load(load), collect, law)
        except UserError:  # no such member for so many workers
            continue
        found[one[0]] = one[1]
    return np.array(sorted(found)), np.array([found[load] for load in sorted(found)])


def round_of(code: Code, collect: int | None, law: ShiftedExponential) -> tuple[float, float]:
    """Return load and seconds of a round of a code."""
    if isinstance(code, PartialWork):
        built = code.build(WORKERS)
        return built.load, partial_round_times(law, built, rounds=400, seed=1).mean_and_error_s[0]
    one = sample(code, WORKERS, law, seed=1, collect=collect)
    return one.load.mean, one.round_s.mean


def matrix(picture: Picture) -> Iterator[Element]:
    """Yield a square for each entry of the matrix ``B``."""
    code = picture.example.build(picture.workers, 1, None)
    rows = [(code.assignment(w), code.coefficients(w)) for w in range(code.workers)]
    step = SIDE / max(code.workers, code.partitions)
    most = max(abs(value) for _, values in rows for value in values)
    yield tag("text", f"{code.workers} workers, {code.partitions} partitions", x=30, y=24, style=_HEAD)
    yield tag(
        "text", "partitions across, workers down", x=30, y=f"{56 + code.workers * step:.1f}", style="font-size: 12px"
    )
    for w, (held, values) in enumerate(rows):
        for i, value in zip(held, values, strict=True):
            size = 0.85 * step * (abs(value) / most) ** 0.25  # so that the smallest are seen beside the largest
            at = {"x": f"{30 + (i + 0.5) * step - size / 2:.1f}", "y": f"{40 + (w + 0.5) * step - size / 2:.1f}"}
            kind = "bar s0" if value > 0 else "line s0"
            hollow = {} if value > 0 else {"style": "fill: none"}
            yield tag("rect", width=f"{size:.1f}", height=f"{size:.1f}", class_=kind, **at, **hollow)
    edge = {"x": 30, "y": 40, "width": f"{code.partitions * step:.1f}", "height": f"{code.workers * step:.1f}"}
    yield tag("rect", class_="axis", style="fill: none", **edge)


_HEAD = "font-size: 14px; font-weight: 600"


def _panel(drawing: Element, caption: str, x: float, width: float) -> list[Element]:
    _, _, inner, height = map(float, str(drawing.get("viewBox")).split())
    for name, value in (("x", x), ("y", 34), ("width", width), ("height", width * height / inner)):
        drawing.set(name, f"{value:.1f}")
    return [tag("text", caption, x=x + 8, y=24, style=_HEAD), drawing]


def key(series: list[Series]) -> Iterator[Element]:
    """Say which line is which."""
    for i, one in enumerate(series):
        y = SIDE + 32 + 22 * i
        style = one.style or f"s{i % COLOURS}"
        yield tag("polyline", points=f"{SIDE + 70},{y} {SIDE + 110},{y}", class_=f"line {style}")
        yield tag("text", one.name, x=SIDE + 122, y=y + 5, style="font-size: 13px")


if __name__ == "__main__":
    for each in PICTURES:
        (HOME / f"code-{each}.svg").write_text(draw(each), encoding="utf-8")
