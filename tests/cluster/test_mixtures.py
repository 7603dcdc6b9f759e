"""Laws made of other laws: exact identities of mixtures, bits of every way to draw, and what theory is told."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emuml
from emuml.cluster import (
    AffineLoad,
    Cluster,
    Constant,
    DelayTrace,
    ErasureHeadDelays,
    Instant,
    LogNormal,
    MarkovSlowness,
    Pareto,
    SharedDraws,
    ShiftedExponential,
    SpeedClasses,
    Weibull,
    WithOutliers,
    WorkerFactors,
)
from emuml.durations import durations
from emuml.errors import UserError
from emuml.node import NodeId
from emuml.protocols.async_updates import ASP
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.streams import stream_key, uniform
from emuml.theory import (
    NoClosedForm,
    expected_round_time,
    expected_update_time,
    order_statistic_moments,
    round_time_cdf,
    round_time_ppf,
    round_time_variance,
    sample,
)
from tests.experiment.small import small

BULK = ShiftedExponential(0.05, 0.5)
TRACE = DelayTrace(np.linspace(0.1, 9.7, 200).reshape(10, 20), "scaled")
INDEPENDENT = [
    WithOutliers(LogNormal(1.0, 0.05), Pareto(10.0, 2.5), 0.02),
    WithOutliers(Constant(1.0), Constant(20.0), 0.01),
    WithOutliers(Constant(1.0), BULK, 0.3),
    AffineLoad(ShiftedExponential(0.0, 0.5, "scaled"), 0.64),
    AffineLoad(Constant(1.13), 0.64),
    AffineLoad(WithOutliers(BULK, Weibull(30.0, 3.0), 0.01), 0.2),
    WorkerFactors(BULK, (1.5, 1.5)),
    SharedDraws(BULK, 1, 0.5),
    MarkovSlowness(BULK, 4.0, 0.25, 0.75),
]
DEPENDENT = [
    WorkerFactors(BULK, (1.0, 1.0, 2.5)),
    WorkerFactors(Constant(0.3), (1.0, 3.0)),
    SpeedClasses(BULK, (1.0, 3.0), (0.75, 0.25)),
    SpeedClasses(LogNormal(1.0, 0.2), (0.5, 1.0, 4.0), (0.2, 0.5, 0.3)),
    MarkovSlowness(BULK, 5.0, 0.05, 0.2),
    SharedDraws(BULK, 3, 0.6),
    AffineLoad(SpeedClasses(BULK, (1.0, 3.0), (0.75, 0.25)), 0.1),
    WithOutliers(MarkovSlowness(BULK, 5.0, 0.05, 0.2), Constant(30.0), 0.01),
]
LAWS = INDEPENDENT + DEPENDENT
every_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
dependent = pytest.mark.parametrize("law", DEPENDENT, ids=lambda law: type(law).__name__)
seeds = st.integers(0, 2**64 - 1)


@every_law
@settings(max_examples=25)
@given(
    seed=seeds,
    workers=st.integers(1, 9),
    draws=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    load=st.floats(0.01, 100),
)
def test_vectors_have_the_bits_of_every_sampler_in_any_order_of_draws(law, seed, workers, draws, load):
    fill = durations(law, seed, workers)
    samplers = [law.sampler(seed, NodeId("worker", w)) for w in range(workers)]
    for draw in [*draws, *range(3)]:
        out = np.empty(workers)
        fill(draw, load, out)
        assert out.tolist() == [duration(draw, load) for duration in samplers]


@every_law
def test_durations_are_pure_functions_of_seed_node_and_draw(law):
    first, second = law.sampler(7, NodeId("worker", 1)), law.sampler(7, NodeId("worker", 1))
    assert [first(k, 2.0) for k in range(30)] == [second(k, 2.0) for k in reversed(range(30))][::-1]
    assert (
        law.sampler(8, NodeId("worker", 1))(0, 2.0) != first(0, 2.0) or law.variance() == 0 or "Constant" in repr(law)
    )


@every_law
@pytest.mark.parametrize("load", [0.5, 1.0, 3.0])
def test_draws_of_many_seeds_and_workers_follow_the_marginal_law(law, load):
    # One draw of one worker of each of 4,000 seeds: independent whatever workers have in common. The distance of a
    # right law is above 1.95 / sqrt(n) once in a thousand; jumps only make it smaller.
    workers = [seed % 6 for seed in range(4_000)]  # each turn of the factors is as often
    found = [law.sampler(seed, NodeId("worker", w))(3, load) for seed, w in enumerate(workers)]
    at, counts = np.unique(found, return_counts=True)
    assert np.abs(np.cumsum(counts) / 4_000 - law.cdf(at, load)).max() < 1.95 / 4_000**0.5
    if law.tail_index > 4:
        error = (law.variance(load) / 4_000) ** 0.5
        assert np.mean(found) == pytest.approx(law.mean(load), abs=4 * error + 1e-12)


@every_law
@given(q=st.floats(1e-9, 1 - 1e-9), load=st.floats(0.1, 10))
def test_quantiles_are_the_least_times_with_their_chance(law, q, load):
    t = law.ppf(q, load)
    assert law.cdf(t * (1 + 1e-15), load) >= q - 1e-15  # what comes after a shift has fewer digits
    assert law.cdf(np.nextafter(t, 0.0) * (1 - 1e-12), load) <= q + 1e-12
    assert float(law.cdf(t, load) + law.sf(t, load)) == pytest.approx(1.0, abs=1e-12)


@every_law
def test_quantiles_end_where_the_law_does(law):
    least, most = law.ppf([0.0, 1.0]).tolist()
    assert law.cdf(least * (1 - 1e-9) - 1e-9) == 0.0
    assert most == np.inf or law.cdf(most) >= 1.0 - 2.0**-52
    assert (float(law.isf(1.0)), float(law.isf(0.0))) == (least, most)
    assert law.ppf(np.full((2, 3), 0.5)).shape == (2, 3)


def test_moments_of_mixtures_are_sums():
    law = WithOutliers(Constant(1.0), Constant(20.0), 0.01)
    assert law.mean(2.0) == pytest.approx(2 * (0.99 + 0.2), rel=1e-15)
    assert law.variance() == pytest.approx(0.99 + 4.0 - 1.19**2, rel=1e-12)
    assert law.atoms(2.0).tolist() == [2.0, 40.0]
    slow = MarkovSlowness(BULK, 5.0, 0.05, 0.2)
    assert (slow.slow_share, slow.mean()) == (0.2, pytest.approx(0.55 * (0.8 + 0.2 * 5.0)))
    assert AffineLoad(Constant(1.13), 0.64).mean(0.25) == pytest.approx(0.64 + 1.13 * 0.25)
    classes = DEPENDENT[3]
    mean = 0.2 * 0.5 + 0.5 + 0.3 * 4.0
    square = (0.2 * 0.25 + 0.5 + 0.3 * 16.0) * np.exp(2 * 0.2**2)
    assert classes.mean() == pytest.approx(mean * np.exp(0.02))
    assert classes.variance() == pytest.approx(square - (mean * np.exp(0.02)) ** 2)


def test_infinite_moments_of_a_part_are_those_of_the_whole():
    law = WithOutliers(BULK, Pareto(10.0, 0.9), 1e-6)
    assert (law.mean(), law.variance(), law.tail_index) == (np.inf, np.inf, 0.9)
    law = WithOutliers(BULK, Pareto(10.0, 1.5), 1e-6)
    assert (law.mean(), law.variance()) == (pytest.approx(0.55 * (1 - 1e-6) + 30e-6), np.inf)


def test_a_rare_outlier_is_drawn_by_a_stream_of_its_own():
    law = WithOutliers(Constant(1.0), Constant(20.0), 0.3)
    duration, key = law.sampler(7, NodeId("worker", 3)), stream_key(7, "", "outlier/worker-3")
    assert [duration(k, 1.0) for k in range(50)] == [20.0 if uniform(key, k) < 0.3 else 1.0 for k in range(50)]


def test_recorded_delays_keep_their_extent_and_others_have_none():
    for law in (AffineLoad(TRACE, 0.5), WorkerFactors(ErasureHeadDelays(10, 20), (1.0, 2.0))):
        assert law.extent == (10, 20)
        with pytest.raises(UserError, match="worker-20 is not in the delay trace"):
            durations(law, 0, 21)
        assert copy.deepcopy(law) == pickle.loads(pickle.dumps(law)) == law
    assert not any(hasattr(law, "extent") for law in LAWS)


@pytest.mark.parametrize("law", INDEPENDENT, ids=lambda law: type(law).__name__)
def test_laws_of_independent_draws_are_answered_by_theory(law):
    # Four standard errors of 20,000 rounds.
    mean_s, error_s = sample.round_times(
        law, IgnoreStragglers().build(8, collect=6).stop_rule(), 20_000, 3
    ).mean_and_error_s
    assert law.dependence == ""
    assert expected_round_time(IgnoreStragglers(), 8, law, collect=6) == pytest.approx(mean_s, abs=4 * error_s + 1e-12)


def test_jumps_that_nobody_speaks_of_are_found():
    # The slowest of two: 1 - F(t)**2 integrated, F jumping at 1 and then rising.
    law = WithOutliers(Constant(1.0), ShiftedExponential(3.0, 0.5), 0.3)
    mean, square = order_statistic_moments(law, 1.0, 2, 2)
    rest = 0.3 * (1 + 0.7)  # chance of one outlier or two, weighed
    both, one = 0.09, 0.42
    expected = 0.49 + one * 3.5 + both * (3.0 + 0.75)
    assert rest == pytest.approx(both + one)
    assert mean == pytest.approx(expected, rel=1e-12)
    second = 0.49 + one * (3.5**2 + 0.25) + both * ((3.0 + 0.75) ** 2 + 0.25 * 1.25)
    assert square == pytest.approx(second, rel=1e-12)


@dependent
def test_theory_of_independent_workers_refuses_what_is_not(law):
    for ask in (
        lambda: expected_round_time(Uncoded(), 6, law),
        lambda: round_time_variance(FractionalRepetition(2), 6, law),
        lambda: round_time_cdf(Uncoded(), 6, law, [1.0]),
        lambda: round_time_ppf(Uncoded(), 6, law, [0.5]),
        lambda: order_statistic_moments(law, 1.0, 6, 3),
        lambda: expected_update_time(ASP(), 6, law),
    ):
        with pytest.raises(NoClosedForm, match=r"no closed form is known where (some|slow|workers) .*sample draws"):
            ask()


@dependent
@pytest.mark.slow
def test_runs_follow_samples_of_such_laws(law):
    result = emuml.run(small(cluster=Cluster(workers=6, compute=law), seed=11))
    built = FractionalRepetition(2).build(6, collect=4)
    found = sample.round_times(law, built.stop_rule(), 8, 11, load=built.load)
    assert found.ended_s.tolist() == [row["time_s"] for row in result.metrics.rows if row["round"] > 0]


# Laws under which workers differ


def test_slow_spells_are_geometric_and_start_in_their_long_run():
    law = MarkovSlowness(Constant(1.0), 5.0, 0.1, 0.3)
    seconds = np.empty((2_000, 200))
    fill = durations(law, 5, 200)
    for draw, row in enumerate(seconds):
        fill(draw, 1.0, row)
    slow = seconds == 5.0
    # Relative frequencies of 400,000 draws whose correlation time is 1.5 draws: four standard errors.
    assert slow.mean() == pytest.approx(0.25, abs=4 * (0.25 * 0.75 * 4 / 400_000) ** 0.5)
    assert slow[0].mean() == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / 200) ** 0.5)
    entered, left = slow[1:][~slow[:-1]].mean(), (~slow[1:])[slow[:-1]].mean()
    assert entered == pytest.approx(0.1, abs=4 * (0.09 / 300_000) ** 0.5)
    assert left == pytest.approx(0.3, abs=4 * (0.21 / 100_000) ** 0.5)
    correlation = np.corrcoef(slow[:-1].ravel(), slow[1:].ravel())[0, 1]
    assert correlation == pytest.approx(1 - 0.1 - 0.3, abs=0.01)


def test_shared_draws_are_correlated_by_their_share_and_only_within_groups():
    law = SharedDraws(BULK, 2, 0.6)
    seconds = np.empty((20_000, 4))
    fill = durations(law, 5, 4)
    for draw, row in enumerate(seconds):
        fill(draw, 1.0, row)
    found = np.corrcoef(seconds.T)
    # Equal just where a draw is common; four standard errors of 20,000 draws.
    assert np.mean(seconds[:, 0] == seconds[:, 1]) == pytest.approx(0.6, abs=4 * (0.24 / 20_000) ** 0.5)
    assert (found[0, 1], found[2, 3]) == (pytest.approx(0.6, abs=0.04), pytest.approx(0.6, abs=0.04))
    assert np.abs(found[:2, 2:]).max() < 4 / 20_000**0.5


def test_speeds_last_and_belong_to_workers():
    law = SpeedClasses(Constant(1.0), (1.0, 3.0), (0.75, 0.25))
    factors = [law.worker_factor(7, NodeId("worker", w)) for w in range(2_000)]
    assert [law.sampler(7, NodeId("worker", w))(99, 1.0) for w in range(30)] == factors[:30]
    assert factors.count(3.0) == pytest.approx(500, abs=4 * (2_000 * 0.1875) ** 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WithOutliers(BULK, BULK, 0.0), "WithOutliers.chance"),
        (lambda: WithOutliers(BULK, 3.0, 0.5), "WithOutliers.outlier"),
        (lambda: AffineLoad(BULK, -1.0), "AffineLoad.fixed_s"),
        (lambda: WorkerFactors(BULK, ()), "WorkerFactors.factors: there is none"),
        (lambda: WorkerFactors(BULK, (1.0, 0.0)), r"WorkerFactors.factors\[1\]"),
        (lambda: SpeedClasses(BULK, (1.0,), (0.5, 0.5)), "1 factors and 2 shares"),
        (lambda: SpeedClasses(BULK, (1.0, 2.0), (0.5, 0.4)), "they sum to 0.9"),
        (lambda: MarkovSlowness(BULK, 2.0, 0.6, 0.5), "MarkovSlowness.leave: 0.6 and 0.5 sum to more than 1"),
        (lambda: SharedDraws(TRACE, 2, 0.5), "SharedDraws.base: of its base, its delays are recorded"),
        (lambda: SharedDraws(DEPENDENT[0], 2, 0.5), "some workers are always slower"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_nothing_takes_no_time_under_any_of_them():
    for law in (
        WorkerFactors(Instant(), (1.0, 2.0)),
        AffineLoad(Instant(), 0.0),
        MarkovSlowness(Instant(), 2.0, 0.1, 0.1),
    ):
        assert (law.mean(), law.variance(), law.ppf([0.0, 0.5, 1.0]).tolist()) == (0.0, 0.0, [0.0] * 3)
