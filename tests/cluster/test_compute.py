"""Compute laws: durations by position, their moments and quantiles, and the ErasureHead trace."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from emuml import cluster
from emuml.cluster.compute import (
    Constant,
    DelayTrace,
    ErasureHeadDelays,
    Instant,
    ShiftedExponential,
    erasurehead_delays,
)
from emuml.errors import RunFailed, UserError
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
LAWS = [Instant(), Constant(0.5), *EXPONENTIALS, SMALL, ErasureHeadDelays()]
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


def test_the_array_of_a_trace_is_an_input():
    inputs = Inputs()
    spec = to_spec(SMALL, inputs)
    assert spec == {"kind": "delay-trace", "array": {"input": next(iter(inputs.arrays))}}


def test_a_trace_replays_its_entries_whatever_the_load():
    sampler = SMALL.sampler(5, NodeId("worker", 0))
    assert [sampler(draw, load) for draw in (0, 1) for load in (1.0, 9.0)] == [0.5, 0.5, 1.0, 1.0]


def test_a_trace_answers_with_its_entries():
    assert (SMALL.mean(), SMALL.variance()) == (0.625, 0.078125)
    assert SMALL.cdf([0.2, 0.25, 0.6, 1.0]).tolist() == [0, 0.25, 0.5, 1]
    assert SMALL.ppf([0.0, 0.25, 0.26, 0.5, 1.0]).tolist() == [0.25, 0.25, 0.5, 0.5, 1.0]


def test_a_trace_is_kept_from_changes():
    given_array = np.ones((2, 2))
    trace = DelayTrace(given_array)
    given_array[0, 0] = 5.0
    assert trace == DelayTrace(np.ones((2, 2)))
    for kept in (trace, pickle.loads(pickle.dumps(trace))):
        with pytest.raises(ValueError, match="read-only"):
            kept.array[0, 0] = 1.0


def test_traces_are_equal_by_content():
    assert DelayTrace([[1, 2]]) == DelayTrace(np.array([[1.0, 2.0]]))
    assert DelayTrace([[1.0, 2.0]]) != DelayTrace([[1.0], [2.0]])
    assert SMALL != 0.5


@pytest.mark.parametrize("draw", [-1, 2])
def test_a_draw_outside_the_trace_is_refused(draw):
    with pytest.raises(RunFailed, match=rf"worker-1 asks for draw {draw} of a delay trace that has draws 0 to 1"):
        SMALL.sampler(0, NodeId("worker", 1))(draw, 1.0)


def test_a_worker_outside_the_trace_is_refused():
    with pytest.raises(UserError, match="worker-2 is not in the delay trace; allowed: worker indices below 2"):
        SMALL.sampler(0, NodeId("worker", 2))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([[0.1, -0.5]], r"entry \[0, 1\] is -0.5"),
        ([[0.1], [math.nan]], r"entry \[1, 0\] is nan"),
        ([[math.inf]], r"entry \[0, 0\] is inf"),
        ([0.1, 0.2], r"got shape \(2,\)"),
        (np.empty((0, 3)), r"got shape \(0, 3\)"),
        ([[0.1], [0.2, 0.3]], "not an array of numbers"),
        ("text", "not an array of numbers"),
    ],
)
def test_what_is_no_trace_is_refused(array, message):
    with pytest.raises(UserError, match=message):
        DelayTrace(array)


def test_erasurehead_delays_are_those_of_its_program():
    """Reference: arXiv:1901.09671, the program's delays for 30 workers and 100 rounds."""
    delays = erasurehead_delays()
    assert delays.shape == (100, 30)
    assert delays[0, :3].tolist() == [0.397937254081555, 0.6279653814829189, 0.4616115729020344]
    assert (delays[50, 0], delays[99, 29]) == (0.3412041699727675, 0.050941762181251356)
    assert delays.sum() == pytest.approx(1477.121241522631, rel=1e-12)
    assert (delays.min(), delays.max()) == (pytest.approx(3.1749e-5, rel=1e-4), 4.463682016618189)


@pytest.mark.parametrize(
    ("k", "seconds"), [(30, 1.986423), (29, 1.528332), (27, 1.072621), (24, 0.754641), (15, 0.323088)]
)
def test_erasurehead_delays_give_the_known_rounds_of_k_of_n(k, seconds):
    rounds = np.sort(erasurehead_delays(), axis=1)[:, k - 1]
    assert rounds.mean() == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(("replication", "seconds"), [(2, 0.804175), (3, 0.499903), (5, 0.247541)])
def test_erasurehead_delays_give_the_known_rounds_of_fractional_repetition(replication, seconds):
    groups = erasurehead_delays().reshape(100, -1, replication)
    assert groups.min(axis=2).max(axis=1).mean() == pytest.approx(seconds, abs=1e-6)


def test_erasurehead_law_replays_its_delays():
    law, delays = ErasureHeadDelays(rounds=4, workers=5, mean_s=2.0), erasurehead_delays(4, 5, 2.0)
    sampler = law.sampler(0, WORKER)
    assert [sampler(draw, 1.0) for draw in range(4)] == delays[:, 3].tolist()
    assert law.trace == DelayTrace(delays)
    assert (law.mean(), law.variance()) == (delays.mean(), delays.var())


def test_public_names_are_found_and_no_others():
    assert {"Constant", "DelayTrace", "Instant", "ShiftedExponential", "erasurehead_delays"} <= set(dir(cluster))
    assert cluster.ShiftedExponential is ShiftedExponential
    with pytest.raises(AttributeError, match="no attribute 'ShiftedExponentail'"):
        cluster.ShiftedExponentail  # noqa: B018
