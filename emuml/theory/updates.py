"""Seconds per update of asynchronous training, in the long run, for workers of one law and free messages.

A worker starts iteration ``c`` when it has finished its last one and everybody has finished iteration ``c - s - 1``,
with ``s`` the slack of the barrier (Ho et al., NIPS 2013). Without bound nobody ever waits. Without slack every
iteration takes as long as the slowest worker. In between, exponential times make the workers' leads over the slowest
one a finite Markov chain, which is solved exactly; other laws are for a simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb, inf

from emuml.shapes import All
from emuml.theory import arguments
from emuml.theory.chains import explored
from emuml.theory.round_time import moments_of_rule, tail_mean_s
from emuml.theory.seams import ComputeLaw, NoClosedForm, ShiftedExponentialLaw, StartBarrier, check_independent
from emuml.theory.stragglers import constant_s

_STATES_MAX = 50_000

Leads = tuple[int, ...]
"""How many workers are 0, 1, ..., s + 1 iterations ahead of the slowest."""


def expected_update_time(barrier: StartBarrier, workers: int, compute: ComputeLaw | ShiftedExponentialLaw) -> float:
    """Return the mean seconds per update of the parameters, in the long run.

    Parameters
    ----------
    barrier : StartBarrier
        ``BSP``, whose updates are steps of all workers, or ``SSP`` or ``ASP``, whose updates are single pushes.
    workers : int
        Number of workers ``P``, each with an equal share of the data.
    compute : ComputeLaw or ShiftedExponentialLaw
        Law of each worker's time for one iteration, of load 1.

    Returns
    -------
    float
        Seconds: ``E[X_(P:P)]`` for BSP, ``E[X_(P:P)] / P`` for SSP without slack, ``E[X] / P`` for ASP. For SSP with
        slack ``s`` and exponential times of mean ``m``, ``m`` over the mean number of workers that compute, by a chain
        of ``C(P + s, s + 1)`` states.

    Raises
    ------
    NoClosedForm
        For SSP with slack if times are not exponential, or the chain has more than 50,000 states; and if workers are
        not independent and equal.

    References
    ----------
    Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server", NIPS 2013 (the
    barrier).

    Examples
    --------
    >>> from emuml.cluster import ShiftedExponential
    >>> from emuml.protocols.async_updates import ASP, BSP, SSP
    >>> law = ShiftedExponential(shift_s=0.0, mean_s=1.0)
    >>> [round(expected_update_time(barrier, 2, law), 6) for barrier in (BSP(), SSP(0), SSP(1), ASP())]
    [1.5, 0.75, 0.625, 0.5]
    """
    arguments.check_integer(workers, "workers", 1)
    check_independent(compute)
    push_s = _push_s(barrier.slack, workers, compute)
    return workers * push_s if barrier.in_step else push_s


def expected_pushes_time(barrier: StartBarrier, workers: int, compute: ComputeLaw | ShiftedExponentialLaw) -> float:
    """Return the mean seconds of a round of asynchronous training, in the long run: as many pushes as workers.

    Parameters and errors as for :func:`expected_update_time`.
    """
    update_s = expected_update_time(barrier, workers, compute)
    return update_s if barrier.in_step else workers * update_s


def _push_s(slack: int | None, workers: int, compute: ComputeLaw | ShiftedExponentialLaw) -> float:
    if slack is not None:
        arguments.check_integer(slack, "slack", 0)
    if slack is None or workers == 1:
        return moments_of_rule(All(1), compute, 1.0)[0] / workers
    if slack == 0:
        return moments_of_rule(All(workers), compute, 1.0)[0] / workers
    if (seconds := constant_s(compute, 1.0)) is not None:
        return seconds / workers
    if not isinstance(compute, ShiftedExponentialLaw) or compute.shift_s != 0.0:
        raise _unknown("no closed form is known for times that are not exponential", slack)
    return tail_mean_s(compute, 1.0) / _computing(workers, slack)


def _computing(workers: int, slack: int) -> float:
    """Return how many workers compute on average, when times are exponential."""
    size = comb(workers + slack, slack + 1) if workers + slack <= 2 * _STATES_MAX else inf
    chain = None if size > _STATES_MAX else explored((workers, *[0] * (slack + 1)), _moves, _STATES_MAX)
    if chain is None:
        raise _unknown(f"the chain of {workers} workers' leads has more than {_STATES_MAX:,} states", slack)
    waiting = [leads[-1] for leads in chain.states]
    return float(chain.chances() @ [workers - count for count in waiting])


def _moves(leads: Leads) -> Iterator[tuple[Leads, float, bool]]:
    """Yield what follows when a worker finishes; those that are one iteration more ahead than the slack wait."""
    for lead, count in enumerate(leads[:-1]):
        if count:
            after = list(leads)
            after[lead] -= 1
            after[lead + 1] += 1
            # Once nobody is at the slowest place, everybody's lead is one less.
            yield tuple(after) if after[0] else (*after[1:], 0), float(count), lead == 0


def _unknown(what: str, slack: int) -> NoClosedForm:
    return NoClosedForm(what, f"slack {slack}", "no slack, no bound, or exponential times without shift", "emulate it")
