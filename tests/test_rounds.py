"""Answers that close a round: what is read of them, and that many are added as few are."""

import numpy as np

from emuml.lazy import combine
from emuml.rounds import Answers
from emuml.shapes import Count, StopRule


def test_answers_of_weight_zero_are_not_read():
    answers = Answers(np.array([2, 5, 7]), {2: np.array([1.0]), 7: np.array([3.0])}.__getitem__)

    assert answers.combine(np.array([0.5, 0.0, 2.0])) == [6.5]
    assert answers.combine(np.zeros(3)) is None


def test_answers_that_arrived_are_in_the_order_of_workers():
    answers = Answers.of({5: np.array([1e16]), 1: np.array([1.0]), 3: np.array([-1e16])})

    assert answers.workers.tolist() == [1, 3, 5]
    assert answers.combine(np.ones(3)) == [(1.0 - 1e16) + 1e16]


def test_many_answers_are_added_as_in_one_sum():
    values = np.random.default_rng(1).normal(size=(700, 3)) * 10.0 ** np.arange(-8, 692)[:, None].clip(-8, 8)
    weights = np.random.default_rng(2).normal(size=700)
    values[0, 0] = -0.0

    found = Answers(np.arange(700), values.__getitem__).combine(weights)

    assert found.tobytes() == combine(weights, list(values)).tobytes()


def test_a_rule_that_judges_arrivals_one_by_one_needs_no_parts():
    class Third(StopRule):
        workers = 5

        def tracker(self):
            return Count(5, 3).tracker()

    assert [Third().stop_index(np.array(order)) for order in ([4, 4, 0, 1, 2], [0, 1], [])] == [4, 2, 0]
