"""Draws with heavier and lighter tails: the bits of the twin, and what they should be by other arithmetic."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from emuml._kernels import reference_tails as tails

draws = pytest.importorskip("emuml._kernels.draws", reason="the kernels are not compiled")
timing = pytest.importorskip("emuml._kernels.timing", reason="the kernels are not compiled")

words64 = st.integers(0, 2**64 - 1)
# Parameters as laws have them: 1/shape of Weibull, 1/shape of Pareto, sigma of the lognormal law.
kinds = st.one_of(
    st.tuples(st.just(tails.POWER), st.floats(0.01, 10)),
    st.tuples(st.just(tails.GROWTH), st.floats(0.01, 2)),
    st.tuples(st.just(tails.NORMAL), st.floats(0.001, 5)),
)
EDGES = [0, 2**11 - 1, 2**11, 2**12 - 1, 2**12, 2**63 - 1, 2**63, 2**64 - 2**12, 2**64 - 2**11, 2**64 - 1]
EDGES += [int(share * 2**52) << 12 for share in (0.0749999, 0.075, 0.925, 0.9250001, 1.3e-11, 1.4e-11)]


def tails_of(implementation, kind, parameter, words):
    out = np.empty(len(words))
    implementation.tails_of(kind, parameter, np.asarray(words, np.uint64), out)
    return out


def normals_of(implementation, words):
    out = np.empty(len(words))
    implementation.normals_of(np.asarray(words, np.uint64), out)
    return out


@given(kinds, st.lists(words64 | st.sampled_from(EDGES), max_size=30))
def test_any_words_give_the_bits_of_the_twin(kind, words):
    assert tails_of(draws, *kind, words).tobytes() == tails_of(tails, *kind, words).tobytes()


@given(kinds, words64, words64, st.integers(0, 2**64 - 1))
def test_single_draws_and_many_keys_give_the_bits_of_the_twin(kind, low, high, position):
    single = tails.unit_tail(*kind, low, high, position)
    assert draws.unit_tail(*kind, low, high, position) == single
    keys = np.array([[low], [high]], np.uint64).repeat(600, axis=1)  # more than a block of the kernel
    for implementation in (timing, tails):
        out = np.empty(600)
        implementation.key_tails(*kind, *keys, position, 0.25, 3.0, out)
        assert set(out.tolist()) == {0.25 + 3.0 * single}


def test_many_normal_numbers_have_the_bits_of_the_twin_and_are_right():
    words = np.random.default_rng(1).integers(0, 2**64, 100_000, np.uint64)
    found = normals_of(draws, words)
    assert found.tobytes() == normals_of(tails, words).tobytes()
    chances = (2 * (words >> np.uint64(12)).astype(np.float64) + 1) * 2.0**-53
    # Below the median a quantile is told from its chance to the last digits; above, by symmetry.
    low = chances < 0.5
    np.testing.assert_allclose(found[low], special.ndtri(chances[low]), rtol=2e-15)
    mirrored = normals_of(draws, ~words)
    assert (-mirrored).tobytes() == found.tobytes()


@pytest.mark.parametrize("words", [EDGES, [2**62 + (step << 11) for step in range(-300, 300)]], ids=["edges", "near"])
@pytest.mark.parametrize("kind", [(tails.POWER, 2.5), (tails.GROWTH, 0.5), (tails.NORMAL, 1.0)])
def test_larger_words_never_give_smaller_draws(kind, words):
    # A rounding of the last digit may turn neighbours round, so draws count as equal within two.
    found = tails_of(draws, *kind, sorted(words))
    assert np.all(np.diff(found) >= -4e-16 * found[1:])


@given(st.floats(-600, 600))
def test_exponentials_are_right_to_the_last_digit(x):
    with localcontext(prec=40):
        exact = Decimal(x).exp()
        found = float(tails.exp_of(np.array([x]))[0])
        assert abs(Decimal(found) - exact) <= Decimal(math.ulp(float(exact)))


@given(st.floats(1e-300, 1e300))
def test_logarithms_are_right_to_the_last_digits(x):
    with localcontext(prec=40):
        exact = Decimal(x).ln()
        found = float(tails.log_of(np.array([x]))[0])
        assert abs(Decimal(found) - exact) <= 2 * Decimal(math.ulp(float(exact)))


def test_the_least_draw_is_none_of_the_power_and_one_of_the_growth():
    assert [tails_of(draws, kind, 0.5, [0]).tolist() for kind in (tails.POWER, tails.GROWTH)] == [[0.0], [1.0]]


def test_quantiles_of_the_normal_law_end_at_infinity():
    found = tails.normal_quantile(np.array([[0.0, 0.5], [1e-300, 1.0]]))
    assert found.tolist() == [[-np.inf, 0.0], [pytest.approx(special.ndtri(1e-300), rel=1e-14), np.inf]]
