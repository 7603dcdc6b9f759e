"""Trainings that end at a time: the first end of a round at or after a limit is the last.

How many rounds that takes is a matter of chance, unless the delays are none: it is the first passage of a renewal
process where rounds have nothing to do with each other. Trainings are computed or simulated up to their ends, each
with its own number of rounds. Of those too long for that the first rounds are, and their mean and variance say the rest
(Cox, Renewal Theory, 1962, sections 3.3 and 5.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np

from emuml.experiment.forecast import (
    LEAST_TRAININGS,
    SIMULATED_ENTRIES_MAX,
    SIMULATED_ROUNDS,
    Forecast,
    certain_delays,
    computed_rounds,
    drain_s,
    drawing,
    drawn,
    rate_of,
    simulated_rounds,
    source,
    spread_of,
)
from emuml.experiment.training import Floats, Range, Traffic, Training
from emuml.streams import generator
from emuml.theory import RoundEnds

MOST_TRAININGS = 1_000
_PROBED = 16
_NORMAL = 1.96


def until(training: Training, limit_s: float) -> Forecast | None:
    """Return the forecast of a training that ends at a time, or None if it ends by its rounds or never.

    Parameters
    ----------
    training : Training
        With the most rounds that it may have.
    limit_s : float
        Seconds from the start.
    """
    some = min(training.rounds, computed_rounds(training))
    delays = certain_delays(training, min(_PROBED, some))
    if delays is not None:
        return _certain(training, limit_s, some)
    draws = generator(training.roster.seed, "", "plan")
    most = simulated_rounds(training)
    expected = _expected(training.ends(drawn(training, draws, min(_PROBED, most, training.rounds))), limit_s)
    if min(expected, training.rounds) > most:
        detail = f"{LEAST_TRAININGS} simulated trainings of {most:,} rounds"
        return _passage(training, limit_s, _first_rounds(training, draws, most), "simulation", detail)
    trainings = _affordable(training, min(expected, training.rounds))
    found = list(_simulated(training, limit_s, draws, trainings, ceil(1.3 * expected) + 4))
    if all(len(each.sent) == training.rounds for each in found):
        return None
    return _ended(training, found, "simulation", f"{trainings:,} simulated trainings until their ends")


def _expected(found: RoundEnds, limit_s: float) -> float:
    """Return about how many rounds it takes, as the first ones have it."""
    round_s = float(found.ended_s[-1]) / len(found.ended_s)
    return limit_s / round_s + 1.0 if round_s else np.inf


def _affordable(training: Training, rounds: float) -> int:
    entries = SIMULATED_ENTRIES_MAX // training.workers
    return max(min(int(min(SIMULATED_ROUNDS, entries) / rounds), MOST_TRAININGS), LEAST_TRAININGS)


# Up to the end


def _certain(training: Training, limit_s: float, most: int) -> Forecast | None:
    rounds = min(_PROBED, most)
    while True:
        delays = certain_delays(training, rounds)
        assert delays is not None
        found = training.ends(delays)
        if found.ended_s[-1] >= limit_s or rounds == most:
            break
        if found.ended_s[-1] == 0.0 and not hasattr(training.law, "extent"):
            return None  # time stands still
        rounds = ceil(min(max(2 * rounds, 1.02 * _expected(found, limit_s)), most))
    if found.ended_s[-1] >= limit_s:
        found = _cut(training, delays, found, limit_s)
        return _ended(training, [found], "exact", f"{source(training)}, round by round until the end")
    detail = f"{most:,} rounds of {source(training)}"
    return None if most == training.rounds else _passage(training, limit_s, [found], "estimate", detail)


def _simulated(
    training: Training, limit_s: float, draws: np.random.Generator, trainings: int, rounds: int
) -> Iterator[RoundEnds]:
    """Yield simulated trainings up to their ends; most take fewer rounds than ``rounds``."""
    for _ in range(trainings):
        of = drawing(training, draws)
        delays = of(0, min(rounds, training.rounds))
        found = training.ends(delays)
        while found.ended_s[-1] < limit_s and len(delays) < training.rounds:
            more = of(len(delays), min(len(delays), training.rounds - len(delays)))
            delays = np.concatenate([delays, more])
            found = training.ends(delays)
        yield _cut(training, delays, found, limit_s)


def _cut(training: Training, delays: Floats, found: RoundEnds, limit_s: float) -> RoundEnds:
    """Return a training up to the first end of a round at or after the limit."""
    rounds = int(np.searchsorted(found.ended_s, limit_s)) + 1
    return training.ends(delays[:rounds]) if rounds < len(delays) else found


def _ended(training: Training, found: list[RoundEnds], basis: str, detail: str) -> Forecast:
    rounds = np.array([len(each.sent) for each in found])
    sent = np.zeros((len(found), int(rounds.max())))
    for row, each in zip(sent, found, strict=True):
        row[: len(each.sent)] = each.sent
    asked = training.workers * (rounds[:, None] > np.arange(sent.shape[1])).mean(axis=0)
    return Forecast(
        rounds=_interval(rounds),
        duration_s=_interval([each.ended_s[-1] for each in found]),
        drain_s=drain_s(training, *found),
        questions=Traffic(_interval(training.workers * rounds), asked),
        answers=Traffic(_interval(sent.sum(axis=1)), sent.mean(axis=0)),
        basis=basis,
        questions_basis=basis,
        answers_basis=basis,
        detail=detail,
        answered=np.concatenate([each.answered for each in found]),
    )


def _interval(values: object) -> Range:
    """Return the mean of values and where one more lies with 95 %: between two of them, if there are enough."""
    ordered = np.sort(np.asarray(values, np.float64))
    mean, outside = float(ordered.mean()), int(0.025 * (len(ordered) + 1))
    if outside:
        return Range(mean, min(float(ordered[outside - 1]), mean), max(float(ordered[-outside]), mean))
    reach = 2.1 * float(ordered.std(ddof=1)) if len(ordered) > 1 else 0.0  # Student's t with 19 degrees of freedom
    return Range(mean, mean - reach, mean + reach)


# Beyond what is simulated


def _first_rounds(training: Training, draws: np.random.Generator, rounds: int) -> list[RoundEnds]:
    return [training.ends(drawn(training, draws, rounds)) for _ in range(LEAST_TRAININGS)]


def _passage(training: Training, limit_s: float, found: list[RoundEnds], basis: str, detail: str) -> Forecast | None:
    """Return the forecast of a long training from its first rounds."""
    ended_s, sent = np.array([each.ended_s for each in found]), np.array([each.sent for each in found], np.float64)
    known, round_s, variance = ended_s.shape[1], rate_of(ended_s), spread_of(ended_s)
    if round_s == 0.0:
        return None
    times_s = np.diff(ended_s, axis=1).ravel()
    over_s = float((times_s**2).mean()) / (2 * round_s)
    rounds = known + (limit_s + over_s - float(ended_s[:, -1].mean())) / round_s
    deviation = (variance * limit_s / round_s**3) ** 0.5
    if rounds - _NORMAL * deviation >= training.rounds:
        return None
    count = _around(rounds, max(deviation, 0.5)).within(1.0, training.rounds)
    per_round, totals = rate_of(np.cumsum(sent, axis=1)), np.cumsum(sent, axis=1)
    answers = float(totals[:, -1].mean()) + (rounds - known) * per_round
    answers_deviation = ((per_round * deviation) ** 2 + spread_of(totals) * rounds) ** 0.5
    return Forecast(
        rounds=count,
        duration_s=Range(limit_s + over_s, limit_s, limit_s + _overshoot_s(times_s, 0.025)),
        drain_s=drain_s(training, *found),
        questions=Traffic(count.times(training.workers), np.empty(0), float(training.workers)),
        answers=Traffic(_around(answers, answers_deviation), sent.mean(axis=0), per_round),
        basis=basis,
        questions_basis=basis,
        answers_basis=basis,
        detail=f"{detail}, continued to about {rounds:,.0f}",
        answered=np.concatenate([each.answered for each in found]),
    )


def _around(mean: float, deviation: float) -> Range:
    return Range(mean, max(mean - _NORMAL * deviation, 0.0), mean + _NORMAL * deviation)


def _overshoot_s(times_s: Floats, share: float) -> float:
    """Return what the last round passes a late limit by in this share of trainings or fewer.

    The excess of a renewal process in equilibrium: ``P(excess > x) = E[max(T - x, 0)] / E[T]``.
    """
    ordered = np.sort(times_s)
    above = np.cumsum(ordered[::-1])[::-1] - ordered * np.arange(len(ordered), 0, -1)  # len * E[max(T - x, 0)]
    first = int(np.argmax(above <= share * ordered.sum()))
    return float(ordered[first])
