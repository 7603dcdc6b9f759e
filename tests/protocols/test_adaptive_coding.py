"""Adaptive coding as a protocol: both engines, replay, crashes, explored schedules, and what it refuses."""

import pytest

import emuml
import emuml.testing as et
from emuml.cluster import Cluster, Constant, ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan
from emuml.errors import UserError
from emuml.experiment.plan import plan
from emuml.node import NodeId
from emuml.protocols import AdaptiveCoding, GradientCoding
from emuml.protocols.adaptive_coding.following import follow
from emuml.protocols.gradient_coding import CyclicRepetition, FractionalRepetition, Uncoded
from emuml.runtime.settings import RuntimeSettings
from emuml.workloads import LogisticRegression
from tests.testing.soak import RUNS, SOAK

REPEATED = FractionalRepetition(1), FractionalRepetition(2)
QUICK = AdaptiveCoding(REPEATED, (0.5, 0.8), "progress", window=4, probe=3)
QUICK_BALANCED = AdaptiveCoding(REPEATED, (0.5, 0.8), window=4, probe=3)
QUICK_EXACT = AdaptiveCoding(REPEATED, objective="exact", window=4, probe=3)

NO_FAULTS = FaultPlan()


def experiment(protocol, rounds=30, scale=1.0, faults=NO_FAULTS, compute=None):
    return emuml.Experiment(
        workload=LogisticRegression(data="two-gaussians:120x4"),
        protocol=protocol,
        cluster=Cluster(workers=6, compute=compute or ShiftedExponential(0.02 * scale, 0.4 * scale)),
        rounds=rounds,
        seed=5,
        faults=faults,
    )


def logged(result, name):
    return [row.get(name) for row in result.metrics.rows[1:]]


def test_choices_are_logged_and_those_of_a_chooser_that_sees_the_same_times():
    result = emuml.run(experiment(QUICK))
    law = ShiftedExponential(0.02, 0.4)
    samplers = [law.sampler(5, NodeId("worker", w)) for w in range(6)]

    again = follow(
        QUICK.menu(6, 5), lambda i, load: [sampler(i, load) for sampler in samplers], 30, QUICK.settings, seed=5
    )

    assert logged(result, "choice") == [choice.candidate.index for choice in again.choices]
    assert logged(result, "estimated_s") == pytest.approx([choice.estimated_s for choice in again.choices])
    assert logged(result, "redundancy") == [choice.candidate.load for choice in again.choices]
    assert logged(result, "collect") == [choice.candidate.collect for choice in again.choices]
    assert len(set(logged(result, "choice"))) > 2
    assert result.duration_s == pytest.approx(again.seconds.sum())


def test_with_one_code_it_trains_as_gradient_coding_does():
    adaptive = emuml.run(experiment(AdaptiveCoding((FractionalRepetition(2),))))
    plain = emuml.run(experiment(GradientCoding(FractionalRepetition(2))))

    assert adaptive.parameters_sha256 == plain.parameters_sha256
    assert adaptive.duration_s == plain.duration_s


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["shared", "each"])
def test_a_run_over_tcp_is_replayed_bit_for_bit_with_its_choices(processes):
    deployed = emuml.run(experiment(QUICK, scale=0.02), "tcp", runtime=RuntimeSettings(processes=processes))
    again = emuml.replay(deployed)

    assert again.parameters_sha256 == deployed.parameters_sha256
    assert logged(again, "choice") == logged(deployed, "choice")
    assert logged(again, "estimated_s") == logged(deployed, "estimated_s")


def test_after_the_loss_of_a_worker_only_codes_without_it_are_exact_and_one_of_them_is_chosen():
    faults = FaultPlan((Crash("worker-3", after=("round", 10)),))
    protocol = AdaptiveCoding(REPEATED, objective="exact")
    result = emuml.run(experiment(protocol, faults=faults, compute=Constant(1)))

    assert set(logged(result, "redundancy")[3:10]) == {1.0}
    assert set(logged(result, "redundancy")[11:]) == {2.0}
    assert set(logged(result, "decode_error")[11:]) == {0.0}


