"""Moments under laws of finitely many values, against exact sums of fractions over all numbers of arrivals."""

from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml.cluster import Constant, DelayTrace, ErasureHeadDelays, Instant
from emuml.protocols.gradient_coding.codes import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.shapes import CoverOrCount
from emuml.theory import (
    expected_round_time,
    order_statistic_moments,
    round_ends,
    round_time_cdf,
    round_time_variance,
)
from emuml.theory.closing import closed_by, open_by
from tests.theory.laws import WithRule, closed_over_all_sets, contiguous, rules

OUTLIER = [1.0] * 2999 + [1e5]
RARE = [0.0] * 97 + [1e6] * 3


def ways_to_close(rule):
    """Return how many of the sets of each size close a round, by the coefficients of polynomials in integers."""
    times = getattr(rule, "times", None)
    count, cover = rule.parts() if times is None else (None, rule.cover)
    ways = [0] * (rule.workers + 1)
    if cover is not None:
        covered = [1]
        for group in cover.groups:
            enough = [comb(len(group), i) if i >= (times or 1) else 0 for i in range(len(group) + 1)]
            covered = np.convolve(np.array(covered, object), enough)
        ways = list(covered)
    return [comb(rule.workers, j) if count is not None and j >= count else int(ways[j]) for j in range(len(ways))]


def exact_moments(rule, entries):
    """Return mean and variance as fractions when each worker takes each of the entries with equal chance."""
    ways, size, below = ways_to_close(rule), len(entries), Fraction(0)
    seen, chances = 0, {}
    for value, times in sorted(Counter(entries).items()):
        seen += times
        level = Fraction(seen, size)
        closed = sum(w * level**j * (1 - level) ** (rule.workers - j) for j, w in enumerate(ways))
        chances[Fraction(value)], below = closed - below, closed
    mean = sum(value * chance for value, chance in chances.items())
    return mean, sum(chance * (value - mean) ** 2 for value, chance in chances.items())


@pytest.mark.slow
@settings(max_examples=60)
@given(rules(), st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=12))
def test_moments_are_exact_under_every_rule(rule, entries):
    law, (mean, variance) = DelayTrace(np.array([entries])), exact_moments(rule, entries)

    assert expected_round_time(WithRule(rule), rule.workers, law) == pytest.approx(float(mean), rel=1e-12)
    found = round_time_variance(WithRule(rule), rule.workers, law)
    assert found == pytest.approx(float(variance), rel=1e-9, abs=1e-24 * float(mean) ** 2)


@pytest.mark.parametrize("entries", [OUTLIER, RARE, [0.0, 0.0, 1.0]], ids=["outlier", "rare", "zeros"])
@pytest.mark.parametrize("stragglers", ["cancel", "wait-all"])
@pytest.mark.parametrize(
    ("code", "workers", "collect"),
    [
        (Uncoded(), 1, None),
        (IgnoreStragglers(), 1, 1),
        (Uncoded(), 7, None),
        (IgnoreStragglers(), 7, 3),
        (IgnoreStragglers(), 9, 1),
        (IgnoreStragglers(), 30, 29),
        (FractionalRepetition(2), 6, None),
        (FractionalRepetition(2), 7, None),
        (FractionalRepetition(2), 7, 5),
        (FractionalRepetition(3), 30, 15),
    ],
)
def test_rare_outliers_enter_with_all_their_digits(code, workers, collect, stragglers, entries):
    law, rule = DelayTrace(np.array([entries])), code.build(workers, collect=collect).stop_rule()
    if stragglers == "wait-all":
        rule = Uncoded().build(workers).stop_rule()
    mean, variance = exact_moments(rule, entries)

    assert variance > 0
    found = expected_round_time(code, workers, law, collect, stragglers)
    assert found == pytest.approx(float(mean), rel=1e-11, abs=0)
    found = round_time_variance(code, workers, law, collect, stragglers)
    assert found == pytest.approx(float(variance), rel=1e-11, abs=0)


def test_a_small_spread_about_a_long_time_is_not_lost():
    law = DelayTrace(np.array([[1e6, 1e6 + 1e-3]]))
    _, variance = exact_moments(Uncoded().build(3).stop_rule(), law.array[0].tolist())
    assert round_time_variance(Uncoded(), 3, law) == pytest.approx(float(variance), rel=1e-9)


