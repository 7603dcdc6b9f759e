"""Named streams: the fixed derivation, draws by position, their laws and their bits."""

import hashlib
import math
from collections import Counter
from decimal import Decimal, localcontext
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from emuml import streams
from emuml.errors import UserError

keys = st.integers(0, 2**128 - 1)
positions = st.integers(0, 2**64 - 1)

# seed, node, stream, key as its 16 bytes, the generator's first two words, the first uniform number
VECTORS = [
    (
        7,
        "worker-3",
        "batch/0",
        "67c69f02ca967832a01b8919ba344f0b",
        "e7ebd60cb6d5c8a4 905903c284248acc",
        0.9059423237839247,
    ),
    (
        7,
        "worker-3",
        "batch/1",
        "e1974947c5c101c24e51ef1af580c043",
        "8883d5b79fd068ca d8ccd4373d42fdb0",
        0.5332616399098825,
    ),
    (
        8,
        "worker-3",
        "batch/0",
        "16c7224e663523467a1e5de335c9752e",
        "1a0ac35936101773 1ae2e2754c129526",
        0.10172673156745327,
    ),
    (
        7,
        "",
        "compute/worker-3",
        "6e8a1f02c182fbd2d7badc40b69d2a2a",
        "b156b18d840bd276 ac3b2857320afe05",
        0.6927290888307163,
    ),
    (
        2**64 - 1,
        "wörker",
        "a",
        "321977a938b85cdb9d78869f0a6caab7",
        "d6a4130be09f16c4 50ce35fce55258cd",
        0.8384410766599297,
    ),
]

COMPUTE_KEY = streams.stream_key(7, "", "compute/worker-3")
MILLION = np.arange(10**6)


@pytest.mark.parametrize(("seed", "node", "stream", "key", "words", "first"), VECTORS)
def test_keys_words_and_uniforms_are_the_published_ones(seed, node, stream, key, words, first):
    found = streams.stream_key(seed, node, stream)
    assert found.to_bytes(16, "little").hex() == key
    raw = streams.generator(seed, node, stream).bit_generator.random_raw(2)
    assert " ".join(f"{word:016x}" for word in raw.tolist()) == words
    assert streams.uniform(found, 0) == first
    assert float(streams.generator(seed, node, stream).random()) == first


def test_words_by_position_are_the_published_ones():
    expected = [0xB156B18D840BD276, 0x74650EE7E850574F, 0x119C885A20E35FDD, 0xDA2EBBB0256AC7CB]
    assert streams.words_at(COMPUTE_KEY, [0, 1, 2, 10**6]).tolist() == expected


def test_first_exponentials_are_the_published_ones():
    found = streams.unit_exponential_at(COMPUTE_KEY, [0, 1, 2]).tolist()
    assert found == pytest.approx([1.1800254737167317, 0.606358709697135, 0.0712755623195232], rel=2.3e-16)


@given(keys, positions)
@example(1, 2**64 - 1)
def test_word_is_the_first_of_numpys_block(key, position):
    assert streams.word(key, position) == int(np.random.Philox(key=key, counter=position).random_raw())


@given(keys, st.lists(positions, max_size=8))
def test_one_draw_is_the_same_alone_and_among_others(key, many):
    assert streams.words_at(key, np.array(many, np.uint64)).tolist() == [streams.word(key, k) for k in many]
    assert streams.uniform_at(key, np.array(many, np.uint64)).tolist() == [streams.uniform(key, k) for k in many]
    exponentials = streams.unit_exponential_at(key, np.array(many, np.uint64)).tolist()
    assert exponentials == [streams.unit_exponential(key, k) for k in many]


def test_a_generator_starts_its_stream_anew():
    first, second = (streams.generator(1, "worker-0", "a").random(3).tolist() for _ in range(2))
    assert first == second


def test_node_and_stream_do_not_run_into_each_other():
    assert streams.stream_key(0, "ab", "c") != streams.stream_key(0, "a", "bc")


@pytest.mark.parametrize(("seed", "node"), [(-1, ""), (2**64, ""), (0, "n" * 65536)])
def test_what_does_not_fit_the_derivation_is_refused(seed, node):
    with pytest.raises(UserError):
        streams.stream_key(seed, node, "")


@pytest.mark.parametrize("wrong", [[-1], [0.0], [3, -7], ["1"], [True]])
def test_positions_that_are_none_are_refused(wrong):
    with pytest.raises(UserError, match="position"):
        streams.words_at(COMPUTE_KEY, wrong)


def test_a_negative_position_of_one_draw_is_refused():
    with pytest.raises(OverflowError):
        streams.unit_exponential(COMPUTE_KEY, -1)


@pytest.mark.parametrize("draw", [streams.words_at, streams.uniform_at, streams.unit_exponential_at])
def test_results_have_the_shape_of_the_positions(draw):
    assert draw(COMPUTE_KEY, []).shape == (0,)
    assert draw(COMPUTE_KEY, 5).shape == ()
    table = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert np.array_equal(draw(COMPUTE_KEY, table[:, ::2]), draw(COMPUTE_KEY, table)[:, ::2])


def test_exponentials_are_within_two_units_of_log1p():
    exact = -np.log1p(-streams.uniform_at(COMPUTE_KEY, MILLION[:100_000]))
    found = streams.unit_exponential_at(COMPUTE_KEY, MILLION[:100_000])
    assert np.max(np.abs(found - exact) / np.spacing(exact)) <= 2


