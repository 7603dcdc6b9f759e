"""Graph, adjacency, Bernoulli and balanced repetition codes in whole runs: tiers, engines, replays, plans."""

from dataclasses import replace

import numpy as np
import pytest

import emuml
from emuml import Crash, FaultPlan
from emuml.cluster import Cluster, Constant, ShiftedExponential
from emuml.experiment.plan import plan
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import BalancedRepetition, Bernoulli, Expander, GraphCode, Uncoded
from emuml.protocols.gradient_coding.codes.graphs import Complete, Cycle, Petersen, RandomRegular
from emuml.workloads import LogisticRegression

CODES = {
    "exact graph": (GraphCode(Petersen()), 15, None),
    "graph": (GraphCode(RandomRegular(3), tolerance=0.05), 15, None),
    "graph, collect": (GraphCode(Complete()), 6, 4),
    "adjacency": (Expander(Petersen()), 10, 7),
    "bernoulli": (Bernoulli(1.5), 8, 6),
    "bernoulli, optimal": (Bernoulli(2, True, "optimal"), 8, 6),
    "balanced": (BalancedRepetition(2), 8, None),
}


def experiment(name, stragglers="cancel", rounds=8, **cluster):
    code, workers, collect = CODES[name]
    return emuml.Experiment(
        workload=LogisticRegression(data="breast-cancer", l2=1e-4),
        protocol=GradientCoding(code=code, collect=collect, stragglers=stragglers),
        cluster=Cluster(workers=workers, **{"compute": ShiftedExponential(shift_s=0.05, mean_s=0.5), **cluster}),
        rounds=rounds,
        seed=7,
    )


@pytest.mark.parametrize("stragglers", ["cancel", "skip-stale", "carry-over", "wait-all"])
@pytest.mark.parametrize("name", CODES)
def test_both_tiers_agree_to_the_last_bit(name, stragglers):
    given = experiment(name, stragglers)
    event, array = (emuml.run(given, tier=tier, trace=False, out=None) for tier in ("event", "array"))

    assert event.duration_s == array.duration_s
    assert event.parameters.tobytes() == array.parameters.tobytes()
    for column in ("decode_error", "noise_gain", "arrivals", "time_s"):
        assert np.array_equal(event.metrics[column], array.metrics[column], equal_nan=True)


@pytest.mark.parametrize("name", ["exact graph", "bernoulli, optimal", "balanced"])
def test_deadlines_close_rounds_with_what_is_there(name):
    given = experiment(name)
    given = replace(given, protocol=replace(given.protocol, deadline_s=0.5))
    event, array = (emuml.run(given, tier=tier, trace=False, out=None) for tier in ("event", "array"))

    assert event.parameters.tobytes() == array.parameters.tobytes()
    assert np.array_equal(event.metrics["decode_error"], array.metrics["decode_error"], equal_nan=True)
    assert np.nanmax(event.metrics["decode_error"]) > 0.0


@pytest.mark.parametrize("lost", [2, 5])
@pytest.mark.parametrize("name", ["exact graph", "balanced", "adjacency"])
def test_rounds_go_on_without_workers_that_are_gone(name, lost):
    crashes = tuple(Crash(f"worker-{worker}", at_s=1.5) for worker in range(lost))
    result = emuml.run(replace(experiment(name), faults=FaultPlan(crashes)), trace=False, out=None)
    errors = result.metrics["decode_error"][1:]

    assert result.rounds == 8
    code = CODES[name][0].build(CODES[name][1], seed=7)
    promised = code.decode(range(lost, code.workers)).error
    # Optimal weights and tilings lose no more than those who are gone; equal weights depend on who is late, too.
    assert name == "adjacency" or np.all(errors <= promised + 1e-9)


@pytest.mark.parametrize("name", CODES)
def test_rounds_without_luck_close_when_all_answer_at_once(name):
    # Of one instant, answers count in the order of the workers, on both tiers.
    given = experiment(name, rounds=3, compute=Constant(1.0))
    event, array = (emuml.run(given, tier=tier, trace=False, out=None) for tier in ("event", "array"))

    assert event.metrics["arrivals"][1:].tolist() == array.metrics["arrivals"][1:].tolist()
    assert event.parameters.tobytes() == array.parameters.tobytes()


@pytest.mark.parametrize("name", ["exact graph", "balanced"])
def test_exact_rounds_train_as_uncoded_ones_do(name):
    coded = experiment(name, rounds=10)
    plain = emuml.Experiment(coded.workload, GradientCoding(Uncoded()), coded.cluster, rounds=10, seed=7)
    ours, theirs = (emuml.run(given, trace=False, out=None) for given in (coded, plain))

    assert np.all(ours.metrics["decode_error"][1:] == 0.0)
    assert ours.duration_s < theirs.duration_s
    assert ours.parameters == pytest.approx(theirs.parameters, rel=1e-9)


@pytest.mark.parametrize("name", CODES)
def test_results_are_replayed_to_the_last_bit(name):
    result = emuml.run(experiment(name), journal=True, trace=False, out=None)

    assert emuml.replay(result).parameters_sha256 == result.parameters_sha256


@pytest.mark.parametrize("name", ["exact graph", "adjacency", "balanced"])
def test_rounds_without_chance_are_planned_as_they_decode(name):
    given = experiment(name, rounds=3, compute=Constant(1.0))
    planned, result = plan(given), emuml.run(given, trace=False, out=None)

    assert planned.decoding.basis == "exact"
    assert planned.duration_s.mean == pytest.approx(result.duration_s, rel=1e-12)
    assert planned.decoding.error == pytest.approx(result.metrics["decode_error"][1:].mean(), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["graph", "adjacency", "bernoulli, optimal", "balanced"])
def test_runs_over_tcp_are_replayed_to_the_last_bit(name, tmp_path):
    given = experiment(name, rounds=4, compute=ShiftedExponential(shift_s=0.002, mean_s=0.01))
    result = emuml.run(given, engine="tcp", out=tmp_path / "run")
    again = emuml.replay(tmp_path / "run")

    assert result.rounds == 4
    assert again.parameters_sha256 == result.parameters_sha256


@pytest.mark.parametrize("name", CODES)
def test_plans_say_how_long_rounds_take_and_runs_agree(name):
    given = experiment(name, rounds=200)
    planned, result = plan(given), emuml.run(given, tier="array", trace=False, out=None)
    mean, low, high = planned.duration_s
    errors = result.metrics["decode_error"][1:]

    # Twice an interval of 95 %: one of 15,000 such runs is outside by chance.
    assert abs(result.duration_s - mean) <= high - low
    assert abs(planned.decoding.error - errors.mean()) <= 4 * errors.std() / len(errors) ** 0.5
    assert planned.decoding.basis == "simulation"
    assert 0.6 < planned.decoding.covered <= 1.0
    assert planned.wall_s > 0.0


def test_the_seed_of_a_run_draws_its_graph():
    code = GraphCode(RandomRegular(3))

    assert np.array_equal(code.build(15, seed=3).rows.indices, code.build(15, seed=3).rows.indices)
    assert not np.array_equal(code.build(15, seed=3).rows.indices, code.build(15, seed=4).rows.indices)
    assert Cycle() == Cycle()
