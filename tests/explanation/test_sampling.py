"""Sampled rounds of a code are those of a run; closed forms and enumerations agree with what is said of them."""

from itertools import combinations

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, Constant, DelayTrace, Network, ShiftedExponential, WorkerFactors
from emuml.errors import UserError
from emuml.explanation.sampling import round_seconds, sample
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import (
    Bernoulli,
    CyclicRepetition,
    FractionalRepetition,
    GraphCode,
    IgnoreStragglers,
    PartialWork,
    StochasticCode,
    YeAbbe,
)
from emuml.protocols.gradient_coding.codes.graphs import Complete
from emuml.workloads import LinearRegression

EVEN = LinearRegression(data=(np.arange(120.0)[:, None], np.ones(120)), validation=0.0)
"""Rows of which ten partitions have as many each, so that loads are those that a code states."""

LAW = ShiftedExponential(shift_s=0.05, mean_s=0.5)


@pytest.mark.parametrize(
    ("code", "collect", "workers"),
    [
        (FractionalRepetition(2), 5, 10),
        (IgnoreStragglers(), 7, 10),
        (CyclicRepetition(2), None, 10),
        (GraphCode(Complete()), 6, 10),
        (Bernoulli(2.0), 6, 10),
    ],
)
@pytest.mark.parametrize("stragglers", ["cancel", "carry-over"])
def test_sampled_rounds_are_those_of_a_run(code, collect, workers, stragglers):
    found = sample(code, workers, LAW, 3, collect=collect, stragglers=stragglers, rounds=25)
    run = emuml.run(
        emuml.Experiment(
            EVEN,
            GradientCoding(code=code, collect=collect, stragglers=stragglers),
            Cluster(workers=workers, compute=LAW, network=Network(latency_s=0.0, bandwidth_bps=None)),
            rounds=25,
            seed=3,
        )
    )
    errors = run.metrics["decode_error"][1:] / code.build(workers, 3, collect).partitions
    assert np.sum((found.weights - 1.0) ** 2, axis=1) / found.weights.shape[1] == pytest.approx(errors[:25], abs=1e-12)
    if found.round_s.error:
        assert found.round_s.mean == run.duration_s / 25


@pytest.mark.parametrize("deadline", [{"deadline_s": 0.4}, {"first_times": 2.0}])
@pytest.mark.parametrize(
    ("code", "stragglers"), [(StochasticCode(2, 0.3), "cancel"), (FractionalRepetition(2), "carry-over")]
)
def test_sampled_rounds_close_by_the_clock_as_those_of_a_run_do(code, stragglers, deadline):
    protocol = GradientCoding(code=code, stragglers=stragglers, **deadline)
    found = sample(code, 10, LAW, 3, stragglers=stragglers, deadline=protocol.deadline, rounds=25)
    cluster = Cluster(workers=10, compute=LAW, network=Network(latency_s=0.0, bandwidth_bps=None))
    run = emuml.run(emuml.Experiment(EVEN, protocol, cluster, rounds=25, seed=3))
    errors = run.metrics["decode_error"][1:] / code.build(10, 3).partitions
    assert np.sum((found.weights - 1.0) ** 2, axis=1) / found.weights.shape[1] == pytest.approx(errors, abs=1e-12)
    assert errors.max() > 0.0
    assert found.decode_error.mean == pytest.approx(errors.mean(), rel=1e-12)
    # A closed form is the mean of many, within the spread of 25.
    assert found.round_s.mean == pytest.approx(run.duration_s / 25, rel=1e-12 if found.round_s.error else 0.2)


@pytest.mark.parametrize("code", [FractionalRepetition(2), GraphCode(Complete())])
def test_seconds_of_rounds_need_no_decoding(code):
    given = {"workers": 10, "law": LAW, "seed": 3, "stragglers": "skip-stale", "rounds": 20}
    assert round_seconds(code, **given) == sample(code, **given).round_s


def test_recorded_rounds_are_sampled_as_often_as_they_are_there():
    delays = np.random.default_rng(0).uniform(0.1, 1.0, (7, 10))
    found = sample(FractionalRepetition(2), 10, DelayTrace(delays), collect=5)
    assert len(found.weights) == 7
    assert round_seconds(GraphCode(Complete()), 10, DelayTrace(delays)).error > 0
    with pytest.raises(UserError, match="1 recorded round"):
        sample(FractionalRepetition(2), 10, DelayTrace(delays[:1]))


def test_a_bias_is_told_from_noise():
    unscaled = sample(IgnoreStragglers("none"), 10, LAW, collect=6, rounds=4000)
    scaled = sample(IgnoreStragglers("covered"), 10, LAW, collect=6, rounds=4000)
    assert unscaled.factor == pytest.approx(0.6, abs=1e-12)
    # Each weight varies by 0.4 * 0.6; of 4,000 rounds and 10 partitions the mean square is sure to 1e-3.
    assert unscaled.bias == pytest.approx(0.4, abs=2e-3)
    assert scaled.bias == 0.0
    assert scaled.factor == pytest.approx(1.0, abs=1e-12)


def test_rounding_is_no_bias_and_no_doubt():
    exact = sample(CyclicRepetition(2), 10, LAW, rounds=50)
    assert exact.bias == 0.0
    assert (exact.weights == 1.0).all()
    slow = WorkerFactors(base=LAW, factors=(4.0,) + (1.0,) * 39)
    assert sample(IgnoreStragglers(), 40, slow, collect=38, rounds=50).decode_error.error == 0.0


def test_a_persistent_straggler_biases_what_would_be_unbiased():
    slow = WorkerFactors(base=LAW, factors=(1.0,) * 9 + (100.0,))
    found = sample(IgnoreStragglers("covered"), 10, slow, collect=9, rounds=400)
    mean = found.weights.mean(axis=0)
    assert mean[-1] < 0.1
    assert found.bias > 0.2


def test_closed_forms_stand_where_they_are_known():
    found = sample(FractionalRepetition(3), 12, LAW, collect=5, rounds=50)
    code = FractionalRepetition(3).build(12, collect=5)
    errors = [code.decode(one).error for one in combinations(range(12), 5)]
    assert found.decode_error.error == 0.0
    assert found.decode_error.mean == pytest.approx(np.mean(errors) / 12)
    assert found.round_s.error == 0.0


def test_constant_times_leave_no_doubt():
    found = sample(GraphCode(Complete()), 10, Constant(0.5), rounds=80)
    assert (found.round_s.mean, found.exact) == (2.0, 1.0)  # a load of 4


def test_a_code_that_must_be_run_is_refused():
    with pytest.raises(UserError, match="what answers say"):
        sample(PartialWork(2), 6, LAW)


def test_answers_that_are_blocks_of_gradients_are_sampled():
    assert sample(YeAbbe(stragglers=1, blocks=2), 6, LAW, rounds=5).exact == 1.0
