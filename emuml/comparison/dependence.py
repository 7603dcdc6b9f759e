"""Whether the rounds of a run tell something about each other, and why; if not, rounds can be paired one by one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emuml.comparison.contestants import Contestant
from emuml.comparison.statistics import is_correlated
from emuml.shapes import Round
from emuml.theory.stragglers import answers_needed

RECORDED = "the recorded delays of one round go with those of the next"


def dependence(contestants: Iterable[Contestant], first: ArrayLike, second: ArrayLike) -> str:
    """Return why rounds of two runs cannot be paired as independent ones; "" if they can.

    Recorded delays are used row by row, so nothing is left over from one round to the next; but rows may be correlated
    in time. That is tested: on both runs and on their differences.

    Parameters
    ----------
    contestants : iterable of Contestant
    first, second : array_like, shape (rounds,)
        Seconds of their rounds.
    """
    contestants = tuple(contestants)
    for one in contestants:
        if reason := left_over(one):
            return reason
    if any(map(_is_replayed, contestants)):
        a, b = _both(first, second)
        if any(map(is_correlated, (a, b, a - b))):
            return RECORDED
    return ""


def left_over(contestant: Contestant) -> str:
    """Return what one round leaves to the next; "" if each starts afresh with draws of its own."""
    experiment = contestant.loaded.experiment
    shape = experiment.protocol.shape(experiment.roster())
    if contestant.loaded.engine != "des":
        return "real rounds share a machine"
    if experiment.faults:
        return "a fault lasts for more than a round"
    if not isinstance(shape, Round):
        return "updates come in no rounds"
    if answers_needed(shape.stop_rule) == experiment.cluster.workers and not shape.deadline:
        return ""  # everybody is waited for, so nobody is late
    if shape.stragglers == "wait-all":
        return ""
    if shape.stragglers != "cancel":
        return "work of one round is finished in the next"
    return "a cancelled task may hold its worker in the next round" if experiment.cluster.cancel_lag_s else ""


def _is_replayed(contestant: Contestant) -> bool:
    """Tell whether delays come in the order of a recording; drawn anew, its rounds are independent."""
    return getattr(contestant.loaded.experiment.cluster.compute, "extent", (None,))[0] is not None


def _both(first: ArrayLike, second: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    n = min(a.size, b.size)
    return a[:n], b[:n]
