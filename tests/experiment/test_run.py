"""Runs of experiments on the emulator: results, ends, determinism across processes and switches."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import emuml
from emuml import Crash, FaultPlan, Rounds, Seconds, TargetLoss, run
from emuml.cluster import Cluster, Constant, Detection, Network
from emuml.cluster.failure_laws import ExponentialFailures, WeibullFailures
from emuml.cluster.faults import Hang, Lossy, Partition, SlowLink, SlowNode
from emuml.cluster.spells import FixedRepair
from emuml.errors import Deadlock, UserError
from emuml.experiment.result import Metrics, parameters_sha256
from emuml.protocols import AsyncUpdates, GradientCoding
from emuml.protocols.async_updates import BSP, SSP
from emuml.protocols.gradient_coding import Uncoded
from tests.experiment.small import rows_of, small

CRASHES = FaultPlan((
    Crash("worker-1", after=("round", 2), restart_after_s=0.7), Crash("worker-4", at_s=0.9),
))  # fmt: skip


def test_a_result_has_what_was_trained_and_how():
    experiment = small()
    result = run(experiment)
    problem = experiment.workload.problem(3)

    assert (result.experiment, result.engine, result.rounds) == (experiment, "des", 8)
    assert result.stopped == "8 rounds done"
    assert result.duration_s == result.metrics["time_s"][-1] > 0
    assert result.metrics["round"].tolist() == list(range(9))
    assert result.metrics["train_loss"][0] == problem.metrics(problem.initial)["train_loss"]
    assert result.metrics["train_loss"][-1] == problem.metrics(result.parameters)["train_loss"]
    assert result.metrics["train_loss"][-1] < 0.7 * result.metrics["train_loss"][0]
    assert result.parameters_sha256 == parameters_sha256(result.run.published[-1].parameters)
    assert (result.lost, result.run_dir) == ([], None)
    assert result.events > 8 * 6


def test_the_summary_is_plain_json():
    result = run(small())
    summary = json.loads(json.dumps(result.summary()))

    assert summary["parameters_sha256"] == result.parameters_sha256
    assert summary["rounds"] == 8
    assert summary["final"] == result.metrics.final
    assert summary["provenance"]["seed"] == 3
    assert set(summary) >= {"duration_s", "wall_s", "events", "run_dir", "lost", "provenance"}


def test_provenance_names_versions_and_data():
    provenance = run(small()).provenance

    assert provenance["engine"] == "des"
    assert len(provenance["inputs_sha256"]) == 2
    assert provenance["versions"]["emuml"] == emuml.__version__
    assert provenance["versions"]["numpy"] == np.__version__


def test_metrics_have_columns_and_gaps():
    metrics = Metrics([{"round": 0, "loss": 1.0, "why": "text"}, {"round": 1, "arrivals": 3}])

    assert list(metrics) == ["round", "loss", "arrivals"]
    assert len(metrics) == 3
    assert metrics["loss"].tolist()[0] == 1.0
    assert np.isnan(metrics["loss"][1])
    assert metrics.final["arrivals"] == 3.0
    assert Metrics([]).final == {}
    with pytest.raises(KeyError, match="there are round, loss, arrivals"):
        metrics["lost"]


def test_the_digest_of_parameters_does_not_depend_on_their_layout():
    values = np.arange(6.0)

    assert parameters_sha256(values) == parameters_sha256(values.astype(">f8"))
    assert parameters_sha256(values) == parameters_sha256(np.repeat(values, 2)[::2])
    assert parameters_sha256(values) != parameters_sha256(values.astype(np.float32))


def test_progress_is_told_each_row_as_it_is_made():
    told = []
    result = run(small(), progress=told.append)

    assert [{name: repr(row[name]) for name in row if name != "events"} for row in told] == rows_of(result)
    assert [row["events"] for row in told] == sorted(row["events"] for row in told)
    assert told[-1]["events"] > 0


def test_processes_beside_see_the_cluster_and_change_nothing():
    seen = []

    def beside(env, cluster):
        while True:
            seen.append((env.now, cluster.workers))
            yield env.timeout(0.25)

    assert run(small(), beside=[beside]).trace.digest() == run(small()).trace.digest()
    assert seen[:2] == [(0.0, 6), (0.25, 6)]


# Ends


def test_a_target_ends_the_run_at_the_first_version_that_reaches_it():
    losses = run(small(rounds=20)).metrics["train_loss"]
    target = float(losses[6])
    result = run(small(rounds=20, stop=TargetLoss(target)))

    assert result.rounds == 6
    assert result.stopped == "target reached at version 6"
    assert result.metrics["train_loss"].tolist() == losses[:7].tolist()


def test_a_target_on_validation_rows():
    losses = run(small(rounds=20)).metrics["validation_loss"]
    version = int(np.argmax(losses <= losses[9]))

    assert run(small(rounds=20, stop=TargetLoss(float(losses[9]), "validation_loss"))).rounds == version


def test_seconds_end_the_run_at_the_first_round_at_or_after_them():
    times = run(small(rounds=20)).metrics["time_s"]
    limit_s = float(times[7] + times[8]) / 2
    result = run(small(rounds=None, stop=Seconds(limit_s)))

    assert result.rounds == 8
    assert result.duration_s == times[8]
    assert run(small(rounds=5, stop=Seconds(limit_s))).rounds == 5
    assert run(small(rounds=None, stop=Rounds(3) | Seconds(limit_s))).rounds == 3


def test_losses_of_workers_are_reported():
    result = run(small(faults=CRASHES))

    assert [line.split(" crashed")[0] for line in result.lost] == ["worker-1 (life 1)", "worker-4 (life 1)"]
    assert result.rounds == 8
    assert np.nanmax(result.metrics["down"]) >= 1
    assert set(result.metrics["covered"][1:]) <= {1.0, 2.0, 3.0}


def test_a_run_that_cannot_go_on_raises_its_report():
    everybody = FaultPlan(tuple(Crash(f"worker-{w}", at_s=0.5) for w in range(6)))
    with pytest.raises(Deadlock, match=r"waiting for answers of round \d+ from worker-0 \(down\)"):
        run(small(faults=everybody, protocol=GradientCoding(Uncoded())))


# Refused before anything runs


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, {"engine": "mpi"}, "engine: got 'mpi'"),
        ({"faults": FaultPlan((Crash("worker-9", at_s=1),))}, {}, "'worker-9' is not in the roster"),
        ({"faults": FaultPlan((Hang("worker-1", 1.0, at_s=1),))}, {"engine": "tcp"}, "engine tcp cannot execute hang"),
        ({"faults": FaultPlan((Crash("worker-1", at_s=1), Hang("worker-1", 1.0, at_s=2)))}, {}, "but is down since"),
        (
            {"faults": FaultPlan((Hang("worker-1", 1.0, at_s=9),)), "stop": Seconds(8)},
            {},
            r"faults\[0\].at_s: got 9; .* 8 s",
        ),
        ({"faults": FaultPlan((Crash("server-0", at_s=9),))}, {}, r"faults\[0\].node: nobody of role server is left"),
        ({"faults": ExponentialFailures(1e-9, until_s=1.0, repair=FixedRepair(0))}, {}, "6e.09 failures of 6 nodes"),
    ],
    ids=["engine", "unknown node", "unknown fault", "impossible", "too late", "nobody left", "too many"],
)
def test_what_cannot_run_is_refused_before_a_round(change, options, said):
    rows = []
    with pytest.raises(UserError, match=said):
        run(small(**change), progress=rows.append, **options)

    assert rows == []


def test_what_only_delays_changes_times_but_no_parameters():
    """All faults that lose nothing, shorter than anybody's patience, where every answer is waited for."""
    calm = Cluster(
        workers=6, compute=Constant(0.5), network=Network(0.05), detection=Detection(suspect_s=50, down_s=90)
    )
    plan = FaultPlan(
        (
            Hang("worker-1", 1.5, at_s=1.0),
            Hang("server-0", 1.0, after=("round", 5)),
            Partition(("worker-2",), (), 2.0, at_s=2.0),
            SlowLink("server-0", "worker-3", 0.5, 3.0, at_s=0.5),
            Lossy("server-0", "worker-4", 0.5, 9.0, at_s=0.0),
            SlowNode("worker-5", 3.0, 2.0, at_s=0.25),
        )
    )
    for protocol in (GradientCoding(Uncoded()), AsyncUpdates(barrier=BSP())):
        plain, delayed = (run(small(protocol=protocol, cluster=calm, faults=p)) for p in (FaultPlan(), plan))
        assert delayed.parameters_sha256 == plain.parameters_sha256
        assert delayed.duration_s > plain.duration_s + 3.0


