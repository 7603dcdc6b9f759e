"""Expected errors and round times of graph, adjacency, Bernoulli and balanced codes: exact over all responders."""

from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest

from emuml.cluster import ShiftedExponential
from emuml.errors import UserError
from emuml.protocols.gradient_coding import BalancedRepetition, Bernoulli, Expander, FractionalRepetition, GraphCode
from emuml.protocols.gradient_coding.codes.graphs import Cycle, Petersen, RandomRegular
from emuml.theory import (
    NoClosedForm,
    bernoulli_error,
    cycle_error,
    cycle_error_under_absence,
    expected_decode_error,
    expected_round_time,
    exponential_means,
    ignore_error,
    repetition_error,
    round_time_cdf,
    round_time_variance,
    sample,
    uniform_weights_error,
)

LAW = ShiftedExponential(0.05, 0.5)


def mean_over_sets(code, count):
    """Return the mean error over all sets of so many responders."""
    found = [code.decode(received).error for received in combinations(range(code.workers), count)]
    assert len(found) == comb(code.workers, count)
    return np.mean(found)


@pytest.mark.parametrize("declaration", [Expander(Petersen()), Bernoulli(2.5), Bernoulli(2, True, partitions=7)])
@pytest.mark.parametrize("answers", [1, 4, 9, 10])
def test_one_step_errors_are_means_over_all_responders(declaration, answers):
    code = declaration.build(10, seed=3, collect=answers)
    expected = mean_over_sets(code, answers)

    assert expected_decode_error(declaration, 10, answers, seed=3) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_codes_that_wait_for_all_have_the_error_of_all():
    assert expected_decode_error(Expander(Petersen()), 10) == pytest.approx(0.0, abs=1e-12)


def test_equal_weights_of_known_codes_have_their_known_errors():
    groups = FractionalRepetition(3).build(12).encode_matrix

    assert uniform_weights_error(np.eye(9), 4, 9 / 4) == pytest.approx(ignore_error(9, 4))
    assert uniform_weights_error(np.eye(9), 4, 1.0) == pytest.approx(ignore_error(9, 4, "none"))
    assert uniform_weights_error(groups, 5, 12 / 15) == pytest.approx(repetition_error(12, 3, 5, "one-step"))
    assert uniform_weights_error(np.ones((1, 2)), 1, 1.0) == 0.0


def test_the_mean_of_bernoulli_codes_is_that_of_all_of_them():
    # Two workers, two partitions, load 1: all 16 codes are equally likely.
    codes = [np.array([code >> i & 1 for i in range(4)], float).reshape(2, 2) for code in range(16)]
    for answers in (1, 2):
        mean = np.mean([uniform_weights_error(matrix, answers, 2 / answers) for matrix in codes])
        assert mean == pytest.approx(bernoulli_error(2, 1, answers))


@pytest.mark.parametrize("workers", [3, 6, 7, 8])
def test_errors_of_cycles_are_means_over_all_responders(workers):
    code = GraphCode(Cycle()).build(workers)
    means = [mean_over_sets(code, answers) for answers in range(workers + 1)]

    assert [cycle_error(workers, answers) for answers in range(workers + 1)] == pytest.approx(means, abs=1e-13)
    for absence in (0.0, 0.1, 0.6, 0.99):
        chances = [comb(workers, c) * (1 - absence) ** c * absence ** (workers - c) for c in range(workers + 1)]
        assert cycle_error_under_absence(workers, absence) == pytest.approx(np.dot(chances, means), abs=1e-13)


def test_long_cycles_lose_a_share_of_the_partitions_that_does_not_depend_on_their_length():
    shares = [cycle_error_under_absence(workers, 0.2) / workers for workers in (1001, 2000)]

    assert shares[0] == pytest.approx(shares[1], rel=1e-9)
    assert cycle_error(2000, 1600) / 2000 == pytest.approx(shares[1], rel=1e-2)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: cycle_error(2, 1),
        lambda: cycle_error(5, 6),
        lambda: cycle_error_under_absence(5, 1.5),
        lambda: uniform_weights_error(np.eye(3), 0, 1.0),
    ],
)
def test_questions_that_make_no_sense_are_refused(ask):
    with pytest.raises(UserError):
        ask()


