"""What theory says of a whole training: its duration with a 95 % interval, and how many answers it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emuml import names
from emuml.cluster.compute import ComputeModel, ShiftedExponential
from emuml.errors import UserError
from emuml.experiment.training import Range, Training
from emuml.theory import NoClosedForm, arrivals_distribution
from emuml.theory.atoms import atoms_of

Floats = NDArray[np.float64]

DETAIL = "mean and variance of a round"
NORMAL = 1.959963984540054
"""Half the width of a normal interval of 95 %, in standard deviations."""


def duration_s(training: Training) -> Range | None:
    """Return the seconds until the last parameters are published, or None if theory does not know.

    Shares of the data that differ widen the interval: from that of the smallest to that of the largest share.
    """
    loads = training.loads
    found = [_of_load(training, load) for load in (float(loads.min()), float(loads.mean()), float(loads.max()))]
    least, mean, most = found
    if least is None or mean is None or most is None:
        return None
    return Range(mean.mean, least.low, most.high).within(training.least_s, np.inf)


def answers(training: Training) -> Range | None:
    """Return how many answers are sent, or None if theory does not know.

    Under ``"cancel"``, nobody answers a closed round if messages take no time and no two answers come at one instant.
    """
    shape, rounds = training.shape, training.rounds
    if shape.deadline:
        return None
    if shape.stragglers in ("wait-all", "carry-over"):
        return Range.certain(float(rounds * training.workers))
    if shape.stragglers != "cancel" or training.travel_s or not isinstance(training.law, ShiftedExponential):
        return None
    try:
        used = arrivals_distribution(shape.stop_rule)
    except NoClosedForm:
        return None
    counts = np.arange(1, training.workers + 1)
    mean = float(used @ counts)
    reach = NORMAL * float(rounds * (used @ (counts - mean) ** 2)) ** 0.5
    possible = rounds * counts[used > 0.0]
    found = Range(rounds * mean, rounds * mean - reach, rounds * mean + reach)
    return found.within(float(possible[0]), float(possible[-1]))


def promised(training: Training, name: str, law: ComputeModel, **changed: Any) -> float | None:
    """Return what theory answers to a promise of the protocol, or None."""
    for promise in training.protocol.oracles():
        if promise.name == name:
            arguments = {**promise.arguments, **changed}
            try:
                with np.errstate(all="ignore"):
                    found = float(names.load(promise.function)(workers=training.workers, compute=law, **arguments))
            except (UserError, AttributeError, ValueError, ArithmeticError):
                return None  # no closed form, a law that theory cannot ask, or numbers beyond all bounds
            return found if isfinite(found) else None
    return None


def _of_load(training: Training, load: float) -> Range | None:
    """Return the duration of a training whose workers all have this load."""
    if training.travel_s and (training.shape.deadline or not training.starts_afresh):
        return None
    law = _at_load(training.law, load / training.shape.compute if training.shape.compute else 1.0)
    moments = [promised(training, name, law) for name in ("round_s", "round_s_variance")]
    first = moments
    if not training.starts_afresh:  # nobody is late in the first round
        first = [promised(training, name, law, stragglers="cancel") for name in ("round_s", "round_s_variance")]
    mean_s, variance, first_s, first_variance = *moments, *first
    if mean_s is None or variance is None or first_s is None or first_variance is None:
        return None
    later = training.rounds - 1
    total_s = training.travel_s + first_s + later * mean_s
    reach_s = NORMAL * (first_variance + later * variance) ** 0.5
    return Range(total_s, max(total_s - reach_s, 0.0), total_s + reach_s)


def _at_load(law: ComputeModel, factor: float) -> Any:
    """Return a law whose times at any load are those of ``law`` at ``factor`` times the load."""
    if isinstance(law, ShiftedExponential):
        mean_s = law.mean_s * (factor if law.tail == "scaled" else 1.0)
        return replace(law, shift_s=law.shift_s * factor, mean_s=mean_s)
    return _AtLoad(law, factor)


@dataclass(frozen=True)
class _AtLoad:
    law: ComputeModel
    factor: float

    def cdf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        return self.law.cdf(t, load * self.factor)

    def ppf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        return self.law.ppf(q, load * self.factor)

    @property
    def dependence(self) -> str:
        return str(getattr(self.law, "dependence", ""))

    @property
    def tail_index(self) -> float:
        return float(getattr(self.law, "tail_index", np.inf))

    def isf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        of_law: Any = self.law
        return np.asarray(of_law.isf(q, load * self.factor))

    def atoms(self, load: float = 1.0) -> Floats | None:
        return atoms_of(self.law, load * self.factor)
