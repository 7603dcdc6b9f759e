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


# Rounds


@st.composite
def closings(draw, workers):
    """Return a count, groups of workers and their number: what closes a round."""
    group_of = draw(st.lists(st.integers(0, 3), min_size=workers, max_size=workers))
    names = {group: name for name, group in enumerate(sorted(set(group_of)))}
    count = draw(st.integers(0, workers))
    if count and draw(st.booleans()):
        return count, np.empty(0, np.int64), 0
    return count, np.array([names[group] for group in group_of], np.int64), len(names)


# Words that many others are near to, or equal; 2**11 of them share a draw's 53 bits.
near = st.builds(
    lambda centre, steps, rest: min(max(centre + (steps << 11) + rest, 0), 2**64 - 1),
    st.sampled_from([0, 2**63, 3 * 2**61, 2**64 - 1]),
    st.integers(-70, 70),
    st.sampled_from([0, 0, 1, 2047]),
)


def word_rounds(words, start, shift, scale, closing):
    found = []
    for implementation in (timing, reference):
        used = np.empty(len(words), np.uint8)
        times = implementation.word_round(np.array(words, np.uint64), start, shift, scale, *closing, used)
        found.append((*times, used.tolist()))
    return found


@given(
    words=st.lists(words64 | near, min_size=1, max_size=12),
    start=st.sampled_from([0.0, 1.0, 1e6, 1e15]),
    shift=st.sampled_from([0.0, 0.05, 1e4]),
    scale=st.sampled_from([0.5, 1.0, 1e-9]),
    data=st.data(),
)
def test_selected_words_close_a_round_as_all_of_its_times_do(words, start, shift, scale, data):
    # Far starts and small scales round many words to one time; near words try the order of the logarithm.
    compiled, expected = word_rounds(words, start, shift, scale, data.draw(closings(len(words))))
    assert compiled == expected


@pytest.mark.parametrize("count", [1, 150, 299, 300])
@pytest.mark.parametrize("step", [1, 1 << 11, 1 << 16, 1 << 20])
def test_a_round_of_neighbouring_words_is_decided_by_its_times(step, count):
    # Three hundred words in a row: selection alone would order by words what time orders by worker.
    words = np.random.default_rng(step).permutation(np.arange(300, dtype=np.uint64)) * np.uint64(step)
    words = np.append(words + np.uint64(2**62), np.uint64(2**63))  # the last answer is beyond doubt
    compiled, expected = word_rounds(words, 1.0, 0.0, 0.5, (count, np.empty(0, np.int64), 0))
    assert compiled == expected


@pytest.mark.parametrize("groups", [0, 3, 60])
@pytest.mark.parametrize("count", [0, 1, 100, 170, 300])
def test_drawn_rounds_are_those_of_the_twin(count, groups):
    if not count and not groups:
        return
    lows, highs = np.random.default_rng(3).integers(0, 2**64, (2, 300), np.uint64)
    group_of = np.arange(300 if groups else 0, dtype=np.int64) % max(groups, 1)
    for to_all, shown in ((False, 4), (True, 4), (False, 0)):
        found = []
        for implementation in (timing, reference):
            decided, ended, used = np.empty(4), np.empty(4), np.empty((shown, 300), np.uint8)
            implementation.exponential_rounds(
                lows, highs, 7, 2.0, 0.05, 0.5, count, group_of, groups, to_all, decided, ended, used
            )
            found.append((decided.tolist(), ended.tolist(), used.tolist()))
        assert found[0] == found[1]


few_times = st.sampled_from([0.0, 1.0, 1.0, 2.0, np.inf])


@given(st.lists(few_times | st.floats(0, 3), min_size=1, max_size=12), st.data())
def test_given_times_close_a_round_as_the_twin_says(times, data):
    count, group_of, groups = data.draw(closings(len(times)))
    array = np.array(times)
    at = np.sort(array)[count - 1] if count else np.inf
    if groups:
        covers = [implementation.cover_time(array, group_of, groups) for implementation in (timing, reference)]
        assert covers[0] == covers[1]
        at = min(at, covers[0])
    marks = []
    for implementation in (timing, reference):
        used = np.empty(len(times), np.uint8)
        implementation.mark_used(array, at, count, group_of, groups, used)
        marks.append(used.tolist())
    assert marks[0] == marks[1]
