"""Seconds per asynchronous update: known values, limits, the recursion of starts simulated, and the emulator.

Reference: Ho et al., NIPS 2013 (the barrier).
"""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from emuml.cluster import Constant, DelayTrace, ErasureHeadDelays, Instant, ShiftedExponential
from emuml.errors import UserError
from emuml.protocols.async_updates import ASP, BSP, SSP
from emuml.protocols.gradient_coding.codes import Uncoded
from emuml.theory import (
    NoClosedForm,
    expected_pushes_time,
    expected_round_time,
    expected_update_time,
    exponential_means,
)
from emuml.theory.chains import Chain, explored
from tests.protocols.async_checks import recursion, train

UNIT = ShiftedExponential(0.0, 1.0)
LAWS = [UNIT, ShiftedExponential(0.1, 0.5, "scaled"), Constant(0.3), DelayTrace(np.array([[1.0, 2.0, 7.0]]))]


@pytest.mark.parametrize(
    ("workers", "slack", "pushes_per_s"),
    [
        *[(2, *known) for known in [(0, 1.3333), (1, 1.6000), (3, 1.7778), (10, 1.9130)]],
        *[(3, *known) for known in [(0, 1.636364), (1, 2.137500), (2, 2.370300), (3, 2.504277), (4, 2.591276)]],
        *[(3, *known) for known in [(5, 2.652307), (10, 2.800947), (20, 2.892697)]],
    ],
)
def test_known_pushes_per_second(workers, slack, pushes_per_s):
    digits = 5.1e-5 if workers == 2 else 5.1e-7
    assert 1.0 / expected_update_time(SSP(slack), workers, UNIT) == pytest.approx(pushes_per_s, abs=digits)


@pytest.mark.parametrize("slack", [0, 1, 2, 7, 50, 700])
def test_two_workers_by_their_formula(slack):
    # The difference of two workers walks among -(s+1)..s+1 with equal chances, and one of them waits at the ends.
    expected = 2 * (2 * slack + 2) / (2 * slack + 3)
    assert 1.0 / expected_update_time(SSP(slack), 2, UNIT) == pytest.approx(expected, rel=1e-10)


def test_the_chain_over_all_orders_of_the_workers():
    # The leads of each worker by name, without that workers are equal; solved densely.
    for workers, slack in [(2, 2), (3, 1), (4, 1), (3, 3)]:
        states = [leads for leads in product(range(slack + 2), repeat=workers) if min(leads) == 0]
        rates = np.zeros((len(states),) * 2)
        for origin, leads in enumerate(states):
            for worker in np.flatnonzero(np.array(leads) <= slack):
                after = np.array(leads)
                after[worker] += 1
                rates[origin, states.index(tuple((after - after.min()).tolist()))] += 1.0
        flow = np.vstack([(rates - np.diag(rates.sum(axis=1))).T, np.ones(len(states))])
        chances = np.linalg.lstsq(flow, [*np.zeros(len(states)), 1.0], rcond=None)[0]
        expected = float(chances @ rates.sum(axis=1))
        assert 1.0 / expected_update_time(SSP(slack), workers, UNIT) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_without_slack_updates_wait_for_the_slowest_and_without_bound_for_nobody(law):
    slowest_s = expected_round_time(Uncoded(), 7, law)

    assert expected_update_time(BSP(), 7, law) == pytest.approx(slowest_s, rel=1e-12)
    assert expected_update_time(SSP(0), 7, law) == pytest.approx(slowest_s / 7, rel=1e-12)
    for barrier in (ASP(), SSP(None)):
        assert expected_update_time(barrier, 7, law) == pytest.approx(law.mean() / 7, rel=1e-12)
    for barrier in (BSP(), SSP(0), SSP(4), ASP()):
        assert expected_update_time(barrier, 1, law) == pytest.approx(law.mean(), rel=1e-12)


def test_a_round_is_as_many_pushes_as_workers():
    for barrier in (SSP(0), SSP(2), ASP()):
        update_s = expected_update_time(barrier, 5, UNIT)
        assert expected_pushes_time(barrier, 5, UNIT) == pytest.approx(5 * update_s)
    assert expected_pushes_time(BSP(), 5, UNIT) == expected_update_time(BSP(), 5, UNIT)
    assert expected_pushes_time(BSP(), 5, UNIT) == pytest.approx(exponential_means(5)[-1])
    # Steps of all workers take as many pushes, whatever the slack.
    together = SimpleNamespace(slack=2, in_step=True)
    assert expected_update_time(together, 5, UNIT) == pytest.approx(5 * expected_update_time(SSP(2), 5, UNIT))


