"""Plans against the runs that they are plans of: messages, bytes, time, rounds, and that nothing is started."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from rich.console import Console

import emuml
from emuml.cli.main import status
from emuml.cluster import Cluster, Constant, DelayTrace, Instant, MarkovSlowness, ShiftedExponential, SpeedClasses
from emuml.cluster.cluster import Network
from emuml.errors import UserError
from emuml.experiment.plan import plan
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.report.plan_box import box_of
from emuml.runtime.settings import RuntimeSettings
from emuml.shapes import Stragglers
from emuml.stopping import TargetLoss
from emuml.theory import skip_stale_moments
from tests.experiment.planned import planned, sent
from tests.experiment.small import small

SEMANTICS = get_args(Stragglers)
EXAMPLE = Path(__file__).parents[2] / "examples" / "erasurehead.yaml"
RECORDED = DelayTrace(np.random.default_rng(8).exponential(0.5, (140, 6)))
FAR = Network(latency_s=0.07, bandwidth_bps=1e7)


def check_exact(experiment):
    found, result = plan(experiment), emuml.run(experiment)
    assert found.basis == "exact"
    assert {each.basis for each in found.messages} == {"exact"}
    assert planned(found) == sent(result)
    assert found.duration_s.mean == pytest.approx(result.duration_s, rel=1e-12)
    assert found.duration_s.low == found.duration_s.mean == found.duration_s.high
    assert found.drain_s == pytest.approx(result.drain_s, abs=1e-9)
    assert found.decoding.error == pytest.approx(float(np.nanmean(result.metrics["decode_error"])), rel=1e-12)
    covered = np.nanmean(result.metrics["covered"] / result.metrics["groups"])
    assert found.decoding.covered == pytest.approx(covered, rel=1e-12)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("network", [Network(), Network(0.2), FAR], ids=["near", "latency", "bandwidth"])
@pytest.mark.parametrize("stragglers", SEMANTICS)
@pytest.mark.parametrize(
    ("code", "collect"),
    [(Uncoded(), None), (IgnoreStragglers(), 3), (FractionalRepetition(2), None), (FractionalRepetition(2), 4)],
)
def test_recorded_delays_are_planned_to_the_last_byte(code, collect, stragglers, network):
    # 140 rounds: the number of a round takes a byte more from the 129th on, and so a little more time.
    protocol = GradientCoding(code, collect, stragglers)
    found = check_exact(small(protocol=protocol, cluster=Cluster(6, compute=RECORDED, network=network), rounds=140))

    assert (found.messages[0].least_bytes + 1) == found.messages[0].most_bytes


@pytest.mark.parametrize("stragglers", SEMANTICS)
@pytest.mark.parametrize("law", [Constant(0.25), Instant()])
@pytest.mark.parametrize("replication", [1, 2, 3, 4])
def test_delays_without_chance_are_planned_exactly_with_unequal_shares_too(replication, law, stragglers):
    # 96 rows are equal shares for six workers, but not for seven groups of one.
    code = FractionalRepetition(replication)
    check_exact(small(protocol=GradientCoding(code, 3, stragglers), cluster=Cluster(6, compute=law)))
    unequal = small(protocol=GradientCoding(code, 3, stragglers), cluster=Cluster(7, compute=law))
    least, most = check_exact(unequal).load
    assert (least < most) == (replication == 1)


@pytest.mark.parametrize("stragglers", ["wait-all", "carry-over"])
def test_where_everybody_answers_every_round_counts_are_exact_whatever_the_law(stragglers):
    experiment = small(protocol=GradientCoding(FractionalRepetition(2), 3, stragglers))
    found, result = plan(experiment), emuml.run(experiment)

    assert planned(found) == sent(result)
    assert {each.basis for each in found.messages} == {"exact"}


@pytest.mark.parametrize("count", [1, 4, 6])
def test_counts_of_the_first_answers_are_exact_whatever_the_law(count):
    experiment = small(protocol=GradientCoding(IgnoreStragglers(), count), rounds=150)
    assert planned(plan(experiment)) == sent(emuml.run(experiment))


def test_shares_and_batches_are_the_loads_of_the_tasks():
    cluster = Cluster(7, compute=ShiftedExponential(0.05, 0.5))
    uncoded = small(protocol=GradientCoding(Uncoded()), cluster=cluster)
    found, loads = plan(uncoded), {row[5] for row in emuml.run(uncoded).trace.rows if row[2] == "compute"}
    assert found.load == (min(loads), max(loads))
    assert "% larger than the smallest" in found.notes[0]

    workload = replace(small().workload, batch=4)
    batches = small(workload=workload, cluster=Cluster(6, compute=Constant(1.0)))
    assert plan(batches).load == (0.5, 0.5)
    check_exact(batches)


SEEDS = 200
SHORT = ShiftedExponential(0.05, 0.5)
# Of 200 runs with chance 0.95 each, fewer than 179 or more than 199 are inside with a chance of 0.001.
BAND = 179, 199


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "law", "latency_s", "basis"),
    [
        (GradientCoding(FractionalRepetition(2), 4), ShiftedExponential(0.05, 0.5), 0.0, "closed form"),
        (GradientCoding(FractionalRepetition(3)), ShiftedExponential(0.05, 0.5, "scaled"), 0.1, "closed form"),
        (GradientCoding(IgnoreStragglers(), 4, "wait-all"), ShiftedExponential(0.05, 0.5), 0.0, "closed form"),
        (GradientCoding(IgnoreStragglers(), 4, "skip-stale"), ShiftedExponential(0.0, 0.5), 0.0, "closed form"),
        (GradientCoding(IgnoreStragglers(), 4, "skip-stale"), ShiftedExponential(0.0, 0.5), 0.1, "simulation"),
        (GradientCoding(FractionalRepetition(2), None, "carry-over"), ShiftedExponential(0.05, 0.5), 0.0, "simulation"),
        (GradientCoding(FractionalRepetition(2)), MarkovSlowness(Constant(0.5), 5.0, 0.1, 0.2), 0.0, "simulation"),
        (GradientCoding(FractionalRepetition(2), 4), SpeedClasses(SHORT, (1.0, 3.0), (0.75, 0.25)), 0.0, "simulation"),
    ],
)
def test_the_intervals_cover_nineteen_of_twenty_runs(protocol, law, latency_s, basis):
    experiment = small(protocol=protocol, cluster=Cluster(6, compute=law, network=Network(latency_s)), rounds=20)
    found = plan(experiment)
    assert found.basis == basis

    runs = [emuml.run(replace(experiment, seed=seed)) for seed in range(1000, 1000 + SEEDS)]
    times_s = np.array([result.duration_s for result in runs])
    counts = np.array([sent(result)["answers"] for result in runs])
    inside = [np.sum((found.duration_s.low <= times_s) & (times_s <= found.duration_s.high))]
    answers = found.messages[1]
    if answers.basis != "exact":
        inside.append(np.sum((answers.count.low <= counts[:, 0]) & (counts[:, 0] <= answers.count.high)))
        assert abs(counts[:, 1].mean() - answers.total_bytes.mean) < 4 * counts[:, 1].std() / SEEDS**0.5
    assert min(inside) >= BAND[0]
    assert max(inside) <= BAND[1]
    # Four standard errors of the difference; the simulation has 200 trainings, too.
    assert abs(times_s.mean() - found.duration_s.mean) < 4 * times_s.std() * (2 / SEEDS) ** 0.5


def test_uneven_shares_widen_the_interval_to_both_sides():
    law = ShiftedExponential(0.5, 0.1)
    workers = {n: Cluster(n, compute=law) for n in (16, 17)}
    even, uneven = (plan(small(protocol=GradientCoding(Uncoded()), cluster=workers[n])) for n in (16, 17))

    assert even.load == (1.0, 1.0)
    least, most = uneven.load
    assert (least, most) == pytest.approx((5 / 96 * 17, 6 / 96 * 17))
    reach = (even.duration_s.high - even.duration_s.low) / 2
    assert uneven.duration_s.high - uneven.duration_s.mean > reach + 8 * 0.5 * (most - 1) * 0.9
    assert uneven.duration_s.mean - uneven.duration_s.low > reach + 8 * 0.5 * (1 - least) * 0.9


def test_nobody_is_late_in_the_first_round():
    law = ShiftedExponential(0.0, 0.5)
    rounds = [
        plan(
            small(
                protocol=GradientCoding(IgnoreStragglers(), 4, "skip-stale"), cluster=Cluster(6, compute=law), rounds=n
            )
        )
        for n in (1, 2, 3)
    ]
    first, second, third = (found.duration_s.mean for found in rounds)

    assert first == pytest.approx(0.5 * (1 / 6 + 1 / 5 + 1 / 4 + 1 / 3))
    assert second - first == pytest.approx(third - second)
    assert second - first == pytest.approx(0.5 * skip_stale_moments(6, 4)[0])
    widths = [((found.duration_s.high - found.duration_s.mean) / 1.959964) ** 2 for found in rounds]
    assert widths[0] == pytest.approx(0.25 * (1 / 36 + 1 / 25 + 1 / 16 + 1 / 9), rel=1e-5)
    assert widths[1] - widths[0] == pytest.approx(0.25 * skip_stale_moments(6, 4)[1], rel=1e-5)


def test_decoding_is_that_of_theory():
    found = plan(small(protocol=GradientCoding(FractionalRepetition(2), 3)))
    # Of groups of two of six workers, three answers miss one with chance 1/5, and a group has two partitions.
    assert found.decoding == replace(found.decoding, covered=pytest.approx(0.8), error=pytest.approx(6 * 0.2))
    assert found.decoding.basis == "closed form"


@pytest.mark.slow
def test_decoding_is_simulated_where_stale_work_tells_workers_apart():
    # The same 40 rounds in 50 runs: four standard errors of both.
    experiment = small(protocol=GradientCoding(FractionalRepetition(3), 3, "skip-stale"), rounds=40)
    found = plan(experiment).decoding
    logs = [emuml.run(replace(experiment, seed=seed)).metrics for seed in range(50)]
    shares = np.array([np.nanmean(log["covered"] / log["groups"]) for log in logs])
    errors = np.array([np.nanmean(log["decode_error"]) for log in logs])

    assert found.basis == "simulation"
    assert abs(found.covered - shares.mean()) < 4 * shares.std() * (1 / 50 + 1 / 200) ** 0.5
    assert abs(found.error - errors.mean()) < 4 * errors.std() * (1 / 50 + 1 / 50) ** 0.5  # 2,000 rounds are decoded


# How a run ends


def test_a_loss_to_reach_is_said_to_be_unknown():
    found = plan(small(rounds=None, stop=TargetLoss(0.3)))
    assert (found.rounds, found.duration_s) == (None, None)
    assert found.round_s == pytest.approx(plan(small(rounds=100)).round_s)
    assert found.messages == plan(small(rounds=100)).messages
    assert "nothing says how many rounds: messages are those of 100" in found.notes
    assert "the run ends earlier if train_loss <= 0.3, which nobody can predict" in found.notes

    bounded = plan(small(rounds=8, stop=TargetLoss(0.3)))
    assert bounded.duration_s == plan(small()).duration_s
    assert bounded.ends == "train_loss <= 0.3, or 8 rounds"


# Engines, protocols, faults


def test_over_tcp_there_are_processes_and_bounds():
    settings = RuntimeSettings(time_scale=0.5)
    emulated, real = plan(small()), plan(small(), "tcp", settings)

    assert (emulated.processes, real.processes) == (0, 7)
    assert real.duration_s.mean == pytest.approx(0.5 * emulated.duration_s.mean)
    answers = real.messages[1]
    assert (answers.basis, answers.count.high) == ("bound", 48)
    assert any("starting the processes" in note for note in real.notes)
    assert plan(small(), "tcp", RuntimeSettings(processes="shared")).processes == 0

    recorded = plan(small(cluster=Cluster(6, compute=RECORDED), protocol=GradientCoding(Uncoded())), "tcp")
    assert (recorded.basis, recorded.decoding.basis) == ("bound", "exact")
    assert {each.basis for each in recorded.messages} == {"exact"}  # all are waited for


def test_real_computing_without_delays_takes_an_unknown_time():
    found = plan(small(), "tcp", RuntimeSettings(inject="off"))
    assert (found.duration_s, found.round_s, found.basis) == (None, None, "unknown")


def test_a_protocol_that_does_not_say_how_its_rounds_look():
    class Shapeless(GradientCoding):
        def shape(self, roster, problem=None):
            return None

    found = plan(small(protocol=Shapeless()))
    assert found.messages == ()
    assert found.duration_s is None
    assert found.notes[0] == "the protocol does not say how its rounds look"


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"faults": emuml.FaultPlan([emuml.Crash("worker-2", at_s=1.0)])}, "faults are not counted"),
        ({"cluster": Cluster(6, compute=Constant(0.1), cancel_lag_s=0.2)}, "hold its slot for 0.2 s more"),
    ],
)
def test_what_is_left_out_is_said(changed, text):
    assert any(text in note for note in plan(small(**changed)).notes)


def test_what_a_run_refuses_a_plan_refuses():
    with pytest.raises(UserError, match="worker-9"):
        plan(small(faults=emuml.FaultPlan([emuml.Crash("worker-9", at_s=1.0)])))
    with pytest.raises(UserError, match="partitions"):
        plan(small(cluster=Cluster(200), protocol=GradientCoding()))


def test_long_and_large_trainings_are_simulated_in_part():
    law = ShiftedExponential(0.05, 0.5)
    protocol = GradientCoding(FractionalRepetition(2), None, "skip-stale")
    long = plan(small(protocol=protocol, cluster=Cluster(6, compute=law), rounds=100_000))
    assert long.detail == "20 simulated trainings of 1,000 rounds, continued to 100,000"
    assert long.round_s == pytest.approx(plan(small(protocol=protocol, rounds=1000)).round_s, rel=0.01)
    assert long.messages[0].count.mean == 600_000
    assert 200_000 < long.messages[1].count.mean < 600_000


# On the command line


def test_the_command_starts_nothing_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for engine in ("des", "tcp"):
        assert status(["run", str(EXAMPLE), "--plan", "--engine", engine, "--out", "there"]) == 0
        text = capsys.readouterr().out
        assert "plan of erasurehead" in text
        assert "there: config.yaml" in text
        assert ("31 processes" in text) == (engine == "tcp")
    assert list(tmp_path.iterdir()) == []


def test_json_is_one_object_with_everything(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert status(["run", str(EXAMPLE), "cluster.compute=erasurehead-delays", "--plan", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert found["duration_s"]["mean"] == pytest.approx(31.521, abs=1e-3)
    assert found["nodes"] == {"server": 1, "worker": 30}
    assert [each["kind"] for each in found["messages"]] == ["questions", "answers"]
    assert found["messages"][1]["count"] == {"mean": 1480, "low": 1480, "high": 1480}
    assert found["decoding"]["covered"] == pytest.approx(0.883)
    assert found["sources"]


def test_every_file_that_a_run_leaves_is_in_the_plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = plan(small(), out="run")
    assert status(["run", str(EXAMPLE), "rounds=3", "--out", "run", "--json"]) == 0
    left = {f"run/{path.name}{'/' * path.is_dir()}" for path in Path("run").iterdir()}
    assert left <= set(found.writes)


@pytest.mark.parametrize("width", [60, 200])
def test_the_box_fits_and_shows_each_basis(width):
    def text(experiment):
        console = Console(file=io.StringIO(), width=width)
        console.print(box_of(plan(experiment)))
        assert max(map(len, console.file.getvalue().splitlines())) <= width
        return " ".join(console.file.getvalue().replace("│", " ").split())

    assert "closed form: mean and variance of a round" in text(small())
    assert "exact: delays without chance, round by round" in text(small(cluster=Cluster(6, compute=Constant(0.1))))
    carried = text(small(protocol=GradientCoding(FractionalRepetition(2), None, "carry-over")))
    assert "more for work that nobody needs" in carried
    assert "200 simulated trainings of 8 rounds" in carried
    assert "as many rounds as it takes" in text(small(rounds=None, stop=TargetLoss(0.3)))
    far = Cluster(6, compute=Constant(0.1), network=Network(0.05))
    assert "of which messages travel 100 ms" in text(small(cluster=far, name="a[b]c"))


def planned_with(workers, **options):
    protocol = GradientCoding(FractionalRepetition(options.pop("replication")), **options)
    return small(protocol=protocol, cluster=Cluster(workers, compute=Constant(0.25)))


def test_groups_that_the_replication_does_not_make_are_told():
    told = "5 replicas do not divide 12 workers: 2 groups of 6, a load of 6"

    assert told in plan(planned_with(12, replication=5)).notes
    assert not any("divide" in note for note in plan(planned_with(12, replication=4)).notes)


def test_rounds_that_do_without_much_of_the_data_are_told():
    found = plan(planned_with(30, replication=3, collect=3))

    share = f"{100 * (1 - found.decoding.covered):.0f} % of the data"
    assert f"a round does without {share} on average: collect=3 of 30 workers" in found.notes


def test_an_emulation_has_a_wall_time_and_a_real_run_none():
    given = planned_with(6, replication=3)

    assert plan(given).wall_s > 0
    assert plan(given, "tcp").wall_s is None
