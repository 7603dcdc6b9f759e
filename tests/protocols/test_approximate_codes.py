"""What graph, adjacency, Bernoulli and balanced repetition codes have in common, for responders of every kind."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.protocols.gradient_coding import BalancedRepetition, Bernoulli, Expander, GraphCode
from emuml.protocols.gradient_coding.codes.graphs import Complete, Cycle, EdgeList, Hypercube, Petersen, RandomRegular
from emuml.shapes import All, Count
from tests.protocols.code_checks import (
    check_closing,
    check_decoding,
    check_exact,
    check_held,
    check_linear,
    check_optimal,
    check_order_is_nothing,
    integer_gradients,
)

HOUSE = EdgeList(((0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (3, 4)))

BUILT = {
    "petersen": lambda seed, collect: GraphCode(Petersen()).build(15, seed, collect),
    "complete": lambda seed, collect: GraphCode(Complete(), None).build(15, seed, collect),
    "odd cycle": lambda seed, collect: GraphCode(Cycle(), 0.1).build(7, seed, collect),
    "even cycle": lambda seed, collect: GraphCode(Cycle()).build(8, seed, collect),
    "cube": lambda seed, collect: GraphCode(Hypercube(), 0.2).build(12, seed, collect),
    "random graph": lambda seed, collect: GraphCode(RandomRegular(3), 0.05).build(15, seed, collect),
    "house": lambda seed, collect: GraphCode(HOUSE).build(6, seed, collect),
    "adjacency": lambda seed, collect: Expander(Petersen()).build(10, seed, collect),
    "adjacency, optimal": lambda seed, collect: Expander(RandomRegular(4), "optimal").build(9, seed, collect),
    "bernoulli": lambda seed, collect: Bernoulli(3.0).build(9, seed, collect),
    "bernoulli, optimal": lambda seed, collect: Bernoulli(2.5, decoder="optimal").build(9, seed, collect),
    "regularised": lambda seed, collect: Bernoulli(2, True, partitions=12).build(9, seed, collect),
    "balanced": lambda seed, collect: BalancedRepetition(2).build(8, seed, collect),
    "balanced, one copy": lambda seed, collect: BalancedRepetition(0).build(6, seed, collect),
}

OPTIMAL = [name for name in BUILT if "adjacency" != name != "bernoulli" and name not in ("regularised", "balanced")]


@st.composite
def cases(draw, names=tuple(BUILT)):
    """Return a built code, some responders in any order, nobody and all included, and the same in another order."""
    code = BUILT[draw(st.sampled_from(names))](draw(st.integers(0, 9)), None)
    received = draw(st.lists(st.integers(0, code.workers - 1), unique=True) | st.permutations(range(code.workers)))
    return code, received, draw(st.permutations(received))


@given(cases())
def test_error_gain_and_responders_are_those_of_the_weights(case):
    code, received, _ = case

    check_decoding(code, received)


@given(cases(OPTIMAL))
def test_optimal_decoders_decode_as_well_as_least_squares(case):
    code, received, _ = case

    check_optimal(code, received)


@given(cases(), st.data())
def test_more_answers_never_decode_worse_by_optimal_weights_or_tiling(case, data):
    code, received, _ = case
    if code.decoder.__class__.__name__ == "OneStep":
        return
    more = data.draw(st.sets(st.integers(0, code.workers - 1)))

    assert code.decode({*received, *more}).error <= code.decode(received).error + 1e-9


@given(cases())
def test_the_order_of_arrival_changes_nothing(case):
    check_order_is_nothing(*case)


@given(cases())
def test_estimates_are_linear_in_the_answers(case):
    code, received, _ = case

    check_linear(code, received)


@pytest.mark.parametrize("name", [name for name in BUILT if "bernoulli" not in name and name != "regularised"])
def test_all_answers_decode_exactly_and_whole_numbers_bit_for_bit(name):
    code = BUILT[name](3, None)
    everybody = range(code.workers)

    assert code.decode(everybody).error <= 1e-24
    if name.startswith("adjacency"):  # factors of 1/3 and 1/4
        return
    check_exact(code, integer_gradients(code.partitions), everybody)


@pytest.mark.parametrize("name", BUILT)
def test_nobody_answered_decodes_to_nothing(name):
    code = BUILT[name](0, None)
    decoding = code.decode([])

    assert decoding.weights.size == 0
    assert (decoding.error, decoding.covered, decoding.noise_gain) == (code.partitions, (), 0.0)


@pytest.mark.parametrize("name", BUILT)
def test_assignments_loads_and_matrix_say_the_same(name):
    check_held(BUILT[name](5, None))


@given(cases(), st.integers(1, 6) | st.none(), st.data())
def test_rounds_close_alike_arrival_by_arrival_and_at_once(case, collect, data):
    code, _, _ = case
    rule = code.stop_rule()
    order = data.draw(st.lists(st.integers(0, rule.workers - 1), max_size=2 * rule.workers))
    check_closing(rule, order)


@given(cases(), st.data())
def test_hopeless_means_that_all_living_workers_together_do_not_close_the_round(case, data):
    rule = case[0].stop_rule()
    order = data.draw(st.lists(st.integers(0, rule.workers - 1)))
    down = data.draw(st.sets(st.integers(0, rule.workers - 1)))
    tracker = rule.tracker()
    for worker in order:
        tracker.arrived(worker)
    twin = copy.deepcopy(tracker)
    for worker in set(range(rule.workers)) - down:
        twin.arrived(worker)

    assert tracker.hopeless(down) == (not twin.closed)


@pytest.mark.parametrize("name", BUILT)
def test_collect_closes_a_round_at_so_many_answers(name):
    code = BUILT[name](2, 2)
    order = np.arange(code.workers)[::-1]

    assert code.collect == 2
    assert code.stop_rule().stop_index(order) == 2


@pytest.mark.parametrize("name", ["adjacency", "bernoulli", "complete"])
def test_without_a_tolerance_the_number_of_answers_closes_a_round(name):
    workers = BUILT[name](0, None).workers

    assert BUILT[name](0, None).stop_rule() == All(workers)
    assert BUILT[name](0, 4).stop_rule() == Count(workers, 4)


@settings(max_examples=30)
@given(cases(), st.data())
def test_codes_and_rules_survive_pickle(case, data):
    code, received, _ = case
    again, rule = pickle.loads(pickle.dumps(code)), code.stop_rule()

    assert again.decode(received).weights.tolist() == code.decode(received).weights.tolist()
    assert (again.stop_rule(), hash(again.stop_rule())) == (rule, hash(rule))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: GraphCode(Petersen()).build(14), "nearest is 15"),
        (lambda: GraphCode(Complete()).build(12), "nearest are 10 and 15"),
        (lambda: GraphCode(Cycle()).build(2), "nearest is 3"),
        (lambda: GraphCode(Hypercube()).build(13), "nearest are 12 and 32"),
        (lambda: GraphCode(RandomRegular(3)).build(14), "nearest are 12 and 15"),
        (lambda: GraphCode(HOUSE).build(7), "nearest is 6"),
        (lambda: GraphCode(Cycle()).build(0), "nearest is 1"),
        (lambda: GraphCode(Cycle()).build(5, collect=6), "1..5.*nearest is 5"),
        (lambda: GraphCode(Cycle(), tolerance=1.0), "< 1"),
        (lambda: GraphCode(Cycle(), tolerance=-0.1), ">= 0"),
        (lambda: GraphCode("cycle"), "kind Graph"),
        (lambda: GraphCode(EdgeList(((0, 1), (1, 2)))).build(2), r"sides of 2 and 1 .*such as \(0, 2\)"),
        (lambda: RandomRegular(0), ">= 1"),
        (lambda: EdgeList(((0, 1), (2, 2))), r"edge \(2, 2\).*different"),
        (lambda: EdgeList(((0, 1), (1, 0))), r"\(1, 0\) is given twice"),
        (lambda: EdgeList(((0, 1), (1, 3))), "vertex 2 has no edge"),
        (lambda: EdgeList(()), "vertex 0 has no edge"),
        (lambda: EdgeList(((-1, 0),)), "from 0"),
        (lambda: Expander(Petersen()).build(15), "nearest is 10"),
        (lambda: Expander(RandomRegular(3)).build(7), "nearest are 6 and 8"),
        (lambda: Expander(HOUSE).build(5), "vertex 0 has 2 edges and vertex 2 3.*regular"),
        (lambda: Expander(Petersen(), decoder="best"), "'one-step' | 'optimal'"),
        (lambda: Bernoulli(0.0), "> 0"),
        (lambda: Bernoulli(2.5, regularised=True), "nearest is 2"),
        (lambda: Bernoulli(5.0).build(4), "at most 4.*nearest is 4"),
        (lambda: Bernoulli(5.0).build(4, collect=0), "nearest is 1"),
        (lambda: BalancedRepetition(4).build(4), "0..3.*nearest is 3"),
        (lambda: BalancedRepetition(-1), ">= 0"),
    ],
)
def test_impossible_parameters_are_refused_with_the_nearest_valid_ones(make, text):
    with pytest.raises(UserError, match=text):
        make()


@pytest.mark.parametrize(
    "code",
    [
        BalancedRepetition(0).build(1),
        BalancedRepetition(4).build(5, collect=1),
        Bernoulli(1.0).build(1),
        Bernoulli(5.0).build(5, collect=1),
        Bernoulli(0.01, decoder="optimal").build(4),
        Bernoulli(1e-12).build(3),
        Bernoulli(1.0, True, partitions=1).build(3, collect=1),
        GraphCode(Complete()).build(1),
        GraphCode(RandomRegular(1), None).build(3, collect=1),
        Expander(Complete()).build(2, collect=1),
    ],
    ids=lambda code: f"{code.workers} of {code.partitions}",
)
def test_extreme_parameters_are_legal(code):
    order = np.arange(code.workers)[::-1]
    received = order[: code.stop_rule().stop_index(order)].tolist()

    check_held(code)
    check_decoding(code, received)
    check_decoding(code, [])
