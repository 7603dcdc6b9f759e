"""Cyclic codes: their rows, that any s stragglers do no harm, decoding against least squares, and what they refuse."""

import hashlib
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.protocols.gradient_coding import CyclicMDS, CyclicRepetition, YeAbbe
from emuml.protocols.gradient_coding.codes.cyclic import cyclic_factors, parity_check, solved
from emuml.protocols.gradient_coding.codes.cyclic_mds import generator, positions_of
from emuml.protocols.gradient_coding.codes.linear import LinearCode
from emuml.protocols.gradient_coding.decoders.null_space import NullSpace
from emuml.protocols.gradient_coding.decoders.seam import Rows
from emuml.shapes import All, Count
from tests.protocols.code_checks import (
    check_exact_within_bound,
    check_h,
    check_linear_decoding,
    check_matrix,
    check_more_is_no_worse,
    check_set_decides,
    integer_gradients,
    subsets,
)

ORDERS = ("stride", "natural", "seeded")


def is_real(workers, stragglers):
    return not stragglers or (workers - stragglers) % 2 == 1


@st.composite
def built(draw, most=16):
    """Return any cyclic code."""
    workers = draw(st.integers(1, most))
    stragglers = draw(st.integers(0, workers - 1))
    declaration = CyclicRepetition(stragglers)
    if is_real(workers, stragglers) and draw(st.booleans()):
        declaration = CyclicMDS(stragglers, draw(st.sampled_from(ORDERS)))
    return declaration.build(workers, seed=draw(st.integers(0, 5)))


def sets_of(code):
    return st.lists(st.integers(0, code.workers - 1), unique=True)


# Structure.


@given(built(24))
def test_a_worker_holds_s_plus_1_neighbouring_partitions(code):
    held = code.stragglers + 1
    check_matrix(code)
    for worker, position in enumerate(code.order.tolist()):
        assert set(code.assignment(worker)) == {(position + t) % code.workers for t in range(held)}
        assert list(code.assignment(worker)) == sorted(code.assignment(worker))
    assert np.all(np.count_nonzero(code.encode_matrix, axis=0) == held)
    assert code.load == held
    assert code.partitions == code.workers


@given(st.integers(1, 24), st.data())
def test_rows_of_cyclic_repetition_are_orthogonal_to_h(workers, data):
    stragglers, seed = data.draw(st.integers(0, workers - 1)), data.draw(st.integers(0, 20))
    checks = parity_check(workers, stragglers, seed)
    code = CyclicRepetition(stragglers).build(workers, seed)

    assert checks.shape == (stragglers, workers)
    check_h(checks, code)


@pytest.mark.parametrize(
    ("workers", "stragglers", "factors"),
    [
        (10, 3, [1, 2.618034, 2.618034, 1]),
        (12, 3, [1, 1 + math.sqrt(3), 1 + math.sqrt(3), 1]),
        (30, 1, [1, 1]),
        (7, 6, [1] * 7),
    ],
)
def test_factors_of_the_cyclic_mds_code(workers, stragglers, factors):
    assert generator(workers, stragglers) == pytest.approx(factors, abs=5e-7)


@given(st.integers(1, 60), st.data())
def test_rows_of_the_cyclic_mds_code_have_the_roots_that_they_should(workers, data):
    stragglers = data.draw(st.integers(0, workers - 1).filter(lambda s: is_real(workers, s)))
    factors = generator(workers, stragglers)
    frequencies = np.arange(workers)
    values = np.exp(2j * np.pi * np.outer(frequencies, np.arange(stragglers + 1)) / workers) @ factors
    roots = (2 * frequencies > workers - stragglers) & (2 * frequencies < workers + stragglers)

    assert roots.sum() == stragglers
    assert np.abs(values[roots]) == pytest.approx(0.0, abs=1e-12 * factors.sum())
    sines = [2 * math.sin(math.pi * j / workers) for j in frequencies[roots]]
    assert factors.sum() == pytest.approx(math.prod(sines), rel=1e-12)


