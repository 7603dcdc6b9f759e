"""The command line as users meet it: help, exit statuses, and one line for each thing that goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import emuml
from emuml.cli.main import status
from emuml.errors import ContractError, Diverged, RunFailed, UserError

HEAVY = {"numpy", "scipy", "simpy", "networkx", "sklearn", "rich", "yaml", "msgspec", "asyncio"}
EXAMPLE = Path(__file__).parents[2] / "examples" / "erasurehead.yaml"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["run", "--help"], ["demo", "--help"], ["compare", "--help"], []]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from emuml.cli.main import status; result = status(sys.argv[1:]);"
        "print('loaded', *sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr); sys.exit(result)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout
    loaded = set(done.stderr.split())
    assert "typer" in loaded
    # Newer versions of Typer convert the arguments of commands by pydantic; the plain help needs none.
    assert not loaded & (HEAVY | {"pydantic"} if arguments == ["--help"] else HEAVY)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["--version"]) == 0
    assert capsys.readouterr().out == f"emuml {emuml.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["rn"], "emuml: No such command 'rn'"),
        (["run"], "emuml: Missing argument"),
        (["run", str(EXAMPLE), "--engin", "des"], "emuml: No such option: --engin"),
        (["explain"], "emuml: Missing argument 'FILE'.; emuml explain --help says more"),
        (
            ["run", str(EXAMPLE), "--engine", "tpc"],
            "emuml: --engine: got 'tpc'; allowed: des, tcp; did you mean 'tcp'?",
        ),
        (["run", "no.yaml"], "emuml: no.yaml: No such file or directory"),
        (["run", str(EXAMPLE), "cluster.workers"], "emuml: argument 'cluster.workers': not of the form key=value"),
        (
            ["run", str(EXAMPLE), "workload.data=brest-cancer"],
            "emuml: argument 'workload.data=brest-cancer': workload.data: 'brest-cancer' is unknown",
        ),
        (["report", "no-run"], "emuml: no-run: there is no config.yaml; allowed: a run directory"),
        (["replay", "no-run"], "emuml: no-run: there is no config.yaml"),
    ],
)
def test_bad_input_is_one_line_and_starts_nothing(
    arguments: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert status(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(expected)
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_each_problem_of_a_file_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("workload: logistic-regresion\nprotocol: gradient-coding\ncluster: {wrokers: 3}\nrounds: 0\n")
    assert status(["run", str(path), "--out", str(tmp_path / "run"), "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(":")[:4] for line in err.splitlines()] == [
        ["emuml", f" {path}", "1", "11"],
        ["emuml", f" {path}", "3", "11"],
        ["emuml", f" {path}", "4", "9"],
    ]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("error", "expected_status", "expected"),
    [
        (UserError("got 3", "here", "4"), 2, ["emuml: here: got 3; allowed: 4"]),
        (
            RunFailed("it broke\nsomewhere"),
            3,
            ["emuml: it broke", "  somewhere", "emuml: what was done is kept: emuml report "],
        ),
        (ContractError("no"), 3, ["emuml: no"]),
        (Diverged("worker-1", 3, "effects", "a", "b"), 1, ["emuml: replay of worker-1 diverged"]),
        (KeyboardInterrupt(), 130, ["emuml: interrupted"]),
        (
            ZeroDivisionError("oh"),
            3,
            ["Traceback", "emuml: a mistake in emuml or in an extension: ZeroDivisionError: oh"],
        ),
    ],
)
def test_exit_status_and_line_of_each_sort_of_error(
    error: BaseException,
    expected_status: int,
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(emuml, "run", fail, raising=False)
    assert status(["run", str(EXAMPLE), "--out", str(tmp_path / "run")]) == expected_status
    lines = capsys.readouterr().err.splitlines()
    assert all(any(line.startswith(start) for line in lines) for start in expected)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "one"
    assert status(["run", str(EXAMPLE), "rounds=5", "cluster.workers=15", "--out", str(folder)]) == 0
    return folder


def test_run_leaves_the_run_directory_of_the_readme(run_folder: Path) -> None:
    expected = {"config.yaml", "inputs", "provenance.json", "metrics.csv", "trace", "parameters.npy", "report.html"}
    assert expected <= {path.name for path in run_folder.iterdir()}
    assert (run_folder.parent / "latest").resolve() == run_folder.resolve()


def test_json_is_exactly_one_object_with_the_pinned_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", str(EXAMPLE), "rounds=3", "cluster.workers=15", "--out", str(tmp_path / "run"), "--json"]
    assert status(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    printed = json.loads(out, parse_constant=pytest.fail)
    pinned = {"parameters_sha256", "duration_s", "wall_s", "rounds", "final", "events", "run_dir", "provenance"}
    assert pinned <= printed.keys()
    assert printed["rounds"] == 3
    assert printed["run_dir"] == str(tmp_path / "run")


def test_a_run_directory_is_replayable_from_its_own_configuration(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["run", str(run_folder / "config.yaml"), "--out", str(tmp_path / "again"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    first = json.loads((run_folder / "summary.json").read_text())
    assert again["parameters_sha256"] == first["parameters_sha256"]


def test_replay_says_that_parameters_are_equal(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["replay", str(run_folder)]) == 0
    assert "replayed 5 rounds" in capsys.readouterr().out


def test_replay_of_other_parameters_is_a_violated_property(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    import numpy as np

    copy = shutil.copytree(run_folder, tmp_path / "copy")
    parameters = np.load(copy / "parameters.npy")
    parameters[0] = np.nextafter(parameters[0], np.inf)
    np.save(copy / "parameters.npy", parameters)
    assert status(["replay", str(copy)]) == 1
    assert "diverged" in capsys.readouterr().err


def test_report_is_made_again_from_the_folder(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (run_folder / "report.html").read_text()
    (run_folder / "report.html").unlink()
    assert status(["report", str(run_folder)]) == 0
    assert capsys.readouterr().out == f"report: {run_folder / 'report.html'}\n"
    assert (run_folder / "report.html").read_text() == before


def test_an_existing_run_is_not_written_over(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["run", str(EXAMPLE), "--out", str(run_folder)]) == 2
    assert "already holds a run" in capsys.readouterr().err