@pytest.mark.parametrize("protocol", [GradientCoding(Uncoded()), AsyncUpdates(barrier=SSP(1))], ids=["coded", "ssp"])
def test_a_run_goes_on_to_its_end_through_wrong_suspicion_and_replays(protocol, tmp_path):
    hasty = Cluster(
        workers=6, compute=Constant(0.5), network=Network(0.05), detection=Detection(suspect_s=0.2, down_s=0.4)
    )
    plan = FaultPlan((Partition(("worker-2",), (), 2.0, at_s=1.1), Hang("worker-1", 1.5, at_s=1.0),
                      Hang("server-0", 1.0, after=("round", 5))))  # fmt: skip
    result = run(small(protocol=protocol, cluster=hasty, faults=plan), out=tmp_path / "run", journal=True)

    assert result.rounds == 8
    assert {row.details["peer"] for row in result.trace.of("peer") if row.details["state"] == "down"} >= {
        "server-0", "worker-1", "worker-2",
    }  # fmt: skip
    assert not result.trace.of("crash")
    assert emuml.replay(tmp_path / "run").parameters_sha256 == result.parameters_sha256


def test_a_law_of_failures_is_drawn_by_the_seed_and_kept_as_a_law(tmp_path):
    law = WeibullFailures(0.7, 4.0, until_s=60.0, repair=FixedRepair(0.5))
    one, same, other = (run(small(faults=law, seed=seed), out=tmp_path / f"{i}") for i, seed in enumerate((3, 3, 4)))

    assert rows_of(one) == rows_of(same)
    assert rows_of(one) != rows_of(other)
    crashes = [(row.time_s, row.node) for row in one.trace.of("crash")]
    planned = [(fault.at_s, fault.node) for fault in small(faults=law).fault_plan().faults]
    assert crashes == sorted(planned)[: len(crashes)]
    assert len(crashes) > 3
    assert emuml.replay(tmp_path / "0").parameters_sha256 == one.parameters_sha256


