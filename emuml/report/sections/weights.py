"""What each partition of the data weighed in the decoded sums, of codes whose answers mix partitions, and the rounding.

Of codes in groups the section on coverage says the same in groups.
"""

from __future__ import annotations

from statistics import NormalDist
from xml.etree.ElementTree import Element

import numpy as np

from emuml.protocols.gradient_coding.codes import LinearCode
from emuml.protocols.gradient_coding.codes.seam import ROUNDING
from emuml.report.bars import Band, bars
from emuml.report.charts import Series, lines
from emuml.report.expected import linear_code
from emuml.report.facts import number
from emuml.report.figure import Column, Shown, by_round, grid
from emuml.report.markup import table, tag
from emuml.report.statistics import Floats, running_mean
from emuml.report.view import View

BAND = 0.99
"""Probability that all partitions of a run lie in their bands, if rounds are independent and partitions alike."""

_NOTE = (
    "The weight of a part of the data is how much its gradient counts in the decoded sum: 1 in an exact round, 0 if it "
    "is lost. Bars: its mean over the rounds. Dashed: the mean over all partitions; the band is what chance allows to "
    "one that is treated like the others. Red bars lie outside: their data count less or more, so gradients are biased."
)


def section(shown: Shown) -> Element | None:
    """Show runs of such codes: in a sentence where all rounds were exact, else with a bar for each partition."""
    views = [(view, code) for view in shown.logged if (code := linear_code(view.experiment)) is not None]
    found = [(view, weights_of(view, code)) for view, code in views]
    parts = [part for view, weights in found if weights is not None for part in _of_view(shown, view, weights)]
    if not parts:
        return None
    figures = [part for part in parts if part.tag == "figure"]
    said = [part for part in parts if part.tag != "figure"]
    is_inexact = any(weights is not None and _is_inexact(weights) for _, weights in found)
    note = [tag("p", _NOTE, class_="note")] if is_inexact else []
    return tag("section", tag("h2", "Weights of the data"), *said, *note, grid(figures))


def weights_of(view: View, code: LinearCode) -> Floats | None:
    """Return the weight of each partition in each round, shape (rounds, partitions); None if it was not logged."""
    sets = [int(row["covered_set"], 16) for row in view.metrics.rows if isinstance(row.get("covered_set"), str)]
    if not sets:
        return None
    known: dict[int, Floats] = {}
    for one in sets:
        if one not in known:
            received = np.array([w for w in range(code.workers) if one >> w & 1], np.int64)
            known[one] = code.rows.combined(received, code.decode(received).weights)
    return np.array([known[one] for one in sets])


def band_of(weights: Floats) -> Band:
    """Return what the mean weight of each partition is expected to be if all are treated alike."""
    rounds, partitions = weights.shape
    middle = np.full(partitions, weights.mean())
    reach = NormalDist().inv_cdf(1.0 - (1.0 - BAND) / (2 * partitions)) * float(weights.std()) / rounds**0.5
    return Band(middle, middle - reach, middle + reach)


def judged(weights: Floats) -> str:
    """Say how long decoded gradients are, and whose data count less or more than chance allows."""
    mean, band = weights.mean(axis=0), band_of(weights)
    said = f"Mean weight {number(float(mean.mean()))}"
    low, high = (np.flatnonzero(which) for which in (mean < band.low, mean > band.high))
    if not low.size and not high.size:
        return f"{said}; all partitions lie in the band that holds all of them with probability {BAND:g}."
    outside = [f"{_named(those)} {what}" for those, what in ((low, "less"), (high, "more")) if those.size]
    return f"{said}; {', and '.join(outside)} than chance allows."


def _named(those: np.ndarray) -> str:
    shown = ", ".join(map(str, those[:8].tolist()))
    more = f" and {len(those) - 8} more" if len(those) > 8 else ""
    return f"partition{'s' * (len(those) > 1)} {shown}{more} weigh{'s' * (len(those) == 1)}"


def _is_inexact(weights: Floats) -> bool:
    return bool((np.sum((weights - 1.0) ** 2, axis=1) > ROUNDING).any())


def _of_view(shown: Shown, view: View, weights: Floats) -> list[Element]:
    gain = _noise_gain(shown, view)
    if not _is_inexact(weights):
        text = f"every part of the data had weight 1 in each of the {len(weights)} rounds."
        return [tag("p", text.capitalize() if shown.is_single else f"{view.label}: {text}"), *gain]
    mean, band = weights.mean(axis=0), band_of(weights)
    caption = shown.of_run(view, "Mean weight of each partition")
    drawn = bars(
        mean, caption, "partition", "mean weight", band, top=1.05 * float(max(mean.max(), band.high.max(), 1.0))
    )
    none = np.zeros(0)
    key = [Series("mean of all", none, none, "mark"), Series("band of chance", none, none, "band-key")]
    numbers = _numbers(mean, weights, band, f"{caption}, of {len(weights)} rounds", shown.rows_max)
    return [shown.figure(caption, [drawn], numbers, key, judged(weights)), *gain]


def _numbers(mean: Floats, weights: Floats, band: Band, caption: str, rows_max: int) -> Element:
    order = np.sort(np.argsort(mean, kind="stable")[:rows_max])
    lost = np.mean(np.abs(weights) < 1e-12, axis=0)
    rows = [
        [str(i), f"{mean[i]:.4f}", f"{100 * lost[i]:.1f} %", f"{band.low[i]:.4f}", f"{band.high[i]:.4f}"]
        for i in order.tolist()
    ]
    shown = f"{len(order)} of {len(mean)} partitions" + (", the least ones" if len(order) < len(mean) else "")
    return table(["partition", "mean weight", "rounds lost", "band from", "to"], rows, f"{caption}: {shown}")


def _noise_gain(shown: Shown, view: View) -> list[Element]:
    """Draw how much the rounding of answers grew in each round, where that says something."""
    if "noise_gain" not in view.metrics:
        return []
    gain = view.metrics["noise_gain"]
    is_known = np.isfinite(gain)
    rounds, gain = view.metrics["round"][is_known], gain[is_known]
    if not gain.size or gain.max() < 2.0:
        return []
    series = [
        Series("noise gain of the round", rounds, gain, "s0 thin"),
        Series("mean so far", rounds, running_mean(gain), "s2"),
    ]
    caption = shown.of_run(view, "Noise gain")
    drawn = lines(series, caption, "round", "noise gain", from_zero=True)
    columns = [Column(one.name, rounds, one.y) for one in series]
    said = (
        f"Rounding of the answers, and any other independent noise in them, grew by up to {number(float(gain.max()))}."
    )
    return [shown.figure(caption, [drawn], by_round(columns, caption, shown.rows_max), series, said)]
