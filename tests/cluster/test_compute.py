"""Compute laws: durations by position, their moments and quantiles. Recorded ones: test_delays.py."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from emuml import cluster
from emuml.cluster.compute import Constant, DelayTrace, ErasureHeadDelays, Instant, ShiftedExponential
from emuml.errors import UserError
from emuml.node import NodeId
from emuml.spec import Inputs, from_spec, to_spec
from emuml.streams import stream_key, unit_exponential_at

WORKER = NodeId("worker", 3)
SMALL = DelayTrace(np.array([[0.5, 0.25], [1.0, 0.75]]))
EXPONENTIALS = [
    ShiftedExponential(0.05, 0.5),
    ShiftedExponential(0.05, 0.5, tail="scaled"),
    ShiftedExponential(0.0, 2.0),
]
TRACES = [SMALL, DelayTrace(SMALL.array, "scaled"), DelayTrace(SMALL.array, "scaled", "resampled", "drop-rounds")]
LAWS = [Instant(), Constant(0.5), *EXPONENTIALS, *TRACES, ErasureHeadDelays()]
every_law = pytest.mark.parametrize("law", LAWS, ids=repr)
exponential_laws = pytest.mark.parametrize("law", EXPONENTIALS, ids=repr)


@every_law
def test_durations_are_pure_functions_of_seed_node_and_draw(law):
    first, second = law.sampler(7, NodeId("worker", 1)), law.sampler(7, NodeId("worker", 1))
    forth = [first(draw, 2.0) for draw in range(2)]
    back = [second(draw, 2.0) for draw in reversed(range(2))]
    assert forth == back[::-1]
    assert all(isinstance(duration, float) and duration >= 0 for duration in forth)


@pytest.mark.parametrize(
    ("tail", "shift_and_scale"),
    [("fixed", lambda load: (load * 0.07, 0.3)), ("scaled", lambda load: (load * 0.07, load * 0.3))],
)
@given(seed=st.integers(0, 2**64 - 1), index=st.integers(0, 10_000), load=st.floats(0.01, 100))
def test_a_duration_is_shift_plus_scale_times_the_named_draw(tail, shift_and_scale, seed, index, load):
    node = NodeId("worker", index)
    draws = unit_exponential_at(stream_key(seed, "", f"compute/worker-{index}"), [0, 1, 10**6])
    duration = ShiftedExponential(0.07, 0.3, tail).sampler(seed, node)
    shift, scale = shift_and_scale(load)
    assert [duration(k, load) for k in (0, 1, 10**6)] == (shift + scale * draws).tolist()


def test_seeds_and_workers_have_durations_of_their_own():
    law = ShiftedExponential(0.05, 0.5)
    durations = {law.sampler(seed, NodeId("worker", w))(0, 1.0) for seed in range(10) for w in range(10)}
    assert len(durations) == 100


@exponential_laws
@pytest.mark.parametrize("load", [1.0, 3.0])
def test_durations_follow_the_law(law, load):
    # Kolmogorov-Smirnov on 20,000 draws of a fixed stream; a right law falls below 0.001 once in a thousand streams.
    duration = law.sampler(11, WORKER)
    durations = [duration(draw, load) for draw in range(20_000)]
    assert stats.kstest(durations, lambda t: law.cdf(t, load)).pvalue > 1e-3


@exponential_laws
@pytest.mark.parametrize("load", [0.5, 1.0, 4.0])
def test_moments_are_those_of_the_quantile_function(law, load):
    mean = integrate.quad(lambda q: float(law.ppf(q, load)), 0, 1)[0]
    square = integrate.quad(lambda q: float(law.ppf(q, load)) ** 2, 0, 1, epsabs=1e-9)[0]
    assert law.mean(load) == pytest.approx(mean, rel=1e-6)
    assert law.variance(load) == pytest.approx(square - mean**2, rel=1e-5)


def test_load_scales_the_shift_and_where_asked_the_tail():
    fixed, scaled = ShiftedExponential(0.05, 0.5), ShiftedExponential(0.05, 0.5, tail="scaled")
    assert (fixed.mean(3.0), fixed.variance(3.0)) == (pytest.approx(0.65), pytest.approx(0.25))
    assert (scaled.mean(3.0), scaled.variance(3.0)) == (pytest.approx(1.65), pytest.approx(2.25))


@exponential_laws
@given(q=st.floats(0, 1 - 1e-9), load=st.floats(0.1, 10))
def test_cdf_undoes_ppf(law, q, load):
    assert float(law.cdf(law.ppf(q, load), load)) == pytest.approx(q, rel=1e-6, abs=1e-12)


@every_law
def test_ppf_is_the_least_time_of_at_least_that_probability(law):
    levels = np.linspace(0, 1, 41)[1:-1]
    times = law.ppf(levels, 2.0)
    assert np.all(law.cdf(times * (1 + 1e-12), 2.0) >= levels)
    assert np.all(law.cdf(times * (1 - 1e-12) - 1e-300, 2.0) < levels + 1e-9)


@every_law
def test_answers_have_the_shape_of_the_question(law):
    for answer in (law.cdf, law.ppf):
        assert answer(0.5).shape == ()
        assert answer(np.full((2, 3), 0.5), 2.0).shape == (2, 3)


@every_law
def test_nothing_ends_before_it_starts(law):
    assert float(law.cdf(-1e-9)) == 0.0
    assert float(law.ppf(0.0)) >= 0.0


@every_law
@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_levels_that_are_no_probabilities_are_refused(law, wrong):
    with pytest.raises(UserError, match="from 0 to 1"):
        law.ppf([0.5, wrong])


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Constant(0.0), "seconds"),
        (lambda: Constant(math.inf), "seconds"),
        (lambda: ShiftedExponential(-0.1, 0.5), "shift_s"),
        (lambda: ShiftedExponential(0.1, 0.0), "mean_s"),
        (lambda: ShiftedExponential(0.1, math.nan), "mean_s"),
        (lambda: ShiftedExponential(0.1, 0.5, "long"), "tail"),
        (lambda: ErasureHeadDelays(rounds=0), "rounds"),
    ],
)
def test_impossible_laws_are_refused(make, field):
    with pytest.raises(UserError, match=field):
        make()


def test_certain_laws_have_no_variance():
    assert (Constant(0.5).mean(3.0), Constant(0.5).variance(3.0), Constant(0.5).sampler(0, WORKER)(9, 3.0)) == (
        1.5,
        0,
        1.5,
    )
    assert (Instant().mean(3.0), Instant().variance(3.0), Instant().sampler(0, WORKER)(9, 3.0)) == (0, 0, 0)
    assert Constant(0.5).cdf([1.49, 1.5], 3.0).tolist() == [0, 1]


@every_law
def test_laws_survive_spec_pickle_and_copy(law):
    inputs = Inputs()
    for again in (from_spec(to_spec(law, inputs), inputs), pickle.loads(pickle.dumps(law)), copy.deepcopy(law)):
        assert again == law
        assert hash(again) == hash(law)
        assert again.mean() == law.mean()


def test_public_names_are_found_and_no_others():
    assert {"Constant", "DelayTrace", "Instant", "ShiftedExponential", "erasurehead_delays"} <= set(dir(cluster))
    assert cluster.ShiftedExponential is ShiftedExponential
    with pytest.raises(AttributeError, match="no attribute 'ShiftedExponentail'"):
        cluster.ShiftedExponentail  # noqa: B018


@pytest.mark.parametrize("given", [[["0.5", "0.25"]], [[b"0.5"]], [[0.5, "0.25"]]])
def test_delays_that_are_written_as_text_are_refused(given):
    with pytest.raises(UserError, match=r"not an array of numbers .*text"):
        DelayTrace(np.array(given))