def test_h_is_the_same_on_every_machine():
    """The digests stand for the bits: of H, and of rows that no library has solved for."""
    checks = parity_check(30, 5, seed=7)

    assert hashlib.sha256(checks.tobytes()).hexdigest()[:16] == H_DIGEST
    assert hashlib.sha256(cyclic_factors(checks).tobytes()).hexdigest()[:16] == B_DIGEST


H_DIGEST, B_DIGEST = "b8fcd8781b5d457a", "7cec8e40f91b3bdb"


def test_h_depends_on_seed_workers_and_stragglers_alone():
    first = CyclicRepetition(2).build(6, seed=3).encode_matrix

    assert np.array_equal(first, CyclicRepetition(2).build(6, seed=3, collect=2).encode_matrix)
    assert not np.array_equal(first, CyclicRepetition(2).build(6, seed=4).encode_matrix)
    assert not np.array_equal(parity_check(6, 2, 3), parity_check(7, 2, 3)[:, :6])
    assert not np.array_equal(parity_check(6, 2, 3), parity_check(6, 3, 3)[:2])


@given(st.integers(0, 6), st.integers(1, 5), st.integers(0, 99))
def test_elimination_solves_all_systems(size, count, seed):
    draws = np.random.default_rng(seed)
    systems, right = draws.standard_normal((count, size, size)), draws.standard_normal((count, size))
    found = solved(systems, right)

    assert np.einsum("kij,kj->ki", systems, found) == pytest.approx(
        right, abs=1e-9 * max(1, np.abs(found).max(initial=0))
    )


@pytest.mark.parametrize("order", ORDERS)
@given(workers=st.integers(1, 60))
def test_an_order_is_a_permutation(order, workers):
    assert sorted(positions_of(workers, order, seed=1)) == list(range(workers))


def test_a_seeded_order_is_the_runs_and_the_others_have_no_seed():
    assert not np.array_equal(positions_of(30, "seeded", 1), positions_of(30, "seeded", 2))
    assert np.array_equal(CyclicMDS(3).build(30, seed=1).order, CyclicMDS(3).build(30, seed=2).order)
    assert np.array_equal(positions_of(30, "natural"), np.arange(30))


@pytest.mark.parametrize(("workers", "stragglers"), [(30, 9), (100, 9), (300, 9), (1000, 5)])
def test_workers_of_one_rack_are_far_apart_in_the_order_of_the_code(workers, stragglers):
    positions = positions_of(workers, "stride")
    rack = np.sort(positions[:stragglers])
    gaps = np.diff(np.append(rack, rack[0] + workers))
    code = CyclicMDS(stragglers).build(workers)

    assert gaps.min() >= workers / (4 * stragglers)  # evenly spread ones are 1/stragglers apart
    assert code.decode(range(stragglers, workers)).noise_gain < 2.0
    if workers != 300:  # there the natural order drowns it
        natural = CyclicMDS(stragglers, "natural").build(workers)
        assert natural.decode(range(stragglers, workers)).noise_gain == pytest.approx(code.contiguous_gain, rel=1e-3)


@given(built())
def test_a_code_survives_pickling(code):
    again = pickle.loads(pickle.dumps(code))

    assert np.array_equal(again.encode_matrix, code.encode_matrix)
    assert again.decode(range(code.workers)).weights.tobytes() == code.decode(range(code.workers)).weights.tobytes()
    assert (again.stragglers, again.contiguous_gain) == (code.stragglers, code.contiguous_gain)


# Exactness.


def codes_of(workers):
    for stragglers in range(workers):
        yield CyclicRepetition(stragglers).build(workers, seed=1)
        if is_real(workers, stragglers):
            yield CyclicMDS(stragglers, "natural").build(workers)


@pytest.mark.parametrize("workers", range(1, 8))
def test_every_pattern_of_at_most_s_stragglers_is_exact(workers):
    gradients = integer_gradients(workers)
    for code in codes_of(workers):
        for n_lost in range(code.stragglers + 1):
            for received in subsets(workers, workers - n_lost):
                check_exact_within_bound(code, gradients, received)


