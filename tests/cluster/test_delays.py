"""Recorded delays as laws: replayed and resampled, with and without the load, and those of ErasureHead's program."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from emuml.cluster import DelayTrace, ErasureHeadDelays, erasurehead_delays
from emuml.errors import RunFailed, UserError
from emuml.node import NodeId
from emuml.spec import Inputs, to_spec
from emuml.streams import stream_key, uniform_at

WORKER = NodeId("worker", 3)
SMALL = DelayTrace(np.array([[0.5, 0.25], [1.0, 0.75]]))
SCALED = DelayTrace(SMALL.array, load="scaled")
RESAMPLED = DelayTrace(SMALL.array, order="resampled")


def numbered(rounds, workers=3):
    """Return a trace whose entries tell row and column: 1000 * row + column."""
    return DelayTrace(np.add.outer(1000.0 * np.arange(rounds), np.arange(workers)), order="resampled")


def test_the_array_of_a_trace_is_an_input():
    inputs = Inputs()
    spec = to_spec(SMALL, inputs)
    assert spec == {
        "kind": "delay-trace", "array": {"input": next(iter(inputs.arrays))},
        "load": "ignored", "order": "recorded", "missing": "refused",
    }  # fmt: skip


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
    assert SMALL != SCALED
    assert SMALL != RESAMPLED
    assert len({SMALL, SCALED, RESAMPLED, DelayTrace(SMALL.array, missing="drop-rounds"), DelayTrace(SMALL.array)}) == 4


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
        ([["text"]], "not an array of numbers"),
        ([[1j]], r"not an array of numbers \(complex numbers\)"),
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


@given(draw=st.integers(0, 1), load=st.floats(0.01, 100), worker=st.integers(0, 1))
def test_a_scaled_trace_multiplies_the_recorded_time_by_the_load(draw, load, worker):
    node = NodeId("worker", worker)
    assert SCALED.sampler(0, node)(draw, load) == load * SMALL.array[draw, worker]
    assert SMALL.sampler(0, node)(draw, load) == SMALL.array[draw, worker]


@given(load=st.floats(0.01, 100))
def test_theory_of_a_scaled_trace_is_that_of_the_products(load):
    other = DelayTrace(load * SMALL.array)
    times = np.unique(other.array)
    assert SCALED.mean(load) == pytest.approx(other.mean(), rel=1e-12)
    assert SCALED.variance(load) == pytest.approx(other.variance(), rel=1e-12)
    assert SCALED.atoms(load).tolist() == times.tolist() == other.atoms().tolist()
    assert SCALED.cdf(times, load).tolist() == other.cdf(times).tolist()
    levels = np.linspace(0, 1, 9)
    assert SCALED.ppf(levels, load).tolist() == other.ppf(levels).tolist()


@given(seed=st.integers(0, 2**64 - 1), rounds=st.integers(1, 60), draws=st.lists(st.integers(0, 2**63), max_size=8))
def test_a_resampled_round_is_the_recorded_one_that_the_named_draw_falls_on_for_every_worker(seed, rounds, draws):
    trace = numbered(rounds)
    rows = np.floor(uniform_at(stream_key(seed, "", "compute/rounds"), draws) * rounds)
    for worker in range(3):
        duration = trace.sampler(seed, NodeId("worker", worker))
        assert [duration(k, 5.0) for k in draws] == (1000 * rows + worker).tolist()
        assert [duration(k, 1.0) for k in draws[::-1]] == (1000 * rows + worker).tolist()[::-1]


def test_resampled_rows_are_equally_likely_and_independent():
    """Chi-square on 40,000 draws of one seed, of rows and of neighbours; each fails by chance once in 1,000."""
    duration = numbered(8).sampler(5, NodeId("worker", 0))
    rows = np.array([duration(k, 1.0) for k in range(40_000)], int) // 1000
    assert stats.chisquare(np.bincount(rows, minlength=8)).pvalue > 1e-3
    assert stats.chisquare(np.bincount(8 * rows[::2] + rows[1::2], minlength=64)).pvalue > 1e-3
    assert (
        len({tuple(numbered(8).sampler(seed, NodeId("worker", 0))(k, 1.0) for k in range(9)) for seed in range(50)})
        == 50
    )


def test_the_long_run_mean_of_a_worker_is_that_of_its_column():
    """20,000 draws: the mean is within four standard errors."""
    array = np.random.default_rng(3).exponential(1.0, (30, 4))
    trace = DelayTrace(array, order="resampled")
    for worker in range(4):
        duration = trace.sampler(11, NodeId("worker", worker))
        mean = np.mean([duration(k, 1.0) for k in range(20_000)])
        assert mean == pytest.approx(array[:, worker].mean(), abs=4 * array[:, worker].std() / 20_000**0.5)
    assert trace.mean() == array.mean()


def test_workers_keep_what_they_have_in_common():
    common = np.random.default_rng(1).exponential(1.0, (40, 1)) * np.ones((1, 5))
    samplers = [DelayTrace(common, order="resampled").sampler(7, NodeId("worker", w)) for w in range(5)]
    assert all(len({each(k, 1.0) for each in samplers}) == 1 for k in range(200))


def test_only_recorded_rounds_come_to_an_end():
    assert (SMALL.extent, SCALED.extent, RESAMPLED.extent) == ((2, 2), (2, 2), (None, 2))
    assert RESAMPLED.sampler(0, NodeId("worker", 1))(10**15, 1.0) in (0.25, 0.75)
    with pytest.raises(UserError, match="worker-2 is not in the delay trace"):
        RESAMPLED.sampler(0, NodeId("worker", 2))


@pytest.mark.parametrize(("field", "value"), [("load", "scale"), ("order", "random"), ("missing", "drop")])
def test_settings_that_there_are_not_are_refused(field, value):
    with pytest.raises(UserError, match=rf"DelayTrace\.{field}: got '{value}'"):
        DelayTrace(SMALL.array, **{field: value})


def test_what_a_trace_was_read_from_survives_copies(tmp_path):
    (tmp_path / "own.csv").write_text("0.5,0.25")
    trace = DelayTrace(tmp_path / "own.csv")
    assert trace.source.startswith(f"file {tmp_path / 'own.csv'} (SHA-256 ")
    assert pickle.loads(pickle.dumps(trace)).source == trace.source
    assert trace == DelayTrace([[0.5, 0.25]])
    assert DelayTrace([[0.5, 0.25]]).source == ""
