"""What a code does on a cluster: seconds, errors, bias and rounding of its rounds, from rounds that are only timed.

Where a closed form is known it stands in place of the sample's mean, and says so. Rounds are drawn from the streams of
the engines, so that they are the rounds of a run with the same seed whose messages take no time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emuml.cluster.compute import ComputeModel
from emuml.deadlines import NO_DEADLINE, Deadline
from emuml.des.rows import Rows
from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes import BuiltCode, Code, LinearCode
from emuml.protocols.gradient_coding.codes.seam import ROUNDING
from emuml.selection import Closing
from emuml.shapes import Stragglers
from emuml.theory import decode_error_of, expected_round_time
from emuml.theory.sample import mean_and_error
from emuml.theory.seams import GroupedCode, NoClosedForm, check_independent
from emuml.theory.semantics import recursion

Floats = NDArray[np.float64]

ROUNDS = 400
"""Sampled rounds, fewer for many workers."""

ANSWERS = 4_000_000
"""Sampled answers at most."""


@dataclass(frozen=True)
class Estimate:
    """A mean, with its standard error if it was sampled: 0 stands for a closed form or a constant."""

    mean: float
    error: float = 0.0

    @property
    def basis(self) -> str:
        """On what it stands."""
        return "sampled" if self.error else "exact"


@dataclass(frozen=True, eq=False)
class Sampled:
    """Rounds of a code.

    Attributes
    ----------
    load : Estimate
        Work of a worker in a round, in equal shares of the data, on average over the workers.
    round_s : Estimate
        Seconds of a round.
    decode_error : Estimate
        ``||a^T B - 1||^2`` over the number of partitions.
    exact : float
        Share of the sampled rounds whose error is 0, up to rounding.
    noise_gain : float
        Mean of ``sqrt(sum_w a_w^2 ||b_w||^2 / k)``.
    factor : float
        Mean weight of a partition in the decoded sum: that of an unbiased code is 1.
    bias : float
        Root mean square of the expected weights' distance from 1, the sample's own noise taken off; 0 if the sample
        does not tell it from none.
    weights : ndarray of float64, shape (rounds, partitions)
        Weight of each partition in the decoded sum of each round.
    remarks : tuple of str
        What the code says of itself, such as what rounding does to it in the worst case that is known.
    """

    load: Estimate
    round_s: Estimate
    decode_error: Estimate
    exact: float
    noise_gain: float
    factor: float
    bias: float
    weights: Floats
    remarks: tuple[str, ...] = ()


def sample(
    code: Code,
    workers: int,
    law: ComputeModel,
    seed: int = 0,
    *,
    collect: int | None = None,
    stragglers: Stragglers = "cancel",
    deadline: Deadline = NO_DEADLINE,
    rounds: int = ROUNDS,
) -> Sampled:
    """Return what the rounds of a code are like.

    Parameters
    ----------
    code : Code
        Declaration.
    workers : int
        How many.
    law : ComputeModel
        Of the workers' times.
    seed : int
        Of the code, and of the workers' draws.
    collect : int, optional
        Answers at which a round closes, as of the protocol.
    stragglers : str
        What becomes of work on a closed round.
    deadline : Deadline
        When rounds close by the clock, as of the protocol.
    rounds : int
        How many to sample at most; fewer if there are many workers, or fewer rounds were recorded.

    Raises
    ------
    UserError
        If the code cannot be built so, closes its rounds by what answers say, or a single round was recorded.

    Examples
    --------
    >>> from emuml.cluster import ShiftedExponential
    >>> from emuml.protocols.gradient_coding import FractionalRepetition
    >>> found = sample(FractionalRepetition(3), 30, ShiftedExponential(shift_s=0.05, mean_s=0.5))
    >>> round(found.round_s.mean, 4), found.round_s.basis, found.decode_error.mean
    (0.6382, 'exact', 0.0)
    """
    built = code.build(workers, seed, collect)
    if not built.in_rounds:
        raise UserError("its rounds close by what answers say", "code", "a code that a round's times suffice for")
    rounds = _affordable(rounds, workers, law)
    ends_s, sets = _rounds(built, law, seed, stragglers, deadline, rounds)
    decoded = [built.decode_honest(one) for one in sets]
    weights = np.array([_combined(built, one, each.weights) for one, each in zip(sets, decoded, strict=True)])
    errors = np.array([each.error if each.error > ROUNDING else 0.0 for each in decoded]) / built.partitions
    weights[errors == 0.0] = 1.0  # but for rounding, which would look like a bias and a floor
    mean = weights.mean(axis=0)
    return Sampled(
        load=Estimate(float(built.loads.mean())),
        round_s=_round_s(code, built, law, collect, stragglers, deadline, lambda: ends_s),
        decode_error=_decode_error(built, law, stragglers, deadline, errors),
        exact=float(np.mean(errors == 0.0)),
        noise_gain=float(np.mean([each.noise_gain for each in decoded])),
        factor=float(mean.mean()),
        bias=_bias(weights),
        weights=weights,
        remarks=built.remarks,
    )


def _bias(weights: Floats) -> float:
    """Return the root mean square of the mean weights' distance from 1; within two standard errors of none, 0."""
    rounds, partitions = weights.shape
    mean = weights.mean(axis=0)
    away = weights - mean
    noise = float(np.sum(away**2)) / (rounds * (rounds - 1))
    found = float(np.sum((mean - 1.0) ** 2)) - noise
    gram = away @ away.T if rounds < partitions else away.T @ away  # which have the same norm
    doubt = 2.0 * np.sqrt(2.0) * float(np.linalg.norm(gram)) / (rounds * (rounds - 1))
    return float(np.sqrt(found / partitions)) if found > doubt else 0.0


