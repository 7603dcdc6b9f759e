"""Draw kernels and their twins: the same bits, also at the edges that streams hardly ever reach."""

import math
import os
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml._kernels import reference

draws = pytest.importorskip("emuml._kernels.draws", reason="the kernels are not compiled")
twins = pytest.mark.parametrize("implementation", [reference, draws], ids=["reference", "compiled"])

words64 = st.integers(0, 2**64 - 1)
# u = 0, the smallest and largest u > 0, both sides of the places where the logarithm changes its branch
EDGES = [0, 2**11 - 1, 2**11, 2**64 - 1, 2**64 - 2**11, 2**63, 2**63 - 1]
EDGES += [(2**53 - math.isqrt(2**105) + step) << 11 for step in (-1, 0, 1)]


def exponentials(implementation, words):
    out = np.empty(len(words))
    implementation.exponentials_of(np.asarray(words, np.uint64), out)
    return out.tolist()


@given(words64, words64, words64)
def test_single_draws_have_the_bits_of_the_twin(low, high, position):
    assert draws.word(low, high, position) == reference.word(low, high, position)
    assert draws.uniform(low, high, position) == reference.uniform(low, high, position)
    assert draws.unit_exponential(low, high, position) == reference.unit_exponential(low, high, position)


@pytest.mark.parametrize(
    ("name", "dtype"), [("words", np.uint64), ("uniforms", np.float64), ("unit_exponentials", np.float64)]
)
@given(low=words64, high=words64, positions=st.lists(words64, max_size=20))
def test_many_draws_have_the_bits_of_the_twin(name, dtype, low, high, positions):
    given_positions = np.array(positions, np.uint64)
    given_positions.setflags(write=False)
    compiled, expected = np.empty(len(positions), dtype), np.empty(len(positions), dtype)
    getattr(draws, name)(low, high, given_positions, compiled)
    getattr(reference, name)(low, high, given_positions, expected)
    assert compiled.tobytes() == expected.tobytes()


@given(st.lists(words64, max_size=50))
def test_exponentials_of_any_words_have_the_bits_of_the_twin(words):
    assert exponentials(draws, words) == exponentials(reference, words)


def test_many_exponentials_have_the_bits_of_the_twin():
    # Terms at the end of the series change one result in hundreds, so that a few examples would not notice them.
    words = np.empty(200_000, np.uint64)
    draws.words(1, 2, np.arange(200_000, dtype=np.uint64), words)
    assert exponentials(draws, words) == exponentials(reference, words)


@twins
def test_exponentials_are_right_at_the_edges(implementation):
    with localcontext(prec=40):
        for word, found in zip(EDGES, exponentials(implementation, EDGES), strict=True):
            exact = -(1 - Decimal(word >> 11) / 2**53).ln()
            assert abs(Decimal(found) - exact) <= Decimal(math.ulp(float(exact))), hex(word)


@twins
def test_least_and_greatest_exponential(implementation):
    least, greatest = exponentials(implementation, [0, 2**64 - 1])
    assert (least, math.copysign(1.0, least)) == (0.0, 1.0)
    assert greatest == 53 * math.log(2)


@twins
def test_exponentials_do_not_fall_where_the_branch_changes(implementation):
    for centre in [2**52, 2**51 * 3, 2**53 - math.isqrt(2**105), 2**53 - math.isqrt(2**103)]:
        found = exponentials(implementation, [(centre + step) << 11 for step in range(-200, 200)])
        assert found == sorted(found)


@given(words64, words64)
def test_both_wide_products_are_exact(a, b):
    assert draws.multiply_high(a, b, portable=True) == a * b >> 64
    assert draws.multiply_high(a, b, portable=False) == a * b >> 64


@twins
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("wrong", [-1, 2**64])
def test_what_is_no_word_is_refused(implementation, place, wrong):
    arguments = [1, 1, 1]
    arguments[place] = wrong
    with pytest.raises(OverflowError):
        implementation.unit_exponential(*arguments)


@given(words64, words64, st.integers(0, 40), st.data())
def test_subsets_are_those_of_the_twin(low, high, rows, data):
    size = data.draw(st.integers(0, rows))
    compiled, expected = np.zeros(rows, np.uint8), np.zeros(rows, np.uint8)
    draws.subset(low, high, size, compiled)
    reference.subset(low, high, size, expected)
    assert compiled.tolist() == expected.tolist()


@pytest.mark.skipif(os.environ.get("EMUML_CHECKED") != "1", reason="this build has no bounds checks")
def test_a_checked_build_checks_bounds():
    with pytest.raises(IndexError):
        draws.words(0, 0, np.zeros(5, np.uint64), np.zeros(3, np.uint64))
