"""Tiers of the emulator: the same results, who is served by which, and what is said where there is no trace."""

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, DelayTrace, ShiftedExponential
from emuml.cluster.cluster import Network, ServerCosts
from emuml.cluster.faults import Crash, FaultPlan
from emuml.comparison.measures import run_of
from emuml.errors import UserError
from emuml.experiment.fitting import prepare
from emuml.experiment.plan import plan
from emuml.experiment.tiers import choose
from emuml.protocols import AsyncUpdates, GradientCoding
from emuml.protocols.async_updates import ASP, BSP, SSP
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers
from emuml.report.html import page
from emuml.report.view import View
from emuml.stopping import Rounds, TargetLoss
from emuml.workloads import LogisticRegression
from emuml.workloads.optimizers import GradientDescent
from tests.experiment.small import rows_of, small

TIED = np.array([[0.5, 1.0, 2.0, 2.0], [0.5, 3.0, 1.0, 1.0], [1.0, 0.5, 2.0, 1.0], [1.0, 1.0, 1.0, 0.5]])


DATA = np.arange(60.0).reshape(30, 2) % 7.0, np.arange(30) % 3 > 0


def tied(stragglers="skip-stale"):
    """Return an experiment in which the order of answers of one instant matters after some rounds."""
    cluster = Cluster(workers=4, compute=DelayTrace(TIED))
    return small(protocol=GradientCoding(IgnoreStragglers(), 3, stragglers), cluster=cluster, rounds=4)


def test_small_runs_are_served_event_by_event_and_keep_their_trace():
    result = emuml.run(small())

    assert result.tier == result.summary()["tier"] == "event"
    assert result.trace.of("send")


@pytest.mark.parametrize("stragglers", ["cancel", "skip-stale", "carry-over", "wait-all"])
def test_arrays_give_what_events_give(stragglers):
    experiment = small(
        protocol=GradientCoding(FractionalRepetition(2), 4, stragglers),
        cluster=Cluster(workers=6, compute=ShiftedExponential(0.05, 0.5), network=Network(0.01, 1e5)),
    )
    events, arrays = emuml.run(experiment, tier="event"), emuml.run(experiment, tier="array")

    assert arrays.tier == "array"
    assert rows_of(arrays) == rows_of(events)
    assert arrays.parameters_sha256 == events.parameters_sha256
    named = [(r.duration_s, r.drain_s, r.rounds, r.stopped) for r in (arrays, events)]
    assert named[0] == named[1]


@pytest.mark.parametrize("barrier", [BSP(), SSP(2), ASP()])
def test_arrays_give_what_events_give_of_pushes(barrier):
    protocol, workload = AsyncUpdates(barrier), LogisticRegression(data=DATA, optimizer=GradientDescent(rate=0.1))
    cluster = Cluster(workers=6, compute=ShiftedExponential(0.05, 0.5), network=Network(0.01, 1e5))
    experiment = small(protocol=protocol, workload=workload, cluster=cluster)

    events, arrays = emuml.run(experiment, tier="event"), emuml.run(experiment, tier="array")

    assert arrays.tier == "array"
    assert rows_of(arrays) == rows_of(events)
    assert arrays.parameters_sha256 == events.parameters_sha256
    assert (arrays.duration_s, arrays.stopped) == (events.duration_s, events.stopped)


def test_a_target_ends_both_alike():
    experiment = small(rounds=None, stop=Rounds(50) | TargetLoss(0.66))

    ends = [(emuml.run(experiment, tier=tier).rounds, emuml.run(experiment, tier=tier).stopped) for tier in TWO]

    assert ends[0] == ends[1]
    assert ends[0][0] < 50


TWO = ("event", "array")


def test_large_runs_are_served_by_arrays_if_nobody_chooses():
    def chosen(rounds, workers=1000, tier="auto"):
        X = np.random.default_rng(0).normal(size=(2000, 2))
        workload = emuml.workloads.LogisticRegression(data=(X, X[:, 0] > 0), validation=0.0)
        cluster = Cluster(workers=workers, compute=ShiftedExponential(0.05, 0.5))
        protocol = GradientCoding(FractionalRepetition(4))
        experiment = emuml.Experiment(workload, protocol, cluster, rounds=rounds)
        return choose(experiment, prepare(experiment), tier)

    assert chosen(500).tier == "event"
    assert chosen(501) == ("array", "about 1,002,000 messages are more than 1,000,000")
    assert chosen(501, tier="event").tier == "event"


