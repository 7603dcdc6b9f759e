"""Seconds per round: the public tables, exact enumerations, other laws, and a simulation of each rule."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml.protocols.gradient_coding.codes import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.shapes import All, Count, Cover, CoverOrCount, StopRule
from emuml.theory import (
    agc_moments,
    expected_round_time,
    exponential_means,
    exponential_part,
    exponential_variances,
    order_statistic_moments,
    round_time_variance,
    seconds_per_gradient,
)


@dataclass(frozen=True)
class Shifted:
    """The attributes by which theory knows a shifted exponential."""

    shift_s: float
    mean_s: float
    tail: str = "fixed"


@dataclass(frozen=True)
class Quantiles:
    """A law that theory knows by its quantiles only."""

    quantile: object

    def ppf(self, q, load=1.0):
        return load * self.quantile(np.asarray(q))


@dataclass(frozen=True)
class AnyOf:
    """An exact code of load ``stragglers + 1`` that stops at ``n - stragglers`` answers, as cyclic codes do."""

    stragglers: int
    load: float = 0.0
    rule: StopRule | None = None

    def build(self, workers, seed=0, collect=None):
        return AnyOf(self.stragglers, self.stragglers + 1.0, Count(workers, workers - self.stragglers))

    def stop_rule(self):
        return self.rule


TABLE = [
    # code, collect, load, exponential part, its deviation, model A at 0.05, B at 0.05, A at 0.5, B at 0.5
    (Uncoded(), None, 1, 1.997494, 0.634852, 2.0475, 2.0475, 2.4975, 2.4975),
    (IgnoreStragglers(), 29, 1, 1.497494, 0.391200, 1.5475, 1.5475, 1.9975, 1.9975),
    (IgnoreStragglers(), 27, 1, 1.080827, 0.250519, 1.1308, 1.1308, 1.5808, 1.5808),
    (IgnoreStragglers(), 24, 1, 0.772494, 0.173754, 0.8225, 0.8225, 1.2725, 1.2725),
    (IgnoreStragglers(), 15, 1, 0.338379, 0.089036, 0.3884, 0.3884, 0.8384, 0.8384),
    (AnyOf(1), None, 2, 1.497494, 0.391200, 1.5975, 3.0950, 2.4975, 3.9950),
    (AnyOf(3), None, 4, 1.080827, 0.250519, 1.2808, 4.5233, 3.0808, 6.3233),
    (AnyOf(5), None, 6, 0.855827, 0.192704, 1.1558, 5.4350, 3.8558, 8.1350),
    (FractionalRepetition(2), None, 2, 0.829557, 0.314289, 0.9296, 1.7591, 1.8296, 2.6591),
    (FractionalRepetition(3), None, 3, 0.488161, 0.207483, 0.6382, 1.6145, 1.9882, 2.9645),
    (FractionalRepetition(5), None, 5, 0.245000, 0.122122, 0.4950, 1.4750, 2.7450, 3.7250),
    (FractionalRepetition(10), None, 10, 0.091667, 0.058333, 0.5917, 1.4167, 5.0917, 5.9167),
    (FractionalRepetition(2), 15, 2, 0.338379, 0.089036, 0.4384, 0.7768, 1.3384, 1.6768),
    (FractionalRepetition(3), 10, 3, 0.198624, 0.063220, 0.3486, 0.7459, 1.6986, 2.0959),
    (FractionalRepetition(3), 15, 3, 0.330703, 0.090428, 0.4807, 1.1421, 1.8307, 2.4921),
    (FractionalRepetition(3), 20, 3, 0.440222, 0.142306, 0.5902, 1.4707, 1.9402, 2.8207),
    (FractionalRepetition(5), 10, 5, 0.184268, 0.065268, 0.4343, 1.1713, 2.6843, 3.4213),
    (FractionalRepetition(5), 15, 5, 0.232431, 0.099435, 0.4824, 1.4122, 2.7324, 3.6622),
]


@pytest.mark.parametrize(("code", "collect", "load", "part", "deviation", "a05", "b05", "a5", "b5"), TABLE)
def test_public_table_for_thirty_workers(code, collect, load, part, deviation, a05, b05, a5, b5):
    def mean(shift_s, tail):
        return expected_round_time(code, 30, Shifted(shift_s, 0.5, tail), collect)

    assert mean(0.0, "fixed") == pytest.approx(part, abs=5.1e-7)
    assert mean(0.0, "scaled") == pytest.approx(load * part, abs=load * 5.1e-7)
    assert round_time_variance(code, 30, Shifted(0.7, 0.5), collect) ** 0.5 == pytest.approx(deviation, abs=5.1e-7)
    scaled = round_time_variance(code, 30, Shifted(0.7, 0.5, "scaled"), collect) ** 0.5
    assert scaled == pytest.approx(load * deviation, abs=load * 5.1e-7)
    assert [mean(0.05, "fixed"), mean(0.05, "scaled")] == pytest.approx([a05, b05], abs=5.1e-5)
    assert [mean(0.5, "fixed"), mean(0.5, "scaled")] == pytest.approx([a5, b5], abs=5.1e-5)


@pytest.mark.parametrize(
    ("workers", "uncoded", "half", "ratio", "repetition", "cyclic"),
    [
        (30, 1.997494, 0.338379, 5.903, 0.245000, 1.080827),
        (100, 2.593689, 0.344086, 7.538, 0.359774, 1.129205),
        (1000, 3.742735, 0.346324, 10.807, 0.587803, 1.149047),
        (10000, 4.893803, 0.346549, 14.122, 0.817837, 1.151068),
    ],
)
def test_public_table_for_many_workers(workers, uncoded, half, ratio, repetition, cyclic):
    law = Shifted(0.0, 0.5)
    means = [
        expected_round_time(Uncoded(), workers, law),
        expected_round_time(IgnoreStragglers(), workers, law, workers // 2),
        expected_round_time(FractionalRepetition(5), workers, law),
        exponential_part(Count(workers, workers - workers // 10))[0] * 0.5,
    ]

    assert means == pytest.approx([uncoded, half, repetition, cyclic], abs=5.1e-7)
    assert means[0] / means[1] == pytest.approx(ratio, abs=5.1e-4)


@pytest.mark.parametrize(
    ("workers", "stragglers", "exact", "collect", "early"),
    [
        (32, 2, 0.935862, 16, 0.655445),
        (31, 2, 0.956510, 15, 0.633358),
        (30, 3, 0.615062, 15, 0.546140),
        (100, 6, 0.457058, 50, 0.445754),
    ],
)
def test_public_table_for_unequal_groups(workers, stragglers, exact, collect, early):
    code, law = FractionalRepetition(stragglers + 1), Shifted(0.0, 1.0)

    assert expected_round_time(code, workers, law) == pytest.approx(exact, abs=5.1e-7)
    assert expected_round_time(code, workers, law, collect) == pytest.approx(early, abs=5.1e-7)


@settings(max_examples=40)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_cover_of_any_groups_equals_inclusion_and_exclusion_over_sets_of_groups(sizes):
    exact, square = 0.0, 0.0
    for chosen in range(1, 2 ** len(sizes)):
        rate = sum(size for j, size in enumerate(sizes) if chosen >> j & 1)
        sign = -((-1) ** chosen.bit_count())
        exact += sign / rate
        square += 2 * sign / rate**2
    workers = iter(range(sum(sizes)))
    rule = Cover(tuple(tuple(next(workers) for _ in range(size)) for size in sizes))

    mean, variance = exponential_part(rule)
    assert mean == pytest.approx(exact, rel=1e-11)
    assert variance == pytest.approx(square - exact**2, rel=1e-9)


@pytest.mark.parametrize(("groups", "size"), [(1, 1), (1, 6), (10, 3), (7, 1)])
def test_collecting_everybody_equals_waiting_for_cover(groups, size):
    members = tuple(tuple(range(j * size, j * size + size)) for j in range(groups))

    early = exponential_part(CoverOrCount(members, groups * size))
    assert early == pytest.approx(exponential_part(Cover(members)), rel=1e-12)


def test_few_lines_of_order_statistics():
    assert exponential_means(3) == pytest.approx([1 / 3, 1 / 3 + 1 / 2, 1 / 3 + 1 / 2 + 1])
    assert exponential_variances(3) == pytest.approx([1 / 9, 1 / 9 + 1 / 4, 1 / 9 + 1 / 4 + 1])
    assert exponential_part(All(30))[0] == pytest.approx(3.994987131, abs=5e-10)


@pytest.mark.parametrize(("code", "collect"), [(row[0], row[1]) for row in TABLE] + [(FractionalRepetition(4), None)])
def test_quantiles_of_an_exponential_give_its_closed_form(code, collect):
    law, same = Shifted(0.2, 0.5, "scaled"), Quantiles(lambda q: 0.2 - 0.5 * np.log1p(-q))

    assert expected_round_time(code, 30, same, collect) == pytest.approx(
        expected_round_time(code, 30, law, collect), rel=1e-12
    )
    assert round_time_variance(code, 30, same, collect) == pytest.approx(
        round_time_variance(code, 30, law, collect), rel=1e-10
    )


@pytest.mark.parametrize(("workers", "k"), [(1, 1), (5, 2), (30, 30), (300, 150)])
def test_uniform_times_have_beta_moments(workers, k):
    mean, second = order_statistic_moments(Quantiles(lambda q: q), 2.0, workers, k)

    assert mean == pytest.approx(2.0 * k / (workers + 1), rel=1e-12)
    assert second == pytest.approx(4.0 * k * (k + 1) / ((workers + 1) * (workers + 2)), rel=1e-12)


def test_the_fastest_of_many_pareto_times():
    # The least of n Pareto(shape 3, scale 1) is Pareto(3 n).
    mean, _ = order_statistic_moments(Quantiles(lambda q: (1 - q) ** (-1 / 3)), 1.0, 10, 1)
    assert mean == pytest.approx(30 / 29, rel=1e-12)


@pytest.mark.parametrize(("code", "collect"), [(row[0], row[1]) for row in TABLE])
def test_constant_times_are_exact(code, collect):
    law = Quantiles(lambda q: np.full(q.shape, 0.25))
    load = code.build(30, collect=collect).load

    assert expected_round_time(code, 30, law, collect) == load * 0.25
    assert round_time_variance(code, 30, law, collect) == 0.0


def test_a_law_that_does_not_say_that_it_jumps_is_right_to_three_digits():
    # One in ten answers takes 10 s, the others 1 s: a round of ten takes 10 s unless all are quick.
    law = Quantiles(lambda q: np.where(q > 0.9, 10.0, 1.0))
    assert expected_round_time(Uncoded(), 10, law) == pytest.approx(10 - 9 * 0.9**10, rel=3e-3)


@pytest.mark.parametrize(
    ("code", "workers", "collect"),
    [(FractionalRepetition(3), 30, 15), (FractionalRepetition(3), 31, None), (IgnoreStragglers(), 20, 7)],
)
def test_simulated_rounds_agree_within_four_standard_errors(code, workers, collect):
    rule, rounds = code.build(workers, collect=collect).stop_rule(), 4000
    times = np.random.default_rng(17).exponential(1.0, (rounds, workers))
    orders = np.argsort(times, axis=1, kind="stable")
    ends = np.array([t[order[rule.stop_index(order) - 1]] for t, order in zip(times, orders, strict=True)])

    law = Shifted(0.0, 1.0)
    error = round_time_variance(code, workers, law, collect) ** 0.5 / rounds**0.5
    assert abs(ends.mean() - expected_round_time(code, workers, law, collect)) < 4 * error
    assert ends.var() == pytest.approx(round_time_variance(code, workers, law, collect), rel=0.12)


@pytest.mark.parametrize("tail", ["fixed", "scaled"])
@pytest.mark.parametrize(("replication", "collect", "part"), [(3, 15, 0.330703), (5, 10, 0.184268), (2, 15, 0.338379)])
def test_seconds_per_unit_of_gradient(replication, collect, part, tail):
    law, missed = Shifted(0.0, 0.5, tail), agc_moments(30, replication, collect).miss
    load = replication if tail == "scaled" else 1

    plain = seconds_per_gradient(FractionalRepetition(replication), 30, law, collect)
    assert plain == pytest.approx(load * part / (1 - missed), rel=1e-5)
    unbiased = seconds_per_gradient(FractionalRepetition(replication, "unbiased"), 30, law, collect)
    assert unbiased == pytest.approx(load * part, rel=1e-5)


def test_seconds_per_unit_of_gradient_of_what_is_exact_are_those_of_a_round():
    law = Shifted(0.1, 0.5)
    for code in (Uncoded(), FractionalRepetition(3), AnyOf(3)):
        assert seconds_per_gradient(code, 30, law) == expected_round_time(code, 30, law)
    half = seconds_per_gradient(IgnoreStragglers("none"), 30, law, 15)
    assert half == pytest.approx(2 * expected_round_time(IgnoreStragglers(), 30, law, 15))
    slower = seconds_per_gradient(IgnoreStragglers("none"), 30, Shifted(0.0, 0.5), 15, "skip-stale")
    assert slower == pytest.approx(2 * 0.557743, rel=1e-6)
