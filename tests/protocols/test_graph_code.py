"""Graph codes: the named graphs, small exact oracles, adversaries, and rounds that close by their error."""

from fractions import Fraction
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.protocols.gradient_coding import GraphCode
from emuml.protocols.gradient_coding.codes.graphs import Complete, Cycle, EdgeList, Hypercube, Petersen, RandomRegular
from emuml.protocols.gradient_coding.decoders.components import Components
from emuml.selection import Closing
from tests.protocols.code_checks import check_exact, check_held, integer_gradients
from tests.protocols.graph_oracle import component_error, component_gamma

NAMED = [
    (Petersen(), 10, nx.petersen_graph()),
    (Complete(), 6, nx.complete_graph(6)),
    (Complete(), 2, nx.complete_graph(2)),
    (Cycle(), 3, nx.cycle_graph(3)),
    (Cycle(), 8, nx.cycle_graph(8)),
    (Hypercube(), 2, nx.hypercube_graph(1)),
    (Hypercube(), 16, nx.hypercube_graph(4)),
    (EdgeList(((1, 0), (2, 1))), 3, nx.path_graph(3)),
]


def as_networkx(edges, vertices):
    found = nx.Graph(edges.tolist())
    assert sorted(found) == list(range(vertices))
    assert found.number_of_edges() == len(edges)
    assert all(u < v for u, v in edges.tolist())
    assert edges.tolist() == sorted(edges.tolist())
    return found


@pytest.mark.parametrize(("graph", "vertices", "known"), NAMED, ids=lambda part: str(part)[:20])
def test_named_graphs_are_those_that_are_known_by_the_name(graph, vertices, known):
    assert nx.is_isomorphic(as_networkx(graph.edges(vertices, 0), vertices), known)


@given(st.integers(1, 8), st.integers(0, 30), st.integers(0, 2**64 - 1))
def test_random_graphs_are_simple_and_regular(degree, more, seed):
    vertices = degree + 1 + more
    if degree * vertices % 2:
        vertices += 1
    found = as_networkx(RandomRegular(degree).edges(vertices, seed), vertices)

    assert {d for _, d in found.degree} == {degree}
    assert next(size for size in RandomRegular(degree).sizes() if size[0] == vertices)[1] == found.number_of_edges()


def test_random_graphs_are_the_same_on_every_machine():
    edges = RandomRegular(3).edges(6, seed=1).tolist()
    assert edges == [[0, 1], [0, 2], [0, 5], [1, 4], [1, 5], [2, 3], [2, 4], [3, 4], [3, 5]]
    assert RandomRegular(5).edges(12, seed=1)[:4].tolist() == [[0, 1], [0, 2], [0, 5], [0, 8]]


def test_every_graph_of_a_small_degree_is_equally_likely():
    # 70 graphs of degree 2 on 6 vertices: 60 hexagons and 10 pairs of triangles. Off by chance once in 16,000.
    drawn = 700
    hexagons = sum(nx.is_connected(as_networkx(RandomRegular(2).edges(6, seed), 6)) for seed in range(drawn))
    spread = (drawn * 6 / 7 * 1 / 7) ** 0.5

    assert abs(hexagons - drawn * 6 / 7) <= 4 * spread


def test_a_random_graph_of_100_000_edges_is_drawn_and_decoded():
    code = GraphCode(RandomRegular(4)).build(100_000, seed=3)
    received = np.flatnonzero(np.random.default_rng(1).random(100_000) > 0.1)

    assert code.decode(np.arange(100_000)).error == 0.0
    assert 0.0 < code.decode(received).error / code.partitions < 1e-3  # 1e-4 of the vertices lose all edges


# Small oracles, exact


CYCLE_6 = EdgeList(((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)))


def without(code, *lost):
    """Return the coefficients and the error that are left when the workers of some edges are lost."""
    received = [worker for worker in range(code.workers) if code.assignment(worker) not in lost]
    decoding = code.decode(received)
    return decoding.weights @ code.encode_matrix[received], decoding.error


def test_cycle_of_6_without_two_edges_at_a_vertex():
    gamma, error = without(GraphCode(CYCLE_6).build(6), (0, 1), (1, 2))

    assert gamma == pytest.approx([4 / 5, 0, 4 / 5, 6 / 5, 4 / 5, 6 / 5], abs=1e-15)
    assert error == 6 / 5


@pytest.mark.parametrize(
    ("graph", "workers", "lost", "error"),
    [
        (Cycle(), 6, [(0, 1)], 0.0),
        (Cycle(), 5, [(0, 1)], 1 / 5),
        (Complete(), 6, [(0, 1), (0, 2), (0, 3)], 1.0),
        (Petersen(), 15, [(0, 1), (0, 4), (0, 5)], 1.0),
        (Hypercube(), 4, [(0, 1)], 0.0),
    ],
)
def test_small_graphs_without_some_edges(graph, workers, lost, error):
    assert without(GraphCode(graph).build(workers), *lost)[1] == error


def test_an_unbalanced_graph_is_not_exact_even_with_all_answers():
    # K_{2,3}, which the code refuses: its decoder says why.
    edges = np.array([(u, v) for u in range(2) for v in range(2, 5)], np.int32)

    assert Components.of(edges, 5).weights(np.arange(6)).error == 1 / 5