@pytest.mark.parametrize(("workers", "k"), [(1, 1), (9, 4), (30, 30)])
def test_order_statistics_of_recorded_times(workers, k):
    law = ErasureHeadDelays(rounds=20, workers=3)
    rule = IgnoreStragglers().build(workers, collect=k).stop_rule()
    mean, variance = exact_moments(rule, law.trace.array.ravel().tolist())

    found = order_statistic_moments(law, 2.0, workers, k)
    assert found == pytest.approx((float(mean), float(variance + mean**2)), rel=1e-12)
    assert expected_round_time(IgnoreStragglers(), workers, law, k) == pytest.approx(float(mean), rel=1e-12)


@pytest.mark.parametrize("law", [Constant(0.1), Instant(), DelayTrace(np.full((3, 4), 0.7))], ids=repr)
def test_one_value_is_that_value(law):
    code = FractionalRepetition(3)
    for stragglers in ("cancel", "skip-stale", "carry-over", "wait-all"):
        assert expected_round_time(code, 10, law, 6, stragglers) == law.ppf(0.5, code.build(10).load)
        assert round_time_variance(code, 10, law, 6, stragglers) == 0.0


@pytest.mark.slow
@settings(max_examples=60)
@given(rules(), st.floats(0.0, 1.0))
def test_rounds_are_open_or_over(rule, missing):
    found = open_by(rule, np.array(missing))
    assert found == pytest.approx(1.0 - closed_over_all_sets(rule, 1.0 - missing), rel=1e-9, abs=1e-14)
    assert found + closed_by(rule, np.array(1.0 - missing)) == pytest.approx(1.0, abs=1e-13)


@settings(max_examples=40)
@given(rules(), st.floats(1e-30, 1e-3))
def test_the_chance_that_a_round_is_still_open_is_right_where_it_is_small(rule, missing):
    gone, ways = Fraction(missing), ways_to_close(rule)
    chance = sum((comb(rule.workers, j) - w) * (1 - gone) ** j * gone ** (rule.workers - j) for j, w in enumerate(ways))
    assert open_by(rule, np.array(missing)) == pytest.approx(float(chance), rel=1e-11, abs=0)


@pytest.mark.parametrize(("workers", "collect"), [(300, 150), (2000, 1100)])
def test_many_numbers_of_arrivals_add_up_as_over_each_of_them(workers, collect):
    # Against the incomplete beta function of every number of arrivals.
    from scipy.special import betainc

    from emuml.theory import arrivals_distribution

    rule = FractionalRepetition(7).build(workers, collect=collect).stop_rule()
    assert isinstance(rule, CoverOrCount)
    used, level = arrivals_distribution(rule), np.linspace(0.0, 1.0, 101)
    k = np.arange(1, workers + 1)[:, None]
    closed = used @ betainc(k, workers - k + 1, level)
    still_open = used @ betainc(workers - k + 1, k, 1.0 - level)

    assert closed_by(rule, level) == pytest.approx(closed, rel=1e-10, abs=1e-15)
    assert open_by(rule, 1.0 - level) == pytest.approx(still_open, rel=1e-10, abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "collect"), [(Uncoded(), None), (FractionalRepetition(2), 4), (IgnoreStragglers(), 3)]
)
def test_recorded_times_drawn_anew_have_these_moments(code, collect):
    # 20,000 rounds: four standard errors of the mean.
    law, rounds, built = ErasureHeadDelays(), 20_000, code.build(6, collect=collect)
    delays = np.random.default_rng(41).choice(law.trace.array.ravel(), (rounds, 6))
    times_s = np.diff(round_ends(delays, built.stop_rule(), "cancel").ended_s, prepend=0.0)
    variance = round_time_variance(code, 6, law, collect)

    assert abs(times_s.mean() - expected_round_time(code, 6, law, collect)) < 4 * (variance / rounds) ** 0.5
    assert times_s.var() == pytest.approx(variance, rel=0.05)


def test_groups_of_unequal_sizes_are_exact_too():
    rule = CoverOrCount(contiguous([3, 2, 2, 1]), 7)
    law = DelayTrace(np.array([[0.0, 0.0, 1.0, 5.0]]))
    mean, variance = exact_moments(rule, [0.0, 0.0, 1.0, 5.0])
    assert expected_round_time(WithRule(rule), 8, law) == pytest.approx(float(mean), rel=1e-13)
    assert round_time_variance(WithRule(rule), 8, law) == pytest.approx(float(variance), rel=1e-12)
    assert round_time_cdf(WithRule(rule), 8, law, 5.0) == 1.0
