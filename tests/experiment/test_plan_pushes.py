"""Plans of asynchronous updates against the runs that they are plans of."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import yaml

import emuml
from emuml.cli.main import status
from emuml.cluster import Cluster, Constant, DelayTrace, Instant, ShiftedExponential
from emuml.cluster.cluster import Network
from emuml.experiment.plan import plan
from emuml.experiment.pushing import Pace, pushed
from emuml.protocols.async_updates import ASP, BSP, SSP, AsyncUpdates
from emuml.report.plan_box import rows
from emuml.runtime.settings import RuntimeSettings
from emuml.shapes import Push
from emuml.stopping import Seconds, TargetLoss, Updates
from emuml.theory import expected_pushes_time
from tests.experiment.small import small
from tests.protocols.async_checks import recursion

RECORDED = DelayTrace(np.random.default_rng(8).exponential(0.5, (400, 6)))
BARRIERS = [BSP(), SSP(0), SSP(1), SSP(3), ASP()]
ENDS = [{"rounds": 150}, {"rounds": None, "stop": Updates(37)}, {"rounds": 10, "stop": Seconds(3.0)}]


def training(barrier, law=RECORDED, network=None, servers=1, **changed):
    cluster = Cluster(6, servers=servers, compute=law, network=network or Network())
    return small(protocol=AsyncUpdates(barrier), cluster=cluster, **changed)


def sent(result):
    """Return number and bytes of the messages of each kind."""
    counts, sizes = Counter(), Counter()
    for row in result.trace.rows:
        if row[2] == "send":
            counts[f"{row[4].lower()}s"] += 1
            sizes[f"{row[4].lower()}s"] += row[5]
    return {kind: [counts[kind], sizes[kind]] for kind in ("reads", "views", "updates")}


def planned(found):
    return {each.kind: [each.count.mean, each.total_bytes.mean] for each in found.messages}


@pytest.mark.slow
@pytest.mark.parametrize("ends", ENDS, ids=["rounds", "updates", "seconds"])
@pytest.mark.parametrize("network", [Network(), Network(0.07)], ids=["near", "latency"])
@pytest.mark.parametrize("barrier", BARRIERS, ids=str)
def test_recorded_delays_are_planned_to_the_last_byte(barrier, network, ends):
    experiment = training(barrier, network=network, **ends)
    found, result = plan(experiment), emuml.run(experiment)

    assert found.basis == "exact"
    assert found.duration_s.low == found.duration_s.high == pytest.approx(result.duration_s, rel=1e-12)
    assert found.rounds == result.rounds
    assert {each.basis for each in found.messages} == {"exact"}
    assert planned(found) == sent(result)
    assert found.nodes == {"server": 1, "worker": 6}


@pytest.mark.parametrize("barrier", [BSP(), SSP(0)], ids=str)
@pytest.mark.parametrize("law", [RECORDED, Constant(0.25), Instant()], ids=["recorded", "constant", "instant"])
def test_what_moves_in_lockstep_is_exact_whatever_messages_take(barrier, law):
    experiment = training(barrier, law, Network(0.07, 1e6), rounds=150)
    found, result = plan(experiment), emuml.run(experiment)

    assert found.basis == "exact"
    assert found.duration_s.mean == pytest.approx(result.duration_s, rel=1e-12)
    assert planned(found) == sent(result)


@pytest.mark.parametrize("law", [Constant(0.25), Instant()], ids=["constant", "instant"])
@pytest.mark.parametrize("network", [Network(), Network(0.07)], ids=["near", "latency"])
@pytest.mark.parametrize("ends", ENDS[:2], ids=["rounds", "updates"])
@pytest.mark.parametrize("barrier", BARRIERS, ids=str)
def test_where_the_order_within_an_instant_matters_there_are_bounds(barrier, ends, network, law):
    experiment = training(barrier, law, network, **ends)
    found, result = plan(experiment), emuml.run(experiment)

    assert found.rounds == result.rounds
    if found.basis == "exact":
        assert found.duration_s.mean == pytest.approx(result.duration_s, rel=1e-12)
    for each in found.messages:
        assert each.count.low <= sent(result)[each.kind][0] <= each.count.high
        assert (each.basis == "exact") <= (each.count.low == each.count.high)


@pytest.mark.parametrize("slack", [1, 3])
def test_of_pushes_of_one_instant_those_of_lower_workers_are_first(slack):
    # A view on a push does not hold those that arrive after it at the same instant, so it lasts for fewer iterations.
    experiment = training(SSP(slack), Constant(0.25), Network(0.07), rounds=None, stop=Seconds(20.0))
    found, result = plan(experiment), emuml.run(experiment)
    assert found.rounds == result.rounds
    assert found.duration_s.mean == pytest.approx(result.duration_s, rel=1e-9)


@pytest.mark.parametrize("barrier", BARRIERS, ids=str)
def test_several_servers_are_planned_about(barrier):
    experiment = training(barrier, network=Network(0.07), servers=2, rounds=100)
    found, result = plan(experiment), emuml.run(experiment)

    assert (found.basis, {each.basis for each in found.messages}) == ("estimate", {"estimate"})
    assert found.duration_s.mean == pytest.approx(result.duration_s, rel=0.01)
    for kind, (count, total) in sent(result).items():
        assert planned(found)[kind] == pytest.approx([count, total], rel=0.03), kind
    assert any("servers send each other" in note for note in found.notes)


SEEDS = 100
# Of 100 runs with chance 0.95 each, fewer than 87 are inside with a chance of 0.001.
LEAST_INSIDE = 87


@pytest.mark.slow
@pytest.mark.parametrize("network", [Network(), Network(0.1)], ids=["near", "latency"])
@pytest.mark.parametrize("barrier", [BSP(), SSP(1), SSP(4), ASP()], ids=str)
def test_simulated_trainings_are_like_runs(barrier, network):
    experiment = training(barrier, ShiftedExponential(0.05, 0.5), network, rounds=20)
    found = plan(experiment)
    assert found.basis == "simulation"

    runs = [emuml.run(replace(experiment, seed=seed)) for seed in range(500, 500 + SEEDS)]
    times_s = np.array([result.duration_s for result in runs])
    counts = {kind: np.array([sent(result)[kind] for result in runs]) for kind in ("views", "updates")}
    inside = [np.sum((found.duration_s.low <= times_s) & (times_s <= found.duration_s.high))]
    # Four standard errors of the difference; as many trainings are simulated, or more.
    assert abs(times_s.mean() - found.duration_s.mean) < 4 * times_s.std() * (2 / SEEDS) ** 0.5
    for each in found.messages[1:]:
        seen = counts[each.kind]
        inside.append(np.sum((each.count.low <= seen[:, 0]) & (seen[:, 0] <= each.count.high)))
        error = 4 * seen[:, 0].std() * (2 / SEEDS) ** 0.5
        assert abs(seen[:, 0].mean() - each.count.mean) <= error
        assert seen[:, 1].mean() == pytest.approx(each.total_bytes.mean, rel=0.005, abs=each.most_bytes * error)
    assert min(inside) >= LEAST_INSIDE


@pytest.mark.slow
@pytest.mark.parametrize("barrier", [BSP(), SSP(2), ASP()], ids=str)
def test_a_time_limit_ends_simulated_trainings_too(barrier):
    experiment = training(barrier, ShiftedExponential(0.05, 0.5), rounds=None, stop=Seconds(20.0))
    found = plan(experiment)
    runs = [emuml.run(replace(experiment, seed=seed)) for seed in range(40)]

    updates = np.array([sent(result)["updates"][0] for result in runs])
    count = found.messages[-1].count
    assert abs(updates.mean() - count.mean) < 4 * updates.std() * (1 / 40 + 1 / 100) ** 0.5
    assert np.mean((count.low <= updates) & (updates <= count.high)) > 0.8
    assert all(result.duration_s >= 20.0 for result in runs)
    assert any("the first update at or after 20 s is the last" in note for note in found.notes)
    assert 20.0 <= found.duration_s.low <= found.duration_s.mean <= found.duration_s.high


@pytest.mark.slow
@pytest.mark.parametrize("barrier", [BSP(), SSP(2), ASP()], ids=str)
def test_long_trainings_are_continued_at_the_pace_of_theory(barrier):
    law = ShiftedExponential(0.0, 0.5)
    found = plan(training(barrier, law, rounds=200_000))

    # Twenty trainings of 1,000 rounds: about 0.3 %.
    assert found.round_s == pytest.approx(expected_pushes_time(barrier, 6, law), rel=0.02)
    assert "continued to 200,000" in found.detail
    assert found.messages[-1].count.mean == pytest.approx(1_200_000)
    assert any("in theory a round takes" in note for note in found.notes)
    assert found.basis == "simulation"
    if barrier == SSP(2):  # leads of so many are still growing when the simulation ends
        assert plan(training(SSP(50), law, rounds=200_000)).basis == "estimate"
    limited = plan(training(barrier, law, rounds=None, stop=Seconds(100_000.0)))
    assert limited.basis == "estimate"
    assert limited.rounds == pytest.approx(100_000.0 / found.round_s, rel=0.02)


@pytest.mark.slow
def test_recorded_delays_that_end_too_early_are_said():
    short = DelayTrace(np.random.default_rng(3).exponential(0.5, (20, 6)))
    found = plan(training(ASP(), short, rounds=20))
    assert (found.duration_s, found.basis) == (None, "unknown")
    assert found.detail == "the recorded delays may end before the training does"
    with pytest.raises(emuml.errors.RunFailed, match="asks for draw 20"):
        emuml.run(training(ASP(), short, rounds=20))
    assert plan(training(BSP(), short, rounds=20)).basis == "exact"


def test_resampled_delays_have_no_end():
    law = DelayTrace(np.random.default_rng(3).exponential(0.5, (20, 6)), order="resampled")
    experiment = training(ASP(), law, rounds=100)
    assert plan(experiment).duration_s.mean == pytest.approx(emuml.run(experiment).duration_s, rel=1e-12)


@pytest.mark.parametrize("barrier", BARRIERS, ids=str)
def test_over_tcp_there_are_bounds(barrier):
    emulated, real = (plan(training(barrier, rounds=100), engine) for engine in ("des", "tcp"))

    assert real.basis == "bound"
    assert real.duration_s.mean == pytest.approx(emulated.duration_s.mean)
    assert (real.processes, emulated.processes) == (7, 0)
    lockstep = barrier.slack == 0
    assert real.messages[-1].basis == ("exact" if lockstep else "bound")
    assert real.messages[-1].count.low == 600
    assert real.messages[-1].count.high >= 600 + (0 if lockstep else 5)
    unknown = plan(training(barrier), "tcp", RuntimeSettings(inject="off"))
    assert (unknown.duration_s, unknown.round_s, unknown.basis) == (None, None, "unknown")


def test_a_loss_to_reach_is_said_to_be_unknown():
    found = plan(training(SSP(1), rounds=None, stop=TargetLoss(0.3)))
    assert (found.rounds, found.duration_s) == (None, None)
    assert found.round_s == pytest.approx(plan(training(SSP(1), rounds=100)).round_s)
    assert "nothing says how many rounds: messages are those of 100" in found.notes


def test_shares_that_differ_are_loads_of_their_own():
    experiment = small(protocol=AsyncUpdates(BSP()), cluster=Cluster(7, compute=Constant(1.0)))
    found = plan(experiment)
    assert found.load == pytest.approx((13 / 96 * 7, 14 / 96 * 7))
    assert found.duration_s.mean == pytest.approx(emuml.run(experiment).duration_s)


@pytest.mark.parametrize("slack", [0, 1, 3, None])
def test_free_messages_follow_the_recursion_of_starts(slack):
    delays = np.random.default_rng(5).exponential(1.0, (60, 3, 4))
    pace = Pace(slack, False, Push(100, 1.0, 100, SSP(slack)), Network())
    found = pushed(pace, delays)
    for training, arrivals_s in enumerate(found.arrivals_s):
        _, finish = recursion(delays[:, training], slack)
        assert arrivals_s == pytest.approx(np.sort(finish.ravel()), rel=1e-12)


@pytest.mark.slow
def test_the_command_plans_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    experiment = training(SSP(2), ShiftedExponential(0.0, 0.5), rounds=12)
    config = {
        "workload": {"kind": "logistic-regression", "data": "breast-cancer"},
        "protocol": {"kind": "async-updates", "barrier": {"kind": "ssp", "staleness": 2}},
        "cluster": {"workers": 6, "compute": {"kind": "shifted-exponential", "shift_s": 0.0, "mean_s": 0.5}},
        "rounds": 12,
    }
    (tmp_path / "pushes.yaml").write_text(yaml.safe_dump(config))

    assert status(["run", "pushes.yaml", "--plan"]) == 0
    text = capsys.readouterr().out
    assert "views" in text
    assert "updates" in text
    assert "simulated trainings" in text
    assert status(["run", "pushes.yaml", "--plan", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in found["messages"]] == ["reads", "views", "updates"]
    assert found["duration_s"]["mean"] == pytest.approx(plan(experiment).duration_s.mean, rel=0.05)
    assert found["sources"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pushes.yaml"]
    assert dict(rows(plan(experiment)))["updates"].startswith("72 of ")
