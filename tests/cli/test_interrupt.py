"""Ctrl-C: one line, its own exit status, and what was done is kept and can be looked at."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emuml.cli.main import status
from emuml.report.view import View
from emuml.trace import read_rows
from emuml.workloads import regression

EXAMPLE = Path(__file__).parents[2] / "examples" / "erasurehead.yaml"


def rows_in(path: Path) -> int:
    return path.read_text().count("\n") - 1 if path.exists() else 0


def interrupted(folder: Path, rows: int, *arguments: str) -> None:
    """Run the example with other settings, and press Ctrl-C when there are so many rows of metrics."""
    command = [sys.executable, "-m", "emuml.cli.main", "run", str(EXAMPLE), *arguments, "--out", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while rows_in(folder / "metrics.csv") < rows:
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"ended by itself: {process.stderr and process.stderr.read()}")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert err == f"emuml: interrupted; what was done is kept: emuml report {folder}\n"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["des", "tcp"])
def test_interrupted_run_keeps_what_was_done(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    overrides = ["cluster.workers=6", "protocol.collect=3", "rounds=1000000", "cluster.compute.mean_s=0.05"]
    interrupted(folder, 5, *overrides, "--engine", engine)
    assert status(["report", str(folder)]) == 0
    view = View.of_folder(folder)
    assert view.rounds >= 4
    assert view.stopped == "the run did not finish"
    assert "report:" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["event", "array"])
def test_an_interrupted_run_of_ten_thousand_workers_is_reported_and_replayed_as_far_as_it_went(
    tier: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    sizes = ["cluster.workers=10000", "protocol.collect=5000", "workload.data=two-gaussians:20000x2"]
    interrupted(folder, 3, *sizes, "protocol.code.replication=100", "rounds=100000000", "--tier", tier)
    published = [row for row in read_rows(folder / "trace") if row[2] == "publish"]
    assert len(published) >= 3
    assert (folder / "config.yaml").is_file()
    assert status(["report", str(folder)]) == 0
    assert status(["replay", str(folder)]) == 0
    said = capsys.readouterr().out
    assert f"replayed {published[-1][3]} rounds" in said  # and not all hundred million
    assert f"{'records' if tier == 'array' else 'trace'} equal bit for bit, as far as the run went" in said


def test_an_interruption_before_the_run_began_claims_nothing_to_be_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(regression, "load", load)
    assert status(["run", str(EXAMPLE), "--out", str(tmp_path / "run")]) == 130
    assert capsys.readouterr().err == "emuml: interrupted before the run began; there is nothing to keep\n"
