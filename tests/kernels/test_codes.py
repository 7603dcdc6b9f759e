"""Kernels behind graph codes and tilings, and their twins: the same bits, and what the definitions ask for."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml._kernels import reference_codes
from tests.protocols.graph_oracle import component_error, component_gamma, least_error

codes = pytest.importorskip("emuml._kernels.codes", reason="the kernels are not compiled")

BOTH = (codes, reference_codes)


@st.composite
def graphs(draw, most=9):
    """Return the edges of a simple graph, its number of vertices, and a set of edges that are alive."""
    vertices = draw(st.integers(2, most))
    pairs = list(combinations(range(vertices), 2))
    edges = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    return edges, vertices, draw(st.lists(st.integers(0, len(edges) - 1), unique=True))


def adjacency(edges, vertices):
    found = [[] for _ in range(vertices)]
    for worker, (a, b) in enumerate(edges):
        found[a].append((b, worker))
        found[b].append((a, worker))
    starts = np.cumsum([0, *map(len, found)]).astype(np.int32)
    return starts, *np.array([pair for row in found for pair in row], np.int32).reshape(-1, 2).T.copy()


def weighed(edges, vertices, alive):
    found = []
    for implementation in BOTH:
        weights = np.full(len(alive), np.nan)
        error, squares = implementation.component_weights(
            *adjacency(edges, vertices), np.array(alive, np.int64), weights
        )
        found.append((error, squares, weights.tolist()))
    assert found[0] == found[1]
    return found[0]


@given(graphs())
def test_weights_add_up_to_the_optimal_coefficients_of_each_vertex(case):
    edges, vertices, alive = case
    error, squares, weights = weighed(*case)
    gamma = [Fraction(0)] * vertices
    for worker, weight in zip(alive, weights, strict=True):
        for vertex in edges[worker]:
            gamma[vertex] += Fraction(weight).limit_denominator(2 * vertices)

    assert gamma == component_gamma(*case)
    assert error == pytest.approx(float(component_error(*case)), rel=1e-15, abs=0)
    assert error == pytest.approx(least_error(*case), abs=1e-9)
    assert squares == pytest.approx(sum(weight**2 for weight in weights), rel=1e-12)


def test_weights_of_odd_components_are_multiples_of_one_half_and_exact():
    edges = [*combinations(range(5), 2), (4, 5), (5, 6), (6, 7)]
    error, _, weights = weighed(edges, 8, range(len(edges)))

    assert error == 0.0
    assert all(weight * 2 == int(weight * 2) for weight in weights)


@pytest.mark.parametrize("alive", [0.0, 0.3, 0.8, 1.0])
def test_large_graphs_are_weighed_alike_to_the_last_bit(alive):
    random = np.random.default_rng(7)
    edges = np.array(list(combinations(range(200), 2)), np.int32)[random.permutation(19_900)[:320]]
    received = np.flatnonzero(random.random(320) < alive)
    shift = 62 - (200).bit_length()

    error, _, weights = weighed(edges.tolist(), 200, received.tolist())
    assert np.count_nonzero(weights) <= 200
    assert error == pytest.approx(least_error(edges.tolist(), 200, received.tolist()), abs=1e-9)
    for limit in (0, 30 << shift, 100 << shift):
        order = random.permutation(320)
        assert len({each.error_index(edges, 200, order, shift, limit, 310) for each in BOTH}) == 1


# When rounds close


@given(graphs(), st.integers(0, 19), st.integers(0, 40), st.data())
def test_an_error_closes_a_round_with_the_first_arrival_that_makes_it_small_enough(case, twentieths, count, data):
    edges, vertices, _ = case
    order = data.draw(st.lists(st.integers(0, len(edges) - 1), max_size=2 * len(edges)))
    shift = 62 - vertices.bit_length()
    limit = (twentieths * vertices << shift) // 20 + vertices // 2
    most = Fraction(twentieths * vertices, 20)
    expected = next(
        (
            used
            for used in range(1, len(order) + 1)
            if component_error(edges, vertices, set(order[:used])) <= most or len(set(order[:used])) == count
        ),
        0,
    )

    for implementation in BOTH:
        arguments = np.array(edges, np.int32), vertices, np.array(order, np.int64), shift, limit, count
        assert implementation.error_index(*arguments) == expected


@given(graphs(12))
def test_errors_after_each_arrival_are_those_of_the_components(case):
    edges, vertices, alive = case
    shift = 40
    found = reference_codes.Components(vertices, shift)
    for used, worker in enumerate(alive, 1):
        found.add(*edges[worker])
        exact = component_error(edges, vertices, alive[:used])
        assert abs(Fraction(found.error, 1 << shift) - exact) <= Fraction(vertices, 2 << shift)
        assert (found.error == 0) == (exact == 0)


@pytest.mark.parametrize("shift", [10, 53])
def test_sums_of_terms_are_the_same_in_every_order(shift):
    random = np.random.default_rng(shift)
    edges = np.array(list(combinations(range(40), 2)), np.int32)[random.permutation(780)[:60]]
    found = set()
    for _ in range(20):
        components = reference_codes.Components(40, shift)
        for a, b in random.permutation(edges).tolist():
            components.add(a, b)
        found.add(components.error)

    assert len(found) == 1


# Tilings


@st.composite
def intervals(draw):
    """Return the cuts of some copies of a line as starts and stops in a drawn order, with the length."""
    length, bounds = draw(st.integers(1, 12)), []
    for _ in range(draw(st.integers(1, 4))):
        cuts = sorted(draw(st.sets(st.integers(1, length - 1)))) if length > 1 else []
        bounds += pairwise([0, *cuts, length])
    starts, stops = np.array(draw(st.permutations(bounds)), np.int32).T.copy()
    return starts, stops, np.lexsort((np.arange(len(stops)), stops)).astype(np.int32), length


def best_by_trying(starts, stops, received):
    """Return the longest total of intervals that do not overlap."""
    best = 0
    for size in range(len(received) + 1):
        for chosen in combinations(received, size):
            cells = [x for worker in chosen for x in range(starts[worker], stops[worker])]
            if len(cells) == len(set(cells)):
                best = max(best, len(cells))
    return best


@given(intervals(), st.data())
def test_a_tiling_covers_as_much_as_any_choice_without_overlap(case, data):
    starts, stops, by_stop, length = case
    received = data.draw(st.lists(st.integers(0, len(starts) - 1), unique=True, max_size=8))
    found = []
    for implementation in BOTH:
        weights = np.full(len(received), np.nan)
        covered = implementation.tiling(starts, stops, by_stop, length, np.array(received, np.int64), weights)
        found.append((covered, weights.tolist()))
        cells = np.zeros(length)
        for worker, weight in zip(received, weights, strict=True):
            cells[starts[worker] : stops[worker]] += weight
        assert set(cells) <= {0.0, 1.0}
        assert cells.sum() == covered == best_by_trying(starts, stops, received)

    assert found[0] == found[1]


@given(intervals(), st.integers(0, 12), st.data())
def test_a_tiling_closes_a_round_with_the_first_arrival_that_completes_it(case, count, data):
    starts, stops, by_stop, length = case
    order = data.draw(st.lists(st.integers(0, len(starts) - 1), max_size=12))

    def is_closed(used):
        received = np.array(sorted(set(order[:used])), np.int64)
        covered = reference_codes.tiling(starts, stops, by_stop, length, received, np.empty(received.size))
        return covered == length or received.size == count

    expected = next((used for used in range(1, len(order) + 1) if is_closed(used)), 0)
    for implementation in BOTH:
        arguments = starts, stops, by_stop, length, np.array(order, np.int64), count
        assert implementation.tiling_index(*arguments) == expected
