"""Delays of one's own from files, in experiments: found, refused with both places, kept, replayed, on both engines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import emuml
from emuml.cli.main import status
from emuml.cluster import Cluster, DelayTrace
from emuml.experiment.config import ConfigError, load
from emuml.experiment.plan import plan
from emuml.experiment.replay import replay
from emuml.node import NodeId
from emuml.report.expected import round_law

TEXT = """\
workload: {kind: logistic-regression, data: "two-gaussians:60x3"}
protocol: {kind: gradient-coding, code: {kind: fractional-repetition, replication: 2}}
cluster:
  workers: 4
  compute: {kind: delay-trace, array: delays.csv, load: scaled}
rounds: 3
"""
DELAYS = np.random.default_rng(2).uniform(0.001, 0.009, (3, 4)).round(6)


def written(folder: Path, old: str = "", new: str = "", delays: np.ndarray = DELAYS) -> Path:
    """Write an experiment and its delays beside it."""
    folder.mkdir(exist_ok=True)
    np.savetxt(folder / "delays.csv", delays, "%.6f", delimiter=",", header="a,b,c,d", comments="")
    assert old in TEXT
    (folder / "exp.yaml").write_text(TEXT.replace(old, new))
    return folder / "exp.yaml"


def test_a_relative_path_starts_at_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    assert load(path).experiment.cluster.compute == DelayTrace(DELAYS, load="scaled")
    assert load(path, ["cluster.compute.array=own/delays.csv"]).experiment == load(path).experiment
    inline = "cluster.compute.array=[[0.5, 0.25, 1, 1]]"
    assert load(path, [inline, "rounds=1"]).experiment.cluster.compute.extent == (1, 4)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0.5,0.5,0.5,0.5\n0.5,-1,0.5,0.5\n", "delays.csv, line 2, column 2 is -1.0; allowed: seconds from 0 to 1e12"),
        ("0.5,0.5,0.5,x\n", "delays.csv, line 1, column 4 is 'x'; allowed: seconds, in decimal digits"),
        ("a,b,c,d\n0.5,0.5,,0.5\n", "delays.csv, line 2, column 3 is missing; allowed: seconds from 0 to 1e12"),
    ],
)
def test_errors_name_the_place_in_both_files(content: str, expected: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    (tmp_path / "delays.csv").write_text(content)
    with pytest.raises(ConfigError) as refused:
        load(path)
    (problem,) = refused.value.problems
    assert problem.startswith(f"{path}:5:39: cluster.compute.array: {tmp_path}/{expected}")


def test_a_file_that_is_not_there_is_told_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load(written(tmp_path, "array: delays.csv", "array: delay.csv"))
    (problem,) = refused.value.problems
    assert problem.startswith(
        f"{tmp_path}/exp.yaml:5:39: cluster.compute.array: there is no file 'delay.csv'; allowed: "
    )
    assert problem.endswith("did you mean 'delays.csv'?")


def test_too_few_workers_or_rounds_are_refused_unless_rounds_are_drawn_anew(tmp_path: Path) -> None:
    path = written(tmp_path)
    for override, message in [("cluster.workers=6", "durations for 4 workers"), ("rounds=9", "has 3 rounds, got 9")]:
        with pytest.raises(ConfigError, match=message):
            load(path, [override])
    drawn = load(path, ["rounds=9", "cluster.compute.order=resampled"]).experiment
    assert emuml.run(drawn).rounds == 9


def test_a_run_keeps_the_numbers_and_is_replayed_when_the_file_is_gone(tmp_path: Path) -> None:
    path, out = written(tmp_path / "own"), tmp_path / "run"
    result = emuml.run(load(path).experiment, out=out)
    source = json.loads((out / "provenance.json").read_text())["delays"]
    assert source.startswith(f"file {path.parent / 'delays.csv'} (SHA-256 ")
    assert source.endswith("3 rounds x 4 workers")
    (path.parent / "delays.csv").unlink()
    assert replay(out).parameters_sha256 == result.parameters_sha256
    again = load(out / "config.yaml").experiment
    assert again == result.experiment
    assert emuml.run(again).duration_s == result.duration_s


def test_provenance_says_nothing_of_delays_that_are_not_from_a_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    emuml.run(load(path, ["cluster.compute=instant"]).experiment, out=tmp_path / "run")
    assert "delays" not in json.loads((tmp_path / "run" / "provenance.json").read_text())


@pytest.mark.parametrize("order", ["recorded", "resampled"])
@pytest.mark.parametrize("load_is", ["ignored", "scaled"])
def test_rounds_end_when_the_rows_say_so(order: str, load_is: str, tmp_path: Path) -> None:
    """Two groups of two workers; a round ends with the first of each group."""
    overrides = [f"cluster.compute.order={order}", f"cluster.compute.load={load_is}", "seed=5"]
    experiment = load(written(tmp_path), overrides).experiment
    samplers = [experiment.cluster.compute.sampler(5, NodeId("worker", w)) for w in range(4)]
    delays = np.array([[each(k, 2.0) for each in samplers] for k in range(3)])
    ends = np.cumsum(delays.reshape(3, 2, 2).min(axis=2).max(axis=1))
    assert emuml.run(experiment).metrics["time_s"][1:] == pytest.approx(ends, rel=1e-12)


def test_resampled_rounds_are_the_same_for_all_codes_of_a_seed_and_others_for_another(tmp_path: Path) -> None:
    path = written(tmp_path, delays=np.repeat(np.arange(1.0, 21.0)[:, None], 4, axis=1))
    drawn = ["cluster.compute.order=resampled", "cluster.compute.load=ignored", "rounds=12"]

    def rounds_s(*more: str) -> list[float]:
        times_s = emuml.run(load(path, [*drawn, *more]).experiment).metrics["time_s"]
        return np.diff(times_s).round(9).tolist()

    assert rounds_s() == rounds_s("protocol.code=uncoded")
    assert rounds_s() != rounds_s("seed=1")


@pytest.mark.slow
@pytest.mark.parametrize("order", ["recorded", "resampled"])
def test_both_engines_take_the_same_rows(order: str, tmp_path: Path) -> None:
    """Real rounds last at least what the rows say: of three rows one is slow, and the seed draws it in every round."""
    delays = np.full((3, 4), 0.001)
    delays[2 if order == "resampled" else slice(None)] = 0.05
    law = f"cluster.compute.order={order}"
    experiment = load(written(tmp_path, delays=delays), [law, "protocol.code=uncoded", "seed=47"]).experiment
    emulated, real = emuml.run(experiment), emuml.run(experiment, "tcp", out=tmp_path / "run")
    assert np.diff(emulated.metrics["time_s"]) == pytest.approx(0.05)
    assert np.all(np.diff(real.metrics["time_s"]) >= 0.05 - 1e-9)
    assert real.parameters_sha256 == emulated.parameters_sha256


def test_a_plan_of_resampled_rounds_is_that_of_its_seed_and_has_no_last_round(tmp_path: Path) -> None:
    experiment = load(written(tmp_path), ["cluster.compute.order=resampled", "rounds=40", "seed=3"]).experiment
    planned = plan(experiment)
    assert (planned.basis, planned.detail) == ("exact", "the recorded delays as this seed draws them, round by round")
    assert planned.duration_s.mean == pytest.approx(emuml.run(experiment).duration_s, rel=1e-12)


@pytest.mark.parametrize(
    ("overrides", "is_told"),
    [
        (["cluster.compute.load=ignored"], True),
        (["cluster.compute={kind: erasurehead-delays}"], True),
        (["cluster.compute.load=ignored", "protocol.code=uncoded"], False),
        ([], False),
    ],
)
def test_a_plan_says_that_redundant_work_is_free(
    overrides: list[str], is_told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    note = "recorded delays ignore the load: a worker computes 2 shares of the data in the time of one"
    assert (note in plan(load(path, overrides).experiment).notes) is is_told
    assert status(["run", str(path), *overrides, "--plan"]) == 0
    assert ("recorded delays ignore the load" in " ".join(capsys.readouterr().out.split())) is is_told


def test_workers_of_python_name_a_file_too(tmp_path: Path) -> None:
    path = written(tmp_path)
    in_python = Cluster(workers=4, compute=DelayTrace(tmp_path / "delays.csv", load="scaled"))
    assert load(path).experiment.cluster == in_python


def test_reports_have_no_closed_form_for_workers_that_need_not_be_alike(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert round_law(load(path).experiment).mean_s is None
    assert round_law(load(path, ["cluster.compute=erasurehead-delays"]).experiment).mean_s is not None
