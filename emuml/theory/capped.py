"""Rounds with a deadline: a stop rule of times that end at the deadline at the latest.

A rule that more answers never undo closes a round at a minimum of maxima of the workers' times, and a minimum with the
deadline may be taken before those or after: the round under the deadline is the round of the shortened times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from emuml.deadlines import Deadline
from emuml.shapes import Stragglers
from emuml.theory import arguments
from emuml.theory.atoms import atoms_of
from emuml.theory.closing import Floats
from emuml.theory.seams import ComputeLaw, DependentLaw, NoClosedForm, ShiftedExponentialLaw

Law = TypeVar("Law", bound=ComputeLaw | ShiftedExponentialLaw)


@dataclass(frozen=True)
class Capped:
    """The law of the lesser of a worker's time and a fixed one."""

    law: ComputeLaw
    most_s: float

    def cdf(self, t: ArrayLike, load: float = 1.0) -> Floats:
        """Return the chance of a time of at most ``t`` seconds."""
        times = np.asarray(t, np.float64)
        return np.where(times >= self.most_s, 1.0, self.law.cdf(times, load))

    def ppf(self, q: ArrayLike, load: float = 1.0) -> Floats:
        """Return quantiles in seconds."""
        return np.minimum(self.law.ppf(q, load), self.most_s)

    def atoms(self, load: float = 1.0) -> Floats | None:
        """Return all possible times, if the law says that they are finitely many."""
        found = atoms_of(self.law, load)
        return None if found is None else np.unique(np.minimum(found, self.most_s))

    @property
    def dependence(self) -> str:
        """What draws have in common."""
        return self.law.dependence if isinstance(self.law, DependentLaw) else ""


def under(compute: Law, deadline: Deadline, stragglers: Stragglers) -> Law | Capped:
    """Return the law of the times that a round with a deadline is made of.

    Raises
    ------
    NoClosedForm
        If the deadline depends on the first answer, or stale work delays rounds.
    """
    if not deadline or stragglers == "wait-all":
        return compute
    if deadline.after_s is None or deadline.first_times is not None or stragglers != "cancel":
        raise NoClosedForm(
            "no closed form is known for rounds with such a deadline",
            f"stragglers={stragglers!r}, first_times={deadline.first_times}",
            "deadline_s with cancel or wait-all",
            "round_ends(delays, rule, stragglers, deadline=deadline) simulates it",
        )
    arguments.check_number(deadline.after_s, "deadline.after_s", above=0.0)
    return Capped(compute, deadline.after_s)  # type: ignore[arg-type]


def absence_at(compute: ComputeLaw, deadline_s: float, load: float = 1.0) -> float:
    """Return the chance that a worker has not answered before a deadline, as messages take no time.

    Parameters
    ----------
    compute : ComputeLaw
        Law of each worker's time.
    deadline_s : float
        Seconds, above 0.
    load : float
        Of the worker, in units of ``1/workers`` of the data.

    Returns
    -------
    float
        What codes for absent workers take as ``absence``. At a jump of the law, a time equal to the deadline counts as
        absent.

    Examples
    --------
    >>> from emuml.cluster import ShiftedExponential
    >>> round(absence_at(ShiftedExponential(shift_s=0.1, mean_s=0.5), deadline_s=0.6), 6)
    0.367879
    """
    arguments.check_number(deadline_s, "deadline_s", above=0.0)
    arguments.check_number(load, "load", above=0.0)
    before = np.nextafter(deadline_s, 0.0)
    return float(1.0 - compute.cdf(before, load))
