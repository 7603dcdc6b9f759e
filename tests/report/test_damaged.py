"""Damaged run directories: one line that names the file and what is wrong, and exit status 2; cut ones are shown."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import emuml
from emuml.cli.main import status
from emuml.experiment.recorded import metrics_of, summary_of
from emuml.report.html import page
from emuml.report.view import View
from tests.experiment.small import small

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged") / "whole"
    emuml.run(small(), out=folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def written(name: str, content: str | bytes, without: str = "") -> Damage:
    """Return what writes a file, and takes another one away."""

    def damage(folder: Path) -> None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        if without:
            (folder / without).unlink()

    return damage


def replaced(name: str, line: int, old: str, new: str) -> Damage:
    """Return what changes a line, counted from 1, of a file."""

    def damage(folder: Path) -> None:
        lines = (folder / name).read_bytes().decode().splitlines(keepends=True)
        assert old in lines[line - 1]
        lines[line - 1] = lines[line - 1].replace(old, new, 1)
        (folder / name).write_bytes("".join(lines).encode())

    return damage


def as_folder(name: str) -> Damage:
    """Return what puts a folder in the place of a file."""

    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return damage


def cut_row(folder: Path) -> None:
    lines = (folder / "metrics.csv").read_text().splitlines(keepends=True)
    lines[3] = lines[3][: len(lines[3]) // 2] + "\n"
    (folder / "metrics.csv").write_text("".join(lines))


SUMMARY, PROVENANCE, METRICS, TRACE = "summary.json", "provenance.json", "metrics.csv", "trace"
DAMAGES: dict[str, tuple[Damage, str, str]] = {
    "summary is a list": (written(SUMMARY, "[1]"), SUMMARY, "Expected `object`, got `array`"),
    "summary is nothing": (written(SUMMARY, "null"), SUMMARY, "Expected `object`, got `null`"),
    "summary lacks keys": (written(SUMMARY, "{}"), SUMMARY, "missing required field"),
    "summary has words": (replaced(SUMMARY, 3, ": ", ': "x" '), SUMMARY, "cannot be read as JSON"),
    "summary has a wrong kind": (written(SUMMARY, '{"duration_s": "x"}'), SUMMARY, "$.duration_s"),
    "summary is binary": (written(SUMMARY, b"\xff\x00\x80"), SUMMARY, "cannot be read: 'utf-8'"),
    "summary is a folder": (as_folder(SUMMARY), SUMMARY, "Is a directory"),
    "provenance is cut": (written(PROVENANCE, '{"seed": 3, "ver', SUMMARY), PROVENANCE, "cannot be read as JSON"),
    "provenance is a list": (written(PROVENANCE, "[1, 2]", SUMMARY), PROVENANCE, "Expected `object`, got `array`"),
    "provenance has a wrong kind": (written(PROVENANCE, '{"versions": 3}', SUMMARY), PROVENANCE, "$.versions"),
    "metrics are binary": (written(METRICS, b"\x80\xff\x00"), METRICS, "cannot be read: 'utf-8'"),
    "metrics have no round": (replaced(METRICS, 1, ",round,", ",rnd,"), METRICS, "there is no column round"),
    "metrics have text in a number": (replaced(METRICS, 5, ",3,3,0x", ",four,3,0x"), f"{METRICS}:5", "got 'four'"),
    "metrics have no time": (replaced(METRICS, 2, "0.0,0", ",0"), f"{METRICS}:2", "column time_s: got ''"),
    "metrics have an endless round": (replaced(METRICS, 2, "0.0,0", "0.0,inf"), f"{METRICS}:2", "round: got 'inf'"),
    "metrics have a wrong set": (replaced(METRICS, 4, ",0x", ",x"), f"{METRICS}:4", "column covered_set"),
    "metrics have a row cut in the middle": (cut_row, f"{METRICS}:4", "cells in"),
    "metrics are a folder": (as_folder(METRICS), METRICS, "Is a directory"),
    "trace is something else": (written(TRACE, b"something else altogether"), TRACE, "no trace file"),
    "trace has a record that is none": (written(TRACE, b"EMUMLTRC\x01\0\0\0\x01\0\0\0\x07"), TRACE, "cannot be read"),
    "trace has a record without a time": (
        written(TRACE, b"EMUMLTRC\x01\0\0\0\x05\0\0\0\x93\xa1a\x01\x02"), TRACE, "record 0 of this trace is none",
    ),
    "trace is a folder": (as_folder(TRACE), TRACE, "Is a directory"),
    "error is a folder": (as_folder("error.txt"), "error.txt", "Is a directory"),
    "page is a folder": (as_folder("report.html"), "report.html", "the page cannot be written: Is a directory"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_told_in_one_line(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    damage, where, what = DAMAGES[name]
    damage(folder)
    assert status(["report", str(folder)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith(f"emuml: {folder / where}: ")
    assert what in line
    assert not (folder / "report.html").is_file()


@pytest.mark.parametrize("size", [1, 9, 60])
def test_a_last_row_that_was_cut_is_left_out(folder: Path, size: int) -> None:
    rows = View.of_folder(folder).metrics.rows
    path = folder / METRICS
    path.write_bytes(path.read_bytes()[: -2 - size])
    assert View.of_folder(folder).metrics.rows == rows[:-1]


def test_beginnings_of_the_metrics_are_shown(folder: Path) -> None:
    path = folder / METRICS
    data, rows = path.read_bytes(), metrics_of(folder)
    for size in range(0, len(data), 3):
        path.write_bytes(data[:size])
        found = metrics_of(folder)
        assert found == rows[: len(found)]
        assert len(found) in (data[:size].count(b"\r") - 1, data[:size].count(b"\n") - 1, 0)


def test_beginnings_of_a_summary_are_those_of_a_run_that_did_not_finish(folder: Path) -> None:
    path = folder / SUMMARY
    data = path.read_bytes()
    for size in range(0, len(data) - 1, 3):
        path.write_bytes(data[:size])
        assert summary_of(folder) is None
    view = View.of_folder(folder)
    assert view.is_cut
    assert "summary.json stops in the middle, as on a full disk" in page([view])
    path.write_bytes(data[:-1])
    assert not View.of_folder(folder).is_cut
