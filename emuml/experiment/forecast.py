"""How long a synchronous training will take, and how many answers it will cause, before anything runs.

In this order: recorded and constant delays give the duration itself; where theory has mean and variance of a round,
they give a normal interval; otherwise seeded trainings are simulated by :func:`emuml.theory.round_ends`. Every forecast
says which it is. Messages are taken not to wait for each other, and nobody to crash.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emuml.experiment import closed_forms
from emuml.experiment.training import Range, Training
from emuml.streams import generator
from emuml.theory.stragglers import constant_s

Floats = NDArray[np.float64]

EXACT_ENTRIES_MAX = 10_000_000
SIMULATED_ENTRIES_MAX = 6_000_000
SIMULATED_ROUNDS = 20_000
LEAST_TRAININGS, MOST_TRAININGS = 20, 200


@dataclass(frozen=True, eq=False)
class Forecast:
    """What is to be expected of a training.

    Attributes
    ----------
    duration_s : Range or None
        From the start to the last published parameters; None if nothing is known.
    drain_s : float
        Mean seconds after that until all work is done, where the protocol waits for it.
    answers : Range
        Answers that workers send.
    per_round : ndarray of float64, shape (rounds,)
        Answers sent to each round, on average.
    basis : {"exact", "closed form", "simulation", "unknown"}
        Of the duration.
    answers_basis : str
        Of the answers.
    detail : str
        More about the basis.
    answered : ndarray of bool, shape (some rounds, workers), or None
        Whose answers were used, in the rounds that were computed or simulated.
    """

    duration_s: Range | None
    drain_s: float
    answers: Range
    per_round: Floats
    basis: str
    answers_basis: str
    detail: str
    answered: NDArray[np.bool_] | None = None


def forecast(training: Training) -> Forecast:
    """Return the forecast of a training."""
    delays = _certain_delays(training)
    if delays is not None:
        return _exact(training, delays)
    duration, answers = closed_forms.duration_s(training), closed_forms.answers(training)
    known: dict[str, Any] = {}
    if duration is not None:
        known |= {"duration_s": duration, "basis": "closed form", "detail": closed_forms.DETAIL}
    if answers is not None:
        certain = "exact" if answers.low == answers.high else "closed form"
        per_round = np.full(training.rounds, answers.mean / training.rounds)
        known |= {"answers": answers, "per_round": per_round, "answers_basis": certain}
    if duration is not None and answers is not None:
        return Forecast(drain_s=0.0, **known)
    return replace(_simulated(training), **known)


# Exact


def _certain_delays(training: Training) -> Floats | None:
    """Return the delays of all rounds and workers, if there is no chance in them."""
    law, loads, rounds = training.law, training.loads.tolist(), training.rounds
    if rounds * training.workers > EXACT_ENTRIES_MAX:
        return None
    if hasattr(law, "extent"):
        workers = training.roster.of("worker")
        draws = [law.sampler(training.roster.seed, worker) for worker in workers]
        return np.array([[draw(i, load) for draw, load in zip(draws, loads, strict=True)] for i in range(rounds)])
    seconds = {load: constant_s(law, load) for load in set(loads)}
    if None in seconds.values():
        return None
    return np.broadcast_to(np.array([seconds[load] for load in loads], np.float64), (rounds, training.workers))


def _exact(training: Training, delays: Floats) -> Forecast:
    found = training.ends(delays)
    end_s = float(found.ended_s[-1])
    source = "the recorded delays" if hasattr(training.law, "extent") else "delays without chance"
    if getattr(training.law, "order", "") == "resampled":
        source += " as this seed draws them"
    return Forecast(
        Range.certain(end_s),
        found.drained_s - end_s if training.shape.stragglers == "carry-over" else 0.0,
        Range.certain(float(found.sent.sum())),
        found.sent.astype(np.float64),
        "exact",
        "exact",
        f"{source}, round by round",
        found.answered,
    )


# Simulation


def _simulated(training: Training) -> Forecast:
    """Simulate trainings, or if they are long their first rounds, from draws that nothing else uses."""
    entries = SIMULATED_ENTRIES_MAX // (LEAST_TRAININGS * training.workers)
    rounds = max(min(training.rounds, SIMULATED_ROUNDS // LEAST_TRAININGS, entries), 1)
    affordable = min(SIMULATED_ROUNDS // rounds, SIMULATED_ENTRIES_MAX // (rounds * training.workers))
    trainings = min(max(affordable, LEAST_TRAININGS), MOST_TRAININGS)
    draws = generator(training.roster.seed, "", "plan")
    found = [training.ends(_drawn(training, draws, rounds)) for _ in range(trainings)]
    ends_s = np.array([each.ended_s for each in found])
    sent = np.array([each.sent for each in found], np.float64)
    drains_s = [each.drained_s - float(each.ended_s[-1]) for each in found]
    detail = f"{trainings} simulated trainings of {rounds} rounds"
    return Forecast(
        _longer(ends_s, training.rounds),
        float(np.mean(drains_s)) if training.shape.stragglers == "carry-over" else 0.0,
        _longer(np.cumsum(sent, axis=1), training.rounds),
        np.interp(np.arange(training.rounds), np.arange(rounds), sent.mean(axis=0)),
        "simulation",
        "simulation",
        detail if rounds == training.rounds else f"{detail}, continued to {training.rounds:,}",
        np.concatenate([each.answered for each in found]),
    )


def _drawn(training: Training, draws: np.random.Generator, rounds: int) -> Floats:
    levels = draws.random((rounds, training.workers))
    delays = np.empty(levels.shape)
    for load in np.unique(training.loads).tolist():
        those = training.loads == load
        delays[:, those] = training.law.ppf(levels[:, those], load)
    return delays


def _longer(totals: Floats, rounds: int) -> Range:
    """Return the total after so many rounds, from running totals of shape (trainings, fewer rounds).

    Each round more adds what those of the second half did; totals spread with the square root of their number.
    """
    from scipy.special import stdtrit

    trainings, known = totals.shape
    half = known // 2
    rate = (totals[:, -1] - totals[:, half - 1]).mean() / (known - half) if half else totals.mean()
    mean = float(totals[:, -1].mean() + (rounds - known) * rate)
    deviation = float(totals[:, -1].std(ddof=1)) * (rounds / known) ** 0.5
    # Of one more training, when mean and deviation are themselves estimated.
    reach = float(stdtrit(trainings - 1, 0.975)) * deviation * (1.0 + 1.0 / trainings) ** 0.5
    return Range(mean, max(mean - reach, 0.0), mean + reach)
