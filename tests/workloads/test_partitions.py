"""Every row is in one partition, and batches are what they claim."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.workloads.partitions import batch_rows, partition_bounds, partition_rows


@st.composite
def sizes(draw):
    rows = draw(st.integers(1, 500))
    return rows, draw(st.integers(1, rows))


def assert_partitions_are_fair(bounds, rows, partitions):
    assert bounds.shape == (partitions + 1,)
    assert bounds[0] == 0
    assert bounds[-1] == rows
    assert np.diff(bounds).min() >= 1
    assert np.ptp(np.diff(bounds)) <= 1


@given(sizes())
def test_each_row_is_in_one_partition_and_sizes_differ_by_one_at_most(size):
    assert_partitions_are_fair(partition_bounds(*size), *size)


@given(sizes())
def test_ranges_are_the_bounds(size):
    rows, partitions = size
    found = [row for i in range(partitions) for row in partition_rows(rows, i, partitions)]
    assert found == list(range(rows))


def test_dropping_the_remainder_would_be_noticed():
    def floor_division(rows, partitions):  # W12: rows // partitions each, the rest lost
        return np.arange(partitions + 1) * (rows // partitions)

    assert_partitions_are_fair(floor_division(30, 10), 30, 10)
    with pytest.raises(AssertionError):
        assert_partitions_are_fair(floor_division(32, 10), 32, 10)


@pytest.mark.parametrize("partitions", [0, -1, 8])
def test_impossible_numbers_of_partitions_are_refused(partitions):
    with pytest.raises(UserError, match=f"got {partitions} partitions for 7 training rows; allowed: 1 to 7"):
        partition_bounds(7, partitions)


@given(sizes(), st.integers(1, 600), st.integers(0, 2**64 - 1), st.integers(0, 10**6))
def test_batches_are_ascending_rows_of_their_partition(size, batch, seed, draw):
    rows = partition_rows(*(size[0], size[1] - 1, size[1]))
    chosen, factor = batch_rows(rows, batch, seed, size[1] - 1, draw)
    assert len(chosen) == min(batch, len(rows))
    assert set(chosen) <= set(rows)
    assert list(chosen) == sorted(set(chosen))
    assert factor == len(rows) / len(chosen)


def test_a_batch_is_named_by_seed_partition_and_draw():
    rows = range(100, 200)

    def chosen(seed, partition, draw):
        return tuple(batch_rows(rows, 5, seed, partition, draw)[0])

    assert chosen(1, 2, 3) == chosen(1, 2, 3)
    assert len({chosen(1, 2, 3), chosen(2, 2, 3), chosen(1, 3, 3), chosen(1, 2, 4)}) == 4


def test_every_subset_is_equally_likely():
    # 3000 draws over 10 subsets: expected 300 each, standard deviation 16.4; the band is 5 of them.
    counts = dict.fromkeys(combinations(range(5), 2), 0)
    for draw in range(3000):
        counts[tuple(int(row) for row in batch_rows(range(5), 2, 7, 0, draw)[0])] += 1
    assert all(abs(count - 300) < 82 for count in counts.values())
