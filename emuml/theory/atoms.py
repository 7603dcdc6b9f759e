"""Moments of a round when workers' times are finitely many values, as recorded and constant ones are: exact sums."""

from __future__ import annotations

import numpy as np

from emuml.shapes import StopRule
from emuml.theory.closing import Floats, closed_by, open_by
from emuml.theory.seams import AtomicLaw, ComputeLaw, ShiftedExponentialLaw


def atoms_of(law: ComputeLaw | ShiftedExponentialLaw, load: float) -> Floats | None:
    """Return the values that a law can take, ascending, if it says that they are finitely many."""
    return law.atoms(load) if isinstance(law, AtomicLaw) else None


def atomic_moments(rule: StopRule, values: Floats, level: Floats) -> tuple[float, float]:
    """Return mean and variance of a round when a worker takes at most ``values[i]`` with chance ``level[i]``.

    The round takes ``values[i]`` with the chance by which its law rises there: of being over below the median, and of
    being open above it, so that the chances of both ends are right to their last digits.
    """
    closed, still_open = closed_by(rule, level), open_by(rule, 1.0 - level)
    rises, falls = np.diff(closed, prepend=0.0), -np.diff(still_open, prepend=1.0)
    chances = np.maximum(np.where(closed < 0.5, rises, falls), 0.0)
    mean = float(chances @ values)
    return mean, float(chances @ (values - mean) ** 2)
