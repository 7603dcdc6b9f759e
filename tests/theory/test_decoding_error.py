"""Expected decoding errors, against every set of responders and the public table.

Reference: Charles, Papailiopoulos, Ellenberg, arXiv:1711.06771.
"""

from itertools import product

import numpy as np
import pytest

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes import FractionalRepetition, IgnoreStragglers
from emuml.theory import ignore_error, repetition_error, repetition_error_under_absence
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


def test_one_worker_alone():
    assert repetition_error(1, 1, 1, "one-step") == 0.0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: repetition_error(12, 5, 3), "a divisor of 12"),
        (lambda: repetition_error(12, 3, 13), "nearest is 12"),
        (lambda: ignore_error(12, 0), "nearest is 1"),
    ],
)
def test_impossible_parameters_are_refused(make, text):
    with pytest.raises(UserError, match=text):
        make()
