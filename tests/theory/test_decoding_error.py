"""Expected decoding errors, against every set of responders and the public table.

Reference: Charles, Papailiopoulos, Ellenberg, arXiv:1711.06771.
"""

from itertools import product
from math import comb

import numpy as np
import pytest

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.theory import (
    NoClosedForm,
    bernoulli_error,
    bernoulli_uncovered,
    covered_fraction,
    expected_decode_error,
    ignore_error,
    repetition_error,
    repetition_error_under_absence,
)
from tests.protocols.code_checks import subsets


@pytest.mark.parametrize("replication", [2, 3, 4])
@pytest.mark.parametrize("responders", [4, 6, 9])
def test_fractional_repetition_over_all_sets(replication, responders):
    code = FractionalRepetition(replication).build(12)
    matrix, weight = code.encode_matrix, 12 / (responders * replication)
    optimal, one_step = [], []
    for received in subsets(12, responders):
        optimal.append(code.decode(received).error)
        one_step.append(np.sum((weight * matrix[list(received)].sum(axis=0) - 1.0) ** 2))

    assert np.mean(optimal) == pytest.approx(repetition_error(12, replication, responders), rel=1e-12)
    assert np.mean(one_step) == pytest.approx(repetition_error(12, replication, responders, "one-step"), rel=1e-12)


@pytest.mark.parametrize(
    ("case", "optimal", "one_step"),
    [((20, 4, 12), 0.2890, 2.8070), ((30, 3, 15), 3.3621, 9.3103), ((30, 5, 20), 0.0531, 2.5862)],
)
def test_public_table(case, optimal, one_step):
    assert repetition_error(*case) == pytest.approx(optimal, abs=5.1e-5)
    assert repetition_error(*case, "one-step") == pytest.approx(one_step, abs=5.1e-5)


def test_independent_absence_over_all_outcomes():
    code, absence = FractionalRepetition(2).build(6), 0.2
    error = 0.0
    for present in product([0, 1], repeat=6):
        chance = np.prod([1 - absence if here else absence for here in present])
        error += chance * code.decode([worker for worker in range(6) if present[worker]]).error

    assert error == pytest.approx(repetition_error_under_absence(6, 2, absence), rel=1e-12)


@pytest.mark.parametrize("scale", ["none", "covered"])
@pytest.mark.parametrize("responders", [1, 4, 7])
def test_ignoring_stragglers_has_one_error_for_every_set(scale, responders):
    code = IgnoreStragglers(scale).build(7, collect=responders)
    errors = [code.decode(received).error for received in subsets(7, responders)]

    assert errors == pytest.approx([ignore_error(7, responders, scale)] * len(errors), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("scale", ["none", "unbiased", "covered"])
@pytest.mark.parametrize("replication", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("collect", [1, 3, 7, 10])
def test_codes_of_any_groups_over_all_sets(replication, collect, scale):
    code = FractionalRepetition(replication, scale)
    built = code.build(10, collect=collect)
    decoded = [built.decode(received) for received in subsets(10, collect)]
    share = np.mean([len(one.covered) for one in decoded]) / built.n_groups

    assert covered_fraction(code, 10, collect) == pytest.approx(share, rel=1e-12)
    if scale == "covered" and len(set(built.group_sizes)) > 1 and share < 1:
        with pytest.raises(NoClosedForm, match="different sizes"):
            expected_decode_error(code, 10, collect)
    else:
        error = np.mean([one.error for one in decoded])
        assert expected_decode_error(code, 10, collect) == pytest.approx(error, rel=1e-11, abs=1e-12)


def test_codes_that_are_not_stopped_early_are_exact():
    for code in (Uncoded(), FractionalRepetition(3), FractionalRepetition(4, "covered"), IgnoreStragglers()):
        assert (expected_decode_error(code, 30), covered_fraction(code, 30)) == (0.0, 1.0)


def test_ignoring_stragglers_is_a_code_of_groups_of_one():
    for scale in ("none", "covered"):
        expected = ignore_error(30, 12, scale)
        assert expected_decode_error(IgnoreStragglers(scale), 30, 12) == pytest.approx(expected, rel=1e-12)


def test_a_code_without_groups_has_no_such_error():
    class Ring:
        def build(self, workers, seed=0, collect=None):
            return self

    with pytest.raises(NoClosedForm, match="Ring has no groups"):
        expected_decode_error(Ring(), 10)


@pytest.mark.parametrize(
    ("case", "one_step", "simulated", "uncovered"),
    [
        ((20, 4, 12), 6.6667, 6.682, 1.3744),
        ((30, 3, 15), 18.000, 17.907, 6.1767),
        ((30, 5, 20), 7.5000, 7.463, 0.7825),
    ],
)
def test_public_table_of_bernoulli_codes(case, one_step, simulated, uncovered):
    assert bernoulli_error(*case) == pytest.approx(one_step, abs=5.1e-5)
    assert bernoulli_error(*case) == pytest.approx(simulated, abs=3 * 0.06)  # its largest standard error
    assert bernoulli_uncovered(*case) == pytest.approx(uncovered, abs=5.1e-5)


@pytest.mark.parametrize("case", [(20, 4, 12), (5, 1, 3), (6, 6, 2), (9, 2.5, 1)])
def test_bernoulli_codes_by_the_law_of_one_partition(case):
    # How many of c responders hold a partition is binomial, and partitions add up.
    k, s, c = case
    held = np.arange(c + 1)
    chances = np.array([comb(c, int(h)) * (s / k) ** h * (1 - s / k) ** (c - h) for h in held])

    assert bernoulli_error(*case) == pytest.approx(k * chances @ (k / (c * s) * held - 1) ** 2, rel=1e-12, abs=1e-12)
    assert bernoulli_uncovered(*case) == pytest.approx(k * chances[0], rel=1e-12, abs=1e-12)


def test_bernoulli_codes_simulated():
    # Three standard errors of 2,000 codes; least squares can do no better than the partitions that nobody holds.
    k, s, c = 12, 3, 6
    held = np.random.default_rng(41).random((2000, c, k)) < s / k
    one_step = np.sum((k / (c * s) * held.sum(axis=1) - 1) ** 2, axis=1)
    uncovered = k - held.any(axis=1).sum(axis=1)

    for found, expected in ((one_step, bernoulli_error(k, s, c)), (uncovered, bernoulli_uncovered(k, s, c))):
        assert abs(found.mean() - expected) < 3 * found.std() / 2000**0.5
    for matrix, lost in zip(held[:50].astype(float), uncovered, strict=False):
        best = np.linalg.lstsq(matrix.T, np.ones(k), rcond=None)[0]
        assert np.sum((best @ matrix - 1) ** 2) >= lost - 1e-9


def test_one_worker_alone():
    assert repetition_error(1, 1, 1, "one-step") == 0.0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: repetition_error(12, 5, 3), "5 does not divide 12.*nearest is"),
        (lambda: repetition_error(12, 3, 13), "nearest is 12"),
        (lambda: ignore_error(12, 0), "nearest is 1"),
        (lambda: bernoulli_error(12, 0, 3), "above 0 and at most 12"),
        (lambda: bernoulli_error(12, 13, 3), "at most 12"),
        (lambda: bernoulli_uncovered(12, 3, 0), "nearest is 1"),
    ],
)
def test_impossible_parameters_are_refused(make, text):
    with pytest.raises(UserError, match=text):
        make()
