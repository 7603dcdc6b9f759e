"""Bernoulli codes: what is drawn, that it is drawn by the seed alone, and mean errors over codes and responders."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml.protocols.gradient_coding import Bernoulli
from emuml.protocols.gradient_coding.codes import linear
from emuml.protocols.gradient_coding.codes.bernoulli import _drawn
from emuml.streams import stream_key
from emuml.theory import bernoulli_error, bernoulli_uncovered
from tests.protocols.code_checks import check_decoding, check_held

DESIGNS = [(20, 4, 12), (30, 3, 15), (30, 5, 20)]
"""Partitions and workers, load, answers."""

MEANS = {
    # Optimal, then regularised optimal and one-step: means over codes and responders by other draws, errors up to 0.1.
    (20, 4, 12): (2.79, 2.85, 6.59),
    (30, 3, 15): (7.99, 8.28, 17.24),
    (30, 5, 20): (2.67, 2.71, 7.38),
}


def mean_error(declaration, workers, answers, codes=600):
    """Return the mean decoding error over codes, one set of responders each, and its standard error."""
    draws, found = np.random.default_rng(workers), []
    for seed in range(codes):
        found.append(declaration.build(workers, seed).decode(draws.permutation(workers)[:answers]).error)
    return np.mean(found), np.std(found) / sqrt(codes)


def check_mean(found, expected, error=0.0):
    mean, own_error = found
    assert abs(mean - expected) <= 4 * sqrt(own_error**2 + error**2)


@pytest.mark.parametrize("design", DESIGNS)
def test_one_step_errors_have_the_mean_of_the_closed_form(design):
    k, load, answers = design

    check_mean(mean_error(Bernoulli(load), k, answers), bernoulli_error(k, load, answers))


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_optimal_and_regularised_errors_have_known_means(design):
    k, load, answers = design
    optimal, regularised, one_step = MEANS[design]
    found = mean_error(Bernoulli(load, decoder="optimal"), k, answers)

    check_mean(found, optimal, 0.05)
    check_mean(mean_error(Bernoulli(load, True, "optimal"), k, answers), regularised, 0.05)
    check_mean(mean_error(Bernoulli(load, True), k, answers), one_step, 0.1)
    assert found[0] >= bernoulli_uncovered(k, load, answers)


@pytest.mark.parametrize("chance", [0.003, 0.2, 0.7, 1.0])
def test_every_cell_is_drawn_with_the_chance(chance):
    cells, codes = 400, 400
    drawn = [_drawn(cells, chance, stream_key(seed, "", "code/bernoulli")) for seed in range(codes)]
    counts = np.bincount(np.concatenate(drawn), minlength=cells)

    assert all(np.all(np.diff(one) > 0) for one in drawn)
    total = codes * cells
    assert abs(counts.sum() - chance * total) <= 4 * sqrt(total * chance * (1 - chance))
    # No cell stands out: the largest of 400 normal deviations is above 5 once in 4,000.
    assert np.abs(counts - chance * codes).max() <= max(5 * sqrt(codes * chance * (1 - chance)), 12 * (chance < 0.01))
    halves = [np.count_nonzero(one < cells // 2) for one in drawn]
    others = [len(one) - half for one, half in zip(drawn, halves, strict=True)]
    if 0 < chance < 1:
        assert abs(np.corrcoef(halves, others)[0, 1]) <= 4 / sqrt(codes)


@settings(max_examples=40)
@given(st.integers(1, 5), st.integers(5, 12), st.integers(5, 12), st.integers(0, 2**64 - 1))
def test_regularised_workers_hold_at_most_twice_the_load(load, workers, partitions, seed):
    plain = Bernoulli(load, partitions=partitions).build(workers, seed)
    ours = Bernoulli(load, True, partitions=partitions).build(workers, seed)

    check_held(plain)
    check_held(ours)
    for worker in range(workers):
        before, after = plain.assignment(worker), ours.assignment(worker)
        assert set(after) <= set(before)
        assert len(after) == (load if len(before) > 2 * load else len(before))


def test_a_worker_that_holds_nothing_answers_zeros_and_is_decoded():
    code = Bernoulli(1.0).build(6, seed=next(s for s in range(99) if not Bernoulli(1.0).build(6, s).assignment(0)))
    check_decoding(code, [0, 3])

    assert code.assignment(0) == ()
    assert code.loads[0] == 0.0
    assert code.decode([0, 3]).weights.tolist() == [3.0, 3.0]  # 6 / (2 * 1), whoever holds what


def test_the_weight_goes_by_who_came_not_by_what_was_planned():
    code = Bernoulli(3.0).build(10, collect=8)

    assert code.decode(range(5)).weights.tolist() == [10 / 15] * 5


def test_codes_are_drawn_by_the_seed_and_by_nothing_else():
    first, again, other = (Bernoulli(3.0).build(12, seed) for seed in (1, 1, 2))

    assert np.array_equal(first.encode_matrix, again.encode_matrix)
    assert not np.array_equal(first.encode_matrix, other.encode_matrix)
    assert first.assignment(0) == (3, 10)  # on every machine


def test_optimal_weights_of_a_set_are_found_once():
    code = Bernoulli(3.0, decoder="optimal").build(10, seed=1)
    first = code.decode([1, 2, 3, 7])

    assert len(code._remembered) == 1
    assert code.decode([7, 3, 2, 1]).weights.tolist() == first.weights.tolist()[::-1]
    assert len(code._remembered) == 1 <= linear.REMEMBERED


def test_a_large_code_is_drawn_in_proportion_to_what_it_holds():
    code = Bernoulli(4.0).build(30_000, seed=1)

    assert abs(code.rows.indices.size - 120_000) <= 5 * sqrt(120_000)
    assert "encode_matrix" not in vars(code)