# Determinism

PROGRAM = """
from emuml import run
from tests.experiment.test_run import CRASHES
from tests.experiment.small import small
result = run(small(faults=CRASHES), journal=JOURNAL)
print(result.trace.digest(), result.parameters_sha256, result.events)
"""
PROCESSES = {
    "hash seed 0": {"PYTHONHASHSEED": "0"},
    "hash seed 1": {"PYTHONHASHSEED": "1"},
    "eager": {"EMUML_EAGER": "1", "PYTHONHASHSEED": "2"},
    "checked": {"EMUML_CHECK": "1", "PYTHONHASHSEED": "3"},
    "journal": {"JOURNAL": "True", "PYTHONHASHSEED": "4"},
    "reference kernels": {"EMUML_REFERENCE": "1", "PYTHONHASHSEED": "5"},
}


@pytest.fixture(scope="module")
def outputs():
    """What a process of each kind prints: all at once."""
    running = {}
    for name, changed in PROCESSES.items():
        code = PROGRAM.replace("JOURNAL", changed.get("JOURNAL", "False"))
        environment = {**os.environ, "PYTHONPATH": os.getcwd(), "EMUML_CHECK": "0", "EMUML_EAGER": "0", **changed}
        command = [sys.executable, "-c", code]
        running[name] = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    return {name: process.communicate()[0] for name, process in running.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSES)
def test_a_run_is_the_same_in_every_process(outputs, name):
    result = run(small(faults=CRASHES))

    assert outputs[name].split() == [result.trace.digest(), result.parameters_sha256, f"{result.events}"]


@pytest.mark.parametrize("switch", [None, "EMUML_EAGER", "EMUML_CHECK"])
@pytest.mark.parametrize("journal", [False, True])
def test_a_run_is_the_same_with_or_without_journal_and_laziness(monkeypatch, switch, journal):
    expected = run(small(faults=CRASHES))
    if switch is not None:
        monkeypatch.setenv(switch, "1")
    result = run(small(faults=CRASHES), journal=journal)

    assert result.trace.digest() == expected.trace.digest()
    assert result.parameters_sha256 == expected.parameters_sha256
    assert rows_of(result) == rows_of(expected)
    assert bool(result.run.journals) == journal