def test_a_restarted_server_begins_with_the_first_of_the_menu_and_without_experience():
    faults = FaultPlan((Crash("server-0", after=("round", 12), restart_after_s=1.0),))
    crashed = emuml.run(experiment(QUICK, faults=faults))

    assert logged(crashed, "round")[-30:] == list(range(1, 31))
    assert logged(crashed, "reason")[-30:][:2] == ["first", "first"]
    assert logged(crashed, "choice")[-30] == 0


def test_a_worker_that_comes_back_is_no_slow_worker():
    """It answers late because it was asked late, and nothing is learned from that."""
    faults = FaultPlan((Crash("worker-3", at_s=4.5, restart_after_s=3.0),))
    protocol = AdaptiveCoding((FractionalRepetition(1), FractionalRepetition(3)))
    result = emuml.run(experiment(protocol, faults=faults, compute=Constant(1)))

    assert set(logged(result, "choice")[12:]) == {0}
    assert set(logged(result, "estimated_s")[12:]) == {1.0}


@pytest.mark.parametrize("protocol", [QUICK, QUICK_BALANCED, QUICK_EXACT], ids=["progress", "balanced", "exact"])
@pytest.mark.parametrize("workers", [2, 3, 4, 6])
def test_plain_runs_keep_what_is_promised(protocol, workers):
    assert et.run(lambda: protocol, et.Scenario(workers=workers, rounds=10)).ok


def test_menus_of_several_kinds_of_codes_keep_it_too():
    codes = FractionalRepetition(1, "covered"), CyclicRepetition(2)
    protocol = AdaptiveCoding(codes, (0.6,), window=4, probe=2)
    trial = et.run(lambda: protocol, et.Scenario(workers=5, rounds=12))

    assert trial.ok, trial.report()
    assert {item.metrics["redundancy"] for item in trial.run.logs} == {1.0, 3.0}


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("protocol", [QUICK, QUICK_BALANCED, QUICK_EXACT], ids=["progress", "balanced", "exact"])
def test_explored_crashes_of_workers_and_of_the_server_break_nothing(protocol):
    found = et.explore(
        lambda: protocol,
        et.shipped(protocol),
        runs=RUNS if SOAK else 60,
        clusters=et.clusters(workers=(2, 5), rounds=(3, 10)),
        faults=et.faults(crash=3, keep=()),
    )

    assert found.failure is None, found.failure.trial.report()
    assert found.ok


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"codes": ()}, "no code"),
        ({"codes": (Uncoded(), Uncoded())}, "each once"),
        ({"collect_shares": (0.5, 0.5)}, "each once"),
        ({"collect_shares": (1.0,)}, "collect_shares"),
        ({"collect_shares": (0.0,)}, "collect_shares"),
        ({"collect_shares": (0.5,), "objective": "exact"}, "not exact"),
        ({"objective": "fast"}, "objective"),
        ({"window": 3}, "window"),
        ({"probe": 1}, "probe"),
    ],
)
def test_menus_that_make_no_sense_are_refused(given, what):
    with pytest.raises(UserError, match=what):
        AdaptiveCoding(**given)


def test_codes_that_do_not_fit_are_refused_before_anything_runs():
    with pytest.raises(UserError, match="3 replicas need as many workers"):
        AdaptiveCoding().menu(2)
    with pytest.raises(UserError, match="Uncoded waits for all"):
        AdaptiveCoding((Uncoded(),), (0.5,)).menu(4)
    with pytest.raises(UserError, match="7 replicas"):
        experiment(AdaptiveCoding((FractionalRepetition(7),)))


def test_there_is_no_array_tier_and_the_plan_says_so():
    with pytest.raises(UserError, match="does not offer its steps as arrays"):
        emuml.run(experiment(QUICK), tier="array")
    assert plan(experiment(QUICK)).tier == "event"
