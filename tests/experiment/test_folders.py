"""Whoever takes a comparison, a demo or a folder of runs for a run is told what it is, and which runs are in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import emuml
from emuml.errors import UserError
from emuml.experiment.folders import no_run
from emuml.report.view import View


def with_runs(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "config.yaml").write_text("")
    return folder


@pytest.mark.parametrize("ask", [View.of_folder, emuml.replay])
def test_a_comparison_says_that_it_is_one_and_names_its_runs(ask: Callable[[Path], object], tmp_path: Path) -> None:
    folder = with_runs(tmp_path / "found", "a/seed-1", "b/seed-1")
    (folder / "comparison.json").write_text(json.dumps({"contestants": [{"name": "A"}, {"name": "B"}]}))
    (folder / "a" / "latest").symlink_to("seed-1")
    with pytest.raises(UserError) as caught:
        ask(folder)
    expected = f"{folder}: this is a comparison of A, B; allowed: one of its runs; there are "
    assert str(caught.value) == f"{expected}{folder}/a/seed-1, {folder}/b/seed-1"


def test_a_comparison_of_runs_that_lie_elsewhere_says_so(tmp_path: Path) -> None:
    (tmp_path / "comparison.json").write_text("{")
    assert str(no_run(tmp_path)).startswith(f"{tmp_path}: this is a comparison; allowed: a run directory")
    assert str(tmp_path / "report.html") in str(no_run(tmp_path))


def test_a_folder_of_runs_names_some_of_them(tmp_path: Path) -> None:
    with_runs(tmp_path, *(f"run-{i}" for i in range(6)))
    text = str(no_run(tmp_path))
    assert "this is a folder of 6 runs; allowed: one run" in text
    assert text.endswith("run-3 and 2 more")


def test_latest_names_single_runs_alone(tmp_path: Path) -> None:
    assert "points to the newest one, never to a comparison" in str(no_run(tmp_path / "latest"))


def test_another_folder_holds_no_configuration(tmp_path: Path) -> None:
    assert (
        str(no_run(tmp_path)) == f"{tmp_path}: there is no config.yaml; allowed: a run directory, such as runs/latest"
    )