@pytest.mark.parametrize(
    ("degree", "absence", "share", "error"), [(3, 0.1, 9e-4, 1e-4), (3, 0.2, 8.4e-3, 4e-4), (4, 0.2, 1.6e-3, 2e-4)]
)
def test_random_regular_graphs_lose_little_more_than_isolated_vertices(degree, absence, share, error):
    # A mean of 150 graphs of 240 vertices, one draw of absent workers each; `share` is known to within `error`.
    draws, vertices, found = np.random.default_rng(degree), 240, []
    workers = vertices * degree // 2
    for seed in range(150):
        code = GraphCode(RandomRegular(degree)).build(workers, seed)
        found.append(code.decode(np.flatnonzero(draws.random(workers) >= absence)).error / vertices)
    mean, own_error = np.mean(found), np.std(found) / sqrt(len(found))

    assert abs(mean - share) <= 4 * sqrt(own_error**2 + error**2)
    assert mean >= absence**degree - 4 * own_error


# Round times


@pytest.mark.parametrize("declaration", [Expander(Petersen()), GraphCode(Cycle(), tolerance=None)])
def test_rounds_that_a_number_of_answers_closes_have_closed_forms(declaration):
    workers = 10
    load = declaration.build(workers).load
    expected = load * 0.05 + 0.5 * exponential_means(workers)[6]

    assert expected_round_time(declaration, workers, LAW, collect=7) == pytest.approx(expected)
    assert round_time_variance(declaration, workers, LAW, collect=7) > 0
    assert 0 < round_time_cdf(declaration, workers, LAW, expected, collect=7) < 1


@pytest.mark.parametrize("stragglers", ["cancel", "skip-stale", "carry-over", "wait-all"])
@pytest.mark.parametrize("ask", [expected_round_time, round_time_variance])
def test_codes_of_unequal_loads_have_no_closed_form(ask, stragglers):
    for declaration in (Bernoulli(3.0), BalancedRepetition(2)):
        with pytest.raises(NoClosedForm, match="loads from"):
            ask(declaration, 10, LAW, stragglers=stragglers)


@pytest.mark.parametrize("ask", [expected_round_time, round_time_variance])
def test_rounds_that_close_by_what_answers_say_together_have_no_closed_form(ask):
    for declaration, workers in ((GraphCode(Petersen()), 15), (BalancedRepetition(2), 12)):
        with pytest.raises(NoClosedForm, match="closes a round"):
            ask(declaration, workers, LAW)
        assert ask(declaration, workers, LAW, stragglers="wait-all") > 0  # all answers, whatever the rule
    with pytest.raises(NoClosedForm, match="closes a round"):
        round_time_cdf(GraphCode(Petersen()), 15, LAW, 1.0)


def test_sampled_rounds_of_a_balanced_code_are_those_of_equal_groups():
    # If copies divide the workers, tilings are covers of groups.
    rule = BalancedRepetition(2).build(12).stop_rule()
    mean, error = sample.round_times(LAW, rule, 4000, seed=5, load=3.0).mean_and_error_s

    assert abs(mean - expected_round_time(FractionalRepetition(3), 12, LAW)) <= 4 * error


def test_tolerance_saves_time_and_collect_bounds_it():
    times = {
        tolerance: sample.round_times(LAW, GraphCode(RandomRegular(3), tolerance).build(150).stop_rule(), 300, seed=2)
        for tolerance in (0.0, 0.01, 0.1)
    }
    means = [times[tolerance].decided_s for tolerance in (0.1, 0.01, 0.0)]

    assert np.all(means[0] <= means[1])
    assert np.all(means[1] <= means[2])
    assert means[0].mean() < 0.8 * means[2].mean()
