"""Sparse tables: matrices of scipy, matrices of our own, and files of them."""

import numpy as np
import pytest
from scipy import sparse

from emuml.errors import UserError
from emuml.workloads import data
from emuml.workloads.csr import CsrMatrix

DENSE = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, -3.0]])
y = np.array([0.0, 1.0])


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_matrices_of_scipy_are_taken(form, kind):
    X = getattr(sparse, f"{form}_{kind}")(DENSE)
    table = data.load((X, y), 0, "here")
    assert isinstance(table.X, CsrMatrix)
    np.testing.assert_array_equal(table.X.to_scipy().toarray(), DENSE)
    np.testing.assert_array_equal(table.y, y)


def test_a_matrix_of_our_own_is_taken_as_it_is():
    X = data.one_hot([[3, 4]])
    assert data.load((X, y), 0, "here").X is X


def test_a_matrix_of_ones_keeps_no_values():
    assert data.load((sparse.csr_array(np.eye(2)), y), 0, "here").X.values is None


@pytest.mark.parametrize(
    ("X", "targets", "what", "where"),
    [
        (sparse.csr_array(DENSE), y[:1], "has shape (1,)", "here.y"),
        (sparse.csr_array(DENSE * np.nan), y, "values: values[0] is nan", "here.X"),
        (sparse.csr_array(DENSE * 1j), y, "values: has dtype complex128 and shape (3,)", "here.X"),
        (sparse.csr_array((0, 3)), y, "has shape (0, 3)", "here.X"),
        (sparse.coo_array(np.ones(3)), y, "has shape (3,)", "here.X"),
    ],
)
def test_bad_matrices_are_named(X, targets, what, where):
    with pytest.raises(UserError) as caught:
        data.load((X, targets), 0, "here")
    assert caught.value.what == what
    assert caught.value.where == where
    assert caught.value.allowed


def parts(matrix, **changes):
    stored = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
    return {**stored, "format": b"csr", "y": y, **changes}


def test_a_file_as_save_npz_writes_it_with_targets(tmp_path):
    sparse.save_npz(tmp_path / "mine.npz", sparse.csr_array(DENSE))
    with np.load(tmp_path / "mine.npz") as stored:
        np.savez(tmp_path / "with_y.npz", y=y, **stored)
    table = data.load(str(tmp_path / "with_y.npz"), 0, "here")
    np.testing.assert_array_equal(table.X.to_scipy().toarray(), DENSE)
    assert table.source == f"file {tmp_path / 'with_y.npz'}"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"format": b"csc"}, "holds a matrix in the format 'csc'"),
        ({"data": None}, "has no array data"),
        ({"shape": np.array([2.5, 3.0])}, "shape is [2.5, 3.0]"),
        ({"shape": (9, 3)}, "shape says 9 rows, indptr 2"),
        ({"shape": (2, 2)}, "indices: indices[2] is 2"),
        ({"indices": np.array([0, 1])}, "indptr: goes from 0 to 3"),
        ({"y": None}, "has no array y"),
        ({"y": np.ones(3)}, "has shape (3,)"),
    ],
)
def test_bad_files_are_named(changes, what, tmp_path):
    stored = {name: array for name, array in parts(sparse.csr_array(DENSE), **changes).items() if array is not None}
    np.savez(tmp_path / "bad.npz", **stored)
    with pytest.raises(UserError) as caught:
        data.load(str(tmp_path / "bad.npz"), 0, "here")
    assert what in caught.value.what
    assert "bad.npz" in str(caught.value)
    assert caught.value.allowed
