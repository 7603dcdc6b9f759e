"""Which groups of workers, and so which parts of the data, were decoded: in each round, and over the run."""

from __future__ import annotations

from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from emuml.protocols.gradient_coding.codes import GroupCode
from emuml.report.bars import Band, bars
from emuml.report.charts import Series, level, lines
from emuml.report.expected import are_alike, group_code, linear_code
from emuml.report.figure import Column, Shown, by_round, grid
from emuml.report.markup import table, tag
from emuml.report.statistics import Floats, binomial_band, running_mean
from emuml.report.view import View
from emuml.theory import covered_chances

BAND = 0.99
"""Probability that all groups of a run lie in their bands, if every set of workers is equally likely to be first."""

_NOTE = (
    "Dashed: what to expect if every set of workers is equally likely to answer first, as it is when workers are "
    "equally fast and start afresh. Where a run differs, some workers stay slower, and their data count less."
)


class Counts(NamedTuple):
    """In how many of ``rounds`` each group was decoded, shape (groups,)."""

    decoded: Floats
    rounds: int


def section(shown: Shown) -> Element | None:
    """Show coverage of runs that have groups; in words when nothing was ever missing."""
    views = [view for view in shown.logged if _has_groups(view)]
    if not views:
        return None
    partly = [view for view in views if not is_complete(view)]
    said = [tag("p", complete(shown, view)) for view in views if is_complete(view)]
    figures = [part for view in partly for part in _of_view(shown, view)]
    note = [tag("p", _NOTE, class_="note")] if partly else []
    return tag("section", tag("h2", "Coverage"), *said, *note, grid(figures))


def _has_groups(view: View) -> bool:
    return "covered" in view.metrics and "groups" in view.metrics and linear_code(view.experiment) is None


def is_complete(view: View) -> bool:
    """Tell whether every group was decoded in every round."""
    covered, groups = _logged(view, "covered"), _logged(view, "groups")
    return bool((covered == groups).all())


def complete(shown: Shown, view: View) -> str:
    """Say that nothing was missing."""
    groups = _logged(view, "groups")
    count = f"{groups[-1]:g} " if np.ptp(groups) == 0 else ""
    what = f"all {count}groups answered in each of the {len(groups)} rounds"
    return f"{what.capitalize() if shown.is_single else f'{view.label}: {what}'}: no part of the data was ever missing."


def decoded_counts(view: View, groups: int) -> Counts | None:
    """Count the rounds in which each group was decoded; None for runs that did not log it."""
    sets = [int(row["covered_set"], 16) for row in view.metrics.rows if isinstance(row.get("covered_set"), str)]
    if not sets:
        return None
    width = (groups + 7) // 8
    packed = np.frombuffer(b"".join(one.to_bytes(width, "little") for one in sets), np.uint8).reshape(len(sets), width)
    flags = np.unpackbits(packed, axis=1, bitorder="little")[:, :groups]
    return Counts(flags.sum(axis=0).astype(np.float64), len(sets))


def band_of(code: GroupCode, rounds: int) -> Band:
    """Return the shares that groups are expected to reach and what chance allows; counts of rounds are binomial."""
    chances = covered_chances(code)
    error = (1.0 - BAND) / code.n_groups  # shared by the groups, so that it holds for all of them at once
    limits = {chance: binomial_band(rounds, chance, error) for chance in set(chances.tolist())}
    low, high = (np.array([limits[chance][i] for chance in chances.tolist()]) / rounds for i in (0, 1))
    return Band(chances, low, high)


def _of_view(shown: Shown, view: View) -> list[Element]:
    code = group_code(view.experiment)
    parts = [_over_rounds(shown, view, code)]
    if code is None:
        return parts
    counts = decoded_counts(view, code.n_groups)
    if counts is None:
        whose = "This run" if shown.is_single else view.label
        return [
            *parts,
            tag("p", f"{whose} did not log which groups were decoded, so it is not known which data were lost."),
        ]
    return [*parts, _over_groups(shown, view, code, counts)]


