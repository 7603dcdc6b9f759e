"""The law of a round's time: against every set of responders, closed forms, moments, jumps, and a simulation."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from emuml.cluster import Constant, DelayTrace, ErasureHeadDelays, Instant, ShiftedExponential
from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.shapes import All
from emuml.theory import (
    NoClosedForm,
    expected_round_time,
    round_ends,
    round_time_cdf,
    round_time_ppf,
    round_time_variance,
)
from tests.theory.laws import WithRule, closed_over_all_sets, rules

CASES = [
    (Uncoded(), 30, None),
    (IgnoreStragglers(), 30, 24),
    (IgnoreStragglers(), 30, 1),
    (FractionalRepetition(3), 30, None),
    (FractionalRepetition(4), 30, None),
    (FractionalRepetition(30), 30, None),
    (FractionalRepetition(3), 30, 15),
    (FractionalRepetition(4), 30, 15),
    (FractionalRepetition(2), 100, 50),
]
LAWS = [
    ShiftedExponential(0.05, 0.5),
    ShiftedExponential(0.05, 0.5, "scaled"),
    ErasureHeadDelays(),
    DelayTrace(np.array([[1.0, 2.0, 2.0], [5.0, 1.0, 1.0]])),
    Constant(0.25),
]
LEVELS = np.concatenate([[0.0, 1e-12, 1e-6], np.linspace(0.001, 0.999, 97), [1 - 1e-6, 1.0]])


@settings(max_examples=60)
@given(rules(), st.floats(0.0, 1.0))
def test_the_chance_is_that_over_all_sets_of_workers(rule, level):
    law = ShiftedExponential(0.0, 2.0)
    time_s = law.ppf(level)
    found = round_time_cdf(WithRule(rule), rule.workers, law, time_s)

    assert found == pytest.approx(closed_over_all_sets(rule, float(law.cdf(time_s))), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("tail", ["fixed", "scaled"])
@pytest.mark.parametrize(("workers", "count"), [(1, 1), (7, 3), (30, 15), (200, 190)])
def test_k_of_n_is_a_binomial_tail(workers, count, tail):
    law, time_s = ShiftedExponential(0.1, 0.5, tail), np.array([0.0, 0.2, 0.5, 1.0, 3.0])
    chance = -np.expm1(-np.maximum(time_s - 0.1, 0.0) / 0.5)
    ways = [comb(workers, k) * chance**k * (1 - chance) ** (workers - k) for k in range(count, workers + 1)]

    found = round_time_cdf(IgnoreStragglers(), workers, law, time_s, collect=count)
    assert found == pytest.approx(np.sum(ways, axis=0), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(("tail", "scale_s"), [("fixed", 0.5), ("scaled", 1.5)])
def test_equal_groups_by_their_formula(tail, scale_s):
    time_s = np.linspace(0.31, 4.0, 50)
    found = round_time_cdf(FractionalRepetition(3), 30, ShiftedExponential(0.1, 0.5, tail), time_s)

    assert found == pytest.approx((1.0 - np.exp(-3 * (time_s - 0.3) / scale_s)) ** 10, rel=1e-11)


def test_unequal_groups_are_a_product():
    law, time_s = ShiftedExponential(0.0, 1.0), np.linspace(0.1, 4.0, 20)
    found = round_time_cdf(FractionalRepetition(4), 30, law, time_s)

    assert found == pytest.approx((1 - np.exp(-5 * time_s)) ** 2 * (1 - np.exp(-4 * time_s)) ** 5, rel=1e-11)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize(("code", "workers", "collect"), CASES)
def test_quantiles_are_the_least_times_that_are_enough(code, workers, collect, law):
    times_s = round_time_ppf(code, workers, law, LEVELS, collect)

    finite = np.isfinite(times_s)
    assert finite[:-1].all()
    reached = round_time_cdf(code, workers, law, np.nextafter(times_s[finite], np.inf), collect)
    assert np.all(reached >= LEVELS[finite] * (1 - 1e-10))
    # No earlier time is enough, up to the rounding of a chance near 0 or 1.
    earlier = round_time_cdf(code, workers, law, times_s[finite] * (1 - 1e-7) - 1e-300, collect)
    assert np.all(earlier <= LEVELS[finite] + 1e-8 * np.minimum(LEVELS, 1 - LEVELS)[finite] + 1e-15)
    assert np.all(np.diff(times_s[finite]) >= 0)


@pytest.mark.parametrize("law", LAWS[:2], ids=["fixed", "scaled"])
@pytest.mark.parametrize("stragglers", ["cancel", "wait-all"])
@pytest.mark.parametrize(("code", "workers", "collect"), CASES)
def test_mean_and_variance_are_those_of_the_law(code, workers, collect, stragglers, law):
    arguments = (code, workers, law)
    levels = [0.0, 0.001, 0.5, 0.999, 1 - 1e-13]
    least_s, *middle_s, far_s = round_time_ppf(*arguments, levels, collect, stragglers).tolist()

    def later(t):
        return 1.0 - float(round_time_cdf(*arguments, t, collect, stragglers))

    mean, _ = quad(later, least_s, far_s, points=middle_s, limit=400, epsabs=1e-11)
    second, _ = quad(lambda t: 2 * t * later(t), least_s, far_s, points=middle_s, limit=400, epsabs=1e-11)
    mean, second = least_s + mean, least_s**2 + second
    assert mean == pytest.approx(expected_round_time(*arguments, collect, stragglers), rel=1e-8)
    assert second - mean**2 == pytest.approx(round_time_variance(*arguments, collect, stragglers), rel=1e-6)


@settings(max_examples=25)
@given(rules(workers_max=5), st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_times_that_repeat_over_all_their_combinations(rule, entries):
    # Ties go to the lower worker, so the order of arrival is not uniform; the time of a round is not moved by that.
    law = DelayTrace(np.array([entries], dtype=float))
    ends = [
        round_ends([times], rule, "cancel").ended_s[0] for times in product(law.array[0].tolist(), repeat=rule.workers)
    ]
    times_s = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0])
    expected = np.mean(np.array(ends)[:, None] <= times_s, axis=0)

    assert round_time_cdf(WithRule(rule), rule.workers, law, times_s) == pytest.approx(expected, abs=1e-12)
    chances = np.unique(np.clip(expected[expected > 0], 0, 1)) - 1e-9
    found = round_time_ppf(WithRule(rule), rule.workers, law, chances)
    assert found.tolist() == np.sort(ends)[np.ceil(chances * len(ends)).astype(int) - 1].tolist()


@pytest.mark.parametrize(("code", "workers", "collect"), CASES)
def test_the_chance_of_a_jump_leads_back_to_it(code, workers, collect):
    # The levels of 997 equal chances are no binary fractions: a rounding up would lead to the next entry.
    law = DelayTrace(np.arange(1.0, 998.0).reshape(1, -1))
    times_s = np.arange(1.0, 998.0)
    chances = round_time_cdf(code, workers, law, times_s, collect)
    told_apart = np.diff(chances, prepend=0.0) > 1e-12
    assert told_apart.sum() > 300

    found = round_time_ppf(code, workers, law, chances, collect)
    assert found[told_apart].tolist() == times_s[told_apart].tolist()
    after = round_time_ppf(code, workers, law, np.minimum(chances[:-1] * (1 + 1e-9), 1.0), collect)
    assert np.all(after[told_apart[1:] & told_apart[:-1]] > times_s[:-1][told_apart[1:] & told_apart[:-1]])


@pytest.mark.parametrize("stragglers", ["cancel", "skip-stale", "carry-over", "wait-all"])
@pytest.mark.parametrize("law", [Constant(0.25), Instant()])
def test_a_constant_time_is_one_jump(stragglers, law):
    code, time_s = FractionalRepetition(3), law.mean(3.0)
    found = round_time_cdf(code, 30, law, [np.nextafter(time_s, -1), time_s, 9.0], 15, stragglers)

    assert found.tolist() == [0.0, 1.0, 1.0]
    assert round_time_ppf(code, 30, law, [0.0, 0.3, 1.0], 15, stragglers).tolist() == [time_s] * 3


def test_waiting_for_all_is_the_slowest_worker_whatever_the_code():
    law, time_s = ShiftedExponential(0.05, 0.5), np.linspace(0.2, 5.0, 9)
    found = round_time_cdf(FractionalRepetition(3), 30, law, time_s, 15, "wait-all")

    assert found == pytest.approx(law.cdf(time_s, 3.0) ** 30, rel=1e-11)


@pytest.mark.parametrize("stragglers", ["skip-stale", "carry-over"])
def test_stale_work_has_no_law_in_closed_form(stragglers):
    law = ShiftedExponential(0.0, 0.5)
    with pytest.raises(NoClosedForm, match=f"{stragglers}.*the law of a round's time.*round_ends"):
        round_time_cdf(FractionalRepetition(3), 30, law, 1.0, 15, stragglers)
    assert round_time_cdf(Uncoded(), 30, law, 1.0, None, stragglers) == round_time_cdf(WithRule(All(30)), 30, law, 1.0)


@pytest.mark.parametrize("law", [LAWS[0], LAWS[2]], ids=["exponential", "recorded"])
@pytest.mark.parametrize(("code", "workers", "collect"), CASES)
def test_simulated_times_have_this_law(code, workers, collect, law):
    # Kolmogorov's distance of 3,000 rounds exceeds 1.95 / sqrt(3000) with probability 0.001 (less for laws with jumps).
    rounds, built = 3000, code.build(workers, collect=collect)
    delays = law.ppf(np.random.default_rng(23).random((rounds, workers)), built.load)
    ends_s = np.sort(np.diff(round_ends(delays, built.stop_rule(), "cancel").ended_s, prepend=0.0))
    chance = round_time_cdf(code, workers, law, ends_s + 1e-9, collect)

    later = np.searchsorted(ends_s, ends_s + 1e-9, side="right") / rounds
    assert np.max(np.abs(later - chance)) < 1.95 / rounds**0.5


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan])
def test_chances_outside_zero_to_one_are_refused(q):
    with pytest.raises(UserError, match="from 0 to 1"):
        round_time_ppf(Uncoded(), 3, Constant(1.0), q)


@pytest.mark.parametrize("stragglers", ["cancel", "wait-all"])
@pytest.mark.parametrize(("code", "workers", "collect"), CASES)
def test_certainty_is_the_longest_time_of_a_worker_under_every_rule(code, workers, collect, stragglers):
    load = code.build(workers, collect=collect).load
    nearly = [1 - 1e-12, 1 - 1e-15, 1 - 2.0**-53]
    for law in LAWS:
        found = round_time_ppf(code, workers, law, [0.0, 0.5, 1.0], collect, stragglers)[[0, 2]]
        assert found.tolist() == law.ppf([0.0, 1.0], load).tolist()
        less = round_time_ppf(code, workers, law, nearly, collect, stragglers)
        assert np.isfinite(less).all()
        assert np.all(np.diff(less) >= 0)
        assert np.all(less <= found[1])
    assert round_time_ppf(code, workers, LAWS[0], 1.0, collect, stragglers) == np.inf
