"""Moments of approximate gradient coding, against every set of responders of small cases and the public table."""

from itertools import permutations, product

import numpy as np
import pytest

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes import FractionalRepetition
from emuml.shapes import miss_probability
from emuml.theory import agc_moments, independent_absence_error, independent_absence_moments
from tests.protocols.code_checks import subsets

GROUP_SUMS = np.random.default_rng(11).integers(-9, 9, (12, 3)).astype(float)


def factors(replication, collect, scale):
    """Return the factor of each group under every set of responders, shape (sets, groups)."""
    code = FractionalRepetition(replication, scale).build(12, collect=collect)
    rows = []
    for received in subsets(12, collect):
        row = np.zeros(code.n_groups)
        for worker, weight in zip(received, code.decode(received).weights, strict=True):
            row[code.group_of(worker)] += weight
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("scale", ["none", "unbiased", "covered"])
@pytest.mark.parametrize("replication", [1, 2, 3, 4, 6, 12])
@pytest.mark.parametrize("collect", [1, 2, 3, 5, 8, 10, 12])
def test_moments_over_all_sets_of_responders(replication, collect, scale):
    sums = GROUP_SUMS[: 12 // replication]
    whole, norms = sums.sum(axis=0), float(np.sum(sums**2))
    estimates = factors(replication, collect, scale) @ sums
    moments = agc_moments(12, replication, collect)

    assert estimates.mean(axis=0) == pytest.approx(moments.mean_factor(scale) * whole, rel=1e-9, abs=1e-9)
    a, b = moments.mean_square_error(scale)
    error = np.mean(np.sum((estimates - whole) ** 2, axis=1))
    assert error == pytest.approx(a * whole @ whole + b * norms, rel=1e-9, abs=1e-9)
    a, b = moments.second_moment(scale)
    assert np.mean(np.sum(estimates**2, axis=1)) == pytest.approx(a * whole @ whole + b * norms, rel=1e-9)


def scaled(covered, scale, miss):
    """Return the factor of each group, from a table of which groups each set of responders covers."""
    if scale == "covered":
        return covered * covered.shape[1] / np.maximum(covered.sum(axis=1, keepdims=True), 1)
    return covered / (1.0 - miss) if scale == "unbiased" else covered


@pytest.mark.parametrize("scale", ["none", "unbiased", "covered"])
@pytest.mark.parametrize("workers", range(1, 13))
def test_moments_of_every_small_case(workers, scale):
    members = (np.arange(2**workers)[:, None] >> np.arange(workers)) & 1
    for replication in (r for r in range(1, workers + 1) if workers % r == 0):
        covered = members.reshape(len(members), -1, replication).any(axis=2).astype(float)
        sums = GROUP_SUMS[: workers // replication]
        whole, norms = sums.sum(axis=0), float(np.sum(sums**2))
        for collect in range(1, workers + 1):
            moments = agc_moments(workers, replication, collect)
            chosen = covered[members.sum(axis=1) == collect]
            estimates = scaled(chosen, scale, moments.miss) @ sums
            found = np.mean(estimates, axis=0), np.mean(np.sum(estimates**2, axis=1))
            error = np.mean(np.sum((estimates - whole) ** 2, axis=1))

            assert found[0] == pytest.approx(moments.mean_factor(scale) * whole, rel=1e-12, abs=1e-10)
            assert found[1] == pytest.approx(np.dot(moments.second_moment(scale), (whole @ whole, norms)), rel=1e-11)
            expected = np.dot(moments.mean_square_error(scale), (whole @ whole, norms))
            assert error == pytest.approx(expected, rel=1e-10, abs=1e-9)
            assert moments.exact_probability == pytest.approx(np.mean(chosen.all(axis=1)), abs=1e-14)


@pytest.mark.parametrize(
    ("case", "p", "q", "exact", "used", "unbiased", "covered"),
    [
        ((30, 2, 15), 0.241379, 0.049808, 0.000211, 15.0, (-0.014692, 0.332874), (-0.023449, 0.351736)),
        ((30, 3, 10), 0.280788, 0.065277, 0.001965, 10.0, None, None),
        ((30, 3, 15), 0.112069, 0.008429, 0.217745, 14.7442, (-0.005239, 0.131452), (-0.015063, 0.150629)),
        ((30, 3, 20), 0.029557, 0.000354, 0.720265, 17.6379, (-0.000552, 0.031009), (-0.003698, 0.036982)),
        ((30, 5, 10), 0.108795, 0.006149, 0.437469, 9.3770, None, None),
        ((30, 5, 15), 0.021073, 0.000100, 0.875062, 11.1533, (-0.000359, 0.021886), (-0.005087, 0.030525)),
        ((12, 3, 5), 0.159091, 0.007576, None, None, (-0.025079, 0.214268), (-0.075758, 0.303030)),
    ],
)
def test_public_table(case, p, q, exact, used, unbiased, covered):
    moments = agc_moments(*case)

    assert (moments.miss, moments.miss_pair) == pytest.approx((p, q), abs=5.1e-7)
    if exact is not None:
        assert moments.exact_probability == pytest.approx(exact, abs=5.1e-7)
        assert moments.arrivals_mean == pytest.approx(used, abs=5.1e-5)
    if unbiased is not None:
        assert moments.mean_square_error("unbiased") == pytest.approx(unbiased, abs=5.1e-7)
        assert moments.mean_square_error("covered") == pytest.approx(covered, abs=5.1e-7)


def test_six_workers_in_pairs_by_hand():
    moments = agc_moments(6, 2, 3)
    whole, norms = np.array([2.0, 2.0]), 1.0 + 5.0 + 10.0

    assert (moments.miss, moments.miss_pair) == (0.2, 0.0)
    assert np.dot(moments.second_moment(), [whole @ whole, norms]) == pytest.approx(8.0)
    assert np.dot(moments.mean_square_error("unbiased"), [whole @ whole, norms]) == pytest.approx(4.5)


@pytest.mark.parametrize("collect", [1, 3, 4, 6])
def test_arrivals_used_and_exact_rounds_over_all_orders(collect):
    rule = FractionalRepetition(2).build(6, collect=collect).stop_rule()
    used, exact = [], 0
    for order in permutations(range(6)):
        used.append(rule.stop_index(np.array(order)))
        exact += len({worker // 2 for worker in order[: used[-1]]}) == 3

    moments = agc_moments(6, 2, collect)
    assert moments.arrivals_mean == pytest.approx(np.mean(used))
    assert moments.exact_probability == pytest.approx(exact / 720)


@pytest.mark.parametrize(
    ("workers", "stragglers", "collect", "expected"),
    [(32, 2, 16, 0.10044), (31, 2, 15, 0.11791), (30, 3, 15, 0.04160), (100, 6, 50, 0.00576)],
)
def test_mean_chance_of_a_missed_group_when_sizes_differ(workers, stragglers, collect, expected):
    sizes = FractionalRepetition(stragglers + 1).build(workers).group_sizes
    chances = [miss_probability(workers, size, collect) for size in sizes]

    assert np.mean(chances) == pytest.approx(expected, abs=5.1e-6)


@pytest.mark.parametrize(("workers", "replication", "absence"), [(6, 2, 0.3), (6, 3, 0.0), (8, 2, 0.7), (4, 4, 0.5)])
@pytest.mark.parametrize("scale", ["none", "unbiased", "covered"])
def test_independent_absence_over_all_outcomes(workers, replication, absence, scale):
    moments = independent_absence_moments(workers, replication, absence)
    present = np.array(list(product([0, 1], repeat=workers)))
    chances = np.prod(np.where(present, 1 - absence, absence), axis=1)
    covered = present.reshape(len(present), -1, replication).any(axis=2).astype(float)
    assert chances @ covered.all(axis=1) == pytest.approx(moments.exact_probability)
    assert chances @ present.sum(axis=1) == pytest.approx(moments.arrivals_mean)
    if scale == "covered":  # of nobody's answers there is no share
        chances = chances * covered.any(axis=1) / (1.0 - moments.miss**moments.groups)
    sums = GROUP_SUMS[: workers // replication]
    whole, norms = sums.sum(axis=0), float(np.sum(sums**2))
    estimates = scaled(covered, scale, moments.miss) @ sums

    assert chances @ estimates == pytest.approx(moments.mean_factor(scale) * whole, abs=1e-10)
    error = chances @ np.sum((estimates - whole) ** 2, axis=1)
    assert error == pytest.approx(np.dot(moments.mean_square_error(scale), (whole @ whole, norms)), rel=1e-11, abs=1e-9)
    if scale == "unbiased":
        assert error == pytest.approx(independent_absence_error(replication, absence) * norms, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("absence", [-0.1, 1.0, float("nan")])
def test_an_impossible_absence_is_refused(absence):
    with pytest.raises(UserError, match="below 1"):
        independent_absence_moments(6, 2, absence)


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ((10, 3, 5), "nearest is 2"),
        ((10, 0, 5), "nearest is 1"),
        ((10, 2, 11), "nearest is 10"),
        ((10, 2, 0), "nearest is 1"),
    ],
)
def test_impossible_parameters_are_refused(case, text):
    with pytest.raises(UserError, match=text):
        agc_moments(*case)
