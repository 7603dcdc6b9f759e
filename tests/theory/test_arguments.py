"""What no closed form is for is refused in words, by every function and before anything is computed."""

from math import inf, nan

import numpy as np
import pytest

from emuml import theory
from emuml.cluster import Constant, DelayTrace, ShiftedExponential
from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.shapes import All, Count
from emuml.theory import SecondMomentRecursion, agc_moments

LAW = ShiftedExponential(0.1, 0.5)
MOMENTS = agc_moments(12, 3, 5)


@pytest.mark.parametrize("stragglers", ["nonsense", "wait_all", "Cancel", None, 3])
@pytest.mark.parametrize("law", [LAW, Constant(1.0), DelayTrace(np.ones((2, 9)))], ids=["chance", "constant", "trace"])
@pytest.mark.parametrize("code", [Uncoded(), FractionalRepetition(3), FractionalRepetition(9), IgnoreStragglers()])
def test_unknown_stragglers_are_refused_under_every_code_and_law(code, law, stragglers):
    collect = 4 if isinstance(code, IgnoreStragglers) else None
    for ask in (theory.expected_round_time, theory.round_time_variance, theory.seconds_per_gradient):
        with pytest.raises(UserError, match=r"stragglers: got .*cancel, skip-stale, carry-over, wait-all"):
            ask(code, 9, law, collect, stragglers)
    for ask in (theory.round_time_cdf, theory.round_time_ppf):
        with pytest.raises(UserError, match="stragglers: got "):
            ask(code, 9, law, 0.5, collect, stragglers)


def test_the_nearest_name_is_offered():
    with pytest.raises(UserError, match="did you mean 'wait-all'"):
        theory.expected_round_time(Uncoded(), 9, LAW, stragglers="wait_all")
    with pytest.raises(UserError, match="did you mean 'unbiased'"):
        MOMENTS.mean_square_error("unbaised")


