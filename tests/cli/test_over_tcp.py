"""Commands on a run over real TCP: run, replay, report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emuml.cli.main import status
from emuml.report.html import page
from emuml.report.timeline import spans
from emuml.report.view import View

EXAMPLE = Path(__file__).parents[2] / "examples" / "erasurehead.yaml"


@pytest.mark.slow
def test_a_real_run_is_reported_and_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overrides = [
        "cluster.workers=6",
        "protocol.collect=3",
        "rounds=8",
        "cluster.compute={kind: constant, seconds: 0.01}",
    ]
    faults = "faults=[{kind: crash, node: worker-2, after: [round, 3]}]"
    folder = tmp_path / "run"
    assert status(["run", str(EXAMPLE), *overrides, faults, "--engine", "tcp", "--out", str(folder), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["rounds"] == 8
    assert printed["provenance"]["engine"] == "tcp"
    assert any("worker-2" in sentence for sentence in printed["lost"])

    assert status(["replay", str(folder)]) == 0
    assert printed["parameters_sha256"][:16] in capsys.readouterr().out

    view = View.of_folder(folder)
    kinds = {span.kind for span in spans(view.trace)}
    assert {"computed", "down"} <= kinds
    assert page([view]) == (folder / "report.html").read_text()
