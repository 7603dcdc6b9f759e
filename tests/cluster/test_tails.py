"""Weibull, lognormal and Pareto laws: closed forms, exact identities, and draws against the law."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from emuml._kernels import reference_tails as twin
from emuml.cluster import LogNormal, Pareto, ShiftedExponential, Weibull
from emuml.durations import durations
from emuml.errors import UserError
from emuml.node import NodeId
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.streams import stream_key, words_at
from emuml.theory import expected_round_time, order_statistic_moments, round_time_cdf, round_time_variance, sample

WORKER = NodeId("worker", 3)
LAWS = [
    Weibull(0.5, 0.7, 0.05),
    Weibull(2.0, 3.0, tail="scaled"),
    LogNormal(0.5, 0.3, 0.05),
    LogNormal(2.0, 1.5, 0.1, "scaled"),
    Pareto(0.5, 2.5, 0.05),
    Pareto(1.0, 3.5, tail="scaled"),
]
HEAVY = [Pareto(1.0, 0.5), Pareto(1.0, 1.0), Pareto(1.0, 1.5), Pareto(1.0, 2.0)]
every_law = pytest.mark.parametrize("law", LAWS + HEAVY, ids=repr)
PEERS = {
    Weibull: lambda law, scale, shift: stats.weibull_min(law.shape, loc=shift, scale=scale),
    LogNormal: lambda law, scale, shift: stats.lognorm(law.sigma, loc=shift, scale=scale),
    Pareto: lambda law, scale, shift: stats.pareto(law.shape, loc=shift, scale=scale),
}


def peer(law, load):
    """Return the law as scipy has it."""
    scale = law.median_s if isinstance(law, LogNormal) else law.scale_s
    return PEERS[type(law)](law, scale * (load if law.tail == "scaled" else 1.0), load * law.shift_s)


@every_law
@pytest.mark.parametrize("load", [0.5, 1.0, 4.0])
def test_laws_are_those_of_scipy(law, load):
    q = np.array([[1e-9, 0.01, 0.5], [0.9, 0.999, 1.0 - 1e-9]])
    np.testing.assert_allclose(law.ppf(q, load), peer(law, load).ppf(q), rtol=1e-12)
    np.testing.assert_allclose(law.isf(q, load), peer(law, load).isf(q), rtol=1e-12)
    t = law.ppf([0.2, 0.7, 0.9999], load)
    np.testing.assert_allclose(law.cdf(t, load), peer(law, load).cdf(t), rtol=1e-11)
    np.testing.assert_allclose(law.sf(t, load), peer(law, load).sf(t), rtol=1e-11)
    assert (law.mean(load), law.variance(load)) == pytest.approx(peer(law, load).stats("mv"), rel=1e-9)


@every_law
@given(st.floats(1e-12, 0.999), st.floats(0.01, 100))
def test_distribution_function_and_quantiles_are_inverse(law, q, load):
    # Not nearer to the least time: there the shift leaves few digits of what is added to it.
    assert law.cdf(law.ppf(1.0 - q, load), load) == pytest.approx(1.0 - q, rel=1e-9)
    assert law.sf(law.isf(q, load), load) == pytest.approx(q, rel=1e-9)
    assert float(law.cdf(law.isf(q, load), load) + law.sf(law.isf(q, load), load)) == pytest.approx(1.0, rel=1e-15)


@every_law
def test_ends_of_the_laws(law):
    least, most = law.ppf([0.0, 1.0]).tolist()
    assert least == law.shift_s + (law.scale_s if isinstance(law, Pareto) else 0.0)
    assert (most, float(law.isf(0.0)), float(law.isf(1.0))) == (np.inf, np.inf, least)
    assert law.cdf([-1.0, 0.0, law.shift_s, np.inf]).tolist() == [0.0, 0.0, 0.0, 1.0]
    with pytest.raises(UserError, match="quantile"):
        law.ppf(1.5)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_moments_are_those_of_the_quantile_function(law):
    # Integrated over the chance to exceed, in which the tail is far from the end of the numbers.
    power = lambda m: integrate.quad(lambda h: float(law.isf(np.exp(-h))) ** m * np.exp(-h), 0, 700, limit=500)[0]  # noqa: E731
    assert law.mean() == pytest.approx(power(1), rel=1e-7)
    assert law.variance() == pytest.approx(power(2) - power(1) ** 2, rel=1e-5)


def test_moments_that_do_not_exist_are_infinite():
    assert [(law.mean(), law.variance()) for law in HEAVY] == [
        (math.inf, math.inf), (math.inf, math.inf), (3.0, math.inf), (2.0, math.inf),
    ]  # fmt: skip


@every_law
@pytest.mark.parametrize("load", [1.0, 3.0])
def test_a_duration_is_shift_plus_scale_times_the_named_draw(law, load):
    words = words_at(stream_key(7, "", "compute/worker-3"), [0, 1, 10**6])
    draws = np.empty(3)
    twin.tails_of(law.kind, law.parameter, words, draws)
    scale = law.median_s if isinstance(law, LogNormal) else law.scale_s
    scale = scale if law.tail == "fixed" else load * scale
    duration = law.sampler(7, WORKER)
    assert [duration(k, load) for k in (0, 1, 10**6)] == (load * law.shift_s + scale * draws).tolist()


@every_law
@given(seed=st.integers(0, 2**64 - 1), workers=st.integers(1, 9), draw=st.integers(0, 2**40), load=st.floats(0.01, 100))
def test_vectors_have_the_bits_of_every_sampler(law, seed, workers, draw, load):
    out = np.empty(workers)
    durations(law, seed, workers)(draw, load, out)
    assert out.tolist() == [law.sampler(seed, NodeId("worker", w))(draw, load) for w in range(workers)]


@every_law
def test_durations_follow_the_law(law):
    # Kolmogorov-Smirnov on 20,000 draws of a fixed stream; a right law falls below 0.001 once in a thousand streams.
    out, seconds = np.empty(200), []
    fill = durations(law, 13, 200)
    for draw in range(100):
        fill(draw, 2.0, out)
        seconds += out.tolist()
    assert stats.kstest(seconds, lambda t: law.cdf(t, 2.0)).pvalue > 1e-3


def test_shape_1_is_exponential():
    weibull, exponential = Weibull(0.5, 1.0, 0.05), ShiftedExponential(0.05, 0.5)
    t = np.linspace(0.0, 5.0, 50)
    np.testing.assert_allclose(weibull.cdf(t), exponential.cdf(t), rtol=1e-15)
    duration, same = weibull.sampler(1, WORKER), exponential.sampler(1, WORKER)
    assert [duration(k, 1.0) for k in range(9)] == pytest.approx([same(k, 1.0) for k in range(9)], rel=1e-14)


# Theory


def pareto_moment(workers, k, shape, power):
    """Return a moment of the ``k``-th of Pareto times of scale 1, by gamma functions."""
    logs = special.gammaln([workers + 1, workers - k + 1 - power / shape, workers - k + 1, workers + 1 - power / shape])
    return math.exp(logs[0] + logs[1] - logs[2] - logs[3])


@pytest.mark.parametrize("shape", [0.6, 1.1, 2.0, 2.1, 7.0])
@pytest.mark.parametrize(("workers", "k"), [(1, 1), (8, 4), (8, 7), (8, 8), (1000, 990), (1000, 3)])
def test_order_statistics_of_heavy_tails_are_those_of_gamma_functions(shape, workers, k):
    index = (workers - k + 1) * shape
    mean, square = order_statistic_moments(Pareto(1.0, shape), 1.0, workers, k)
    assert mean == (math.inf if index <= 1 else pytest.approx(pareto_moment(workers, k, shape, 1), rel=1e-11))
    assert square == (math.inf if index <= 2 else pytest.approx(pareto_moment(workers, k, shape, 2), rel=1e-11))


def test_round_times_are_infinite_only_where_the_tail_is():
    law = Pareto(1.0, 0.75)
    assert expected_round_time(Uncoded(), 6, law) == math.inf
    assert round_time_variance(Uncoded(), 6, law) == math.inf
    # Of two replicas one is enough: their faster one has shape 1.5, of three it has 2.25.
    assert expected_round_time(FractionalRepetition(2), 6, law) < math.inf
    assert round_time_variance(FractionalRepetition(2), 6, law) == math.inf
    assert round_time_variance(FractionalRepetition(3), 6, law) < math.inf
    # Early stopped rounds use four answers of six at most, of which the last has index 2.25.
    assert expected_round_time(FractionalRepetition(3), 6, law, collect=4) < math.inf
    assert expected_round_time(IgnoreStragglers(), 6, law, collect=6) == math.inf


@pytest.mark.parametrize(("replicas", "groups"), [(2, 3), (3, 2), (1, 6)])
def test_covers_of_heavy_tails_are_maxima_of_minima(replicas, groups):
    law = Pareto(1.0, 2.5)
    expected = pareto_moment(groups, groups, replicas * 2.5, 1)
    assert expected_round_time(FractionalRepetition(replicas), 6, law) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("law", LAWS[::2], ids=repr)
def test_theory_of_rounds_is_what_sampling_finds(law):
    # Four standard errors of the mean of 20,000 rounds.
    built = IgnoreStragglers().build(12, collect=9)
    found = sample.round_times(law, built.stop_rule(), 20_000, 3, load=built.load)
    mean_s, error_s = found.mean_and_error_s
    assert mean_s == pytest.approx(expected_round_time(IgnoreStragglers(), 12, law, collect=9), abs=4 * error_s)
    seconds = np.diff(found.ended_s, prepend=0.0)
    chances = round_time_cdf(IgnoreStragglers(), 12, law, seconds, collect=9)
    assert stats.kstest(chances, "uniform").pvalue > 1e-3
