"""Group codes: structure, exactness, decoding, stop rules, and what they refuse."""

import pickle
from importlib import import_module

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.shapes import All, Count, Cover, CoverOrCount
from emuml.workloads.partitions import partition_bounds
from tests.protocols.code_checks import (
    check_decoding,
    check_exact,
    check_matrix,
    check_replicas_equal,
    check_rows_shared_out,
    check_structure,
    estimate,
    integer_gradients,
    messages,
    subsets,
)


@st.composite
def placements(draw, most=40):
    workers = draw(st.integers(1, most))
    return workers, draw(st.integers(1, workers))


@st.composite
def built(draw, most=20):
    """Return any built code with a set of responders, empty and full sets included."""
    workers, replication = draw(placements(most))
    collect = draw(st.none() | st.integers(1, workers))
    scale = draw(st.sampled_from(["none", "covered"] + ["unbiased"] * (collect is not None)))
    ignore = IgnoreStragglers(draw(st.sampled_from(["none", "covered"])))
    declaration = draw(st.sampled_from([FractionalRepetition(replication, scale), ignore]))
    received = draw(st.lists(st.integers(0, workers - 1), unique=True))
    return declaration.build(workers, collect=collect), received


# Structure.


@given(placements())
def test_structure_of_fractional_repetition(case):
    workers, replication = case
    code = FractionalRepetition(replication).build(workers)

    check_structure(code, replication)
    check_matrix(code)
    assert len(code.groups) == workers // replication
    assert code.partitions == (workers if workers % replication == 0 else workers // replication)


@pytest.mark.parametrize("declaration", [Uncoded(), IgnoreStragglers(), FractionalRepetition(1)])
def test_without_replication_every_worker_holds_its_own_part(declaration):
    code = declaration.build(5)

    assert np.array_equal(code.encode_matrix, np.eye(5))
    assert code.load == 1.0


def test_worker_w_of_fractional_repetition_is_in_group_w_over_r():
    code = FractionalRepetition(3).build(30)

    assert [code.group_of(worker) for worker in range(30)] == [worker // 3 for worker in range(30)]
    assert code.assignment(7) == (6, 7, 8)
    assert code.coefficients(7) == (1.0, 1.0, 1.0)
    assert code.load == 3.0


@pytest.mark.parametrize(
    ("workers", "stragglers", "sizes"),
    [
        (32, 2, [4] * 2 + [3] * 8),
        (31, 2, [4] + [3] * 9),
        (30, 3, [5] * 2 + [4] * 5),
        (100, 6, [8] * 2 + [7] * 12),
    ],
)
def test_any_number_of_workers_forms_groups_larger_ones_first(workers, stragglers, sizes):
    code = FractionalRepetition(stragglers + 1).build(workers)

    assert [len(group) for group in code.groups] == sizes
    assert code.load == workers / len(sizes)


@given(placements(), st.integers(0, 2**32))
def test_replicas_send_the_same_bits(case, seed):
    workers, replication = case
    code = FractionalRepetition(replication).build(workers)

    check_replicas_equal(code, np.random.default_rng(seed).standard_normal((code.partitions, 5)))


def test_the_encode_matrix_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        FractionalRepetition(2).build(4).encode_matrix[0, 0] = 5.0


@given(placements(), st.integers(0, 500))
def test_every_row_is_in_exactly_one_partition(case, more):
    workers, replication = case
    partitions = FractionalRepetition(replication).build(workers).partitions

    check_rows_shared_out(partition_bounds(partitions + more, partitions), partitions + more, partitions)


def test_100_000_workers_are_placed_and_decoded_without_a_matrix():
    code = FractionalRepetition(3, "covered").build(100_000, collect=50_000)
    received = np.random.default_rng(3).permutation(100_000)[:50_000]
    decoding = code.decode(received.tolist())

    assert "encode_matrix" not in vars(code)
    met = np.unique(code.stop_rule().cover.group_array[received])
    assert np.array_equal(decoding.covered, met)
    assert np.count_nonzero(decoding.weights) == met.size


# Exactness.


@pytest.mark.parametrize("workers", range(1, 9))
def test_every_pattern_of_at_most_s_stragglers_is_exact(workers):
    for replication in range(1, workers + 1):
        code = FractionalRepetition(replication).build(workers)
        gradients = integer_gradients(code.partitions)
        for n_lost in range(replication):
            for received in subsets(workers, workers - n_lost):
                check_exact(code, gradients, received)
                assert code.decode(received).error == 0.0
                assert code.decode(received).noise_gain == 1.0


@given(placements(), st.data())
def test_random_patterns_of_at_most_s_stragglers_are_exact(case, data):
    workers, replication = case
    lost = data.draw(st.sets(st.integers(0, workers - 1), max_size=replication - 1))
    code = FractionalRepetition(replication).build(workers)

    check_exact(code, integer_gradients(code.partitions), [w for w in range(workers) if w not in lost])


@given(placements(), st.data())
def test_a_covered_round_is_exact(case, data):
    workers, replication = case
    code = FractionalRepetition(replication).build(workers)
    order = np.array(data.draw(st.permutations(range(workers))))

    check_exact(code, integer_gradients(code.partitions), order[: code.stop_rule().stop_index(order)])


@pytest.mark.parametrize("n_lost", range(13))
def test_an_adversary_removes_whole_groups_and_no_more(n_lost):
    code = FractionalRepetition(3).build(12)
    worst = max(code.decode(received).error for received in subsets(12, 12 - n_lost))

    assert worst == 3 * (n_lost // 3)


# Decoding.


@given(built())
def test_error_and_gain_are_those_of_the_weights(case):
    code, received = case
    least = check_decoding(code, received)

    if code.scale == "none":
        assert code.decode(received).error == pytest.approx(least, abs=1e-9 * code.partitions)


@given(built(), st.data())
def test_more_responders_never_decode_worse_without_scaling(case, data):
    code, received = case
    code = FractionalRepetition(data.draw(st.integers(1, code.workers))).build(code.workers)
    more = data.draw(st.sets(st.integers(0, code.workers - 1)))

    assert code.decode({*received, *more}).error <= code.decode(received).error


@given(placements(20), st.data())
def test_one_step_decoding_is_never_better(case, data):
    workers, replication = case
    received = data.draw(st.lists(st.integers(0, workers - 1), unique=True))
    code = FractionalRepetition(replication).build(workers)
    weight = code.workers / (code.load * max(len(received), 1))
    one_step = float(np.sum((weight * code.encode_matrix[received].sum(axis=0) - 1.0) ** 2))

    assert code.decode(received).error <= one_step + 1e-9


@given(built(), st.randoms(use_true_random=False))
def test_weights_belong_to_workers_not_to_the_order_of_arrival(case, random):
    code, received = case
    shuffled = received.copy()
    random.shuffle(shuffled)
    weights = dict(zip(received, code.decode(received).weights, strict=True))

    assert dict(zip(shuffled, code.decode(iter(shuffled)).weights, strict=True)) == weights
    gradients = np.random.default_rng(1).standard_normal((code.partitions, 4))
    sent = messages(code, gradients)
    assert estimate(code, sent, shuffled).tobytes() == estimate(code, sent, received).tobytes()


@given(built(), st.data())
def test_swapping_groups_of_one_size_permutes_the_weights(case, data):
    code, received = case
    a, b = (data.draw(st.integers(0, len(code.groups) - 1)) for _ in range(2))
    assume(len(code.groups[a]) == len(code.groups[b]))
    swap = dict(zip(code.groups[a] + code.groups[b], code.groups[b] + code.groups[a], strict=True))

    swapped = code.decode([swap.get(worker, worker) for worker in received])
    assert np.array_equal(swapped.weights, code.decode(received).weights)


@given(built())
def test_the_lowest_responder_of_a_group_stands_for_it(case):
    code, received = case
    used = {worker for worker, weight in zip(received, code.decode(received).weights, strict=True) if weight}

    assert used == {min(set(group) & set(received)) for group in code.groups if set(group) & set(received)}


def test_nobody_answered_decodes_to_nothing():
    decoding = FractionalRepetition(3).build(12).decode([])

    assert decoding.weights.size == 0
    assert (decoding.error, decoding.covered, decoding.noise_gain) == (12.0, (), 0.0)


@pytest.mark.parametrize(
    ("received", "text"),
    [
        ([0, 4], "no worker 4"),
        ([-1], "no worker -1"),
        ([1, 2, 1], "worker 1 is given twice"),
        ([0.5], "worker numbers"),
        ([True, False], "worker numbers"),
        ([[0, 1]], "worker numbers"),
    ],
)
def test_decode_refuses_what_is_not_a_set_of_workers(received, text):
    with pytest.raises(UserError, match=text):
        Uncoded().build(4).decode(received)


# Stop rules.


@pytest.mark.parametrize(
    ("declaration", "collect", "rule"),
    [
        (Uncoded(), None, All(6)),
        (Uncoded(), 6, All(6)),
        (IgnoreStragglers(), None, All(6)),
        (IgnoreStragglers(), 4, Count(6, 4)),
        (FractionalRepetition(3), None, Cover(((0, 1, 2), (3, 4, 5)))),
        (FractionalRepetition(3), 6, Cover(((0, 1, 2), (3, 4, 5)))),
        (FractionalRepetition(3), 2, CoverOrCount(((0, 1, 2), (3, 4, 5)), 2)),
        (FractionalRepetition(1), 4, Count(6, 4)),
    ],
)
def test_each_code_states_when_a_round_closes(declaration, collect, rule):
    assert declaration.build(6, collect=collect).stop_rule() == rule


# Limits.


@pytest.mark.parametrize(
    ("workers", "replication", "collect"), [(1, 1, 1), (1, 1, None), (5, 5, 1), (5, 1, 1), (5, 5, None), (7, 3, 1)]
)
def test_extreme_parameters_are_legal(workers, replication, collect):
    code = FractionalRepetition(replication).build(workers, collect=collect)
    order = np.arange(workers)[::-1]

    check_structure(code, replication)
    check_decoding(code, order[: code.stop_rule().stop_index(order)].tolist())


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: FractionalRepetition(0), "replication.*>= 1"),
        (lambda: FractionalRepetition(2.5), "an integer"),
        (lambda: FractionalRepetition(2, scale="all"), "'none' | 'unbiased' | 'covered'"),
        (lambda: FractionalRepetition(4).build(3), "1..3.*nearest is 3"),
        (lambda: FractionalRepetition(2).build(4, collect=5), "1..4.*nearest is 4"),
        (lambda: FractionalRepetition(2).build(4, collect=0), "1..4.*nearest is 1"),
        (lambda: FractionalRepetition(2, "unbiased").build(4), "collect.*1..4.*'covered' needs none"),
        (lambda: FractionalRepetition(1).build(0), "nearest is 1"),
        (lambda: IgnoreStragglers(scale="unbiased"), "'none' | 'covered'"),
        (lambda: IgnoreStragglers().build(4, collect=9), "nearest is 4"),
        (lambda: Uncoded().build(4, collect=3), r"waits for all 4.*IgnoreStragglers\(\)"),
        (lambda: Uncoded().build(-1), "nearest is 1"),
    ],
)
def test_impossible_parameters_are_refused_with_the_nearest_valid_ones(make, text):
    with pytest.raises(UserError, match=text):
        make()


@settings(max_examples=30)
@given(built())
def test_built_codes_are_equal_by_their_parameters_and_survive_pickle(case):
    code, received = case
    code.decode(received)
    again = pickle.loads(pickle.dumps(code))

    assert again == code
    assert np.array_equal(again.decode(received).weights, code.decode(received).weights)


def test_the_seed_moves_nothing_in_fixed_placements():
    assert FractionalRepetition(3).build(12, seed=5) == FractionalRepetition(3).build(12, seed=6)


@pytest.mark.parametrize("package", ["emuml.protocols", "emuml.protocols.gradient_coding"])
def test_packages_export_the_protocol_and_refuse_unknown_names(package):
    module = import_module(package)

    assert "GradientCoding" in module.__all__
    assert set(module.__all__) <= set(dir(module))
    assert module.GradientCoding.__name__ == "GradientCoding"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = module.Nothing
