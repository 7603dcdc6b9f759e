"""Streams that are closed, full or unread, Ctrl-C before anything began, folders that are taken: no tracebacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emuml.cli.main import status

EXAMPLE = Path(__file__).parents[2] / "examples" / "erasurehead.yaml"
EMUML = [sys.executable, "-m", "emuml.cli.main"]
PLAN = ["run", str(EXAMPLE), "--plan"]
FULL = Path("/dev/full")


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    text = f"emuml() {{ '{sys.executable}' -m emuml.cli.main \"$@\"; }}; {command}"
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, cwd=cwd, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [PLAN, [*PLAN, "--json"], ["--help"], ["--version"]])
@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_output_is_one_line_and_a_failure(arguments: list[str]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run([*EMUML, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "emuml: cannot print: No space left on device\n")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [PLAN, [*PLAN, "--json"], ["--help"]])
def test_an_output_that_nobody_reads_ends_in_silence(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*EMUML, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.slow
def test_closed_streams_are_no_mistake(tmp_path: Path) -> None:
    run = f"emuml run {EXAMPLE} rounds=3 cluster.workers=15"
    for folder, closed in (("a", "2>&-"), ("b", ">&-"), ("c", "<&- >&- 2>&-")):
        done = shell(f"{run} --out {folder} {closed}", tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / folder / "report.html").is_file()
    assert shell("emuml run nothing.yaml 2>&-", tmp_path).returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["run", "pipe"], ["compare", "pipe", "pipe"]])
def test_interrupted_before_anything_began(arguments: list[str], tmp_path: Path) -> None:
    # The code stops where commands are loaded, and says so; there the signal comes.
    code = (
        "import sys, builtins, time\n"
        "from emuml.cli.main import main\n"
        "real = builtins.__import__\n"
        "def slow(name, *rest, **kept):\n"
        "    if name == 'emuml.experiment.config' or name == 'emuml.comparison.plan':\n"
        "        print('here', flush=True); time.sleep(60)\n"
        "    return real(name, *rest, **kept)\n"
        "builtins.__import__ = slow\n"
        "main(sys.argv[1:])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "emuml: interrupted\n")


# Where runs go


@pytest.mark.parametrize("more", [[], ["--plan"]])
@pytest.mark.parametrize(
    ("out", "expected"),
    [
        ("file", "'file' is no folder"),
        ("file/below", "file' is no folder"),
        ("full", "'full' is not empty"),
        (".", "'.' is not empty"),
        ("", "'.' is not empty"),
        ("run", "'run' already holds a run"),
        ("link", "link' is no folder"),
        ("x" * 300, f"{'x' * 80}': File name too long"),
    ],
)
def test_a_folder_that_is_taken_is_told_by_its_option(
    out: str,
    expected: str,
    more: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("full", "run"):
        (tmp_path / folder).mkdir()
    for file in ("file", "full/something", "run/config.yaml"):
        (tmp_path / file).touch()
    (tmp_path / "link").symlink_to("nowhere")
    before = sorted(tmp_path.rglob("*"))
    commands = [["run", str(EXAMPLE), *more]] if more else [["run", str(EXAMPLE)], ["compare", *[str(EXAMPLE)] * 2]]
    for command in commands:
        assert status([*command, "--out", out]) == 2
        printed, err = capsys.readouterr()
        assert printed == ""
        assert err.startswith("emuml: --out: ")
        assert err.endswith(f"{expected}; allowed: a new or an empty folder\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    assert status(["run", str(EXAMPLE), "rounds=2", "cluster.workers=15", "--json", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "summary.json").is_file()


@pytest.mark.parametrize("command", [["run", "no.yaml"], ["compare", "no.yaml", "no.yaml"]])
def test_options_and_files_are_told_together(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").touch()
    assert status([*command, "--engine", "tpc", "--out", "there"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == [
        "emuml: --engine: got 'tpc'; allowed: des, tcp; did you mean 'tcp'?",
        "emuml: --out: 'there' is no folder; allowed: a new or an empty folder",
        "emuml: no.yaml: No such file or directory",
    ]


def test_settings_longer_than_any_file_name_are_settings(capsys: pytest.CaptureFixture[str]) -> None:
    long = f"name={'x' * 300}"
    assert status(["compare", str(EXAMPLE), str(EXAMPLE), long, "rounds=0"]) == 2
    assert "argument 'rounds=0'" in capsys.readouterr().err


def test_names_from_files_do_not_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nasty = r'name="a\e[31mred\nb"'
    few = ["rounds=2", "cluster.workers=15"]
    assert status(["run", str(EXAMPLE), nasty, *few, "--out", str(tmp_path / "a\x1b[1m")]) == 0
    assert status(["run", str(EXAMPLE), nasty, "--plan"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count(r"a\x1b[31mred\nb") == 2
    assert "\x1b" not in out