def round_seconds(
    code: Code,
    workers: int,
    law: ComputeModel,
    seed: int = 0,
    *,
    collect: int | None = None,
    stragglers: Stragglers = "cancel",
    deadline: Deadline = NO_DEADLINE,
    rounds: int = ROUNDS,
) -> Estimate:
    """Return the seconds of a round alone: nothing is decoded that the code's rule does not ask for.

    Parameters as for :func:`sample`.
    """
    built, rounds = code.build(workers, seed, collect), _affordable(rounds, workers, law)

    def ends_s() -> Floats:
        return _rounds(built, law, seed, stragglers, deadline, rounds)[0]

    return _round_s(code, built, law, collect, stragglers, deadline, ends_s)


def _affordable(rounds: int, workers: int, law: ComputeModel) -> int:
    """Return how many rounds to sample: no more than were recorded."""
    recorded = getattr(law, "extent", (None, None))[0]
    if recorded is not None and recorded < 2:
        raise UserError(f"got {recorded} recorded round", "compute", "at least 2 rounds, to tell how they differ")
    return max(min(rounds, ANSWERS // workers, rounds if recorded is None else recorded), 2)


def _rounds(
    code: BuiltCode, law: ComputeModel, seed: int, stragglers: Stragglers, deadline: Deadline, rounds: int
) -> tuple[Floats, list[NDArray[np.int64]]]:
    """Return when rounds end, and who was decoded in each."""
    rows, travel_s = Rows(law, seed, code.loads), np.zeros(rounds)
    times: Iterator[Floats] = (rows.draw(i)[0] for i in range(rounds))
    ends_s, sets = np.empty(rounds), []
    steps = recursion(times, Closing(code.stop_rule()), stragglers, travel_s, travel_s, deadline)
    for i, step in enumerate(steps):
        ends_s[i] = step.ended_s
        sets.append(np.flatnonzero(step.used))
    return ends_s, sets


def _combined(code: BuiltCode, received: NDArray[np.int64], weights: Floats) -> Floats:
    """Return ``a^T B``, shape (partitions,)."""
    if isinstance(code, LinearCode):
        return code.rows.combined(received, weights)
    found = np.zeros(code.partitions)
    for worker, weight in zip(received.tolist(), weights.tolist(), strict=True):
        if weight:
            found[list(code.assignment(worker))] += weight * np.array(code.coefficients(worker))
    return found


def _round_s(
    code: Any,
    built: BuiltCode,
    law: Any,
    collect: int | None,
    stragglers: Stragglers,
    deadline: Deadline,
    ends_s: Callable[[], Floats],
) -> Estimate:
    if np.ptp(built.loads) == 0:
        try:
            return Estimate(float(expected_round_time(code, built.workers, law, collect, stragglers, deadline)))
        except (NoClosedForm, AttributeError, ArithmeticError):
            pass  # nobody knows it, or the law cannot be asked
    return Estimate(*mean_and_error(ends_s()))


def _decode_error(built: BuiltCode, law: Any, stragglers: Stragglers, deadline: Deadline, errors: Floats) -> Estimate:
    if isinstance(built, GroupedCode) and stragglers in ("cancel", "wait-all") and not deadline:
        try:
            check_independent(law)
            return Estimate(decode_error_of(built) / built.partitions)
        except NoClosedForm:
            pass
    if np.ptp(errors) <= ROUNDING:  # the same in each round, and what is left would be the rounding of their mean
        return Estimate(float(errors[0]))
    return Estimate(float(errors.mean()), float(errors.std(ddof=1)) / len(errors) ** 0.5)