def busy(protocol):
    """Return an experiment whose server takes time for each message."""
    workload = LogisticRegression(data=DATA, optimizer=GradientDescent(rate=0.1))
    cluster = Cluster(workers=6, server_costs=ServerCosts(cpu_s_per_message=0.01))
    return small(protocol=protocol, workload=workload, cluster=cluster)


def test_what_arrays_cannot_serve_is_refused_with_the_reason():
    crashing = small(faults=FaultPlan((Crash("worker-1", at_s=1.0, restart_after_s=1.0),)))
    slow = small(cluster=Cluster(workers=6, cancel_lag_s=0.1))

    for options, experiment, reason in [
        ({}, crashing, "faults are planned"), ({"journal": True}, small(), "a journal is asked for"),
        ({"beside": [lambda env, cluster: iter(())]}, small(), "other processes run beside"),
        ({}, slow, "cancelled tasks free their slots late"), ({}, busy(GradientCoding()), "messages wait"),
        ({}, busy(AsyncUpdates()), "messages wait"),
    ]:  # fmt: skip
        with pytest.raises(UserError, match=f"the array tier cannot serve this run: {reason}"):
            emuml.run(experiment, tier="array", **options)
        assert choose(experiment, prepare(experiment), "auto", **options).tier == "event"


def test_unknown_tiers_are_refused_and_over_tcp_there_are_none():
    with pytest.raises(UserError, match="did you mean 'array'"):
        emuml.run(small(), tier="arrays")
    with pytest.raises(UserError, match="tiers are ways to emulate"):
        emuml.run(small(), engine="tcp", tier="array")
    with pytest.raises(UserError, match="tiers are ways to emulate"):
        plan(small(), "tcp", tier="array")


def test_who_asks_for_the_trace_of_arrays_is_told_how_to_get_one():
    result = emuml.run(small(), tier="array")

    for ask in (
        lambda: result.trace.rows, lambda: result.trace.of("send"), lambda: len(result.trace), result.trace.digest,
        lambda: list(result.trace),
    ):  # fmt: skip
        with pytest.raises(UserError, match="keeps no trace; allowed: a run with tier='event'"):
            ask()


def test_where_the_order_of_one_instant_is_not_known_events_go_on_without_saying_anything_twice():
    seen = []

    found = emuml.run(tied(), tier="array", progress=seen.append)

    assert found.tier == "event"
    assert rows_of(found) == rows_of(emuml.run(tied(), tier="event"))
    assert [row["round"] for row in seen] == [0, 1, 2, 3, 4]
    assert found.trace.of("send")


def test_a_folder_tells_what_arrays_keep(tmp_path):
    experiment = small(protocol=GradientCoding(FractionalRepetition(2), 4, "carry-over"))
    result = emuml.run(experiment, tier="array", out=tmp_path / "run")

    there, here = View.of_folder(tmp_path / "run"), View.of_result(result)

    assert there.tier == here.tier == "array"
    assert there.trace == here.trace
    assert there.drain_s == here.drain_s == result.drain_s > 0
    assert there.stopped == "8 rounds done"
    assert page([there]) == page([View.of_folder(tmp_path / "run")])
    assert "array tier: no trace of messages and tasks" in page([there])
    assert "sent_bytes" not in run_of(there, "train_loss").values


@pytest.mark.parametrize("make", [small, tied])
def test_a_run_of_arrays_is_replayed(tmp_path, make):
    result = emuml.run(make(), tier="array", out=tmp_path / "run")

    for source in (result, tmp_path / "run"):
        again = emuml.replay(source)
        assert again.parameters_sha256 == result.parameters_sha256
        assert again.tier == result.tier
        assert "parameters" in again.compared


def test_a_plan_names_the_tier():
    assert (plan(small()).tier, plan(small()).tier_reason) == ("event", "about 96 messages")
    assert plan(small(), tier="array").tier == "array"
    assert plan(small(), engine="tcp").tier == ""
