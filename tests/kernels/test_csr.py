"""Sparse rows and their twin: the order of entries and rows, the same bits, and what is never read."""

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml._kernels import reference

compiled = pytest.importorskip("emuml._kernels.csr", reason="the kernels are not compiled")
twins = pytest.mark.parametrize("implementation", [reference, compiled], ids=["reference", "compiled"])

numbers = st.floats(-1e3, 1e3) | st.sampled_from([0.0, -0.0, 0.1, 1e16, -1e16, 5e-324])


@st.composite
def matrices(draw):
    """Rows of any length, columns in any order and repeated, with values or without."""
    width = draw(st.integers(1, 6))
    rows = draw(st.lists(st.lists(st.tuples(st.integers(0, width - 1), numbers), max_size=8), max_size=7))
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    indices = np.array([column for row in rows for column, _ in row], np.int32)
    values = np.array([value for row in rows for _, value in row], np.float64)
    return indptr, indices, values if draw(st.booleans()) else None, width


def predict(implementation, indptr, indices, values, parameters):
    out = np.full(len(indptr) - 1, np.nan)
    implementation.csr_predict(indptr[:-1], indptr[1:], indices, values, parameters, out)
    return out


def accumulate(implementation, indptr, indices, values, slopes, out):
    out = out.copy()
    implementation.csr_accumulate(indptr[:-1], indptr[1:], indices, values, slopes, out)
    return out


def entries_of(indptr, indices, values):
    """Row by row, its (column, value) pairs as Python numbers."""
    ones = np.ones(len(indices)) if values is None else values
    pairs = list(zip(indices.tolist(), ones.tolist(), strict=True))
    return [pairs[start:stop] for start, stop in pairwise(indptr)]


@given(matrices(), st.data())
def test_predictions_are_summed_entry_by_entry_in_the_order_stored(matrix, data):
    *arrays, width = matrix
    parameters = np.array(data.draw(st.lists(numbers, min_size=width, max_size=width)))
    expected = []
    for row in entries_of(*arrays):
        total = 0.0
        for column, value in row:
            total += value * float(parameters[column])
        expected.append(total)
    for implementation in (reference, compiled):
        assert predict(implementation, *arrays, parameters).tobytes() == np.array(expected, np.float64).tobytes()


@given(matrices(), st.data())
def test_rows_are_added_in_order_and_entry_by_entry(matrix, data):
    *arrays, width = matrix
    slopes = np.array(data.draw(st.lists(numbers, min_size=len(arrays[0]) - 1, max_size=len(arrays[0]) - 1)))
    before = np.array(data.draw(st.lists(numbers, min_size=width, max_size=width)))
    expected = before.tolist()
    for row, slope in zip(entries_of(*arrays), slopes.tolist(), strict=True):
        for column, value in row:
            expected[column] += slope * value
    for implementation in (reference, compiled):
        found = accumulate(implementation, *arrays, slopes, before)
        assert found.tobytes() == np.array(expected).tobytes()


@pytest.mark.parametrize("with_values", [True, False])
def test_large_matrices_have_the_bits_of_the_twin(with_values):
    draws = np.random.default_rng(2)
    indptr = np.concatenate([[0], np.cumsum(draws.integers(0, 60, 3000))])
    indices = draws.integers(0, 500, indptr[-1], np.int32)
    arrays = indptr, indices, draws.standard_normal(indptr[-1]) if with_values else None
    parameters, slopes = draws.standard_normal(500), draws.standard_normal(3000)
    assert predict(compiled, *arrays, parameters).tobytes() == predict(reference, *arrays, parameters).tobytes()
    found, expected = (accumulate(i, *arrays, slopes, parameters) for i in (compiled, reference))
    assert found.tobytes() == expected.tobytes()


@twins
@pytest.mark.parametrize("lengths", [[], [0], [0, 0, 0], [0, 3, 0, 2, 0]])
def test_empty_rows_are_zero_and_add_nothing(implementation, lengths):
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    arrays = indptr, np.zeros(indptr[-1], np.int32), None
    assert predict(implementation, *arrays, np.array([2.0])).tolist() == [2.0 * length for length in lengths]
    found = accumulate(implementation, *arrays, np.ones(len(lengths)), np.array([-0.0]))
    assert found.tobytes() == np.array([sum(lengths) or -0.0], np.float64).tobytes()


@twins
def test_rows_may_be_any_stretches_of_the_entries(implementation):
    indices, values = np.array([0, 1, 2, 1], np.int32), np.array([1.0, 10.0, 100.0, 1000.0])
    starts, stops = np.array([3, 0, 0, 2]), np.array([4, 4, 0, 4])
    found, total = np.empty(4), np.zeros(3)
    implementation.csr_predict(starts, stops, indices, values, np.array([1.0, 2.0, 3.0]), found)
    assert found.tolist() == [2000.0, 2321.0, 0.0, 2300.0]
    implementation.csr_accumulate(starts, stops, indices, values, np.array([1.0, 1.0, 5.0, 2.0]), total)
    assert total.tolist() == [1.0, 1000.0 + 1010.0 + 2000.0, 300.0]


@twins
def test_columns_without_entries_are_neither_read_nor_written(implementation):
    arrays = np.array([0, 2]), np.array([1, 3], np.int32), np.array([2.0, 4.0])
    beside = np.array([np.nan, 1.0, np.nan, 0.5, np.inf])
    assert predict(implementation, *arrays, beside).tolist() == [4.0]
    found = accumulate(implementation, *arrays, np.array([1.0]), beside)
    np.testing.assert_array_equal(found, [np.nan, 3.0, np.nan, 4.5, np.inf])


@twins
def test_products_are_rounded_before_they_are_added(implementation):
    # 0.1 * 10 rounds to 1; a fused multiply-add would leave 5.55e-17.
    arrays = np.array([0, 2]), np.array([0, 1], np.int32), np.array([1.0, 0.1])
    assert predict(implementation, *arrays, np.array([-1.0, 10.0])).tolist() == [0.0]
    once = np.array([0, 1]), np.array([0], np.int32), np.array([0.1])
    assert accumulate(implementation, *once, np.array([10.0]), np.array([-1.0])).tolist() == [0.0]


@twins
def test_read_only_and_mapped_arrays_are_taken(implementation, tmp_path):
    arrays = np.array([0, 1, 3]), np.array([1, 0, 1], np.int32), np.array([3.0, 5.0, 7.0])
    for name, array in zip("abc", arrays, strict=True):
        np.save(tmp_path / name, array)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "abc"]
    vector = np.array([1.0, 2.0])
    vector.flags.writeable = False
    assert predict(implementation, *mapped, vector).tolist() == [6.0, 19.0]
    assert accumulate(implementation, *mapped, vector, np.zeros(2)).tolist() == [10.0, 3.0 + 14.0]


@pytest.mark.skipif(os.environ.get("EMUML_CHECKED") != "1", reason="this build has no bounds checks")
def test_a_checked_build_checks_columns():
    with pytest.raises(IndexError):
        predict(compiled, np.array([0, 1]), np.array([5], np.int32), None, np.zeros(3))
