"""Ye and Abbe's code: factors as defined, short messages, exact sums from any n - s of them, and its limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.protocols.gradient_coding import YeAbbe
from emuml.protocols.gradient_coding.codes.sliced import mixed_slices
from emuml.protocols.gradient_coding.decoders.interpolation import Interpolation, highest_coefficients, nodes_of
from emuml.rounds import Answers
from emuml.shapes import All, Count
from emuml.task import Task, never_cancelled
from tests.protocols.code_checks import check_matrix, check_set_decides, subsets

TABLE = {  # Worst relative error over 200 random patterns, (workers, load, blocks), that published nodes have.
    (6, 3, 1): 2e-15,
    (6, 4, 2): 5e-15,
    (8, 5, 2): 5e-14,
    (10, 5, 3): 3e-13,
    (16, 5, 2): 5e-11,
    (20, 5, 2): 2e-9,
    (30, 5, 2): 4e-6,
}


class Given:
    """A problem whose partitions have given gradients."""

    def __init__(self, gradients):
        self.gradients = gradients
        self.asked = []

    def gradient(self, parameters, owned, partitions, coefficients=None, draw=None):
        assert (partitions, coefficients) == (len(self.gradients), None)
        return Task(self.sum_of, (owned,), float(len(owned)), self.gradients[0].shape, draw=draw)

    def sum_of(self, owned):
        self.asked.append(owned)
        return sum(self.gradients[i] for i in owned)


def answers_of(code, gradients):
    problem, parameters = Given(gradients), np.zeros(gradients[0].shape)
    return [code.task(problem, parameters, worker, draw=3).run() for worker in range(code.workers)]


def decoded(code, sent, received):
    received = sorted(received)
    answers = Answers.of({worker: sent[worker] for worker in received})
    return code.combine(answers, code.decode(received))


@st.composite
def built(draw, most=10):
    workers = draw(st.integers(1, most))
    blocks = draw(st.integers(1, min(workers, 4)))
    return YeAbbe(draw(st.integers(0, workers - blocks)), blocks).build(workers)


# Structure.


@given(built())
def test_polynomials_vanish_where_a_partition_is_not_held_and_have_the_coefficients_that_they_should(code):
    n, d, tensor = code.workers, code.stragglers + code.blocks, code.decoder.tensor
    check_matrix(code)
    for worker in range(n):
        assert code.assignment(worker) == tuple(sorted((worker + t) % n for t in range(d)))
        others = [i for i in range(n) if i not in code.assignment(worker)]
        assert not tensor[worker, others].any()
    assert code.load == d
    for i in range(n):
        highest = highest_coefficients(nodes_of(n), min(n, d)) @ tensor[:, i]  # of degrees n-d..n-1
        size = np.abs(highest_coefficients(nodes_of(n), min(n, d))) @ np.abs(tensor[:, i])
        expected = np.eye(d, code.blocks)
        assert np.all(np.abs(highest - expected) <= 1e-13 * (1 + size))


def test_factors_of_a_code_that_can_be_computed_by_hand():
    """One block: the product of the distances from the nodes that do not hold the partition."""
    nodes = np.array([0.0, 1.0, 3.0])
    tensor = Interpolation(nodes, stragglers=1, blocks=1).tensor[:, :, 0]

    # Partition i is held by i and i - 1; the third worker is i + 1.
    expected = [[0 - 1, 0 - 3, 0], [0, 1 - 3, 1 - 0], [3 - 1, 0, 3 - 0]]
    assert np.array_equal(tensor, expected)


@given(st.integers(1, 8), st.integers(0, 99), st.data())
def test_highest_coefficients_are_those_of_the_polynomial_through_the_points(count, seed, data):
    draws = np.random.default_rng(seed)
    polynomial = draws.integers(-5, 6, count).astype(float)  # the lowest power first
    points = draws.permutation(nodes_of(20))[:count]
    wanted = data.draw(st.integers(1, count))
    found = highest_coefficients(points, wanted) @ np.polynomial.polynomial.polyval(points, polynomial)

    size = np.abs(highest_coefficients(points, wanted)).sum(axis=1).max() * np.abs(polynomial).sum()
    assert found == pytest.approx(polynomial[count - wanted :], abs=1e-14 * (1 + size))


def test_holders_of_a_partition_are_spread_over_the_nodes():
    """In their natural order the same nodes amplify rounding at least a hundred times as much."""
    natural = np.cos(np.pi * (2 * np.arange(20) + 1) / 40)
    worst = {}
    for name, nodes in (("natural", natural), ("ours", nodes_of(20))):
        decoder, draws = Interpolation(nodes, stragglers=3, blocks=2), np.random.default_rng(1)
        sets = [np.sort(draws.choice(20, 17, replace=False)) for _ in range(100)]
        worst[name] = max(decoder.judged(received).noise_gain for received in sets)

    assert sorted(natural) == pytest.approx(sorted(nodes_of(20)))
    assert worst["natural"] > 100 * worst["ours"]


# Messages.


@given(built(6), st.integers(1, 17))
def test_messages_have_a_blockth_of_the_length_rounded_up(code, length):
    problem = Given(np.ones((code.workers, length)))
    task = code.task(problem, np.zeros(length), 0, draw=5)

    assert task.shape == code.answer_shape((length,)) == (math.ceil(length / code.blocks),)
    assert (task.cost, task.draw) == (code.load, 5)


def test_a_worker_computes_each_gradient_once_and_adds_in_order():
    gradients = np.random.default_rng(3).standard_normal((5, 7))
    code, problem = YeAbbe(1, 3).build(5), Given(gradients)
    found = code.task(problem, np.zeros(7), 4, draw=0).run()

    assert problem.asked == [(0,), (1,), (2,), (4,)]
    slices = np.concatenate((gradients, np.zeros((5, 2))), axis=1).reshape(5, 3, 3)
    assert found == pytest.approx(np.einsum("iu,iul->l", code.decoder.tensor[4], slices), rel=1e-12)
    again = mixed_slices(
        problem, np.zeros(7), (0,), 5, (tuple(code.decoder.tensor[4, 0].tolist()),), 0, never_cancelled
    )
    assert again.shape == (3,)


# Exactness.


@pytest.mark.parametrize(("workers", "stragglers", "blocks"), [
    (1, 0, 1), (2, 1, 1), (4, 0, 3), (5, 2, 2), (6, 2, 1), (6, 2, 3), (6, 0, 6), (7, 3, 2),
])  # fmt: skip
@pytest.mark.parametrize("shape", [(1,), (6,), (7,), (2, 5)])
def test_every_pattern_of_at_most_s_stragglers_is_exact(workers, stragglers, blocks, shape):
    gradients = np.random.default_rng(2).integers(-100, 100, (workers, *shape)).astype(float)
    code = YeAbbe(stragglers, blocks).build(workers).of(shape)
    sent = answers_of(code, gradients)
    for n_lost in range(stragglers + 1):
        for received in subsets(workers, workers - n_lost):
            found = decoded(code, sent, received)
            assert found.shape == shape
            bound = 100 * 2.0**-53 * max(code.decode(received).noise_gain, 1) * np.linalg.norm(gradients)
            assert np.linalg.norm(found - gradients.sum(axis=0)) <= bound


@pytest.mark.parametrize("case", TABLE)
def test_errors_are_below_those_of_published_nodes(case):
    """200 random patterns, standard normal gradients of 60 numbers."""
    workers, load, blocks = case
    code = YeAbbe(load - blocks, blocks, allow_large=True).build(workers).of((60,))
    draws = np.random.default_rng(7)
    gradients = draws.standard_normal((workers, 60))
    sent, total, worst = answers_of(code, gradients), gradients.sum(axis=0), 0.0
    for _ in range(200):
        found = decoded(code, sent, draws.choice(workers, workers - code.stragglers, replace=False).tolist())
        worst = max(worst, float(np.linalg.norm(found - total) / np.linalg.norm(total)))

    assert worst < TABLE[case]


# Decoding.


@given(built(8), st.data())
def test_error_and_gain_are_those_of_the_weights_and_the_set_decides(code, data):
    received = data.draw(st.lists(st.integers(0, code.workers - 1), unique=True))
    decoding = code.decode(received)
    flat = code.decoder.tensor[received].reshape(len(received), code.workers * code.blocks)
    wanted = np.tile(np.eye(code.blocks), code.workers)
    error = np.sum((decoding.slices @ flat - wanted) ** 2) / code.blocks
    gain = math.sqrt(np.sum((decoding.slices * np.linalg.norm(flat, axis=1)) ** 2) / code.workers / code.blocks)
    least = np.linalg.lstsq(flat.T, wanted.T, rcond=None)[0] if received else np.zeros((0, code.blocks))

    assert decoding.error == pytest.approx(error, rel=1e-9, abs=1e-24 * (1 + gain) ** 2)
    assert decoding.noise_gain == pytest.approx(gain, rel=1e-9)
    assert decoding.error == pytest.approx(np.sum((flat.T @ least - wanted.T) ** 2) / code.blocks, abs=1e-9)
    assert np.array_equal(decoding.weights, decoding.slices[0])
    check_set_decides(code, received, data.draw(st.permutations(received)))


def test_nobody_answered_decodes_to_nothing():
    code = YeAbbe(1, 2).build(4)

    assert code.decode([]).error == pytest.approx(4.0)
    assert code.combine(Answers.of({}), code.decode([])) is None


def test_flat_gradients_end_with_zeros_if_the_shape_is_not_known():
    code, gradients = YeAbbe(1, 3).build(5), np.random.default_rng(0).standard_normal((5, 7))
    found = decoded(code, answers_of(code, gradients), [0, 1, 3, 4])

    assert found[:7] == pytest.approx(gradients.sum(axis=0), abs=1e-12)
    assert found[7:] == pytest.approx(0.0, abs=1e-12)


# When a round closes, and what is refused.


def test_a_round_closes_at_n_minus_s_answers_or_at_collect():
    assert YeAbbe(2, 2).build(10).stop_rule() == Count(10, 8)
    assert YeAbbe(2, 2).build(10, collect=5).stop_rule() == Count(10, 5)
    assert YeAbbe(0, 3).build(4).stop_rule() == All(4)


def test_more_than_20_workers_only_on_demand():
    with pytest.raises(UserError, match=r"allow_large=True"):
        YeAbbe(1, 2).build(21)
    assert YeAbbe(1, 2, allow_large=True).build(21).workers == 21


@pytest.mark.parametrize(
    ("stragglers", "blocks", "nearest"),
    [(3, 3, "the nearest is 2"), (0, 6, "the nearest number of blocks is 5")],
)
def test_more_stragglers_and_blocks_than_workers_are_refused(stragglers, blocks, nearest):
    with pytest.raises(UserError, match=nearest):
        YeAbbe(stragglers, blocks).build(5)


@pytest.mark.parametrize("wrong", [{"stragglers": -1, "blocks": 1}, {"stragglers": 1, "blocks": 0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UserError):
        YeAbbe(**wrong)
