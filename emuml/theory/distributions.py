"""The law of a round's time: its distribution function and quantiles, for any law of the workers' times.

A round is over at ``t`` if the workers that have answered by then satisfy the stop rule. Workers are independent and
equal, so that chance is a polynomial of the one chance ``u = F(t)`` that a worker has answered: ``I_u(k, n-k+1)`` for
``k``-of-``n`` (the regularised incomplete beta function), ``prod_j (1 - (1-u)^(n_j))`` for the cover of groups, and
otherwise a mixture over the number of arrivals used. Hence jumps of ``F`` (recorded or constant times) need no care.

References
----------
David and Nagaraja, Order Statistics, section 2.1.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import ArrayLike

from emuml.errors import UserError
from emuml.shapes import Cover, StopRule, Stragglers
from emuml.theory.coverage import arrivals_distribution
from emuml.theory.order_statistics import Floats
from emuml.theory.seams import Code, ComputeLaw
from emuml.theory.stragglers import fresh_start, no_closed_form

# Arrival counts less likely than this change no digit.
_NEGLIGIBLE = 1e-16
# The width of doubles in [0.5, 1): a bisection of [0, 1] needs no more steps to be as good as it gets.
_BISECTIONS = 60
# How far below a level its rounding may reach: far where the chance is nearly 1 and hardly rises any more.
_WIDTHS = 0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6


def round_time_cdf(
    code: Code,
    workers: int,
    compute: ComputeLaw,
    t: ArrayLike,
    collect: int | None = None,
    stragglers: Stragglers = "cancel",
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
    load, rule = _load_and_rule(code, workers, compute, collect, stragglers)
    return closed_by(rule, compute.cdf(t, load))


def round_time_ppf(
    code: Code,
    workers: int,
    compute: ComputeLaw,
    q: ArrayLike,
    collect: int | None = None,
    stragglers: Stragglers = "cancel",
) -> Floats:
    """Return the shortest time in seconds with a chance of at least ``q`` that a round takes no longer.

    Parameters as for :func:`round_time_cdf`; ``q`` are chances from 0 to 1, and 0 gives the least possible time.
    """
    load, rule = _load_and_rule(code, workers, compute, collect, stragglers)
    chances = np.asarray(q, np.float64)
    if not np.all((chances >= 0) & (chances <= 1)):
        raise UserError(f"got {q!r:.60}", "quantile", "numbers from 0 to 1")
    level = worker_level(rule, chances)
    # The level is right to a rounding of the chance, which decides when a law jumps just there: take what is enough.
    found = compute.ppf(np.minimum(level * (1.0 + _WIDTHS[1]), 1.0), load)
    for width in _WIDTHS:
        time_s = compute.ppf(np.where(level < 1.0, level * (1.0 - width), 1.0), load)
        found = np.where(closed_by(rule, compute.cdf(time_s, load)) >= chances, time_s, found)
    return found


def closed_by(rule: StopRule, level: Floats) -> Floats:
    """Return the chance that a round is over when each worker has answered with chance ``level``."""
    if isinstance(rule, Cover):
        return _all_met(Counter(map(len, rule.groups)), level)
    from scipy.special import betainc

    total = np.zeros(level.shape)
    for k, chance in _used(rule):
        total += chance * betainc(k, rule.workers - k + 1, level)
    return np.minimum(total, 1.0)


def worker_level(rule: StopRule, chances: Floats) -> Floats:
    """Return the least level at which :func:`closed_by` reaches the given chances."""
    from scipy.special import betaincinv

    if isinstance(rule, Cover):
        sizes = sorted(map(len, rule.groups))
        low, high = (cover_level(chances, len(sizes), size) for size in (sizes[-1], sizes[0]))
    else:
        counts = [k for k, _ in _used(rule)]
        low, high = (betaincinv(k, rule.workers - k + 1, chances) for k in (counts[0], counts[-1]))
    return _bisected(rule, chances, low, high)


def cover_level(chances: Floats, groups: int, size: int) -> Floats:
    """Return ``u`` with ``(1 - (1-u)^size)^groups = chances``: the fastest of each group, then the slowest of those."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(np.log(-np.expm1(np.log(chances) / groups)) / size), np.float64)


def _bisected(rule: StopRule, chances: Floats, low: Floats, high: Floats) -> Floats:
    for _ in range(_BISECTIONS if np.any(low < high) else 0):
        middle = (low + high) / 2
        enough = closed_by(rule, middle) >= chances
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _all_met(groups_by_size: Counter[int], level: Floats) -> Floats:
    """Return the chance that every group has an answer."""
    with np.errstate(divide="ignore"):
        missed = np.log1p(-level)
    chance = np.ones(level.shape)
    for size, groups in groups_by_size.items():
        chance *= (-np.expm1(size * missed)) ** groups
    return chance


def _used(rule: StopRule) -> list[tuple[int, float]]:
    """Return the numbers of arrivals that a round may use, with their chances."""
    used = arrivals_distribution(rule)
    return [(k + 1, float(used[k])) for k in np.flatnonzero(used > _NEGLIGIBLE).tolist()]


def _load_and_rule(
    code: Code, workers: int, compute: ComputeLaw, collect: int | None, stragglers: Stragglers
) -> tuple[float, StopRule]:
    load, rule, fresh = fresh_start(code, workers, compute, collect, stragglers)
    if fresh is None:
        raise no_closed_form(rule, stragglers, "the law of a round's time")
    return load, fresh
