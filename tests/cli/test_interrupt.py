"""Ctrl-C: one line, its own exit status, and what was done is kept and can be looked at."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emuml.cli.main import status
from emuml.report.view import View

EXAMPLE = Path(__file__).parents[2] / "examples" / "erasurehead.yaml"


def rows_in(path: Path) -> int:
    return path.read_text().count("\n") - 1 if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["des", "tcp"])
def test_interrupted_run_keeps_what_was_done(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    overrides = ["cluster.workers=6", "protocol.collect=3", "rounds=1000000", "cluster.compute.mean_s=0.05"]
    command = [sys.executable, "-m", "emuml.cli.main", "run", str(EXAMPLE), *overrides, "--engine", engine]
    process = subprocess.Popen([*command, "--out", str(folder)], stderr=subprocess.PIPE, text=True)
    try:
        while rows_in(folder / "metrics.csv") < 5:
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
    assert status(["report", str(folder)]) == 0
    view = View.of_folder(folder)
    assert view.rounds >= 4
    assert view.stopped == "the run did not finish"
    assert "report:" in capsys.readouterr().out