@pytest.mark.parametrize("tail", ["fixed", "scaled"])
def test_slower_workers_are_slower_in_proportion(tail):
    law = ShiftedExponential(0.0, 0.25, tail)
    assert expected_update_time(SSP(3), 4, law) == pytest.approx(0.25 * expected_update_time(SSP(3), 4, UNIT))


def test_more_slack_is_less_waiting():
    times_s = [expected_update_time(barrier, 6, UNIT) for barrier in (*map(SSP, range(8)), ASP())]
    assert times_s == sorted(times_s, reverse=True)
    assert len(set(times_s)) == len(times_s)


@pytest.mark.parametrize("law", [Constant(0.5), Instant(), DelayTrace(np.full((2, 3), 0.5))])
def test_who_takes_equally_long_never_waits(law):
    assert expected_update_time(SSP(2), 3, law) == pytest.approx(law.mean() / 3)


@pytest.mark.parametrize(
    ("workers", "slack", "law"),
    [(3, 1, ShiftedExponential(0.1, 0.5)), (3, 2, ErasureHeadDelays()), (100, 4, UNIT), (100, 5000, UNIT)],
)
def test_what_is_not_known_is_said(workers, slack, law):
    with pytest.raises(NoClosedForm, match=f"slack {slack}"):
        expected_update_time(SSP(slack), workers, law)


@pytest.mark.parametrize(
    ("barrier", "workers"), [(BSP(), 0), (ASP(), 2.5), (SimpleNamespace(slack=-1, in_step=False), 3)]
)
def test_impossible_workers_and_barriers_are_refused(barrier, workers):
    with pytest.raises(UserError, match=r"workers: got|slack: got -1"):
        expected_update_time(barrier, workers, UNIT)


def walk(size, down):
    """Return a walk on a line at rate 1 up and ``down`` back; None: a chain that circles instead."""

    def moves(place):
        if down is not None and place:
            yield place - 1, down, False
        if down is None or place + 1 < size:
            yield (place + 1) % size, 1.0 + (down is None and place == 0), True

    return explored(0, moves, size)


def test_settling_and_eliminating_agree():
    circle = np.full(1500, 1.0)
    circle[0] = 0.5  # twice as fast there
    chain = walk(1500, None)
    assert isinstance(chain, Chain)
    assert chain.chances() == pytest.approx(circle / circle.sum(), rel=1e-9)

    leads = explored((10, 0, 0, 0, 0, 0), _leads, 10_000)
    assert len(leads.states) == 2002
    eliminated = leads._eliminated()
    assert leads._settled() == pytest.approx(eliminated / eliminated.sum(), rel=1e-9, abs=1e-13)


def _leads(leads):
    from emuml.theory.updates import _moves

    return _moves(leads)


def test_a_chain_that_settles_slowly_is_eliminated():
    chain, expected = walk(3000, 1.001), 1.001 ** -np.arange(3000.0)
    assert chain._settled() is None
    assert chain.chances() == pytest.approx(expected / expected.sum(), rel=1e-9)


def test_a_chain_that_is_too_large_is_none():
    assert explored(0, lambda place: [(place + 1, 1.0, False)], 100) is None


def rounds_s(finish, workers):
    """Return the seconds of each round of so many pushes, from when each iteration of each worker is finished."""
    known_s = finish[-1].min()  # before that, no push is missing
    pushes = np.sort(finish[finish <= known_s])
    return np.diff(pushes[workers - 1 :: workers])


def check_mean(times_s, expected, blocks=20):
    """Check a mean to four standard errors, from blocks of equal length after one to forget the start."""
    size = len(times_s) // (blocks + 1)
    means = times_s[size : (blocks + 1) * size].reshape(blocks, size).mean(axis=1)
    assert abs(means.mean() - expected) < 4 * means.std(ddof=1) / blocks**0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "barrier"), [(2, SSP(1)), (3, SSP(3)), (8, SSP(2)), (30, SSP(1)), (5, BSP()), (5, ASP())], ids=str
)
def test_the_recursion_of_starts_simulated(workers, barrier):
    iterations = 240_000 // workers
    delays = np.random.default_rng(51).exponential(1.0, (iterations, workers))
    _, finish = recursion(delays, barrier.slack)

    check_mean(rounds_s(finish, workers), expected_pushes_time(barrier, workers, UNIT))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "barrier"), [(2, SSP(1)), (4, SSP(2)), (10, SSP(1)), (4, BSP()), (4, ASP())], ids=str
)
def test_the_emulator_pushes_at_this_pace(workers, barrier):
    rounds = 24_000 // workers  # 24,000 pushes
    delays = np.random.default_rng(52).exponential(1.0, (rounds + 2_000, workers))
    run, _ = train(barrier, delays, rounds, journal=False)
    times_s = np.diff([item.time_s for item in run.published])

    check_mean(times_s, expected_pushes_time(barrier, workers, UNIT))