@pytest.mark.parametrize("vertices", [5, 6, 7])
def test_alive_paths_of_a_cycle_cost_1_over_their_odd_number_of_vertices(vertices):
    code = GraphCode(Cycle()).build(vertices)
    around = [tuple(sorted((i, (i + 1) % vertices))) for i in range(vertices)]
    for n_lost in range(1, vertices + 1):
        for lost in combinations(range(vertices), n_lost):
            gaps = [(b - a) % vertices or vertices for a, b in zip(lost, (*lost[1:], lost[0]), strict=True)]
            expected = sum(Fraction(1, gap) for gap in gaps if gap % 2)
            error = without(code, *(around[i] for i in lost))[1]
            assert error == pytest.approx(float(expected), rel=1e-15, abs=0)


@pytest.mark.parametrize(("graph", "workers"), [(Petersen(), 15), (Complete(), 10), (Hypercube(), 12)])
def test_weights_combine_to_the_formula_in_rationals(graph, workers):
    code = GraphCode(graph).build(workers)
    edges = [code.assignment(worker) for worker in range(workers)]
    draws = np.random.default_rng(5)
    for _ in range(150):
        received = np.flatnonzero(draws.random(workers) < draws.random()).tolist()
        decoding, gamma = code.decode(received), [Fraction(0)] * code.partitions
        for worker, weight in zip(received, decoding.weights.tolist(), strict=True):
            for vertex in edges[worker]:
                gamma[vertex] += Fraction(weight).limit_denominator(2 * code.partitions)
        assert gamma == component_gamma(edges, code.partitions, received)
        assert decoding.error == pytest.approx(float(component_error(edges, code.partitions, received)), rel=1e-15)


@given(st.data())
def test_renaming_vertices_and_workers_permutes_the_coefficients(data):
    edges = Petersen().edges(10, 0)
    names, places = data.draw(st.permutations(range(10))), data.draw(st.permutations(range(15)))
    renamed = np.array(names, np.int32)[edges][places]
    received = data.draw(st.sets(st.integers(0, 14)))
    places_of = sorted(received)

    def gamma(graph, workers):
        workers = np.array(sorted(workers), np.int64)
        values, found = Components.of(graph, 10).weights(workers).values, np.zeros(10)
        for worker, value in zip(workers, values, strict=True):
            found[graph[worker]] += value
        return found

    assert gamma(renamed, places_of)[list(names)] == pytest.approx(gamma(edges, [places[w] for w in places_of]))


def test_weights_of_large_components_amplify_rounding_little():
    for seed in range(4):
        code = GraphCode(RandomRegular(3)).build(3000, seed)
        decoding = code.decode(np.flatnonzero(np.random.default_rng(seed).random(3000) > 0.2))
        assert np.abs(decoding.weights).max() > 2.0  # unlike those of groups, they are not 0 and 1
        assert decoding.noise_gain < 4.0


# Promises


@pytest.mark.parametrize(("graph", "workers"), [(Petersen(), 15), (Complete(), 10)])
def test_an_adversary_has_to_stop_all_workers_at_a_vertex(graph, workers):
    code = GraphCode(graph).build(workers)
    degree = 2 * workers // code.partitions
    gradients = integer_gradients(code.partitions)
    for n_lost in range(degree - 1):
        for lost in combinations(range(workers), n_lost):
            received = [worker for worker in range(workers) if worker not in lost]
            assert code.decode(received).error == 0.0
            check_exact(code, gradients, received)


def test_structure_of_a_random_regular_code():
    code = GraphCode(RandomRegular(4)).build(24, seed=1)

    check_held(code, replication=4)
    assert (code.partitions, code.load) == (12, 4.0)


@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.3])
def test_a_round_closes_at_the_first_answer_that_decodes_well_enough(tolerance):
    code = GraphCode(Petersen(), tolerance).build(15)
    draws = np.random.default_rng(2)
    for _ in range(100):
        order = draws.permutation(15)
        last = code.stop_rule().stop_index(order)
        assert code.decode(order[:last]).error <= tolerance * 10 + 1e-12
        assert code.decode(order[: last - 1]).error > tolerance * 10 + 1e-12


def test_the_tracker_knows_the_error_after_every_answer():
    code = GraphCode(RandomRegular(3)).build(30, seed=2)
    tracker = code.stop_rule().tracker()
    order = np.random.default_rng(3).permutation(30)
    for used, worker in enumerate(order.tolist(), 1):
        tracker.arrived(worker)
        assert tracker.error == pytest.approx(code.decode(order[:used]).error, abs=1e-12)


def test_the_array_form_closes_rounds_as_the_tracker_does():
    code = GraphCode(RandomRegular(3), 0.02).build(150, seed=4)
    rule, draws = code.stop_rule(), np.random.default_rng(6)
    closing = Closing(rule)
    for _ in range(20):
        times = draws.exponential(size=150).round(2)  # with ties
        at, used = closing.of(times)
        tracker = rule.tracker()
        told = next(worker for worker in np.argsort(times, kind="stable").tolist() if tracker.arrived(worker))
        assert (at, np.flatnonzero(used).tolist()) == (times[told], list(tracker.arrived_workers))