@settings(max_examples=40)
@given(st.integers(8, 40), st.data())
def test_random_patterns_of_at_most_s_stragglers_are_exact(workers, data):
    stragglers = data.draw(st.integers(0, min(workers - 1, 9)))
    lost = data.draw(st.sets(st.integers(0, workers - 1), max_size=stragglers))
    received = [worker for worker in range(workers) if worker not in lost]
    check_exact_within_bound(CyclicRepetition(stragglers).build(workers), integer_gradients(workers), received)
    if is_real(workers, stragglers):
        check_exact_within_bound(CyclicMDS(stragglers).build(workers), integer_gradients(workers), received)


@pytest.mark.parametrize(
    ("declaration", "workers", "seed"),
    [(CyclicMDS(54), 55, 0), (CyclicMDS(47), 48, 0), (CyclicRepetition(5), 6, 126519), (YeAbbe(7, 1), 8, 0)],
)
def test_the_rounding_of_a_single_answer_is_no_reason_to_refuse_it(declaration, workers, seed):
    code = declaration.build(workers, seed)
    for worker in range(workers):
        assert code.decode([worker]).error < 1e-24


@settings(max_examples=50)
@given(built(45), st.data())
def test_what_can_be_decoded_is_decoded(code, data):
    lost = data.draw(st.sets(st.integers(0, code.workers - 1), max_size=code.stragglers))
    if code.contiguous_gain < 1e9:
        received = [worker for worker in range(code.workers) if worker not in lost]
        assert code.decode(received).error < 1e-10


def test_nobody_is_asked_for_a_worker_that_did_not_answer():
    code = CyclicMDS(3).build(10)
    decoding = code.decode([9, 0, 4, 5, 6, 7, 8])

    assert decoding.weights.shape == (7,)
    assert decoding.covered == (0, 4, 5, 6, 7, 8, 9)


# Decoding.


@settings(max_examples=60)
@given(built(12), st.data())
def test_decoding_is_that_of_least_squares_for_any_set(code, data):
    decoding = check_linear_decoding(code, data.draw(sets_of(code)))
    if decoding.weights.size >= code.workers - code.stragglers:
        assert decoding.error <= 1e-9
    if not decoding.weights.size:
        assert decoding.error == code.workers


@settings(max_examples=60)
@given(built(12), st.data())
def test_the_set_of_responders_decides(code, data):
    received = data.draw(sets_of(code))
    check_set_decides(code, received, data.draw(st.permutations(received)))


@settings(max_examples=60)
@given(built(12), st.data())
def test_more_responders_never_decode_worse(code, data):
    check_more_is_no_worse(code, data.draw(sets_of(code)), data.draw(sets_of(code)))


@pytest.mark.parametrize("declaration", [CyclicRepetition(3), CyclicRepetition(5), CyclicMDS(3), CyclicMDS(9)])
@pytest.mark.parametrize("seed", range(3))
def test_weights_are_those_of_least_squares_at_30_workers(declaration, seed):
    """To 1e-9 of their length, with as many stragglers as are tolerated and with fewer."""
    code, draws = declaration.build(30, seed), np.random.default_rng(seed)
    for missing in [*range(code.stragglers + 1), *[code.stragglers] * 20]:
        received = np.sort(draws.choice(30, 30 - missing, replace=False))
        least = np.linalg.lstsq(code.encode_matrix[received].T, np.ones(30), rcond=None)[0]
        off = np.linalg.norm(code.decode(received).weights - least)
        assert off <= 1e-9 * np.linalg.norm(least)


