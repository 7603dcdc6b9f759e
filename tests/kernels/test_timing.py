"""Kernels of many workers' draws at one position, and their twins: the same bits, in every path."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml._kernels import reference

timing = pytest.importorskip("emuml._kernels.timing", reason="the kernels are not compiled")

words64 = st.integers(0, 2**64 - 1)
positions = words64 | st.sampled_from([0, 2**64 - 1])


def keys(pairs):
    return tuple(np.array([pair[side] for pair in pairs], np.uint64) for side in (0, 1))


@pytest.mark.parametrize("plain", [True, False])
@given(pairs=st.lists(st.tuples(words64, words64), max_size=40), position=positions)
def test_words_of_many_keys_are_those_of_each(plain, pairs, position):
    out = np.empty(len(pairs), np.uint64)
    timing.key_words(*keys(pairs), position, out, plain)
    assert out.tolist() == [reference.word(low, high, position) for low, high in pairs]


@given(
    pairs=st.lists(st.tuples(words64, words64), max_size=40),
    position=positions,
    shift=st.floats(0, 1e6),
    scale=st.floats(1e-6, 1e6),
)
def test_exponentials_of_many_keys_are_those_of_each(pairs, position, shift, scale):
    for implementation in (timing, reference):
        out = np.empty(len(pairs))
        implementation.key_exponentials(*keys(pairs), position, shift, scale, out)
        expected = [shift + scale * reference.unit_exponential(low, high, position) for low, high in pairs]
        assert out.tolist() == expected


def test_blocks_of_keys_join_without_a_seam():
    # More keys than one block of the kernel and a number that no vector divides.
    lows, highs = np.empty((2, 1571), np.uint64)
    for out in (lows, highs):
        reference.words(1, out is lows, np.arange(out.size, dtype=np.uint64), out)
    found, expected = np.empty(lows.size), np.empty(lows.size)
    timing.key_exponentials(lows, highs, 5, 0.25, 2.0, found)
    reference.key_exponentials(lows, highs, 5, 0.25, 2.0, expected)
    assert found.tobytes() == expected.tobytes()
