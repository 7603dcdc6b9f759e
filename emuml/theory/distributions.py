"""The law of a round's time: its distribution function and quantiles, for any law of the workers' times.

A round is over at ``t`` if the workers that have answered by then satisfy the stop rule. Workers are independent and
equal, so that chance is a function of the one chance ``F(t)`` that a worker has answered (``closing.py``). Hence jumps
of ``F`` (recorded or constant times) need no care.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from emuml.deadlines import NO_DEADLINE, Deadline
from emuml.shapes import StopRule, Stragglers
from emuml.theory import arguments
from emuml.theory.capped import under
from emuml.theory.closing import LARGEST, Floats, closed_by, worker_level
from emuml.theory.seams import Code, ComputeLaw
from emuml.theory.stragglers import fresh_start, no_closed_form

# How far below a level its rounding may reach: far where the chance is nearly 1 and hardly rises any more.
_WIDTHS = 0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6


def round_time_cdf(
    code: Code,
    workers: int,
    compute: ComputeLaw,
    t: ArrayLike,
    collect: int | None = None,
    stragglers: Stragglers = "cancel",
    deadline: Deadline = NO_DEADLINE,
) -> Floats:
    """Return the chance that a round takes at most ``t`` seconds.

    Parameters
    ----------
    code : Code
        Declaration of the code.
    workers : int
        Number of workers.
    compute : ComputeLaw
        Law of each worker's time for one answer.
    t : array_like
        Seconds, of any shape.
    collect : int, optional
        Answers at which a round closes at the latest, as for the protocol.
    stragglers : str
        What becomes of work on a closed round; under ``"wait-all"`` a round lasts until the next one starts.
    deadline : Deadline
        When a round closes by the clock.

    Returns
    -------
    ndarray of float64
        In the shape of ``t``.

    Raises
    ------
    NoClosedForm
        If stale work delays rounds.

    Examples
    --------
    >>> from emuml.cluster import ShiftedExponential
    >>> from emuml.protocols.gradient_coding import FractionalRepetition
    >>> law = ShiftedExponential(shift_s=0.0, mean_s=0.5)
    >>> round_time_cdf(FractionalRepetition(3), 30, law, [0.25, 0.5, 1.0]).round(6)
    array([0.080072, 0.60008 , 0.975487])
    """
    compute = under(compute, deadline, stragglers)
    load, rule = _load_and_rule(code, workers, compute, collect, stragglers)
    return closed_by(rule, compute.cdf(arguments.instants(t, "t"), load))


def round_time_ppf(
    code: Code,
    workers: int,
    compute: ComputeLaw,
    q: ArrayLike,
    collect: int | None = None,
    stragglers: Stragglers = "cancel",
    deadline: Deadline = NO_DEADLINE,
) -> Floats:
    """Return the shortest time in seconds with a chance of at least ``q`` that a round takes no longer.

    Parameters as for :func:`round_time_cdf`; ``q`` are chances from 0 to 1. At 0 it is the least possible time and at 1
    the greatest, under every rule those of one worker: infinite for a law without bound, and finite for all ``q < 1``.
    A worker's chance is told from 1 down to 1e-16, and that of a round so from about ``workers * 1e-16`` on.
    """
    compute = under(compute, deadline, stragglers)
    load, rule = _load_and_rule(code, workers, compute, collect, stragglers)
    chances = arguments.chances(q)
    # Only what is certain takes the longest of all times, however near to 1 a chance and its level are.
    most = np.where(chances < 1.0, LARGEST, 1.0)
    level = worker_level(rule, chances)
    # The level is right to a rounding of the chance, which decides when a law jumps just there: take what is enough.
    found = compute.ppf(np.minimum(level * (1.0 + _WIDTHS[1]), most), load)
    for width in _WIDTHS:
        time_s = compute.ppf(np.minimum(level * np.where(chances < 1.0, 1.0 - width, 1.0), most), load)
        found = np.where(closed_by(rule, compute.cdf(time_s, load)) >= chances, time_s, found)
    return found


def _load_and_rule(
    code: Code, workers: int, compute: ComputeLaw, collect: int | None, stragglers: Stragglers
) -> tuple[float, StopRule]:
    load, rule, fresh = fresh_start(code, workers, compute, collect, stragglers)
    if fresh is None:
        raise no_closed_form(rule, stragglers, "the law of a round's time")
    return load, fresh
