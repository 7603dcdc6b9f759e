"""What may be claimed: who is fastest by how much, or that it cannot be told, as the intervals allow."""

from __future__ import annotations

from emuml.comparison.analysis import Comparison
from emuml.comparison.measures import ROUND, TARGET
from emuml.comparison.numbers import digits, interval, plus_minus
from emuml.comparison.ranking import Place, Ranking, ranked_by, ranking
from emuml.comparison.statistics import LEVEL, Paired
from emuml.comparison.words import joined

PERCENT = f"{LEVEL:.0%}".replace("%", " %")


def verdict(comparison: Comparison) -> str:
    """Return the conclusion: a sentence on the time to the target, or on that per round where there is no target."""
    found = ranking(comparison)
    sentences = [_sentence(comparison, found)]
    if comparison.plan.has_target and found.measure == ROUND:
        sentences.insert(0, f"Nobody reaches {target(comparison)} on every seed.")
    if not comparison.plan.has_target:
        other = comparison.plan.comparable[-1:]
        hint = "".join(f" (a held-out score would be one: --metric {name})" for name in other)
        sentences.insert(0, f"Objectives differ, so there is no common target{hint}.")
    if found.measure == TARGET and not _says_how_sure(found):  # one seed: only rounds can be tested
        sentences.append(_sentence(comparison, ranked_by(comparison, ROUND)))
    return " ".join(sentences)


def _sentence(comparison: Comparison, found: Ranking) -> str:
    what = "per round" if found.measure == ROUND else f"to {target(comparison)}"
    if not found.has_leader:
        return f"There is nothing to say of the time {what}."
    compared = [place for place in found.places[1:] if place.behind is not None and place.behind.paired is not None]
    said = _leads(found.leader, compared, what)
    missing = [place.behind.missing for place in found.places if place.behind is not None and place.behind.missing]
    corrected = f" (Holm over {found.tested} comparisons)" if found.tested > 1 and _says_how_sure(found) else ""
    return f"{said}{corrected}{''.join(f'; {text}' for text in missing)}."


def _leads(leader: str, others: list[Place], what: str) -> str:
    """Say who leads, and whether that can be told."""
    if not others:
        return f"{leader} alone has a time {what} on every seed"
    following = others[0]
    alike = [place for place in others if place.is_apart is False]
    unsure = [place for place in others if place.is_apart is None]
    if unsure:
        why = following.behind.dependence if following.behind is not None else ""
        reason = f"no interval: {why or 'one seed'}"
        return f"{leader} is fastest {what} on this seed: {_faster(following)} ({reason})"
    if not alike:
        return f"{leader} is fastest {what}: {_faster(following)}"
    if all(_is_equal(place) for place in alike):
        each = _paired(following).over.removesuffix("s")
        return f"{joined([leader, *(place.name for place in alike)])} take the same time {what} on every {each}"
    if len(others) == 1:
        return f"{leader} and {following.name} cannot be told apart at {PERCENT} in the time {what}"
    names = joined([place.name for place in alike], "or")
    return f"{leader} comes first, but cannot be told apart from {names} at {PERCENT} in the time {what}"


def _faster(place: Place) -> str:
    """Return by how much the leader is faster than who comes next."""
    compared = _paired(place)
    if compared.ratio is None:
        return f"{plus_minus(compared.difference)} s less than {place.name}, the next"
    return f"{interval(compared.ratio)} times as fast as {place.name}, the next"


def _is_equal(place: Place) -> bool:
    compared = _paired(place)
    return compared.constant and compared.difference.value == 0


def _paired(place: Place) -> Paired:
    assert place.behind is not None
    assert place.behind.paired is not None
    return place.behind.paired


def _says_how_sure(found: Ranking) -> bool:
    return any(place.is_apart is not None for place in found.places)


def target(comparison: Comparison) -> str:
    """Return the metric and what is to be reached in it, for all seeds one value or a range."""
    values = sorted(value for value in comparison.targets.values() if value is not None)
    shown = list(dict.fromkeys(map(digits, values)))
    span = "" if not shown else shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"
    return f"{comparison.plan.metric.replace('_', ' ')} {span}".strip()
