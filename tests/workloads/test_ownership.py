"""What declarations and problems hold stays as it was, whatever becomes of the arrays that they were made of."""

import copy
import pickle

import numpy as np
import pytest

from emuml.workloads import CsrMatrix, LinearRegression
from emuml.workloads.optimizers import GradientDescent
from emuml.workloads.problem import RegressionProblem

COPIES = [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]


def alias(array):
    """A read-only view of an array that stays writable."""
    view = array[:]
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("name", ["indptr", "indices", "values"])
def test_a_view_of_writable_memory_is_no_way_into_a_matrix(name):
    arrays = {"indptr": np.array([0, 3]), "indices": np.array([0, 1, 2], np.int32), "values": np.array([1.0, 2.0, 3.0])}
    matrix = CsrMatrix(**{**arrays, name: alias(arrays[name])}, columns=3)
    arrays[name][:] = 0
    assert matrix.predictions(range(1), np.array([1.0, 2.0, 4.0])).tolist() == [17.0]


def test_a_view_of_writable_memory_is_no_way_into_a_declaration():
    X, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    declared = LinearRegression(data=(alias(X), alias(y)))
    X[:], y[:] = 99, 99
    np.testing.assert_array_equal(declared.data[0], np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(declared.data[1], np.arange(3.0))


@pytest.mark.parametrize("given", [np.asarray, alias])
def test_writable_arrays_are_no_way_into_a_problem(given):
    arrays = [np.ones((3, 2)), np.ones(3), np.ones((1, 2)), np.ones(1), np.ones(2)]
    problem = RegressionProblem("linear", *map(given, arrays), GradientDescent(rate=0.1))
    before = problem.metrics(np.zeros(2))
    for array in arrays:
        array[:] = 99
    assert problem.metrics(np.zeros(2)) == before
    assert problem.initial.tolist() == [1.0, 1.0]


def test_mapped_files_are_shared_by_a_problem(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((3, 2)))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    problem = RegressionProblem("linear", X, np.ones(3), X[:0], np.ones(0), np.ones(2), GradientDescent(rate=0.1))
    assert np.shares_memory(problem.features, X)


@pytest.mark.parametrize("copied", COPIES)
def test_copies_are_checked_and_sealed_anew(copied):
    matrix = CsrMatrix(np.array([0, 1]), np.array([0]), 3, np.array([2.0]))
    assert matrix.digest  # which is cached
    there = copied(matrix)
    assert there == matrix
    assert "digest" not in vars(copied(matrix))
    assert not any(array.flags.writeable for array in (there.indptr, there.indices, there.values))

    declared = LinearRegression(data=(np.ones((3, 2)), np.arange(3.0)), validation=0.0)
    assert copied(declared) == declared
    assert not any(array.flags.writeable for array in copied(declared).data)

    problem = declared.problem(1)
    assert copied(problem) == problem
    assert not copied(problem).features.flags.writeable
