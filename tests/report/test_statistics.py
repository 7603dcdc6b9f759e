"""What pages say of samples, against enumeration and SciPy's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from emuml.report.statistics import Floats, binomial_band, ks_bound, ks_distance, running_mean, standard_error


@given(st.lists(st.floats(0, 20), min_size=1, max_size=50, unique=True))
def test_ks_distance_is_that_of_scipy(values: list[float]) -> None:
    numbers = np.array(values)
    expected = stats.kstest(numbers, stats.expon.cdf).statistic
    assert ks_distance(numbers, lambda t: np.asarray(stats.expon.cdf(t))) == pytest.approx(expected, abs=1e-7)


def test_a_law_of_one_value_is_met_by_that_value_to_the_last_digits() -> None:
    def constant(t: Floats) -> Floats:
        return (t >= 0.3).astype(float)

    seen = np.diff(np.cumsum(np.full(50, 0.3)))
    assert len(set(seen.tolist())) > 1  # differences of sums are not all 0.3
    assert ks_distance(seen, constant) == 0.0
    assert ks_distance(seen + 0.1, constant) == 1.0


def test_ks_bound_is_the_critical_value_of_the_exact_law() -> None:
    for count in (10, 50, 200):
        assert ks_bound(count) == pytest.approx(stats.kstwo.ppf(0.95, count), rel=0.01)


@given(st.integers(1, 400), st.floats(0.01, 0.99), st.sampled_from([0.001, 0.01, 0.1]))
def test_the_band_leaves_at_most_half_the_error_on_either_side(trials: int, chance: float, error: float) -> None:
    low, high = binomial_band(trials, chance, error)
    law = stats.binom(trials, chance)
    assert 0 <= low <= high <= trials
    assert law.cdf(low - 1) <= error / 2 * (1 + 1e-9)
    assert law.sf(high) <= error / 2 * (1 + 1e-9)
    assert law.cdf(low) >= error / 2 * (1 - 1e-9)  # no narrower than it need be
    assert law.sf(high - 1) >= error / 2 * (1 - 1e-9)


def test_the_band_of_what_is_certain_is_one_count() -> None:
    assert binomial_band(7, 0.0, 0.01) == (0, 0)
    assert binomial_band(7, 1.0, 0.01) == (7, 7)


def test_running_means_start_where_values_do() -> None:
    assert np.isnan(running_mean(np.array([np.nan, 2.0]))).tolist() == [True, False]
    assert running_mean(np.array([np.nan, 2.0, 4.0])).tolist()[1:] == [2.0, 3.0]


def test_one_value_has_no_standard_error() -> None:
    assert np.isnan(standard_error(np.array([1.0])))
    assert standard_error(np.array([1.0, 3.0])) == pytest.approx(1.0)
