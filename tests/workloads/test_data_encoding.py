"""One-hot encoding: what becomes of columns and pairs of them, against a definition that is slow and plain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.workloads.data.encoding import distinct_pairs, one_hot

VALUES = {
    "small": st.integers(-3, 3),
    "large": st.integers(-(2**62), 2**62),
    "halves": st.integers(-6, 6).map(lambda n: n / 2),
    "floats": st.floats(allow_nan=False, allow_infinity=False),
    "text": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3),
}


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
    return [draw(st.lists(VALUES[kind], min_size=rows, max_size=rows)) for kind in kinds]


def plainly(columns, pairs):
    """Return the dense matrix by the definition."""
    columns = [*columns, *(list(zip(columns[a], columns[b], strict=True)) for a, b in pairs)]
    blocks = [[[float(value == known) for known in sorted(set(column))] for value in column] for column in columns]
    return np.hstack([np.array(block) for block in blocks])


@given(tables(), st.data())
def test_each_distinct_value_is_a_column(columns, data):
    places = st.integers(0, len(columns) - 1)
    pairs = data.draw(st.lists(st.tuples(places, places), max_size=3))
    matrix = one_hot(columns, pairs)
    np.testing.assert_array_equal(matrix.to_scipy().toarray(), plainly(columns, pairs))
    assert matrix.values is None
    assert (np.diff(matrix.indptr) == len(columns) + len(pairs)).all()
    assert (np.diff(matrix.indices.reshape(len(matrix), -1)) > 0).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=20))
def test_pairs_that_occur_are_counted(rows):
    left, right = np.array(rows).T
    coded = [(left, 4), (right, 5)]
    assert distinct_pairs(coded, [(0, 1), (1, 0)]) == 2 * len(set(rows))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint64", "float32", "float64", "bool"])
def test_every_sort_of_number_is_taken(dtype):
    column = np.array([0, 1, 1, 0]).astype(dtype)
    np.testing.assert_array_equal(one_hot([column]).indices, [0, 1, 1, 0])


def test_the_ends_of_a_type_are_values_like_others():
    for dtype in ("int8", "int64", "uint64"):
        ends = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
        np.testing.assert_array_equal(one_hot([ends]).indices, [1, 0, 1])


def test_objects_of_text_are_text():
    np.testing.assert_array_equal(one_hot([np.array(["b", "a"], object)]).indices, [1, 0])


@pytest.mark.parametrize(
    ("columns", "what", "where"),
    [
        ([], "there are no rows", "here"),
        ([[]], "there are no rows", "here"),
        ([[1, 2], [1]], "has 1 rows", "here[1]"),
        ([[1.0, np.nan]], "row 1 is nan", "here[0]"),
        ([[1.0], [-np.inf]], "row 0 is -inf", "here[1]"),
        ([np.array([1, "a", None], object)], "has dtype object and shape (3,)", "here[0]"),
        ([np.eye(2)], "has dtype float64 and shape (2, 2)", "here[0]"),
        ([[1j]], "has dtype complex128 and shape (1,)", "here[0]"),
    ],
)
def test_what_cannot_be_encoded_is_named(columns, what, where):
    with pytest.raises(UserError) as caught:
        one_hot(columns, (), "here")
    assert caught.value.what == what
    assert caught.value.where == where
    assert caught.value.allowed
