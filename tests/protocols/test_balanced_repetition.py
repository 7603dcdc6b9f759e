"""Balanced repetition: copies of intervals, exact for any stragglers up to the promise, by tilings."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.protocols.gradient_coding import BalancedRepetition, FractionalRepetition
from tests.protocols.code_checks import check_decoding, check_exact, check_held, integer_gradients


@st.composite
def designs(draw, most=40):
    workers = draw(st.integers(1, most))
    return workers, draw(st.integers(0, workers - 1))


@given(designs())
def test_every_copy_cuts_all_partitions_into_intervals_of_equal_size(case):
    workers, stragglers = case
    code = BalancedRepetition(stragglers).build(workers)

    check_held(code, replication=stragglers + 1)
    assert code.loads.mean() == pytest.approx(stragglers + 1)
    for copy in range(stragglers + 1):
        held = [code.assignment(worker) for worker in range(copy, workers, stragglers + 1)]
        assert [partition for interval in held for partition in interval] == list(range(workers))
        sizes = [len(interval) for interval in held]
        assert max(sizes) - min(sizes) <= 1
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(("workers", "stragglers"), [(7, 2), (8, 2), (9, 2), (10, 3), (11, 1), (11, 3)])
def test_every_pattern_of_at_most_s_stragglers_is_exact(workers, stragglers):
    code = BalancedRepetition(stragglers).build(workers)
    gradients = integer_gradients(workers)
    for n_lost in range(stragglers + 1):
        for lost in combinations(range(workers), n_lost):
            received = [worker for worker in range(workers) if worker not in lost]
            decoding = code.decode(received)
            assert (decoding.error, decoding.noise_gain) == (0.0, 1.0)
            assert set(decoding.weights.tolist()) <= {0.0, 1.0}
            check_exact(code, gradients, received)


@given(designs(), st.data())
def test_random_patterns_of_at_most_s_stragglers_are_exact(case, data):
    workers, stragglers = case
    lost = data.draw(st.sets(st.integers(0, workers - 1), max_size=stragglers))
    code = BalancedRepetition(stragglers).build(workers)

    check_exact(code, integer_gradients(workers), [worker for worker in range(workers) if worker not in lost])


@given(designs(16), st.data())
def test_the_error_is_the_number_of_partitions_that_are_missing(case, data):
    workers, stragglers = case
    code = BalancedRepetition(stragglers).build(workers)
    received = data.draw(st.lists(st.integers(0, workers - 1), unique=True))
    decoding = code.decode(received)
    coefficients = decoding.weights @ code.encode_matrix[received]

    check_decoding(code, received)
    assert set(coefficients.tolist()) <= {0.0, 1.0}
    assert decoding.error == np.count_nonzero(coefficients == 0.0)


@given(designs(16), st.data())
def test_a_round_closes_once_the_answers_decode_exactly(case, data):
    workers, stragglers = case
    code = BalancedRepetition(stragglers).build(workers)
    order = np.array(data.draw(st.permutations(range(workers))))
    last = code.stop_rule().stop_index(order)

    assert last <= workers - stragglers
    assert code.decode(order[:last]).error == 0.0
    assert code.decode(order[: last - 1]).error > 0.0


def test_intervals_of_several_copies_tile_together():
    code = BalancedRepetition(1).build(5)  # (0, 1) (2, 3) (4,) and (0, 1, 2) (3, 4)
    assert [code.assignment(worker) for worker in (1, 3)] == [(0, 1, 2), (3, 4)]
    code = BalancedRepetition(2).build(8)
    mixed = [
        received
        for size in range(1, 9)
        for received in combinations(range(8), size)
        if code.decode(received).error == 0.0 and not any(set(range(copy, 8, 3)) <= set(received) for copy in range(3))
    ]

    assert mixed
    assert all(len({worker % 3 for worker in received}) > 1 for received in mixed)


@pytest.mark.parametrize(("workers", "stragglers"), [(12, 2), (12, 0), (6, 5), (1, 0)])
def test_it_is_fractional_repetition_if_copies_divide_the_workers(workers, stragglers):
    ours = BalancedRepetition(stragglers).build(workers)
    theirs = FractionalRepetition(stragglers + 1).build(workers)

    rows = sorted(ours.assignment(worker) for worker in range(workers))
    assert rows == sorted(theirs.assignment(worker) for worker in range(workers))
    assert set(ours.loads) == {theirs.load}


@pytest.mark.parametrize(("workers", "stragglers"), [(30, 3), (32, 2), (1000, 7)])
def test_larger_designs_at_random(workers, stragglers):
    code, draws = BalancedRepetition(stragglers).build(workers), np.random.default_rng(workers)
    for _ in range(200):
        lost = draws.permutation(workers)[:stragglers]
        assert code.decode(np.setdiff1d(np.arange(workers), lost)).error == 0.0
