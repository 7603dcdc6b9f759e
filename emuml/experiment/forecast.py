"""How long a synchronous training will take, and how many answers it will cause, before anything runs.

In this order: recorded and constant delays give the duration itself; where theory has mean and variance of a round,
they give a normal interval; otherwise seeded trainings are simulated by :func:`emuml.theory.round_ends`. Of a training
that is too long for that, the first rounds are computed or simulated and continued. Every forecast says which it is.
Messages are taken not to wait for each other, and nobody to crash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emuml.durations import durations
from emuml.experiment import closed_forms
from emuml.experiment.training import Range, Traffic, Training
from emuml.streams import generator
from emuml.theory import RoundEnds
from emuml.theory.stragglers import constant_s

Floats = NDArray[np.float64]

EXACT_ENTRIES_MAX, RECORDED_ROUNDS_MAX, CONSTANT_ROUNDS_MAX = 10_000_000, 300_000, 30_000
SIMULATED_ENTRIES_MAX = 6_000_000
SIMULATED_ROUNDS = 20_000
LEAST_TRAININGS, MOST_TRAININGS = 20, 200


@dataclass(frozen=True, eq=False)
class Forecast:
    """What is to be expected of a training.

    Attributes
    ----------
    rounds : Range
    duration_s : Range or None
        From the start to the last published parameters; None if nothing is known.
    drain_s : float
        Mean seconds after that until all work is done, where the protocol waits for it.
    questions, answers : Traffic
        What the server and the workers send.
    basis : {"exact", "closed form", "simulation", "estimate", "unknown"}
        Of the duration.
    questions_basis, answers_basis : str
    detail : str
        More about the basis.
    answered : ndarray of bool, shape (some rounds, workers), or None
        Whose answers were used, in the rounds that were computed or simulated.
    """

    rounds: Range
    duration_s: Range | None
    drain_s: float
    questions: Traffic
    answers: Traffic
    basis: str
    questions_basis: str
    answers_basis: str
    detail: str
    answered: NDArray[np.bool_] | None = None


def forecast(training: Training) -> Forecast:
    """Return the forecast of a training."""
    rounds = min(training.rounds, computed_rounds(training))
    delays = certain_delays(training, rounds)
    if delays is not None:
        return _exact(training, delays)
    duration, answers = closed_forms.duration_s(training), closed_forms.answers(training)
    known: dict[str, Any] = {}
    if duration is not None:
        known |= {"duration_s": duration, "basis": "closed form", "detail": closed_forms.DETAIL}
    if answers is not None:
        certain = "exact" if answers.low == answers.high else "closed form"
        sent = Traffic(answers, np.empty(0), answers.mean / training.rounds)
        known |= {"answers": sent, "answers_basis": certain}
    if duration is not None and answers is not None:
        return Forecast(_count(training), drain_s=0.0, questions=_asked(training), questions_basis="exact", **known)
    return replace(_simulated(training), **known)


def _count(training: Training) -> Range:
    return Range.certain(float(training.rounds))


def _asked(training: Training) -> Traffic:
    """Return the questions: in each round one for every worker."""
    count = Range.certain(float(training.rounds * training.workers))
    return Traffic(count, np.empty(0), float(training.workers))


# Exact


def computed_rounds(training: Training) -> int:
    """Return how many rounds are computed one by one, where there is no chance in them."""
    most = RECORDED_ROUNDS_MAX if hasattr(training.law, "extent") else CONSTANT_ROUNDS_MAX
    return max(min(most, EXACT_ENTRIES_MAX // training.workers), 1)


def certain_delays(training: Training, rounds: int) -> Floats | None:
    """Return the delays of the first rounds and all workers, if there is no chance in them."""
    law, loads = training.law, training.loads.tolist()
    if hasattr(law, "extent"):
        workers = training.roster.of("worker")
        draws = [law.sampler(training.roster.seed, worker) for worker in workers]
        return np.array([[draw(i, load) for draw, load in zip(draws, loads, strict=True)] for i in range(rounds)])
    seconds = {load: constant_s(law, load) for load in set(loads)}
    if None in seconds.values():
        return None
    return np.broadcast_to(np.array([seconds[load] for load in loads], np.float64), (rounds, training.workers))


def source(training: Training) -> str:
    """Return what delays without chance come from."""
    if getattr(training.law, "order", "") == "resampled":
        return "the recorded delays as this seed draws them"
    return "the recorded delays" if hasattr(training.law, "extent") else "delays without chance"


def _exact(training: Training, delays: Floats) -> Forecast:
    if len(delays) < training.rounds:
        detail = f"{len(delays):,} rounds of {source(training)}, continued to {training.rounds:,}"
        return continued(training, [training.ends(delays)], "estimate", detail)
    found = training.ends(delays)
    return Forecast(
        _count(training),
        duration_s=Range.certain(float(found.ended_s[-1])),
        drain_s=drain_s(training, found),
        questions=_asked(training),
        answers=Traffic(Range.certain(float(found.sent.sum())), found.sent.astype(np.float64)),
        basis="exact",
        questions_basis="exact",
        answers_basis="exact",
        detail=f"{source(training)}, round by round",
        answered=found.answered,
    )


def drain_s(training: Training, *found: RoundEnds) -> float:
    """Return how long trainings wait for work after their ends, on average."""
    if training.shape.stragglers != "carry-over":
        return 0.0
    return float(np.mean([each.drained_s - each.ended_s[-1] for each in found]))


# Simulation


def simulated_rounds(training: Training) -> int:
    """Return how many rounds of a training are simulated at most."""
    entries = SIMULATED_ENTRIES_MAX // (LEAST_TRAININGS * training.workers)
    return max(min(SIMULATED_ROUNDS // LEAST_TRAININGS, entries), 1)


def _simulated(training: Training) -> Forecast:
    """Simulate trainings, or if they are long their first rounds, from draws that nothing else uses."""
    rounds = min(training.rounds, simulated_rounds(training))
    affordable = min(SIMULATED_ROUNDS // rounds, SIMULATED_ENTRIES_MAX // (rounds * training.workers))
    trainings = min(max(affordable, LEAST_TRAININGS), MOST_TRAININGS)
    draws = generator(training.roster.seed, "", "plan")
    found = [training.ends(drawn(training, draws, rounds)) for _ in range(trainings)]
    detail = f"{trainings} simulated trainings of {rounds:,} rounds"
    if rounds < training.rounds:
        detail += f", continued to {training.rounds:,}"
    return continued(training, found, "simulation", detail)


def drawn(training: Training, draws: np.random.Generator, rounds: int) -> Floats:
    """Return delays of the first rounds of one training, drawn from the law of each worker."""
    return drawing(training, draws)(0, rounds)


def drawing(training: Training, draws: np.random.Generator) -> Callable[[int, int], Floats]:
    """Return what draws delays of one training: of so many rounds, from a round on; each round is asked for once.

    Where draws have something in common, they are those of a run with a seed of its own; so they are of laws made of
    others, whose quantiles take long to find.
    """
    loads = [(load, training.loads == load) for load in np.unique(training.loads).tolist()]
    is_seeded = bool(dependence(training)) or hasattr(training.law, "base")
    seed = int(draws.integers(2**63)) if is_seeded else None

    def of(first: int, rounds: int) -> Floats:
        delays = np.empty((rounds, training.workers))
        if seed is None:
            levels = draws.random(delays.shape)
            for load, those in loads:
                delays[:, those] = training.law.ppf(levels[:, those], load)
            return delays
        row = np.empty(training.workers)
        for load, those in loads:
            fill = durations(training.law, seed, training.workers)
            for i in range(rounds):
                fill(first + i, load, row)
                delays[i, those] = row[those]
        return delays

    return of


def dependence(training: Training) -> str:
    """Return what draws of the law have in common, if they do."""
    return str(getattr(training.law, "dependence", ""))


def continued(training: Training, found: list[RoundEnds], basis: str, detail: str) -> Forecast:
    """Return the forecast that follows from the first rounds of one or several trainings."""
    sent = np.array([each.sent for each in found], np.float64)
    count = longer(np.cumsum(sent, axis=1), training.rounds)
    answers = Traffic(count.within(float(training.rounds), float(training.rounds * training.workers)), *_means(sent))
    return Forecast(
        _count(training),
        duration_s=longer(np.array([each.ended_s for each in found]), training.rounds),
        drain_s=drain_s(training, *found),
        questions=_asked(training),
        answers=answers,
        basis=basis,
        questions_basis="exact",
        answers_basis=basis,
        detail=detail,
        answered=np.concatenate([each.answered for each in found]),
    )


def _means(per_round: Floats) -> tuple[Floats, float]:
    """Return the mean of each known round, and that of each one after them: as in the second half."""
    return per_round.mean(axis=0), rate_of(np.cumsum(per_round, axis=1))


def rate_of(totals: Floats) -> float:
    """Return what a round adds to running totals of shape (trainings, rounds), in their second half."""
    known = int(totals.shape[1])
    half = known // 2
    if not half:
        return float(totals.mean())
    gained: Floats = totals[:, -1] - totals[:, half - 1]
    return float(gained.mean()) / (known - half)


def spread_of(totals: Floats) -> float:
    """Return the variance that a round adds to running totals of shape (trainings, rounds)."""
    trainings, known = len(totals), int(totals.shape[1])
    if trainings > 1:
        return float(totals[:, -1].var(ddof=1)) / known
    return float(np.diff(totals[0], prepend=0.0).var())


def longer(totals: Floats, rounds: int) -> Range:
    """Return the total after so many rounds, from running totals of shape (trainings, fewer rounds).

    Each round more adds what those of the second half did; totals spread with the square root of their number. Of a
    single training all that is known is certain.
    """
    from scipy.special import stdtrit

    trainings, known = totals.shape
    mean = float(totals[:, -1].mean()) + (rounds - known) * rate_of(totals)
    if trainings == 1:
        reach = 1.96 * ((rounds - known) * spread_of(totals)) ** 0.5
    else:  # of one more training, when mean and deviation are themselves estimated
        deviation = (rounds * spread_of(totals)) ** 0.5
        reach = float(stdtrit(trainings - 1, 0.975)) * deviation * (1.0 + 1.0 / trainings) ** 0.5
    return Range(mean, max(mean - reach, 0.0), mean + reach)
