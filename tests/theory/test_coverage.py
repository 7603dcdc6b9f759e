"""Coverage probabilities: exact, safe at a thousand workers, and what follows for the arrivals that a round uses."""

from fractions import Fraction
from itertools import permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml.cover_times import CoverTimes
from emuml.errors import UserError
from emuml.shapes import All, Count, Cover, CoverOrCount
from emuml.theory import (
    arrivals_distribution,
    coverage,
    coverage_probabilities,
    coverage_probability,
    covered_groups_distribution,
)
from emuml.theory.closing import closed_by
from tests.protocols.code_checks import check_coverage


@settings(max_examples=40)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=8))
def test_equal_to_the_ratio_of_integers(sizes):
    check_coverage(coverage_probabilities, sizes)


def test_a_thousand_workers_in_pairs_are_computed_to_eleven_digits():
    check_coverage(coverage_probabilities, [2] * 500)


@pytest.mark.parametrize(
    ("workers", "replication", "arrivals", "expected", "rounding"),
    [
        (30, 3, 15, 0.2177448, 5e-8),
        (100, 2, 75, 0.01748989, 5e-9),
        (300, 3, 200, 0.01471159, 5e-9),
        (1000, 2, 950, 0.2754420, 5e-8),
        (1000, 2, 800, 1.227565e-11, 5e-18),
        (30, 2, 15, 0.000211, 5e-7),
        (30, 3, 10, 0.001965, 5e-7),
        (30, 5, 10, 0.437469, 5e-7),
    ],
)
def test_public_values(workers, replication, arrivals, expected, rounding):
    sizes = [replication] * (workers // replication)

    assert coverage_probability(sizes, arrivals) == pytest.approx(expected, abs=1.01 * rounding)


def test_one_group_is_covered_by_the_first_arrival():
    assert coverage_probabilities([5]).tolist() == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("arguments", [([], 0), ([2, 0], 1), ([2, 2], 5), ([2, 2], -1)])
def test_impossible_groups_and_arrivals_are_refused(arguments):
    with pytest.raises(UserError, match="coverage"):
        coverage_probability(*arguments)


@pytest.mark.parametrize(
    "rule",
    [
        All(6),
        Count(6, 2),
        Cover(((0, 1, 2), (3, 4), (5,))),
        CoverOrCount(((0, 1, 2), (3, 4), (5,)), 4),
        CoverOrCount(((0, 1, 2), (3, 4), (5,)), 1),
        CoverTimes(((0, 2, 1), (3, 5, 4)), 2),
        CoverTimes(((0, 2, 1), (3, 5, 4)), 3),
        CoverTimes(((0, 2, 1, 4), (3, 5)), 2),
    ],
)
def test_arrivals_used_over_all_orders(rule):
    used = [rule.stop_index(np.array(order)) for order in permutations(range(6))]

    assert arrivals_distribution(rule) == pytest.approx(np.bincount(used, minlength=7)[1:] / 720, abs=1e-15)


@pytest.mark.parametrize(("groups", "replication", "collect"), [(4, 3, 5), (1, 4, 2), (6, 1, 3), (10, 3, 15)])
def test_number_of_covered_groups(groups, replication, collect):
    chances = covered_groups_distribution(groups, replication, collect)

    assert sum(chances) == pytest.approx(1.0, abs=1e-15)
    assert chances[0] == 0.0
    assert chances[-1] == pytest.approx(coverage_probability([replication] * groups, collect), rel=1e-12)
    missed = sum(chance * (groups - v) for v, chance in enumerate(chances)) / groups
    n = groups * replication
    assert missed == pytest.approx(float(Fraction(comb(n - replication, collect), comb(n, collect))), rel=1e-12, abs=0)


def covered_in_integers(groups, replication, collect):
    """Return the same by inclusion and exclusion in integers, rounded once."""
    choices = [comb(replication * v, collect) for v in range(groups + 1)]
    return [
        comb(groups, v) * sum((-1) ** (v - i) * comb(v, i) * choices[i] for i in range(v + 1)) / choices[groups]
        for v in range(groups + 1)
    ]


@given(st.integers(1, 24), st.integers(2, 5), st.floats(0, 1))
def test_chances_of_covered_groups_have_all_digits_of_the_integers(groups, replication, share):
    collect = round(share * groups * replication)

    found, exact = (each(groups, replication, collect) for each in (covered_groups_distribution, covered_in_integers))

    assert found == pytest.approx(exact, rel=3e-16 * (3 + 3 * collect), abs=0)


@pytest.mark.parametrize(("groups", "replication", "collect"), [(90, 4, 180), (120, 2, 100), (60, 10, 120)])
def test_chances_of_many_covered_groups_keep_their_digits_down_to_the_smallest(groups, replication, collect):
    found, exact = (each(groups, replication, collect) for each in (covered_groups_distribution, covered_in_integers))

    assert min(chance for chance in exact if chance) < 1e-20
    assert found == pytest.approx(exact, rel=1e-13, abs=1e-300)


def test_chances_of_thousands_of_groups_are_those_of_their_mean():
    groups, replication, collect = 2000, 3, 3000

    chances = covered_groups_distribution(groups, replication, collect)

    missed = sum(chance * (groups - v) for v, chance in enumerate(chances)) / groups
    n = groups * replication
    assert missed == pytest.approx(float(Fraction(comb(n - replication, collect), comb(n, collect))), rel=1e-12, abs=0)


def test_a_distribution_of_times_computes_coverage_once():
    rule, before = (
        CoverOrCount(tuple((2 * i, 2 * i + 1) for i in range(31)), 40),
        coverage._coverage.cache_info().misses,
    )
    for level in np.linspace(0.1, 0.9, 9):
        closed_by(rule, np.array([level]))
    assert coverage._coverage.cache_info().misses == before + 1


def test_what_is_kept_cannot_be_changed_by_who_asked():
    coverage_probabilities([2, 2])[:] = 7.0
    assert coverage_probabilities([2, 2])[-1] == 1.0


def test_groups_of_one_are_covered_one_by_one_whatever_their_number():
    found = covered_groups_distribution(groups=200_000, replication=1, collect=150_000)
    assert (found[150_000], sum(found), len(found)) == (1.0, 1.0, 200_001)
