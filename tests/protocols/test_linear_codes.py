"""Codes that are given by their matrix: structure, least squares, what is remembered, and runs on both tiers."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.errors import UserError
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding.codes import linear
from emuml.protocols.gradient_coding.codes.linear import LinearCode
from emuml.protocols.gradient_coding.decoders.least_squares import LeastSquares
from emuml.protocols.gradient_coding.decoders.seam import Rows
from emuml.shapes import Count
from emuml.workloads import LogisticRegression
from tests.protocols.code_checks import check_decoding, check_matrix


def rows_of(matrix):
    """Return a matrix by its rows."""
    held = [np.flatnonzero(row) for row in matrix]
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in held]))).astype(np.int64)
    return Rows(matrix.shape[1], indptr, np.concatenate(held).astype(np.int64), matrix[matrix != 0])


def code_of(matrix, collect=None):
    rows = rows_of(matrix)
    return LinearCode(rows, Count(len(matrix), collect or len(matrix)), LeastSquares(rows), collect)


@st.composite
def matrices(draw):
    workers, partitions = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    entries = st.sampled_from([0.0, 0.0, 1.0, 2.0, -0.5])
    values = draw(st.lists(entries, min_size=workers * partitions, max_size=workers * partitions))
    return np.array(values).reshape(workers, partitions)


@given(matrices(), st.data())
def test_least_squares_says_what_its_weights_are_worth(matrix, data):
    code = code_of(matrix)
    received = data.draw(st.lists(st.integers(0, code.workers - 1), unique=True))
    check_matrix(code)
    least = check_decoding(code, received)
    assert code.decode(received).error == pytest.approx(least, abs=1e-9 * code.partitions)
    if not received:
        assert code.decode(received).error == code.partitions


@given(matrices(), st.data())
def test_decoding_depends_on_who_answered_alone(matrix, data):
    code = code_of(matrix)
    received = data.draw(st.lists(st.integers(0, code.workers - 1), unique=True))
    shuffled = data.draw(st.permutations(received))
    first = dict(zip(received, code.decode(received).weights, strict=True))
    assert first == dict(zip(shuffled, code.decode(shuffled).weights, strict=True))


@given(matrices())
def test_combined_rows_are_those_of_the_matrix(matrix):
    rows, values = rows_of(matrix), np.arange(1.0, len(matrix) + 1)
    assert rows.combined(np.arange(len(matrix)), values) == pytest.approx(values @ matrix)


def test_a_set_is_decoded_once_while_it_is_remembered(monkeypatch):
    monkeypatch.setattr(linear, "REMEMBERED", 2)
    code = code_of(np.eye(4))
    first = code.decode([0, 1])
    again = code.decode([1, 0])
    assert len(code._remembered) == 1
    assert again.error == first.error == 2.0
    for received in ([0], [1], [2]):
        code.decode(received)
    assert len(code._remembered) == 2


def test_a_code_travels_without_what_it_remembers():
    code = code_of(np.array([[1.0, 1.0], [0.0, 2.0]]))
    code.decode([0])
    copy = pickle.loads(pickle.dumps(code))
    assert copy.workers == 2
    assert not copy._remembered
    assert np.array_equal(copy.encode_matrix, code.encode_matrix)


@pytest.mark.parametrize("received", [[0, 0], [3], [0.5]])
def test_who_cannot_have_answered_is_refused(received):
    with pytest.raises(UserError):
        code_of(np.eye(3)).decode(received)


@dataclass(frozen=True)
class Uneven:
    """A third party's code: worker 0 holds nothing, the others one or two partitions with factors."""

    def build(self, workers, seed=0, collect=None):
        matrix = np.zeros((workers, 4))
        for worker in range(1, workers):
            matrix[worker, worker % 4] = 2.0
            if worker % 2:
                matrix[worker, (worker + 1) % 4] = -0.5
        return code_of(matrix, collect)


@pytest.mark.parametrize("stragglers", ["cancel", "skip-stale", "carry-over", "wait-all"])
def test_codes_of_others_run_alike_on_both_tiers(stragglers):
    experiment = emuml.Experiment(
        workload=LogisticRegression(data="breast-cancer", l2=1e-4),
        protocol=GradientCoding(code=Uneven(), collect=5, stragglers=stragglers),
        cluster=Cluster(workers=7, compute=ShiftedExponential(shift_s=0.05, mean_s=0.5)),
        rounds=12,
        seed=7,
    )
    event, array = (emuml.run(experiment, tier=tier, trace=False, out=None) for tier in ("event", "array"))
    assert event.duration_s == array.duration_s
    assert event.parameters.tobytes() == array.parameters.tobytes()
    assert np.array_equal(event.metrics["decode_error"], array.metrics["decode_error"], equal_nan=True)
