"""The weighted sum and its twin: one order of additions, the same bits, clear refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import emuml._kernels as kernels
from emuml._kernels import reference

compiled = pytest.importorskip("emuml._kernels.decode", reason="the kernels are not compiled")


@pytest.fixture(params=["reference", "compiled"])
def weighted_sum(request, monkeypatch):
    """The front over either implementation."""
    chosen = {"reference": reference, "compiled": compiled}[request.param]
    monkeypatch.setattr(kernels, "_weighted_sum", chosen.weighted_sum)
    return kernels.weighted_sum


def element_by_element(weights, arrays, dtype):
    """The definition, one rounded operation at a time."""
    out = []
    for column in zip(*(array.tolist() for array in arrays), strict=True):
        total = dtype(weights[0]) * dtype(column[0])
        for weight, number in zip(weights[1:], column[1:], strict=True):
            total = total + dtype(weight) * dtype(number)
        out.append(total)
    return np.array(out, dtype)


def same_bits(a, b):
    """Equal bits, up to which NaN it is."""
    return np.array_equal(np.isnan(a), np.isnan(b)) and a[~np.isnan(a)].tobytes() == b[~np.isnan(b)].tobytes()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(data=st.data())
def test_both_add_one_by_one_in_the_order_given(dtype, data):
    count, size = data.draw(st.integers(1, 11)), data.draw(st.integers(0, 9))
    numbers = st.floats(width=32) | st.sampled_from([0.1, -0.0, 1e30, -1e30, 3.0])
    rows = list(data.draw(hnp.arrays(dtype, (count, size), elements=numbers.map(lambda x: float(np.float32(x))))))
    weights = np.array(data.draw(st.lists(st.floats(-1e3, 1e3), min_size=count, max_size=count)))
    with np.errstate(all="ignore"):
        expected = element_by_element(weights, rows, dtype)
        for implementation in (reference, compiled):
            out = np.empty(size, dtype)
            assert implementation.weighted_sum(weights.astype(dtype), rows, out)
            assert same_bits(out, expected), implementation.__name__


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 2, 3, 17, 16_383, 16_384, 16_385, 40_000])
@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 9])
def test_blocks_and_groups_of_rows_do_not_show(dtype, size, count):
    generator = np.random.default_rng(size + count)
    rows = [generator.standard_normal(size).astype(dtype) for _ in range(count)]
    weights = generator.standard_normal(count).astype(dtype)
    found, expected = np.full(size, np.nan, dtype), np.empty(size, dtype)
    assert compiled.weighted_sum(weights, rows, found)
    assert reference.weighted_sum(weights, rows, expected)
    assert found.tobytes() == expected.tobytes()


def test_the_order_of_rows_is_kept(weighted_sum):
    rows, out = [np.array([1e16]), np.array([1.0]), np.array([-1e16])], np.empty(1)
    weighted_sum([1, 1, 1], rows, out)
    assert out.tolist() == [0.0]
    weighted_sum([1, 1, 1], [rows[0], rows[2], rows[1]], out)
    assert out.tolist() == [1.0]


def test_products_are_rounded_before_they_are_added(weighted_sum):
    # 0.1 * 10 rounds to 1; a fused multiply-add would leave 5.55e-17.
    out = np.empty(8)
    weighted_sum([1.0, 0.1], [np.full(8, -1.0), np.full(8, 10.0)], out)
    assert out.tolist() == [0.0] * 8


def test_a_single_row_of_weight_one_comes_back_bit_for_bit(weighted_sum):
    row, out = np.array([-0.0, np.inf, 5e-324]), np.empty(3)
    weighted_sum([1.0], [row], out)
    assert out.tobytes() == row.tobytes()


def test_a_row_of_weight_zero_is_read(weighted_sum):
    out = np.empty(2)
    weighted_sum([1.0, 0.0], [np.ones(2), np.array([np.nan, 5.0])], out)
    assert np.isnan(out[0])
    assert out[1] == 1.0


def test_read_only_unaligned_and_many_dimensional_rows_are_taken(weighted_sum):
    frozen = np.arange(6.0).reshape(2, 3)
    frozen.setflags(write=False)
    unaligned = np.frombuffer(b"-" + frozen.tobytes(), np.float64, offset=1).reshape(2, 3)
    assert not unaligned.flags.aligned
    out = np.empty((2, 3))
    weighted_sum((2, 0.5), (frozen, unaligned), out)
    assert np.array_equal(out, 2.5 * frozen)


def test_weights_are_rounded_to_the_type_of_the_arrays(weighted_sum):
    out = np.empty(1, np.float32)
    weighted_sum([0.1], [np.ones(1, np.float32)], out)
    assert out[0] == np.float32(0.1)


def read_only(array):
    array.setflags(write=False)
    return array


SHARED = np.zeros(10)
MISFITS = [
    ([], [], np.empty(2), "at least one"),
    ([1.0], [np.ones(2), np.ones(2)], np.empty(2), r"got \(1,\) for 2 arrays"),
    ([[1.0]], [np.ones(2)], np.empty(2), r"got \(1, 1\) for 1 arrays"),
    ([1.0, 1.0], [np.ones(2), np.ones(3)], np.empty(2), r"array 1 is float64 \(3,\), the result is float64 \(2,\)"),
    ([1.0], [np.ones((2, 1))], np.empty(2), r"array 0 is float64 \(2, 1\)"),
    ([1.0], [np.ones(2, np.float32)], np.empty(2), "array 0 is float32"),
    ([1.0], [np.ones(2, ">f8")], np.empty(2), "array 0 is >f8"),
    ([1.0], [np.ones(4)[::2]], np.empty(2), "array 0 .* not C-contiguous"),
    ([1.0], [np.ones(2, np.int64)], np.empty(2, np.int64), "the result must be .* got int64"),
    ([1.0], [np.ones(2)], np.empty(4)[::2], "the result must be .* not C-contiguous"),
    ([1.0], [np.ones(2)], read_only(np.empty(2)), "the result must be .* read-only"),
    ([1.0], [np.ones(1)], np.frombuffer(bytearray(9), np.float64, offset=1), "the result must be .* not aligned"),
    ([1.0], [SHARED[2:6]], SHARED[5:9], "array 0 shares memory"),
]


@pytest.mark.parametrize(("weights", "arrays", "out", "message"), MISFITS)
def test_what_does_not_fit_is_refused_and_nothing_is_written(weighted_sum, weights, arrays, out, message):
    before = out.tobytes()
    with pytest.raises(ValueError, match=message):
        weighted_sum(weights, arrays, out)
    assert out.tobytes() == before


def test_what_is_no_array_is_refused_by_the_kernel():
    assert not compiled.weighted_sum(np.ones(1), ["text"], np.empty(1))
    assert not compiled.weighted_sum(np.ones(1), [b"12345678"], np.empty(1))


def test_neighbours_in_memory_are_not_shared(weighted_sum):
    memory = np.ones(6)
    weighted_sum([2.0, 3.0], [memory[:2], memory[4:]], memory[2:4])
    assert memory.tolist() == [1, 1, 5, 5, 1, 1]
