"""Adjacency codes: structure, the bound by the second eigenvalue, and what an adversary can do at least."""

from itertools import combinations
from math import floor, sqrt

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml.protocols.gradient_coding import Expander
from emuml.protocols.gradient_coding.codes.graphs import Complete, Cycle, Hypercube, Petersen, RandomRegular
from tests.protocols.code_checks import check_held, check_unbiased, integer_gradients

PETERSEN = {1: (0.536718, 0.702728), 2: (0.874007, 1.054093), 3: (1.250850, 1.380131)}
"""Stragglers: the largest norm of the error of the coefficients over all their sets, and its bound."""


def bound(code, stragglers):
    degree = len(code.assignment(0))
    eigenvalues = np.sort(np.abs(np.linalg.eigvalsh(degree * code.encode_matrix)))
    n = code.workers
    return eigenvalues[-2] / degree * sqrt(n * stragglers / (n - stragglers))


def norm(code, lost):
    return sqrt(code.decode([worker for worker in range(code.workers) if worker not in lost]).error)


@pytest.mark.parametrize("stragglers", PETERSEN)
def test_all_sets_of_stragglers_of_the_petersen_graph(stragglers):
    code = Expander(Petersen()).build(10)
    worst = max(norm(code, lost) for lost in combinations(range(10), stragglers))

    assert (round(worst, 6), round(bound(code, stragglers), 6)) == PETERSEN[stragglers]
    assert worst >= sqrt(floor(stragglers / 3))


@settings(max_examples=60)
@given(
    st.sampled_from([(RandomRegular(4), 20), (RandomRegular(3), 14), (Complete(), 7), (Cycle(), 9), (Hypercube(), 16)]),
    st.integers(0, 2**32),
    st.data(),
)
def test_no_set_of_stragglers_exceeds_the_bound(case, seed, data):
    graph, workers = case
    code = Expander(graph).build(workers, seed)
    lost = data.draw(st.sets(st.integers(0, workers - 1), max_size=workers - 1))

    assert norm(code, lost) <= bound(code, len(lost)) + 1e-9


def test_workers_hold_what_their_neighbours_are_named_by():
    code = Expander(Petersen()).build(10)

    check_held(code, replication=3)
    assert np.array_equal(
        code.encode_matrix != 0, nx.to_numpy_array(nx.Graph(Petersen().edges(10, 0).tolist()), range(10))
    )
    assert code.load == 3.0
    assert set(code.coefficients(4)) == {1 / 3}


def test_sums_are_right_on_average_over_all_sets_of_any_size():
    code = Expander(Complete()).build(7, collect=5)
    for answers in (4, 5, 6):  # whatever was planned to be collected
        check_unbiased(code, integer_gradients(7), answers)


def test_optimal_weights_are_never_worse_than_equal_ones():
    equal, optimal = Expander(Petersen()).build(10), Expander(Petersen(), "optimal").build(10)
    for lost in combinations(range(10), 3):
        assert norm(optimal, lost) <= norm(equal, lost) + 1e-12
