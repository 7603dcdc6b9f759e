"""An explanation in words and tables: at equal work, in equal time, what wins, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterator

from emuml.comparison.words import NO_BREAK, Words
from emuml.explanation.codes import Explanation, Row
from emuml.explanation.sampling import Estimate
from emuml.report.facts import number, seconds

_TAILS = {"fixed": "does not grow with the load", "scaled": "grows with the load"}
_OTHER = {"fixed": "scaled", "scaled": "fixed"}


def tables(found: Explanation) -> list[Words]:
    """Return the tables: what a round is like, and what comes of it in equal time."""
    return [_rounds(found), _in_time(found)]


def verdict(found: Explanation) -> list[str]:
    """Return what is to conclude, a sentence each."""
    exact = [row for row in found.rows if row.found.exact == 1.0]
    said = []
    if exact:
        best = min(exact, key=lambda row: row.found.round_s.mean)
        said.append(f"Fastest of those without an error in any sampled round: {best.name}, {_s(best)} per round.")
        alike = [row.name for row in exact if row is not best and _may_be_as_fast(row, best)]
        if alike:
            said.append(f"As fast, or within two standard errors of it: {', '.join(alike)}.")
    best = min(found.rows, key=lambda row: row.gradient_s)
    said.append(
        f"Most gradient per second, errors aside: {best.name}, {number(best.gradients)} in {seconds(found.time_s)}."
    )
    if found.tail is not None:
        said.append(_of_model(found, _TAILS[_OTHER[found.tail]]))
    return said


def _may_be_as_fast(row: Row, best: Row) -> bool:
    """Return whether a sample does not tell the seconds of two codes apart."""
    one, other = row.found.round_s, best.found.round_s
    return one.mean - other.mean <= 2.0 * math.hypot(one.error, other.error)


def _of_model(found: Explanation, other_tail: str) -> str:
    """Say whether the ranking stands on what the load does to the tail of the workers' times."""
    first = min(found.rows, key=lambda row: row.found.round_s.mean)
    other = min(found.rows, key=lambda row: _other(row).mean)
    if first is other:
        return f"{first.name} has the fastest rounds whether or not the tail of the workers' times grows with the load."
    return (
        f"The fastest rounds are those of {first.name}; if the tail of the workers' times {other_tail}, they are those "
        f"of {other.name}."
    )


def notes(found: Explanation) -> Iterator[str]:
    """Yield what the figures leave out, what codes say of themselves, and which do not fit."""
    yield "Messages are taken to take no time, and nobody fails; ± is one standard error of a seeded sample."
    if found.no_floor:
        yield f"Floors of the loss are not known: {found.no_floor}."
    for row in found.rows:
        for remark in row.found.remarks:
            yield f"{row.name}: {remark}."
    for name, why in found.refused.items():
        yield f"{name} does not fit: {why}."


def _rounds(found: Explanation) -> Words:
    head = ["code", "load", "s per round", "error", "exact", "weight", "bias", "noise gain"]
    rows = [
        [
            row.name,
            number(row.found.load.mean),
            _estimate(row.found.round_s),
            _estimate(row.found.decode_error),
            f"{100 * row.found.exact:.4g}{NO_BREAK}%",
            number(row.found.factor),
            number(row.found.bias),
            number(row.found.noise_gain),
        ]
        for row in found.rows
    ]
    note = (
        "load: equal shares of the data that a worker computes in a round, 1 for all that are uncoded. A partition's "
        "weight is how much its gradient counts in the decoded sum, 1 in an exact one. error: squared distance of the "
        "weights from 1, per partition: 0 is the full gradient, 1 is as far off as no gradient; exact: share of the "
        "sampled rounds without error; weight: its mean, below 1 steps are shorter; bias: distance of the partitions' "
        "mean weights from 1, which more rounds do not average away; noise gain: by how much the rounding of answers "
        "grows in the sum, 1 for plain sums."
    )
    return Words("A round, at equal work", f"on the cluster of {found.name}", head, rows, note)


def _in_time(found: Explanation) -> Words:
    head = ["code", "gradients", "s per gradient", "loss floor"]
    if found.tail is not None:
        head.append(f"s per round if the tail {_TAILS[_OTHER[found.tail]]}")
    rows = []
    for row in found.rows:
        floor = "-" if row.floor is None else number(row.floor)
        cells = [row.name, number(row.gradients), number(row.gradient_s), floor]
        rows.append(cells if found.tail is None else [*cells, _estimate(_other(row))])
    caption = f"what {found.rounds} rounds of the first code take: {seconds(found.time_s)}"
    note = (
        "gradients: full gradients taken in, which are the rounds in that time, times the mean weight; loss floor: by "
        "how much the loss stays above its least value in the long run, at the workload's own step."
    )
    return Words("In equal time", caption, head, rows, note)


def _other(row: Row) -> Estimate:
    assert row.other_s is not None
    return row.other_s


def _s(row: Row) -> str:
    return f"{_estimate(row.found.round_s)}{NO_BREAK}s".replace(NO_BREAK, " ")


def _estimate(value: Estimate) -> str:
    shown = number(value.mean)
    return f"{shown}{NO_BREAK}±{NO_BREAK}{number(value.error)}" if value.error > 0 else shown
