"""Intervals, ratios, savings and corrections against hand computations, scipy.stats, and their own promises.

Coverage is counted over seeded simulations; the band of four binomial standard deviations is left by chance in fewer
than 1 of 10,000 choices of the seed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import stats

from emuml.comparison.statistics import (
    BATCH_ROUNDS,
    BATCHES,
    Interval,
    Paired,
    batch_means,
    holm,
    p_value,
    paired,
    paired_rounds,
    t_interval,
)

SAMPLES = npst.arrays(np.float64, st.integers(3, 9), elements=st.floats(0.5, 8.0))


def test_interval_of_three_numbers_by_hand() -> None:
    # Mean 2, standard error 1/sqrt(3), quantile of Student's t with 2 degrees of freedom: sqrt(2 * 0.95^2 / 0.0975).
    half = math.sqrt(2 * 0.95**2 / (1 - 0.95**2)) / math.sqrt(3)
    found = t_interval([1.0, 2.0, 3.0])
    assert found.value == 2.0
    assert found.low == pytest.approx(2 - half, rel=1e-9)
    assert found.high == pytest.approx(2 + half, rel=1e-9)


def test_difference_ratio_and_saving_of_three_pairs_by_hand() -> None:
    found = paired([2.0, 4.0, 9.0], [1.0, 2.0, 3.0])
    assert found.difference.value == pytest.approx(3.0)  # of 1, 2, 6
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(12 ** (1 / 3))  # of 2, 2, 3
    assert found.saving == pytest.approx((13 + 1) / 7)  # variances of the sides, and of 1, 2, 6
    assert (found.pairs, found.over, found.constant) == (3, "seeds", False)


@pytest.mark.slow
@given(SAMPLES)
def test_interval_and_p_value_are_those_of_scipy(sample: np.ndarray) -> None:
    other = np.linspace(1.0, 2.0, sample.size)
    if np.ptp(sample - other) < 1e-6 or np.ptp(np.log(sample / other)) < 1e-6:
        return
    found, expected = paired(sample, other), stats.ttest_rel(sample, other)
    bounds = expected.confidence_interval(0.95)
    assert found.difference.low == pytest.approx(bounds.low, rel=1e-8, abs=1e-9)
    assert found.difference.high == pytest.approx(bounds.high, rel=1e-8, abs=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    logs = stats.ttest_1samp(np.log(sample) - np.log(other), 0.0).confidence_interval(0.95)
    assert found.ratio is not None
    assert found.ratio.low == pytest.approx(math.exp(logs.low), rel=1e-8)
    assert found.ratio.high == pytest.approx(math.exp(logs.high), rel=1e-8)


@given(SAMPLES)
def test_a_sample_against_itself_is_exactly_zero(sample: np.ndarray) -> None:
    for found in (paired(sample, sample), paired_rounds(sample, sample, independent=True)):
        assert found.constant
        assert found.difference == Interval(0.0)
        assert found.ratio == Interval(1.0)
        assert found.p_value is None


@given(SAMPLES, st.floats(-1e-10, 1e-10))
def test_differences_of_rounding_are_none(sample: np.ndarray, epsilon: float) -> None:
    found = paired(sample * (1 + epsilon), sample)
    assert found.difference == Interval(0.0)
    assert found.constant


@pytest.mark.slow
@given(SAMPLES, SAMPLES)
def test_swapping_sides_turns_everything_round(first: np.ndarray, second: np.ndarray) -> None:
    one, other = paired(first, second), paired(second, first)
    assert one.difference.value == pytest.approx(-other.difference.value)
    assert one.ratio is not None
    assert other.ratio is not None
    assert one.ratio.value == pytest.approx(1 / other.ratio.value)
    assert one.p_value == (None if other.p_value is None else pytest.approx(other.p_value))


def test_differences_that_are_all_equal_have_no_interval_and_save_everything() -> None:
    found = paired([1.5, 2.5, 4.5], [1.0, 2.0, 4.0])
    assert found.difference == Interval(0.5)
    assert found.constant
    assert found.saving == math.inf
    assert found.ratio is not None
    assert found.ratio.low is None


def test_two_constants_save_nothing() -> None:
    assert paired([3.0, 3.0], [2.0, 2.0]).saving is None


def test_one_pair_has_no_interval() -> None:
    assert paired([3.0], [2.0]) == Paired(1, "seeds", Interval(1.0), Interval(1.5))


def test_there_is_no_ratio_to_zero() -> None:
    assert paired([3.0, 4.0], [0.0, 0.0]).ratio is None
    assert paired_rounds([3.0, 4.0], [0.0, 0.0], independent=True).ratio is None


def test_saving_is_the_factor_of_seeds() -> None:
    # Correlation 0.9 and equal variances: 2 / (2 - 1.8) = 10.
    draws = np.random.default_rng(1).multivariate_normal([5, 4], [[1, 0.9], [0.9, 1]], 200_000)
    saving = paired(draws[:, 0], draws[:, 1]).saving
    assert saving is not None
    assert saving == pytest.approx(10, rel=0.03)  # 4 standard errors of the variances' ratio are 1.3 %


def coverage(holds: list[bool]) -> tuple[float, float]:
    """Return the fraction that holds, and four binomial standard deviations at 95 %."""
    return float(np.mean(holds)), 4 * math.sqrt(0.95 * 0.05 / len(holds))


def inside(interval: Interval, value: float) -> bool:
    return not interval.excludes(value)


@pytest.mark.slow
def test_intervals_of_five_seeds_hold_95_percent_of_the_time() -> None:
    draws = np.random.default_rng(2)
    differences, ratios = [], []
    for _ in range(4000):
        common = draws.normal(size=5)
        a, b = 12 + common + 0.3 * draws.normal(size=5), 10 + common
        differences.append(inside(paired(a, b).difference, 2.0))
        ratio = paired(np.exp(common + 0.2 * draws.normal(size=5)), np.exp(common) / 3).ratio
        assert ratio is not None
        ratios.append(inside(ratio, 3.0))
    for holds in (differences, ratios):
        fraction, band = coverage(holds)
        assert abs(fraction - 0.95) < band


@pytest.mark.slow
def test_ratio_of_round_means_holds_95_percent_of_the_time() -> None:
    draws = np.random.default_rng(3)
    holds = []
    for _ in range(2000):
        common = draws.exponential(size=200)
        ratio = paired_rounds(1 + 2 * common, 0.5 + common + draws.exponential(size=200), independent=True).ratio
        assert ratio is not None
        holds.append(inside(ratio, 3 / 2.5))
    fraction, band = coverage(holds)
    assert abs(fraction - 0.95) < band


def ar1(draws: np.random.Generator, rounds: int) -> np.ndarray:
    """Return rounds of which each takes over half of what the one before had beyond the mean."""
    values = np.empty(rounds)
    values[0] = draws.normal() / math.sqrt(0.75)
    for i, noise in enumerate(draws.normal(size=rounds - 1)):
        values[i + 1] = 0.5 * values[i] + noise
    return 10 + values


@pytest.mark.slow
def test_batches_hold_where_rounds_depend_on_each_other_and_plain_rounds_would_not() -> None:
    draws = np.random.default_rng(4)
    batches, plain = [], []
    for _ in range(1000):
        a, b = ar1(draws, 400), ar1(draws, 400)
        batches.append(inside(paired_rounds(a, b, independent=False).difference, 0.0))
        plain.append(inside(paired_rounds(a, b, independent=True).difference, 0.0))
    fraction, band = coverage(batches)
    assert abs(fraction - 0.95) < band
    assert np.mean(plain) < 0.85


def test_dependent_rounds_that_are_too_few_have_no_interval() -> None:
    few = BATCHES * BATCH_ROUNDS - 1
    a = np.random.default_rng(5).exponential(size=few + 1)
    found = paired_rounds(a[:few], 2 * a[:few], independent=False)
    assert (found.over, found.p_value, found.difference.low) == ("dependent rounds", None, None)
    enough = paired_rounds(a, 2 * a, independent=False)
    assert (enough.over, enough.pairs) == ("batches of rounds", BATCHES)


def test_rounds_are_paired_as_far_as_both_runs_go() -> None:
    found = paired_rounds([1.0, 2.0, 4.0, 100.0], [1.0, 1.0, 1.0], independent=True)
    assert found.pairs == 3
    assert found.difference.value == pytest.approx(4 / 3)


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=20, max_size=60))
def test_batch_means_of_full_batches_have_the_mean_of_all(values: list[float]) -> None:
    kept = values[len(values) % BATCHES :]
    assert batch_means(values).mean() == pytest.approx(np.mean(kept))


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.03: times 3, 2, 1 and never falling.
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([]) == []
    assert holm([0.6, 0.7]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_value_and_never_exceeds_bonferroni(values: list[float]) -> None:
    for raw, adjusted in zip(values, holm(values), strict=True):
        assert raw <= adjusted <= min(1.0, len(values) * raw) + 1e-15


def test_p_value_is_two_sided() -> None:
    assert p_value([1.0, 2.0, 4.0]) == p_value([-1.0, -2.0, -4.0])
