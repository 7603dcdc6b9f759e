"""Group codes stopped before every group has answered: which estimates are unbiased, and how far off they are."""

from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest

from emuml.protocols.gradient_coding.codes import FractionalRepetition, IgnoreStragglers
from tests.protocols.code_checks import check_exact, check_unbiased, estimate, integer_gradients, messages, subsets


@pytest.mark.parametrize("scale", ["none", "unbiased", "covered"])
def test_collecting_all_is_exact_fractional_repetition(scale):
    early, exact = FractionalRepetition(3, scale).build(12, collect=12), FractionalRepetition(3).build(12)

    assert early.stop_rule() == exact.stop_rule()
    for received in subsets(12, 10):
        assert np.array_equal(early.decode(received).weights, exact.decode(received).weights)


@pytest.mark.parametrize("scale", ["none", "unbiased", "covered"])
def test_more_than_n_minus_r_answers_are_always_exact(scale):
    code = FractionalRepetition(4, scale).build(12, collect=9)
    for received in subsets(12, 9):
        check_exact(code, integer_gradients(12), received)


@pytest.mark.parametrize("count", range(1, 13))
@pytest.mark.parametrize("replication", [1, 3, 4, 12])
def test_estimates_scaled_by_covered_groups_are_unbiased(replication, count):
    code = FractionalRepetition(replication, "covered").build(12)
    check_unbiased(code, integer_gradients(12), count)


@pytest.mark.parametrize(("workers", "replication"), [(9, 3), (8, 2), (8, 3), (9, 4), (7, 2)])
def test_estimates_scaled_by_the_chance_of_cover_are_unbiased(workers, replication):
    for count in range(1, workers + 1):
        code = FractionalRepetition(replication, "unbiased").build(workers, collect=count)
        check_unbiased(code, integer_gradients(code.partitions), count)


def test_stopping_early_at_full_cover_keeps_the_estimate_unbiased():
    code, gradients = FractionalRepetition(2, "unbiased").build(6, collect=4), integer_gradients(6)
    sent, rule = messages(code, gradients), code.stop_rule()
    orders = [np.array(order) for order in permutations(range(6))]
    values = [estimate(code, sent, order[: rule.stop_index(order)]) for order in orders]

    assert min(rule.stop_index(order) for order in orders) == 3
    assert np.mean(values, axis=0) == pytest.approx(gradients.sum(axis=0), rel=1e-12)


@pytest.mark.parametrize("count", range(1, 8))
def test_ignoring_stragglers_scaled_is_unbiased_for_the_number_that_came(count):
    # Not for the number that was asked for: here 5, while 1..7 answered.
    check_unbiased(IgnoreStragglers().build(7, collect=5), integer_gradients(7), count)


@pytest.mark.parametrize("scale", ["none", "covered"])
@pytest.mark.parametrize("count", [1, 3, 6, 7])
def test_mean_and_error_of_ignoring_stragglers(scale, count):
    n, c = 7, count
    code, gradients = IgnoreStragglers(scale).build(n, collect=c), integer_gradients(n)
    sent, whole = messages(code, gradients), gradients.sum(axis=0)
    values = np.array([estimate(code, sent, received) for received in combinations(range(n), c)])
    spread = np.sum(gradients**2) - whole @ whole / n

    mean = whole if scale == "covered" else c / n * whole
    error = n * (n - c) / (c * (n - 1)) * spread
    if scale == "none":
        error = (1 - c / n) ** 2 * whole @ whole + c * (n - c) / (n * (n - 1)) * spread
    assert values.mean(axis=0) == pytest.approx(mean, rel=1e-12)
    assert np.mean(np.sum((values - whole) ** 2, axis=1)) == pytest.approx(error, rel=1e-12, abs=1e-9)


def test_six_workers_in_pairs_by_hand():
    gradients = np.array([[1, 0], [0, 0], [2, -1], [0, 0], [-1, 3], [0, 0]], dtype=float)
    plain, unbiased = (FractionalRepetition(2, scale).build(6, collect=3) for scale in ("none", "unbiased"))
    sent = messages(plain, gradients)
    values = np.array([estimate(plain, sent, received) for received in subsets(6, 3)])
    scaled = np.array([estimate(unbiased, sent, received) for received in subsets(6, 3)])

    assert len(values) == comb(6, 3)
    assert values.mean(axis=0) == pytest.approx([1.6, 1.6])
    assert np.mean(np.sum(values**2, axis=1)) == pytest.approx(8.0)
    assert np.mean(np.sum((scaled - gradients.sum(axis=0)) ** 2, axis=1)) == pytest.approx(4.5)