def test_another_seed_is_another_run():
    assert run(small(seed=4)).trace.digest() != run(small()).trace.digest()


def test_delays_belong_to_worker_and_round_whatever_else_is_drawn():
    """The k-th delay of a worker stays when another worker is lost, or the code is another."""

    def delays(result):
        begun = {}
        for record in result.trace.of("begin", "computed"):
            key = (record.node, record.details["draw"])
            if record.kind == "begin":
                begun.setdefault(key, record.time_s)
            else:
                yield key, record.time_s - begun[key]

    whole = dict(delays(run(small(protocol=GradientCoding(Uncoded())))))
    faults = FaultPlan((Crash("worker-4", at_s=0.9),))
    without = dict(delays(run(small(protocol=GradientCoding(Uncoded()), faults=faults))))

    assert len(without) < len(whole) == 48
    assert all(without[key] == pytest.approx(whole[key], abs=1e-12) for key in without)


def test_metrics_cost_no_time_of_the_run():
    assert run(small(cluster=Cluster(workers=6, compute=Constant(0.5)))).duration_s == 8 * 2 * 0.5


def test_a_server_that_crashed_at_its_log_leaves_no_row_to_its_next_life():
    plan = FaultPlan((Crash("server-0", after=("round", 4), restart_after_s=0.5),))
    rounds = run(small(faults=plan)).metrics["round"]

    assert list(rounds) == [0, 1, 2, 3, *range(9)]


def test_a_target_of_another_name_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(UserError, match=r"'validation_los' is no metric here.*did you mean 'validation_loss'"):
        run(small(rounds=None, stop=TargetLoss(0.1, "validation_los")), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_planned_fault_that_was_never_due_is_reported():
    plan = FaultPlan((Crash("worker-1", after=("rnd", 2)), Crash("worker-4", at_s=1e6)))
    lost = run(small(faults=plan)).lost

    due = "planned but never due: Crash(node='worker-1', after=('rnd', 2))"
    assert lost == [due, "planned but never due: Crash(node='worker-4', at_s=1000000.0)"]


def test_of_many_planned_faults_that_were_never_due_a_few_are_named():
    plan = FaultPlan(tuple(Crash("worker-1", at_s=1e6 * k, restart_after_s=1.0) for k in range(1, 41)))
    lost = run(small(faults=plan)).lost

    assert [len(lost), lost[-1]] == [6, "planned but never due: 35 more"]


def test_more_partitions_than_rows_are_refused_before_a_folder_is_made(tmp_path):
    cluster = Cluster(workers=500, compute=Constant(1.0))
    with pytest.raises(UserError, match="500 partitions for 96 training rows"):
        run(small(cluster=cluster, protocol=GradientCoding(Uncoded())), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("wrong", ["a.yaml", None, GradientCoding])
def test_what_is_no_experiment_is_refused(wrong):
    with pytest.raises(UserError, match=r"an emuml\.Experiment"):
        run(wrong)


def test_processes_beside_real_nodes_are_refused():
    with pytest.raises(UserError, match="beside emulated nodes only"):
        run(small(), "tcp", beside=[lambda env, cluster: iter(())])


def test_a_run_without_a_trace_is_the_same_run_and_says_that_it_has_none():
    traced, bare = run(small()), run(small(), trace=False)
    assert bare.parameters_sha256 == traced.parameters_sha256
    assert (bare.duration_s, bare.events, bare.stopped) == (traced.duration_s, traced.events, traced.stopped)
    assert bare.trace.kept == [row for row in traced.trace.rows if row[2] in ("log", "publish", "stop")]
    with pytest.raises(UserError, match="told to keep no trace; allowed: a run with trace=True"):
        bare.trace.of("send")


@pytest.mark.parametrize("options", [{"engine": "tcp"}, {"out": "folder"}])
def test_a_folder_and_a_tcp_run_are_not_without_a_trace(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="trace: got False"):
        run(small(), trace=False, **options)