def test_exponentials_are_within_one_unit_of_forty_digits():
    uniforms = streams.uniform_at(COMPUTE_KEY, MILLION[:2_000]).tolist()
    found = streams.unit_exponential_at(COMPUTE_KEY, MILLION[:2_000]).tolist()
    with localcontext(prec=40):
        exact = [-(1 - Decimal(u)).ln() for u in uniforms]
        errors = [abs(Decimal(e) - x) / Decimal(math.ulp(float(x))) for e, x in zip(found, exact, strict=True)]
    assert max(errors) < 1


@pytest.mark.parametrize(
    ("draw", "digest"),
    [
        (streams.words_at, "93be0df7fee607d481cafd872d258238615349938d58fabec27138f28dfd5c50"),
        (streams.uniform_at, "3cada17b302b6f8aa9d26361a2e04084b5b2845fd4e8ad326a8e9795dba07498"),
        (streams.unit_exponential_at, "2abd470e281d2b241533fd993ff4bb88529ff4ed1264c1631dcde2c6f5e3b090"),
    ],
)
def test_a_million_draws_have_the_same_bits_everywhere(draw, digest):
    drawn = draw(COMPUTE_KEY, MILLION)
    assert hashlib.sha256(drawn.astype(drawn.dtype.newbyteorder("<")).tobytes()).hexdigest() == digest


@pytest.mark.parametrize(("draw", "law"), [(streams.uniform_at, "uniform"), (streams.unit_exponential_at, "expon")])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_draws_follow_their_law(draw, law, seed):
    # Kolmogorov-Smirnov on 50,000 draws of fixed streams; a right sampler falls below 0.001 for one seed in a thousand.
    drawn = draw(streams.stream_key(seed, "", "law"), np.arange(50_000))
    assert stats.kstest(drawn, law).pvalue > 1e-3


def test_neighbouring_workers_and_draws_are_uncorrelated():
    drawn = np.array(
        [streams.uniform_at(streams.stream_key(3, "", f"compute/worker-{w}"), MILLION[:1_000]) for w in range(40)]
    )
    # 40,000 pairs: the standard error of a correlation is 0.005; four of them.
    for first, second in [(drawn[1:], drawn[:-1]), (drawn[:, 1:], drawn[:, :-1])]:
        assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.02


def test_halves_make_up_the_key():
    low, high = streams.halves(COMPUTE_KEY)
    assert high << 64 | low == COMPUTE_KEY


@given(keys, st.integers(0, 60), st.data())
def test_a_subset_is_sorted_distinct_and_in_range(key, rows, data):
    size = data.draw(st.integers(0, rows))
    chosen = streams.subset_at(key, rows, size)
    assert chosen.dtype == np.int64
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert len(chosen) == size
    assert all(0 <= row < rows for row in chosen.tolist())


def test_every_subset_is_equally_likely():
    # Chi-square over all 20 subsets of 3 of 6, 20,000 streams; p < 0.001 happens to a right method once in a thousand.
    counts = Counter(
        tuple(streams.subset_at(streams.stream_key(5, "", f"batch/0/{k}"), 6, 3).tolist()) for k in range(20_000)
    )
    observed = [counts[subset] for subset in combinations(range(6), 3)]
    assert sum(observed) == 20_000
    assert stats.chisquare(observed).pvalue > 1e-3


def test_every_row_of_a_large_set_is_equally_likely():
    taken = np.zeros(500)
    for k in range(4_000):
        taken[streams.subset_at(streams.stream_key(6, "", f"batch/0/{k}"), 500, 50)] += 1
    # Without replacement a row's count has variance n p (1 - p), and counts sum to a constant.
    statistic = np.sum((taken - 400) ** 2) / (4_000 * 0.1 * 0.9) * 499 / 500
    assert 1e-3 < stats.chi2.sf(statistic, 499) < 1 - 1e-3


def test_a_subset_stays_what_it_was():
    assert streams.subset_at(COMPUTE_KEY, 1_000, 5).tolist() == [68, 453, 615, 689, 720]


@pytest.mark.parametrize(("rows", "size"), [(3, 4), (3, -1), (-1, 0)])
def test_impossible_subsets_are_refused(rows, size):
    with pytest.raises(UserError, match="0 <= size <= rows"):
        streams.subset_at(COMPUTE_KEY, rows, size)


@given(keys, st.lists(positions, max_size=5))
def test_normal_numbers_are_quantiles_of_the_words(key, where):
    found = streams.normal_at(key, np.array(where, np.uint64))
    words = streams.words_at(key, np.array(where, np.uint64)).tolist()
    chances = [(2 * (word >> 12) + 1) / 2.0**53 for word in words]

    assert found == pytest.approx(stats.norm.ppf(chances), rel=1e-13, abs=1e-15)
    assert found.tolist() == [float(streams.normal_at(key, [position])[0]) for position in where]


def test_normal_numbers_keep_the_shape_of_positions_and_have_the_normal_law():
    """4,000 numbers; a Kolmogorov-Smirnov test at one in a thousand."""
    found = streams.normal_at(streams.stream_key(3, "", "code/x"), np.arange(4000).reshape(40, 100))

    assert found.shape == (40, 100)
    assert stats.kstest(found.ravel(), "norm").pvalue > 1e-3