def _over_rounds(shown: Shown, view: View, code: GroupCode | None) -> Element:
    rounds = _logged(view, "round")
    share = _logged(view, "covered") / _logged(view, "groups")
    series = [
        Series("share of groups decoded", rounds, share, "s0 thin"),
        Series("mean so far", rounds, running_mean(share), "s2"),
    ]
    columns = [
        Column("decoded", rounds, _logged(view, "covered")),
        *(Column(one.name, rounds, one.y) for one in series),
    ]
    if code is not None and are_alike(view.experiment):
        expected = float(covered_chances(code).mean())
        series.append(level(f"expected, {expected:.4g}", expected, rounds))
    caption = shown.of_run(view, "Groups decoded in each round")
    drawn = lines(series, caption, "round", "share of groups", from_zero=True, top=1.0)
    return shown.figure(caption, [drawn], by_round(columns, caption, shown.rows_max), series)


def _over_groups(shown: Shown, view: View, code: GroupCode, counts: Counts) -> Element:
    band, shares = band_of(code, counts.rounds), counts.decoded / counts.rounds
    caption = shown.of_run(view, "Rounds in which each group was decoded")
    drawn = bars(shares, caption, "group", "share of rounds", band)
    none = np.zeros(0)
    key = [Series("expected", none, none, "mark"), Series("band of chance", none, none, "band-key")]
    numbers = _numbers(code, counts, band, caption, shown.rows_max)
    return shown.figure(caption, [drawn], numbers, key, judged(code, counts, band))


def judged(code: GroupCode, counts: Counts, band: Band) -> str:
    """Say which groups are decoded less or more often than chance allows."""
    shares = counts.decoded / counts.rounds
    outside = {
        "never decoded": (counts.decoded == 0) & (band.low > 0),
        "decoded less often than chance allows": (counts.decoded > 0) & (shares < band.low),
        "decoded more often than chance allows": shares > band.high,
    }
    found = [f"{_groups(code, np.flatnonzero(which))} {what}" for what, which in outside.items() if which.any()]
    if not found:
        return f"All groups lie in the band that holds all of them with probability {BAND:g}."
    return f"{'; '.join(found)}: parts of the data count less than others, and the gradients are biased."


def _groups(code: GroupCode, which: NDArray[np.int64]) -> str:
    named = [f"{j} (partitions {_partitions(code, j)})" for j in which[:8].tolist()]
    more = f" and {len(which) - 8} more" if len(which) > 8 else ""
    return f"Group{'s' if len(which) > 1 else ''} {', '.join(named)}{more} {'were' if len(which) > 1 else 'was'}"


def _partitions(code: GroupCode, group: int) -> str:
    first = group * code.block
    return f"{first}" if code.block == 1 else f"{first}-{first + code.block - 1}"


def _numbers(code: GroupCode, counts: Counts, band: Band, caption: str, rows_max: int) -> Element:
    order = np.argsort(counts.decoded, kind="stable")[:rows_max]
    order.sort()
    rows = []
    for j in order.tolist():
        workers = f"{code.groups[j][0]}-{code.groups[j][-1]}" if len(code.groups[j]) > 1 else str(code.groups[j][0])
        limits = [f"{round(counts.rounds * float(one[j]))}" for one in (band.low, band.high)]
        row = [str(j), workers, _partitions(code, j), f"{counts.decoded[j]:g}"]
        rows.append([*row, f"{counts.rounds * band.value[j]:.1f}", *limits])
    head = ["group", "workers", "partitions", "rounds decoded", "expected", "band from", "to"]
    shown = f"{len(order)} of {code.n_groups} groups" + (", those decoded least" if len(order) < code.n_groups else "")
    return table(head, rows, f"{caption}, of {counts.rounds} rounds: {shown}")


def _logged(view: View, name: str) -> Floats:
    """Return a column without the rows before the first round."""
    return view.metrics[name][np.isfinite(view.metrics["covered"])]
