"""Gradient coding on the emulator: exact where it must be, the reference elsewhere, and no gradient too many."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster.compute import Constant, DelayTrace, ErasureHeadDelays, ShiftedExponential
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.theory import expected_round_time, round_time_variance
from emuml.workloads.optimizers import GradientDescent
from tests.protocols.code_checks import ERASUREHEAD_MEANS, erasurehead_trace
from tests.protocols.training import (
    Tally,
    check_approximate_training,
    check_arrivals_permuted,
    check_exact_training,
    check_reference,
    regression,
    single_process,
    train,
    versions,
)

LAW = ShiftedExponential(0.1, 0.5)


@pytest.fixture(autouse=True)
def _lazy(monkeypatch):
    monkeypatch.setenv("EMUML_CHECK", "0")


# Equality


@pytest.mark.slow
def test_exact_codes_equal_a_single_process_bit_for_bit():
    check_exact_training()


@pytest.mark.parametrize("optimizer", [GradientDescent(0.3), None], ids=["plain", "accelerated"])
@pytest.mark.parametrize("batch", [None, 3])
def test_minibatches_and_optimizers_too(optimizer, batch):
    code, blocks = FractionalRepetition(2), [(0,), (1,)]
    run = train(regression(optimizer=optimizer, batch=batch), code, 5, 8, compute=LAW)

    assert versions(run) == single_process(regression(optimizer=optimizer, batch=batch), blocks, 2, 8)


def test_exact_codes_of_different_replication_agree_up_to_rounding():
    codes = [Uncoded(), FractionalRepetition(2), FractionalRepetition(3), FractionalRepetition(6)]
    finals = [train(regression(), code, 6, 30, compute=LAW).published[-1].parameters for code in codes]

    assert all(np.allclose(finals[0], other, rtol=1e-12, atol=0) for other in finals[1:])


@pytest.mark.slow
def test_codes_that_stop_early_are_decoded_from_the_answers_of_their_round():
    check_approximate_training()


def test_the_order_of_arrival_moves_no_bit():
    check_arrivals_permuted()


delays = st.integers(2, 7).flatmap(
    lambda n: st.lists(st.lists(st.integers(1, 6), min_size=n, max_size=n), min_size=1, max_size=6)
)


@st.composite
def cases(draw):
    table = np.array(draw(delays), float)
    workers = table.shape[1]
    replication = draw(st.integers(1, workers))
    collect = draw(st.none() | st.integers(1, workers))
    return table, FractionalRepetition(replication, draw(st.sampled_from(["none", "covered"]))), collect


@pytest.mark.slow
@given(cases(), st.sampled_from([0.0, 0.25, 2.5]))
def test_any_delays_follow_the_reference(case, latency_s):
    table, code, collect = case
    rounds, workers = table.shape
    run = train(Tally(), code, workers, rounds, collect=collect, compute=DelayTrace(table), latency_s=latency_s)

    check_reference(run, Tally(), code.build(workers, collect=collect))


# What is computed


def evaluated(code, workers, rounds, collect=None):
    problem = Tally()
    run = train(problem, code, workers, rounds, collect=collect, compute=LAW)
    return problem.calls, [log.metrics for log in run.logs]


@pytest.mark.parametrize("eager", ["0", "1"])
@pytest.mark.parametrize("replication", [1, 2, 3, 6])
def test_replicas_are_computed_once_a_round(monkeypatch, replication, eager):
    monkeypatch.setenv("EMUML_EAGER", eager)
    calls, _ = evaluated(FractionalRepetition(replication), 12, 9)
    groups = [tuple(range(r * replication, (r + 1) * replication)) for r in range(12 // replication)]

    assert calls == dict.fromkeys([(round, owned) for round in range(9) for owned in groups], 1)


@pytest.mark.parametrize("collect", [1, 5, 11])
def test_k_of_n_computes_k_gradients_a_round(collect):
    calls, _ = evaluated(IgnoreStragglers(), 12, 9, collect)

    assert set(calls.values()) == {1}
    assert [sum(draw == round for draw, _ in calls) for round in range(9)] == [collect] * 9


def test_codes_stopped_early_compute_what_they_cover():
    calls, logs = evaluated(FractionalRepetition(3), 12, 40, 4)

    assert set(calls.values()) == {1}
    assert [sum(draw == round for draw, _ in calls) for round in range(40)] == [log["covered"] for log in logs]
    assert len({log["covered"] for log in logs}) > 1


def test_eager_evaluation_computes_what_ended_and_changes_nothing(monkeypatch):
    lazy = train(Tally(), IgnoreStragglers(), 12, 9, collect=4, compute=LAW)
    monkeypatch.setenv("EMUML_EAGER", "1")
    problem = Tally()
    eager = train(problem, IgnoreStragglers(), 12, 9, collect=4, compute=LAW)

    assert versions(eager) == versions(lazy)
    assert eager.trace.digest() == lazy.trace.digest()
    assert sum(problem.calls.values()) == len(eager.trace.of("computed"))


# Times


def close_s(code, workers, delays, collect):
    """Return when a round closes: from sorted delays, without tracker or stop rule."""
    replication = code.replication if isinstance(code, FractionalRepetition) else 1
    groups = workers // replication
    sizes = [workers // groups + (j < workers % groups) for j in range(groups)]
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    covered = max(delays[a:b].min() for a, b in pairwise(bounds))
    return min(covered, np.sort(delays)[(collect or workers) - 1])


@pytest.mark.slow
@pytest.mark.parametrize(("replication", "collect"), ERASUREHEAD_MEANS)
def test_the_delays_of_the_original_program_give_its_mean_round_times(replication, collect):
    code = IgnoreStragglers() if replication == 1 else FractionalRepetition(replication)
    run = train(Tally(1), code, 30, 100, collect=collect, compute=ErasureHeadDelays())

    exact = np.mean([close_s(code, 30, row, collect) for row in erasurehead_trace()])
    assert run.duration_s / 100 == pytest.approx(exact, abs=1e-9)
    assert run.duration_s / 100 == pytest.approx(ERASUREHEAD_MEANS[replication, collect], abs=1e-6)


@pytest.mark.slow
@given(cases())
def test_rounds_close_when_sorted_delays_say_so(case):
    table, code, collect = case
    rounds, workers = table.shape
    run = train(Tally(1), code, workers, rounds, collect=collect, compute=DelayTrace(table / 7))

    expected = np.cumsum([close_s(code, workers, row, collect) for row in table / 7])
    assert [log.time_s for log in run.logs] == pytest.approx(expected.tolist(), abs=1e-12)


@pytest.mark.parametrize(
    ("code", "collect", "load"),
    [(Uncoded(), None, 1.0), (IgnoreStragglers(), 3, 1.0), (FractionalRepetition(3), None, 3.0),
     (FractionalRepetition(2), 2, 2.0), (FractionalRepetition(4), None, 6.0)],
)  # fmt: skip
def test_constant_delays_give_exact_times(code, collect, load):
    run = train(Tally(), code, 6, 8, collect=collect, compute=Constant(0.25))

    assert run.duration_s == 8 * load * 0.25


def test_messages_add_two_latencies_a_round():
    assert train(Tally(), Uncoded(), 3, 4, compute=Constant(0.25), latency_s=0.125).duration_s == 4 * 0.5


ROUNDS = {30: 300, 100: 150, 1000: 20}
CODES = [
    (Uncoded(), lambda n: None), (IgnoreStragglers(), lambda n: n // 2), (FractionalRepetition(5), lambda n: None),
    (FractionalRepetition(3), lambda n: n // 2),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("tail", ["fixed", "scaled"])
@pytest.mark.parametrize("workers", ROUNDS)
@pytest.mark.parametrize(("code", "count"), CODES, ids=["uncoded", "k-of-n", "repetition", "approximate"])
def test_mean_round_times_meet_the_closed_forms(code, count, workers, tail):
    law, collect, rounds = ShiftedExponential(0.05, 0.5, tail), count(workers), ROUNDS[workers]
    seed = 1 if tail == "fixed" else 2
    run = train(Tally(1), code, workers, rounds, collect=collect, compute=law, seed=seed)

    mean, variance = (of(code, workers, law, collect) for of in (expected_round_time, round_time_variance))
    assert abs(run.duration_s / rounds - mean) <= 3 * np.sqrt(variance / rounds)
