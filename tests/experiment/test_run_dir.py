"""The folder of a run: what is in it, that it is never written twice, and that it is written while the run goes on."""

import csv
import json
import threading

import numpy as np
import pytest
import yaml

from emuml import Crash, FaultPlan, replay, run
from emuml.errors import Deadlock, UserError
from emuml.experiment import tiers
from emuml.experiment.config import load
from emuml.experiment.run_dir import RunDir
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import Uncoded
from emuml.report.html import page
from emuml.report.view import View
from emuml.trace import kept, read_rows
from tests.experiment.small import small

EVERYBODY = FaultPlan(tuple(Crash(f"worker-{w}", after=("round", 3)) for w in range(6)))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "one"
    return folder, run(small(), out=folder)


def table(folder):
    with (folder / "metrics.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_it_holds_everything_about_the_run(finished):
    folder, result = finished

    assert result.run_dir == folder
    assert {path.name for path in folder.iterdir()} == {
        "config.yaml", "inputs", "metrics.csv", "parameters.npy", "provenance.json", "summary.json", "trace",
    }  # fmt: skip
    assert np.load(folder / "parameters.npy").tobytes() == result.parameters.tobytes()
    assert json.loads((folder / "provenance.json").read_text()) == result.provenance
    assert json.loads((folder / "summary.json").read_text()) == json.loads(json.dumps(result.summary()))


def test_rows_on_disk_equal_the_metrics_to_the_last_bit(finished):
    folder, result = finished
    rows = table(folder)

    assert len(rows) == len(result.metrics.rows) == 9
    for name in result.metrics:
        on_disk = [float(row[name]) if row[name] else np.nan for row in rows]
        assert np.array_equal(on_disk, result.metrics[name], equal_nan=True)
    assert [row["covered_set"] for row in rows[1:]] == [row["covered_set"] for row in result.metrics.rows[1:]]
    assert set(rows[0]) == {*result.metrics, "covered_set"}


def test_the_trace_on_disk_is_the_trace(finished):
    folder, result = finished

    assert [row[:3] for row in read_rows(folder / "trace")] == [row[:3] for row in result.trace.rows]
    assert len(result.trace.rows) > 100


def test_the_configuration_is_complete_and_gives_the_same_run(finished):
    folder, result = finished
    plain = yaml.safe_load((folder / "config.yaml").read_text())
    again = load(folder / "config.yaml").experiment

    assert (plain["format"], plain["engine"], plain["seed"]) == (1, "des", 3)
    assert again == result.experiment
    assert run(again).trace.digest() == result.trace.digest()


def test_latest_points_to_the_newest(tmp_path):
    for name in ("one", "two"):
        run(small(rounds=1), out=tmp_path / name)
        assert (tmp_path / "latest").is_symlink()
        assert (tmp_path / "latest").resolve() == (tmp_path / name).resolve()

    assert {path.name for path in tmp_path.iterdir()} == {"one", "two", "latest"}


def test_something_else_named_latest_is_left_alone(tmp_path):
    (tmp_path / "latest").mkdir()
    run(small(rounds=1), out=tmp_path / "one")

    assert not (tmp_path / "latest").is_symlink()


def test_a_folder_with_a_run_is_refused_and_left_as_it_is(tmp_path):
    folder = tmp_path / "one"
    run(small(rounds=1), out=folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(UserError, match="already holds a run"):
        run(small(rounds=2), out=folder)

    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_an_empty_folder_may_be_used_and_a_file_may_not(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")

    assert run(small(rounds=1), out=tmp_path / "empty").run_dir == tmp_path / "empty"
    with pytest.raises(UserError, match="cannot write the run directory"):
        run(small(rounds=1), out=tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_plans_that_cannot_be_executed_leave_no_folder(tmp_path):
    with pytest.raises(UserError, match="is not in the roster"):
        run(small(faults=FaultPlan((Crash("worker-9", at_s=1),))), out=tmp_path / "one")

    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_keeps_what_it_did(tmp_path):
    folder = tmp_path / "one"
    with pytest.raises(Deadlock):
        run(small(faults=EVERYBODY, protocol=GradientCoding(Uncoded())), out=folder)

    assert [row["round"] for row in table(folder)] == ["0", "1", "2", "3"]
    assert [row[2] for row in read_rows(folder / "trace")].count("crash") == 6
    assert load(folder / "config.yaml").experiment.faults == EVERYBODY
    assert not (folder / "parameters.npy").exists()
    assert not (tmp_path / "latest").exists()


def test_a_row_is_on_disk_as_soon_as_it_is_told(tmp_path):
    counted = []
    run(small(), out=tmp_path / "one", progress=lambda row: counted.append(len(table(tmp_path / "one"))))

    assert counted == list(range(1, 10))


def test_columns_that_come_later_widen_the_table(tmp_path):
    folder = RunDir(tmp_path / "one", small(), "des")
    rows = [{"a": 1, "b": 0.1}, {"b": float("nan"), "c": "x, y"}, {"a": None, "d": 1e-300}]
    for row in rows:
        folder.add_row(row)
    folder.close()

    with (tmp_path / "one" / "metrics.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [
            ["a", "b", "c", "d"], ["1", "0.1", "", ""], ["", "nan", "x, y", ""], ["", "", "", "1e-300"],
        ]  # fmt: skip


def test_a_parent_that_cannot_be_pointed_in_does_not_undo_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(small(), out=".").rounds == 8
    assert (tmp_path / "summary.json").is_file()


def test_of_two_runs_at_once_one_gets_the_folder(tmp_path):
    taken = []

    def attempt():
        try:
            RunDir(tmp_path / "one", small(), "des").close()
            taken.append(True)
        except UserError:
            taken.append(False)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [False] * 7 + [True]


def test_why_a_run_failed_is_in_its_folder(tmp_path):
    with pytest.raises(Deadlock) as caught:
        run(small(faults=EVERYBODY, protocol=GradientCoding(Uncoded())), out=tmp_path / "one")

    assert (tmp_path / "one" / "error.txt").read_text() == f"{caught.value}\n"


@pytest.mark.parametrize(
    ("error", "text"), [(KeyboardInterrupt(), "interrupted"), (ValueError("no"), "ValueError('no')")]
)
def test_whatever_ends_a_run_early_is_in_its_folder(tmp_path, error, text):
    def fail(row):
        if row["round"] == 2:
            raise error

    with pytest.raises(type(error)):
        run(small(), out=tmp_path / "one", progress=fail)

    assert (tmp_path / "one" / "error.txt").read_text() == f"{text}\n"
    assert [row["round"] for row in table(tmp_path / "one")] == ["0", "1", "2"]


def test_the_trace_of_a_large_run_is_on_disk_only_and_reported_and_replayed_from_there(tmp_path, monkeypatch):
    whole = run(small(), out=tmp_path / "small", tier="event")
    monkeypatch.setattr(tiers, "EVENT_MESSAGES", 10)
    large = run(small(), out=tmp_path / "large", tier="event")
    with pytest.raises(UserError, match="on disk only"):
        _ = large.trace.rows
    assert (tmp_path / "large" / "trace").read_bytes() == (tmp_path / "small" / "trace").read_bytes()
    assert {row[2] for row in kept(large.trace)} == {"log", "publish", "stop"}
    views = View.of_result(large), View.of_folder(tmp_path / "large")
    assert page([views[0]]) == page([views[1]])
    assert not any(view.traced for view in views)
    assert len(kept(large.trace)) < len(whole.trace.rows) / 5
    assert replay(tmp_path / "large").parameters_sha256 == whole.parameters_sha256