@given(st.integers(2, 12), st.data())
def test_shifting_the_stragglers_of_the_mds_code_shifts_its_weights(workers, data):
    stragglers = data.draw(st.integers(0, workers - 1).filter(lambda s: is_real(workers, s)))
    code = CyclicMDS(stragglers, "natural").build(workers)
    received = np.array(data.draw(st.lists(st.integers(0, workers - 1), unique=True, min_size=1)))
    shift = data.draw(st.integers(0, workers - 1))
    found = code.decode(received)

    size = 1e-9 * (1.0 + np.abs(found.weights).max())
    assert code.decode((received + shift) % workers).weights == pytest.approx(found.weights, abs=size)


@given(st.integers(2, 9), st.data())
def test_relabelling_workers_permutes_the_weights(workers, data):
    code = CyclicRepetition(data.draw(st.integers(0, workers - 1))).build(workers)
    labels = np.array(data.draw(st.permutations(range(workers))))  # of the worker that takes each row
    held = code.stragglers + 1
    rows = np.argsort(labels)
    entries = (rows[:, None] * held + np.arange(held)).ravel()
    renamed = Rows(workers, code.rows.indptr, code.rows.indices[entries], code.rows.values[entries])
    other = LinearCode(renamed, code.rule, NullSpace(renamed, code.stragglers))
    received = data.draw(st.lists(st.integers(0, workers - 1), unique=True, min_size=1))
    found = code.decode(received).weights

    assert other.decode(labels[received]).weights == pytest.approx(found, abs=1e-8 * (1.0 + np.abs(found).max()))


# When a round closes, and what is refused.


def test_a_round_closes_at_n_minus_s_answers_or_at_collect():
    for declaration in (CyclicRepetition(3), CyclicMDS(3)):
        assert declaration.build(10).stop_rule() == Count(10, 7)
        assert declaration.build(10, collect=4).stop_rule() == Count(10, 4)
        assert declaration.build(10, collect=9).stop_rule() == Count(10, 7)
    assert CyclicRepetition(0).build(4).stop_rule() == All(4)


def test_stopping_early_is_approximate_and_says_so():
    code = CyclicMDS(3).build(10, collect=5)
    decoding = check_linear_decoding(code, [0, 2, 3, 7, 8])

    assert 0.1 < decoding.error < 10


@pytest.mark.parametrize("declaration", [CyclicRepetition(0), CyclicMDS(0), CyclicMDS(0, "natural")])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_without_stragglers_everybody_has_one_partition(declaration, workers):
    code = declaration.build(workers)

    assert np.array_equal(code.encode_matrix[np.argsort(code.order)], np.eye(workers))
    assert code.decode(range(workers)).error <= 1e-30
    assert code.decode([]).error == workers


def test_with_all_but_one_stragglers_everybody_has_everything():
    code = CyclicMDS(4).build(5)

    assert code.decode([3]).weights == pytest.approx([1.0], rel=1e-14)
    assert code.load == 5


@pytest.mark.parametrize("declaration", [CyclicRepetition(5), CyclicMDS(5)])
def test_as_many_stragglers_as_workers_are_refused(declaration):
    with pytest.raises(UserError, match=r"an integer in 0\.\.4; the nearest is 4"):
        declaration.build(5)


def test_a_code_that_is_not_real_is_refused_with_what_fits():
    with pytest.raises(UserError, match=r"the nearest is 3; CyclicRepetition\(stragglers=2\) fits as well"):
        CyclicMDS(2).build(30)
    with pytest.raises(UserError, match=r"or 0; CyclicRepetition\(stragglers=8\) fits$"):
        CyclicMDS(8).build(1000)  # with 9 it would drown in rounding


@pytest.mark.parametrize("declaration", [CyclicRepetition(1), CyclicMDS(1)])
@pytest.mark.parametrize("collect", [0, 11])
def test_collecting_from_nobody_or_more_than_all_is_refused(declaration, collect):
    with pytest.raises(UserError, match=r"an integer in 1\.\.10"):
        declaration.build(10, collect=collect)


@pytest.mark.parametrize("wrong", [{"stragglers": -1}, {"stragglers": 1.5}, {"stragglers": 1, "order": "random"}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UserError):
        CyclicMDS(**wrong)
