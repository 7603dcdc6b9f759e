"""What may be claimed: a sentence on the time to the target and one on the seconds per round, as intervals allow."""

from __future__ import annotations

from collections.abc import Iterable

from emuml.comparison.analysis import Comparison, Pair
from emuml.comparison.measures import ROUND, TARGET
from emuml.comparison.numbers import digits, interval, plus_minus
from emuml.comparison.statistics import LEVEL, Paired, holm

_WHY_NONE = {"seeds": "one seed", "dependent rounds": "a round depends on the one before"}
PERCENT = f"{LEVEL:.0%}".replace("%", " %")


def verdict(comparison: Comparison) -> str:
    """Return the conclusion; nothing in it goes beyond the intervals, several contestants being corrected for."""
    claims = [pair for pair in comparison.pairs if pair.measure in (ROUND, TARGET)]
    proven, baseline = _proven(claims), comparison.plan.baseline.name
    sentences = [
        _sentence(f"{subject} against {baseline}", [pair for pair in claims if pair.measure == name], proven)
        for name, subject in ((TARGET, f"Time to {_target(comparison)}"), (ROUND, "Seconds per round"))
    ]
    if len(proven) > 1 and any(proven.values()):
        sentences.append(f"What is claimed holds together at {PERCENT} (Holm, {len(proven)} comparisons).")
    return " ".join(sentences)


def _proven(claims: Iterable[Pair]) -> dict[tuple[str, str], bool]:
    """Return which differences stand when all are claimed together; the ratio's interval must agree."""
    tested = [pair for pair in claims if pair.paired is not None and pair.paired.p_value is not None]
    adjusted = holm([float(pair.paired.p_value) for pair in tested])  # type: ignore[union-attr,arg-type]
    return {
        (pair.contestant, pair.measure): p_value < 1 - LEVEL and _ratio_agrees(pair.paired)
        for pair, p_value in zip(tested, adjusted, strict=True)
    }


def _ratio_agrees(paired: Paired | None) -> bool:
    return paired is not None and (paired.ratio is None or paired.ratio.excludes(1.0))


def _sentence(subject: str, pairs: list[Pair], proven: dict[tuple[str, str], bool]) -> str:
    parts = [f"{pair.contestant} {_claim(pair, proven.get((pair.contestant, pair.measure), False))}" for pair in pairs]
    return f"{subject}: {'; '.join(parts)}."


def _claim(pair: Pair, is_proven: bool) -> str:
    compared = pair.paired
    if compared is None:
        return f"cannot be compared ({pair.missing})"
    if compared.constant:
        same = f"the same on all {compared.pairs} {compared.over}"
        return same if compared.difference.value == 0 else f"{_factor(compared)}, {same}"
    if compared.p_value is None:
        return f"{_factor(compared)}, without an interval ({_WHY_NONE[compared.over]})"
    return _factor(compared) if is_proven else f"no difference can be told at {PERCENT}"


def _factor(compared: Paired) -> str:
    """Return how large it is against the baseline: a ratio, or a difference where there is none."""
    if compared.ratio is not None:
        return f"{interval(compared.ratio)} times"
    return f"{plus_minus(compared.difference)} s"


def _target(comparison: Comparison) -> str:
    return f"{comparison.plan.metric.replace('_', ' ')} {targets(comparison)}"


def targets(comparison: Comparison) -> str:
    """Return the targets of all seeds as one value or a range."""
    values = sorted({digits(value) for value in comparison.targets.values() if value is not None}, key=float)
    return "that nobody reached" if not values else values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"
