"""The demo says what was measured."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from emuml.cli.demo import BASELINE, compare, conclusion, emulate, fitting, schemes
from emuml.cli.main import status
from emuml.report.view import View


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> list[View]:
    return emulate(tmp_path_factory.mktemp("demo"))


def test_four_schemes_share_all_but_the_protocol() -> None:
    first, *others = schemes().values()
    assert len(others) == 3
    for other in others:
        assert (other.workload, other.cluster, other.rounds, other.seed) == (
            first.workload,
            first.cluster,
            first.rounds,
            first.seed,
        )


@pytest.mark.slow
def test_measured_round_times_agree_with_theory(views: list[View]) -> None:
    _, rows = compare(views)
    for row in rows:
        assert abs(row.round_s - row.expected_s) < 3 * row.error_s


def test_all_reach_the_target_and_speed_ups_are_against_waiting_for_all(views: list[View]) -> None:
    target, rows = compare(views)
    assert rows[0].view.label == BASELINE
    assert rows[0].speedup == 1.0
    for row in rows:
        assert row.view.seconds_to(target) == row.target_s
        assert row.speedup == rows[0].target_s / row.target_s


def test_the_sentence_names_the_one_with_the_largest_speed_up(views: list[View]) -> None:
    target, rows = compare(views)
    best = max(rows, key=lambda row: row.speedup)
    said = conclusion(rows, target)
    assert said.lower().startswith(f"{best.view.label.lower()} wins")
    assert f"{best.speedup:.1f} times as fast as {BASELINE}" in said
    assert "fractional repetition wins" in said


@pytest.mark.slow
def test_demo_ends_with_the_equality_and_the_path_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["demo", "--out", str(tmp_path / "demo")]) == 0
    out = capsys.readouterr().out
    assert "equal bit for bit" in out
    assert out.splitlines()[-1] == f"report: {tmp_path}/demo/report.html"
    assert (tmp_path / "demo" / "report.html").is_file()


@pytest.mark.parametrize("width", [40, 50, 60, 70, 80])
def test_no_number_of_the_table_is_cut(views: list[View], width: int) -> None:
    target, rows = compare(views)
    console = Console(file=io.StringIO(), width=width)
    console.print(fitting(rows, target, console))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    for row in rows:
        assert f"{row.round_s:.3f} ± {row.error_s:.3f}" in text
        assert f" {row.target_s:.1f} " in text
        assert f" {row.speedup:.2f}x" in text
        assert (f" {row.expected_s:.3f} " in text) == (width == 80)
    assert "…" not in text