REFUSED = [
    (lambda: theory.skip_stale_moments(5, 6), "count: got 6; allowed: an integer in 1..5; the nearest is 5"),
    (lambda: theory.skip_stale_moments(5, 0), "the nearest is 1"),
    (lambda: theory.skip_stale_moments(0, 0), "workers: got 0"),
    (lambda: theory.skip_stale_moments(5, 2.5), "count: got 2.5"),
    (lambda: theory.carry_over_mean(5, 0), "the nearest is 1"),
    (lambda: theory.carry_over_mean(5, 7), "the nearest is 5"),
    (lambda: theory.carry_over_mean(-1, 1), "workers: got -1"),
    (lambda: theory.independent_absence_error(2, 1.0), "absence: got 1.0.*below 1"),
    (lambda: theory.independent_absence_error(3, -0.5), "absence: got -0.5"),
    (lambda: theory.independent_absence_error(0, 0.5), "replication: got 0"),
    (lambda: theory.independent_absence_moments(6, 2, nan), "absence: got nan"),
    (lambda: theory.repetition_error_under_absence(10, 2, 2.0), "absence: got 2.0"),
    (lambda: theory.repetition_error_under_absence(10, 2, -1.0), "absence: got -1.0"),
    (lambda: theory.repetition_error_under_absence(10, 3, 0.5), "3 does not divide 10"),
    (lambda: theory.repetition_error_under_absence(0, 1, 0.5), "partitions: got 0"),
    (lambda: theory.repetition_error(12, 3, 5, "best"), "decoder: got 'best'"),
    (lambda: theory.ignore_error(12, 5, "unbiased"), "scale: got 'unbiased'"),
    (lambda: theory.ignore_error(0, 0), "partitions: got 0"),
    (lambda: theory.bernoulli_error(12, nan, 3), "mean_load: got nan"),
    (lambda: theory.bernoulli_uncovered(0, 1, 3), "partitions: got 0"),
    (lambda: theory.covered_groups_distribution(3, 2, 9), "collect: got 9; .*nearest is 6"),
    (lambda: theory.covered_groups_distribution(0, 2, 0), "groups: got 0"),
    (lambda: theory.covered_groups_distribution(3, 0, 0), "replication: got 0"),
    (lambda: theory.coverage_probability([2, 2], 5), "coverage"),
    (lambda: theory.exponential_means(0), "workers: got 0"),
    (lambda: theory.exponential_variances(-2), "workers: got -2"),
    (lambda: theory.order_statistic_moments(LAW, 1.0, 5, 0), "k: got 0"),
    (lambda: theory.order_statistic_moments(LAW, 1.0, 5, 6), "the nearest is 5"),
    (lambda: theory.order_statistic_moments(LAW, 0.0, 5, 2), "load: got 0.0; .*> 0"),
    (lambda: theory.order_statistic_moments(LAW, nan, 5, 2), "load: got nan"),
    (lambda: theory.round_time_cdf(Uncoded(), 3, LAW, [1.0, nan]), "t: not all are numbers"),
    (lambda: theory.round_time_ppf(Uncoded(), 3, LAW, [0.5, nan]), "from 0 to 1"),
    (lambda: theory.round_time_ppf(Uncoded(), 3, LAW, 1.1), "from 0 to 1"),
    (lambda: theory.round_ends([[1.0, 2.0]], All(2), "cancel", nan, 0.0), "question_s: not all are finite"),
    (lambda: theory.round_ends([[1.0, 2.0]], All(2), "cancel", -1.0, 0.0), "question_s: not all are finite"),
    (lambda: theory.round_ends([[1.0, 2.0]], All(2), "cancel", 0.0, inf), "answer_s: not all are finite"),
    (lambda: theory.round_ends([[1.0, 2.0]], All(2), "cancel", 0.0, [-1.0]), "answer_s: not all are finite"),
    (lambda: theory.round_ends([[1.0, 2.0]], All(2), "cancel", [0.0, 0.0]), r"question_s: got shape \(2,\)"),
    (lambda: theory.round_ends([[nan, 2.0]], Count(2, 1), "cancel"), "delays: not all are finite"),
    (lambda: theory.agc_moments(0, 1, 1), "workers: got 0"),
    (lambda: MOMENTS.mean_factor("all"), "scale: got 'all'"),
    (lambda: MOMENTS.second_moment("all"), "scale: got 'all'"),
    (lambda: theory.largest_step(0.0, MOMENTS), "smoothness: got 0.0"),
    (lambda: theory.descent_factor(-0.1, 1.0, 2.0, MOMENTS), "step: got -0.1"),
    (lambda: theory.descent_factor(0.1, 3.0, 2.0, MOMENTS), "pl_constant: got 3.0; allowed: at most the smoothness, 2"),
    (lambda: theory.noise_floor(9.0, 1.0, 2.0, MOMENTS, 1.0), "step: got 9.0; .*> 0 and < 1"),
    (lambda: theory.noise_floor(0.1, 1.0, 2.0, MOMENTS, -1.0), "group_norms: got -1.0"),
    (lambda: theory.noise_floor(0.1, nan, 2.0, MOMENTS, 1.0), "pl_constant: got nan"),
    (lambda: theory.second_moment_recursion(0.0, MOMENTS), "step: got 0.0"),
    (lambda: theory.second_moment_recursion(0.1, MOMENTS, curvature=-1.0), "curvature: got -1.0"),
    (lambda: theory.second_moment_recursion(0.1, MOMENTS, spread=-1.0), "spread: got -1.0"),
    (lambda: theory.second_moment_recursion(0.1, MOMENTS, scale="covered"), "scale: got 'covered'"),
    (lambda: SecondMomentRecursion(0.5, 1.0).after(-1, 1.0), "rounds: got -1"),
    (lambda: SecondMomentRecursion(0.5, 1.0).after(3, -1.0), "start: got -1.0"),
]


@pytest.mark.parametrize(("ask", "text"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_is_out_of_range_is_refused(ask, text):
    with pytest.raises(UserError, match=text):
        ask()


def test_a_recursion_that_grows_has_no_level_and_yet_a_value_after_every_number_of_rounds():
    grows, stays = SecondMomentRecursion(1.5, 1.0), SecondMomentRecursion(1.0, 0.25)

    assert (grows.stationary, stays.stationary) == (inf, inf)
    assert (grows.after(0, 2.0), grows.after(2, 2.0)) == (2.0, 7.0)
    assert (stays.after(0, 1.0), stays.after(8, 1.0)) == (1.0, 3.0)
    assert grows.after(100_000, 1.0) == inf


def test_the_ends_of_the_ranges_are_answered():
    assert theory.skip_stale_moments(1, 1) == (1.0, 1.0)
    assert theory.independent_absence_error(2, 0.0) == 0.0
    assert theory.repetition_error_under_absence(4, 2, 0.0) == 0.0
    assert theory.covered_groups_distribution(3, 2, 0) == [1.0, 0.0, 0.0, 0.0]
    assert theory.covered_groups_distribution(3, 2, 6) == [0.0, 0.0, 0.0, 1.0]
