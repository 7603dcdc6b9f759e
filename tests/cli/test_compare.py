"""``emuml compare`` as users meet it: tables, one JSON object, what it leaves behind, and how it ends early."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emuml.cli.main import status
from tests.comparison.files import three, written

EXAMPLES = Path(__file__).parents[2] / "examples"
COMPARED = ["uncoded", "ignore_stragglers", "erasurehead"]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    folder = tmp_path_factory.mktemp("compare")
    command = [sys.executable, "-m", "emuml.cli.main", "compare", *map(str, three(folder)), "--seeds", "2", "--json"]
    done = subprocess.run([*command, "--out", str(folder / "out")], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return folder / "out", json.loads(done.stdout, parse_constant=pytest.fail)


def test_json_is_one_object_that_is_in_the_folder_too(printed: tuple[Path, dict]) -> None:
    folder, content = printed
    assert json.loads((folder / "comparison.json").read_text()) == content
    assert content["seeds"] == [3, 4]
    assert [one["name"] for one in content["contestants"]] == ["all", "four", "pairs"]
    assert content["baseline"] == "all"
    assert content["contestants"][2]["load"] == 2.0
    assert content["contestants"][0]["closed_form_round_s"] == pytest.approx(0.05 + 0.5 * 2.45)  # H_6 = 2.45
    assert {pair["contestant"] for pair in content["pairs"]} == {"four", "pairs"}
    (rounds,) = [pair for pair in content["pairs"] if (pair["contestant"], pair["measure"]) == ("four", "round_s")]
    means = [one["means"]["round_s"] for one in content["contestants"]]
    assert rounds["difference"]["value"] == pytest.approx(means[1] - means[0])
    assert rounds["difference"]["low"] < rounds["difference"]["value"] < rounds["difference"]["high"]


def test_table_has_a_row_for_each_contestant_and_seed(printed: tuple[Path, dict]) -> None:
    folder, content = printed
    rows = list(csv.DictReader((folder / "comparison.csv").read_text().splitlines()))
    assert [(row["contestant"], row["seed"]) for row in rows] == [
        (name, seed) for name in ("all", "four", "pairs") for seed in "34"
    ]
    runs = [run for one in content["contestants"] for run in one["runs"]]
    for row, run in zip(rows, runs, strict=True):
        assert {name: float(row[name]) for name in ("round_s", "target_s", "sent_bytes")} == {
            name: run[name] for name in ("round_s", "target_s", "sent_bytes")
        }
        summary = json.loads((Path(row["run_dir"]) / "summary.json").read_text())
        assert float(row["duration_s"]) == summary["duration_s"]


def test_page_begins_with_the_verdict_and_its_tables(printed: tuple[Path, dict]) -> None:
    folder, content = printed
    text = (folder / "report.html").read_text()
    assert f"<p>{content['verdict']}</p>" in text
    heads = re.findall("<h2[^>]*>(.*?)</h2>", text)
    assert [head.partition(":")[0] for head in heads[:4]] == [
        "Ranking by time to train loss 0.172 to 0.219",
        "What differs",
        "Measured",
        "Against all",
    ]
    assert "://" not in text.replace("http://www.w3.org/", "")


def test_run_directories_compare_to_the_same_numbers_without_running(
    printed: tuple[Path, dict], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, content = printed
    runs = [str(path) for name in ("all", "four", "pairs") for path in sorted(folder.glob(f"{name}/seed-*"))]
    assert status(["compare", *runs, "--json", "--out", str(tmp_path / "again")]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["pairs"] == content["pairs"]
    assert again["targets"] == content["targets"]
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == [
        "comparison.csv",
        "comparison.json",
        "report.html",
    ]


def test_a_file_is_paired_with_run_directories_by_seed(
    printed: tuple[Path, dict], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, content = printed
    runs = [str(path) for path in sorted(folder.glob("all/seed-*"))]
    four = str(three(tmp_path)[1])
    assert status(["compare", *runs, four, "seed=99", "--json", "--out", str(tmp_path / "again")]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["seeds"] == [3, 4]
    measures = ("round_s", "duration_s", "final_train_loss", "sent_bytes")
    for measure in measures:
        first, second = (
            [pair for pair in each["pairs"] if (pair["contestant"], pair["measure"]) == ("four", measure)]
            for each in (content, again)
        )
        assert first == second


def test_what_differs_comes_first_and_all_fits_80_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    paths = [*three(tmp_path), written(tmp_path, "two", "ignore-stragglers", 2)]
    assert status(["compare", *map(str, paths), "--seeds", "2", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("What differs: settings of the protocol\n")
    assert max(map(len, out.splitlines()[:-1])) <= 80  # the last one is a path
    assert out.splitlines()[-1] == f"report: {tmp_path}/out/report.html"
    for name in ("all", "four", "pairs", "two"):
        assert name in out


@pytest.mark.slow
def test_examples_print_what_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    files = [str(EXAMPLES / f"{name}.yaml") for name in COMPARED]
    assert status(["compare", *files, "--out", str(tmp_path / "out")]) == 0
    *lines, last = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert last.startswith("report: ")
    assert lines == (EXAMPLES / "compare.out").read_text().splitlines()


def test_examples_differ_in_the_protocol_alone() -> None:
    from emuml.comparison.plan import plan

    found = plan([EXAMPLES / f"{name}.yaml" for name in COMPARED])
    assert {row.setting.partition(".")[0] for row in found.differences} == {"protocol"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "emuml: Missing argument"),
        (["uncoded.yaml"], "emuml: FILES: got 1 to compare"),
        (["uncoded.yaml", "erasurhead.yaml"], "emuml: erasurhead.yaml: No such file or directory; did you mean"),
        (
            ["uncoded.yaml", "erasurehead.yaml", "rouns=3"],
            "emuml: argument 'rouns=3': rouns: unknown key; did you mean",
        ),
        (["uncoded.yaml", "erasurehead.yaml", "--engine", "tpc"], "emuml: --engine: got 'tpc'"),
        (["uncoded.yaml", "erasurehead.yaml", "--metric", "los"], "emuml: --metric: 'los' is no metric of"),
        (["uncoded.yaml", "erasurehead.yaml", "--seeds", "0"], "emuml: Invalid value for '--seeds'"),
        (["uncoded.yaml", "erasurehead.yaml", "workload.data=diabetes"], "emuml: argument 'workload.data=diabetes'"),
    ],
)
def test_bad_input_starts_nothing(
    arguments: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("uncoded.yaml", "erasurehead.yaml"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    monkeypatch.chdir(tmp_path)
    assert status(["compare", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(expected)
    assert {path.name for path in tmp_path.iterdir()} == {"uncoded.yaml", "erasurehead.yaml"}


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["compare", *map(str, three(tmp_path)), "--out", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_a_run_that_fails_keeps_the_seeds_before_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # With seed 6 the training ends before the server's crash at 13 s, with seed 7 it does not.
    crash = "faults: [{kind: crash, node: server-0, at_s: 13.0, restart_after: [never, 1]}]\n"
    files = [str(written(tmp_path, "calm")), str(written(tmp_path, "crash", extra=crash))]
    out = tmp_path / "out"
    assert status(["compare", *files, "seed=6", "--seeds", "3", "--json", "--out", str(out)]) == 3
    printed, err = capsys.readouterr()
    assert printed == ""
    assert f"emuml: that was crash with seed 7: emuml report {out}/crash/seed-7" in err.splitlines()
    kept = f"3 of 6 runs are done and kept in {out}; 1 of 3 seeds are whole and compared: {out}/report.html"
    assert err.splitlines()[-1] == f"emuml: {kept}"
    assert json.loads((out / "comparison.json").read_text())["seeds"] == [6]


@pytest.mark.slow
def test_interrupted_comparison_keeps_the_seeds_before_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    files = [str(path) for path in three(tmp_path)]
    # A seed takes well under a second, ten thousand of them do not end before the signal.
    command = [sys.executable, "-m", "emuml.cli.main", "compare", *files, "--seeds", "10000", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        while not (out / "all" / "seed-5" / "config.yaml").exists():
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
    assert re.fullmatch(
        rf"emuml: interrupted; \d+ of 30000 runs are done and kept in {re.escape(str(out))}; "
        rf"\d+ of 10000 seeds are whole and compared: {re.escape(str(out))}/report.html\n",
        err,
    )
    content = json.loads((out / "comparison.json").read_text())
    assert content["seeds"][:2] == [3, 4]
    assert len(content["seeds"]) < len(content["seeds_asked_for"])


def test_plan_prints_a_row_for_each_file_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    files = [str(path) for path in three(tmp_path)]
    assert status(["compare", *files, "--plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[3:6]] == ["all", "four", "pairs"]
    assert lines[4].endswith("66.67 %")  # 4 of 6 are covered
    assert {path.suffix for path in tmp_path.iterdir()} == {".yaml"}
    assert status(["compare", *files, "--plan", "--json"]) == 0
    plans = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in plans] == ["all", "four", "pairs"]
    assert plans[0]["duration_s"]["mean"] == pytest.approx(12 * (0.05 + 0.5 * 2.45))


def test_ranking_is_in_the_json_object(printed: tuple[Path, dict]) -> None:
    _, content = printed
    found = content["ranking"]
    means = {one["name"]: one["means"]["target_s"] for one in content["contestants"]}
    assert [place["name"] for place in found["places"]] == sorted(means, key=means.__getitem__)
    assert found["measure"] == "target_s"
    assert found["comparisons"] == 2


def test_pairs_are_against_the_baseline_of_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(path) for path in three(tmp_path)]
    options = ["--seeds", "2", "--json", "--baseline", "pairs", "--out", str(tmp_path / "out")]
    assert status(["compare", *files, *options]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["baseline"] == "pairs"
    assert {pair["contestant"] for pair in content["pairs"]} == {"all", "four"}
