"""Sparse matrices: what they hold, what they refuse, how they travel."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.spec import InputFolder, Inputs, from_spec, to_spec
from emuml.workloads import CsrMatrix, csr

DENSE = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 5.0]])


def small(values=(2.0, 1.0, 5.0)):
    given_values = None if values is None else np.array(values)
    return CsrMatrix(np.array([0, 1, 1, 3]), np.array([1, 0, 2], np.int32), 3, given_values)


@st.composite
def matrices(draw):
    """Matrices with repeated and unsorted columns."""
    columns = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(st.integers(0, columns - 1), max_size=5), max_size=6))
    indices = np.array([column for row in rows for column in row], np.int32)
    values = draw(st.none() | st.lists(st.integers(-9, 9), min_size=len(indices), max_size=len(indices)))
    indptr = np.cumsum([0, *map(len, rows)])
    return CsrMatrix(indptr, indices, columns, None if values is None else np.array(values, float))


def dense(matrix):
    """The same numbers in full, entries of a repeated column added."""
    full = np.zeros(matrix.shape)
    rows = np.repeat(np.arange(len(matrix)), np.diff(matrix.indptr))
    np.add.at(full, (rows, matrix.indices), 1.0 if matrix.values is None else matrix.values)
    return full


def test_what_it_says_of_itself():
    matrix = small()
    assert (matrix.shape, matrix.nnz, len(matrix)) == ((3, 3), 3, 3)
    np.testing.assert_array_equal(dense(matrix), DENSE)
    np.testing.assert_array_equal(dense(small(None)), DENSE != 0)


@given(matrices(), st.data())
def test_products_are_those_of_the_full_matrix(matrix, data):
    start = data.draw(st.integers(0, len(matrix)))
    stop = data.draw(st.integers(start, len(matrix)))
    chosen = np.array(data.draw(st.lists(st.integers(0, max(len(matrix) - 1, 0)), max_size=8)), np.int64)
    parameters = np.arange(1.0, matrix.columns + 1)
    for rows in (range(start, stop), chosen if len(matrix) else np.empty(0, np.int64)):
        part = dense(matrix)[rows.start : rows.stop] if isinstance(rows, range) else dense(matrix)[rows]
        np.testing.assert_array_equal(matrix.predictions(rows, parameters), part @ parameters)
        slopes, total = np.arange(-1.0, len(rows) - 1), np.ones(matrix.columns)
        matrix.accumulate(rows, slopes, total)
        np.testing.assert_array_equal(total, 1.0 + part.T @ slopes)
        np.testing.assert_array_equal(dense(matrix.take(rows)), part)


@given(matrices())
def test_a_constant_column_comes_last(matrix):
    wider = matrix.with_constant_column()
    np.testing.assert_array_equal(dense(wider), np.hstack([dense(matrix), np.ones((len(matrix), 1))]))
    assert (wider.values is None) == (matrix.values is None)
    assert (wider.indices[wider.indptr[1:] - 1] == matrix.columns).all()


@given(matrices())
def test_a_matrix_comes_from_scipy_and_goes_back(matrix):
    back = CsrMatrix.from_scipy(matrix.to_scipy())
    np.testing.assert_array_equal(back.indices, matrix.indices)
    np.testing.assert_array_equal(dense(back), dense(matrix))
    np.testing.assert_array_equal(matrix.to_scipy().toarray(), dense(matrix))


@pytest.mark.parametrize("at_once", [1, 2, 100])
@pytest.mark.parametrize("values", [None, (2.0, 1.0, 5.0)])
def test_rows_are_taken_in_parts_without_a_trace(monkeypatch, at_once, values):
    monkeypatch.setattr(csr, "ROWS_AT_ONCE", at_once)
    rows = np.array([2, 0, 1, 2, 2])
    np.testing.assert_array_equal(dense(small(values).take(rows)), dense(small(values))[rows])


def test_every_format_of_scipy_is_taken():
    sparse = pytest.importorskip("scipy.sparse")
    for made in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_matrix, sparse.lil_array):
        assert CsrMatrix.from_scipy(made(DENSE)) == small()
    assert CsrMatrix.from_scipy(sparse.csr_array(DENSE != 0)).values is None
    assert CsrMatrix.from_scipy(sparse.csr_array(DENSE.astype(np.float32))) == small()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda sparse: DENSE, r"got ndarray of shape \(3, 3\)"),
        (lambda sparse: sparse.coo_array(np.ones(3)), r"got coo_array of shape \(3,\)"),
        (lambda sparse: sparse.csr_array(DENSE * 1j), "has dtype complex128"),
        (lambda sparse: sparse.csr_array(DENSE * np.nan), r"values\[0\] is nan"),
        (lambda sparse: sparse.csr_array(DENSE * np.longdouble("1e400")), r"values\[0\] is (2e\+400|inf)"),
    ],
)
def test_scipy_matrices_that_are_none_of_ours_are_refused(made, message):
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(UserError, match=message):
        CsrMatrix.from_scipy(made(sparse))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": np.array([1, 1, 1, 3])}, r"CsrMatrix\.indptr: goes from 1 to 3"),
        ({"indptr": np.array([0, 1, 1, 4])}, r"CsrMatrix\.indptr: goes from 0 to 4"),
        ({"indptr": np.array([0, 4, 1, 3])}, r"CsrMatrix\.indptr: falls from 4 to 1 after row 1"),
        ({"indptr": np.array([0, 2**40, 1, 3])}, r"CsrMatrix\.indptr: falls from"),
        ({"indptr": np.array([], np.int64)}, r"CsrMatrix\.indptr: is empty"),
        ({"indptr": np.array([0.0, 1.0, 1.0, 3.0])}, r"CsrMatrix\.indptr: has dtype float64"),
        ({"indptr": np.array([[0, 1, 1, 3]])}, r"CsrMatrix\.indptr: has dtype int64 and shape \(1, 4\)"),
        ({"indices": np.array([1, 0, 3], np.int32)}, r"indices\[2\] is 3; allowed: columns from 0 to 2"),
        ({"indices": np.array([1, -1, 2], np.int32)}, r"indices\[1\] is -1"),
        ({"indices": np.array([1, 0, 2**33 + 2])}, r"indices\[2\] is 8589934594"),
        ({"indices": np.array([1, 0], np.int32)}, r"goes from 0 to 3; allowed: .* the number of entries, 2"),
        ({"columns": 0}, r"CsrMatrix\.columns: got 0"),
        ({"columns": 2**31}, r"CsrMatrix\.columns: got 2147483648"),
        ({"values": np.array([1.0, np.inf, 1.0])}, r"values\[1\] is inf"),
        ({"values": np.array([1, 2, np.longdouble("1e400")])}, r"values\[2\] is (1e\+400|inf)"),
        ({"values": np.array([1.0, 2.0])}, r"CsrMatrix\.values: has dtype float64 and shape \(2,\)"),
        ({"values": np.array([1j, 2, 3])}, r"CsrMatrix\.values: has dtype complex128"),
    ],
)
def test_what_is_no_matrix_is_refused(change, message):
    with pytest.raises(UserError, match=message):
        replace(small(), **change)


@pytest.mark.parametrize("rows", [range(2, 4), range(0, 3, 2), np.array([3]), np.array([-1])])
def test_rows_that_are_not_there_are_never_read(rows):
    for use in (
        lambda: small().predictions(rows, np.ones(3)),
        lambda: small().accumulate(rows, np.ones(len(rows)), np.ones(3)),
        lambda: small().take(rows),
    ):
        with pytest.raises(IndexError):
            use()


def test_vectors_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2,\) for 3 columns"):
        small().predictions(range(3), np.ones(2))
    with pytest.raises(ValueError, match=r"shape \(2,\) for 3 columns"):
        small().accumulate(range(3), np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match=r"slopes of shape \(2,\) for 3 rows"):
        small().accumulate(range(3), np.ones(2), np.ones(3))


def test_vectors_at_odd_addresses_and_of_other_types_are_taken():
    odd = np.frombuffer(b"-" + np.array([1.0, 2.0, 3.0]).tobytes(), np.float64, offset=1)
    assert not odd.flags.aligned
    assert small().predictions(range(3), odd).tolist() == [4.0, 0.0, 16.0]
    assert small().predictions(range(3), np.array([1, 2, 3])).tolist() == [4.0, 0.0, 16.0]


def test_later_writes_of_the_maker_do_not_show():
    indices = np.array([1, 0, 2], np.int32)
    matrix = replace(small(), indices=indices)
    indices[0] = 99
    assert matrix == small()
    for array in (matrix.indptr, matrix.indices, matrix.values):
        assert not array.flags.writeable


def test_matrices_are_equal_by_content():
    assert small() == small()
    assert hash(small()) == hash(small())
    others = [small(None), small((2.0, 1.0, 4.0)), replace(small(), columns=4), small().take(np.array([0, 2, 1])), "x"]
    assert all(small() != other for other in others)
    assert pickle.loads(pickle.dumps(small())) == small()
    assert small(None) != small((1.0, 1.0, 1.0))  # because they are stored in another way


@pytest.mark.parametrize("values", [None, (2.0, 1.0, 5.0)])
def test_a_matrix_travels_as_its_spec_and_is_mapped_there(tmp_path, values):
    matrix, kept = small(values), Inputs()
    spec = json.loads(json.dumps(to_spec(matrix, kept)))
    assert spec["kind"] == "csr-matrix"
    assert len(kept.arrays) == (2 if values is None else 3)
    kept.write(tmp_path)
    inputs = InputFolder(tmp_path)
    there = from_spec(spec, inputs)
    assert there == matrix
    for name in ("indptr", "indices", "values"):
        if getattr(matrix, name) is not None:
            mapped = inputs.arrays[spec[name]["input"]]
            assert isinstance(mapped, np.memmap)
            assert np.shares_memory(mapped, getattr(there, name))
            assert type(getattr(there, name)) is np.ndarray
