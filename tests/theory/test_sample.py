"""Sampled times: those of emulated runs at equal seeds, bit for bit; on average those of closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emuml
from emuml.cluster import Cluster, Constant, DelayTrace, Instant, ShiftedExponential
from emuml.durations import durations
from emuml.errors import RunFailed, UserError
from emuml.protocols import AsyncUpdates, GradientCoding
from emuml.protocols.async_updates import ASP, BSP, SSP
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.shapes import Count, CoverOrCount
from emuml.theory import expected_round_time, expected_update_time, round_ends, sample, skip_stale_moments
from tests.experiment.small import small
from tests.protocols.async_checks import recursion
from tests.theory.laws import rules

SEMANTICS = ("cancel", "skip-stale", "carry-over", "wait-all")
TABLE = np.random.default_rng(8).integers(1, 5, (60, 6)) / 4.0  # many ties
LAWS = [
    ShiftedExponential(0.05, 0.5),
    ShiftedExponential(0.05, 0.5, tail="scaled"),
    ShiftedExponential(0.0, 1.0),
    Constant(0.3),
    Instant(),
    DelayTrace(TABLE),
    DelayTrace(TABLE, "scaled", "resampled"),
]
PROTOCOLS = [
    (Uncoded(), None), (IgnoreStragglers(), 4), (FractionalRepetition(2), None), (FractionalRepetition(2), 4),
    (FractionalRepetition(3), 2),
]  # fmt: skip
seeds = st.integers(0, 2**64 - 1)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.sampled_from(LAWS), st.sampled_from(PROTOCOLS), st.sampled_from(SEMANTICS), seeds)
def test_rounds_are_those_of_an_emulated_run(law, code_and_collect, stragglers, seed):
    code, collect = code_and_collect
    protocol, cluster = GradientCoding(code, collect, stragglers), Cluster(workers=6, compute=law)
    rows = emuml.run(small(protocol=protocol, cluster=cluster, seed=seed, rounds=12)).metrics.rows
    built = code.build(6, collect=collect)

    found = sample.round_times(law, built.stop_rule(), 12, seed, load=built.load, stragglers=stragglers, asks_who=True)

    rows = [row for row in rows if row["round"] > 0]
    assert found.ended_s.tolist() == [row["time_s"] for row in rows]
    if stragglers == "wait-all":
        assert found.decided_s.tolist() == [row["decided_s"] for row in rows]
    # At ties it is a matter of the events' order who is there when a round closes.
    if isinstance(law, ShiftedExponential):
        assert found.answered.sum(axis=1).tolist() == [row["arrivals"] for row in rows]
        covered = [[any(who[list(group)]) for group in built.groups] for who in found.answered]
        bits = [sum(1 << j for j, is_covered in enumerate(flags) if is_covered) for flags in covered]
        assert bits == [int(row["covered_set"], 16) for row in rows]


@pytest.mark.slow
@settings(max_examples=30)
@given(st.sampled_from(LAWS), st.sampled_from([BSP(), SSP(0), SSP(1), SSP(4), ASP()]), seeds)
def test_pushes_are_those_of_an_emulated_run(law, barrier, seed):
    protocol, cluster = AsyncUpdates(barrier), Cluster(workers=6, compute=law)
    trace = emuml.run(small(protocol=protocol, cluster=cluster, seed=seed, rounds=8)).trace
    arrivals = [row[0] for row in trace.rows if row[2] == "receive" and row[4] == "Update"]

    found = sample.push_times(law, barrier, 6, 48, seed)

    assert found.at_s.tolist() == arrivals[:48]
    assert len(found.updates_s) == (8 if barrier.in_step else 48)


@given(rules(), st.sampled_from(LAWS[:5]), st.sampled_from(SEMANTICS), seeds, st.floats(0.1, 10))
def test_rounds_are_those_of_the_matrix_of_durations(rule, law, stragglers, seed, load):
    fill, delays = durations(law, seed, rule.workers), np.empty((8, rule.workers))
    for draw, row in enumerate(delays):
        fill(draw, load, row)
    expected = round_ends(delays, rule, stragglers)

    found = sample.round_times(law, rule, 8, seed, load=load, stragglers=stragglers, asks_who=True)

    assert found.decided_s.tolist() == expected.decided_s.tolist()
    assert found.ended_s.tolist() == expected.ended_s.tolist()
    assert found.answered.tolist() == expected.answered.tolist()
    unasked = sample.round_times(law, rule, 8, seed, load=load, stragglers=stragglers)
    assert (unasked.ended_s.tolist(), unasked.answered.shape) == (found.ended_s.tolist(), (0, rule.workers))


@given(st.integers(1, 6), st.sampled_from([0, 1, 2, 5, None]), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_pushes_follow_the_recursion_of_starts(workers, slack, pushes, seed):
    # Speeds that differ a hundredfold: fast workers are many iterations ahead where nothing holds them.
    draws = np.random.default_rng(seed)
    delays = draws.integers(1, 6, (200, workers)) * draws.choice([0.5, 1.0, 50.0], workers)
    finish = recursion(delays, slack)[1]
    expected = sorted((time_s, worker) for row in finish.tolist() for worker, time_s in enumerate(row))[:pushes]

    found = sample.push_times(DelayTrace(delays), SSP(slack), workers, pushes, asks_who=True)

    assert list(zip(found.at_s.tolist(), found.worker.tolist(), strict=True)) == expected
    assert sample.push_times(DelayTrace(delays), SSP(slack), workers, pushes).at_s.tolist() == found.at_s.tolist()


def test_draws_that_are_not_needed_may_be_missing():
    trace = DelayTrace(np.array([[1.0, 3.0], [1.0, 3.0], [1.0, 3.0]]))
    assert sample.push_times(trace, ASP(), 2, 3).at_s.tolist() == [1.0, 2.0, 3.0]
    assert sample.push_times(trace, ASP(), 2, 4).at_s.tolist() == [1.0, 2.0, 3.0, 3.0]
    with pytest.raises(RunFailed, match="draw 3"):
        sample.push_times(trace, ASP(), 2, 5)
    with pytest.raises(RunFailed, match="draw 3"):
        sample.round_times(trace, Count(2, 1), 4)


@pytest.mark.parametrize("stragglers", ["cancel", "wait-all"])
@pytest.mark.parametrize("code_and_collect", [(IgnoreStragglers(), 27), (FractionalRepetition(3), 15)])
def test_means_of_rounds_are_the_closed_forms(stragglers, code_and_collect):
    # Four standard errors: a right sampler fails once in sixteen thousand streams.
    code, collect = code_and_collect
    law, built = ShiftedExponential(0.05, 0.5, "scaled"), code.build(30, collect=collect)
    found = sample.round_times(law, built.stop_rule(), 20_000, 5, load=built.load, stragglers=stragglers)
    mean_s, error_s = found.mean_and_error_s
    assert mean_s == pytest.approx(expected_round_time(code, 30, law, collect, stragglers), abs=4 * error_s)
    assert error_s < 0.01 * mean_s


def test_means_under_stale_work_are_the_closed_forms():
    mean_s, error_s = sample.round_times(
        ShiftedExponential(0.0, 1.0), Count(5, 3), 20_000, 2, stragglers="skip-stale"
    ).mean_and_error_s
    assert mean_s == pytest.approx(skip_stale_moments(5, 3)[0], abs=4 * error_s)


@pytest.mark.parametrize("barrier", [BSP(), SSP(1), SSP(3), ASP()], ids=repr)
def test_means_of_updates_are_those_of_the_chain(barrier):
    law = ShiftedExponential(0.0, 1.0)
    mean_s, error_s = sample.push_times(law, barrier, 3, 120_000, 3).mean_and_error_s
    assert mean_s == pytest.approx(expected_update_time(barrier, 3, law), abs=4 * error_s)


def test_errors_come_from_blocks():
    ends_s = np.cumsum(np.tile([1.0, 3.0], 50))
    assert sample.mean_and_error(ends_s) == (2.0, pytest.approx(np.std([9 / 5, 11 / 5] * 10, ddof=1) / 20**0.5))
    assert sample.mean_and_error(ends_s[:39]) == (ends_s[38] / 39, np.inf)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: sample.round_times(LAWS[0], Count(2, 1), 0), "rounds: got 0"),
        (lambda: sample.round_times(LAWS[0], Count(2, 1), 1, load=0.0), "load: got 0.0"),
        (lambda: sample.round_times(LAWS[0], Count(2, 1), 1, stragglers="wait"), "stragglers: got 'wait'"),
        (lambda: sample.round_times(LAWS[5], Count(7, 1), 1), "worker-6 is not in the delay trace"),
        (lambda: sample.push_times(LAWS[0], ASP(), 0, 1), "workers: got 0"),
        (lambda: sample.push_times(LAWS[0], ASP(), 1, 0), "pushes: got 0"),
    ],
)
def test_wrong_questions_are_refused(ask, message):
    with pytest.raises(UserError, match=message):
        ask()


def test_cover_or_count_decides_by_whichever_is_first():
    rule = CoverOrCount(((0, 1), (2, 3)), 3)
    found = sample.round_times(
        DelayTrace(np.array([[1.0, 2.0, 9.0, 3.0], [1.0, 2.0, 2.5, 4.0]])), rule, 2, asks_who=True
    )
    assert found.ended_s.tolist() == [3.0, 5.5]
    assert found.answered.tolist() == [[True, True, False, True], [True, True, True, False]]
