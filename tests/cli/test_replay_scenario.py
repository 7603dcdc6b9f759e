"""``emuml replay FILE.json``: the scenario of a failed test of a user's own file, tried again from a shell."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import emuml.testing as et
from emuml.cli.main import status

REPOSITORY = Path(__file__).parents[2]
KEEPER = (REPOSITORY / "tests" / "testing" / "keeper.py").read_text()
TEST = '''
import emuml.testing as et
from keeper import Hasty, Keeper, durable, nodes

@et.check(nodes({keeper}), runs=50, faults=et.faults(keep={{"client"}}))
def test_durable(run):
    """Say that the client's number is durable."""
    durable(run)

@et.check(nodes(), runs=1)
def test_wrong(run):
    run.always(lambda nodes: 1 // 0, "divides")
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's folder: nodes, and a test that finds a planted bug."""
    (tmp_path / "keeper.py").write_text(KEEPER)
    (tmp_path / "test_keeper.py").write_text(TEST.format(keeper="Hasty"))
    monkeypatch.chdir(tmp_path)
    paths, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = paths
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def scenario(folder: Path, test: str = "test_keeper.py::test_durable", **changes: object) -> str:
    """Write a scenario that the planted bug fails, and return its path."""
    fault = et.CrashFault(node="keeper-0", at_s=0.5, restart_after_s=0.5)
    et.Scenario(faults=(fault,), **changes).to_file(folder / "failed.json", test)
    return "failed.json"


@pytest.mark.slow
def test_what_a_failing_test_prints_replays_in_a_shell(folder: Path) -> None:
    def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)

    emuml = "-c", "from emuml.cli.main import main; main()"  # what the installed command does
    failed = shell("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_keeper.py::test_durable")
    assert failed.returncode == 1, failed.stdout
    (command,) = set(re.findall(r"replay: (emuml replay \S+)", failed.stdout))
    (stored,) = Path(".emuml/failures").iterdir()
    assert json.loads(stored.read_text())["test"] == "test_keeper.py::test_durable"

    again = shell(*emuml, *shlex.split(command)[1:])
    assert (again.returncode, again.stderr) == (1, "")
    assert "X life 1 crashed" in again.stdout
    assert "always: what was acknowledged is there" in again.stdout

    (folder / "test_keeper.py").write_text(TEST.format(keeper="Keeper"))
    mended = shell(*emuml, *shlex.split(command)[1:])
    assert (mended.returncode, mended.stderr) == (0, "")
    assert mended.stdout.startswith("no oracle objects: 1 fault + 0 deviations")


def test_a_violation_is_drawn_and_exits_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["replay", scenario(folder)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("1 fault + 0 deviations\n\n   t/s  client-0")
    assert "def test_durable_" in out


def test_all_of_a_run_can_be_drawn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "test_keeper.py").write_text(TEST.format(keeper="Keeper"))
    assert status(["replay", scenario(folder), "--diagram"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("   t/s  client-0")
    assert "stop" in out
    assert "no oracle objects" in out


def test_a_test_is_found_from_anywhere_and_can_be_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(folder / scenario(folder))
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert status(["replay", path]) == 1

    nameless = str(folder / scenario(folder, test=""))
    assert status(["replay", nameless]) == 2
    assert "does not say which test it is of; --test FILE.py::NAME" in capsys.readouterr().err
    assert status(["replay", nameless, "--test", "test_keeper.py::test_durable"]) == 1


def test_faults_that_the_test_does_not_allow_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    et.Scenario(faults=(et.CrashFault(node="client-0", at_s=1, restart_after_s=1),)).to_file("s.json", "")
    assert status(["replay", "s.json", "--test", "test_keeper.py::test_durable"]) == 0
    assert "1 of the scenario's faults exceed the budget" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("gone.py::test_it", "emuml: gone.py: there is no such file; --test FILE.py::NAME says"),
        ("test_keeper.py::test_durabel", "there is no test 'test_durabel'"),
        ("test_keeper.py::test_durabel", "did you mean 'test_durable'?"),
        ("test_keeper.py", "emuml: test: got 'test_keeper.py'; allowed: FILE.py::NAME"),
        ("keeper.py::durable", "tests made by et.check: none"),
        ("broken.py::test_it", "it cannot be imported: ZeroDivisionError: "),
        ("test_keeper.py::test_wrong", "the test is wrong: the oracle 'divides' raised ZeroDivisionError"),
        ("failed.json::test_it", "this is no Python file"),
    ],
)
def test_what_cannot_be_rebuilt_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], test: str, expected: str
) -> None:
    (folder / "broken.py").write_text("1 / 0")
    assert status(["replay", scenario(folder, test)]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["none.json"], "No such file or directory"),
        (["bad.json"], "bad.json: wrokers"),
        (["empty.json"], "empty.json: "),
        ([".", "--diagram"], "--test and --diagram are of scenarios"),
    ],
)
def test_bad_input_exits_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    (folder / "bad.json").write_text('{"format": 1, "wrokers": 2}')
    (folder / "empty.json").write_text("")
    assert status(["replay", *arguments]) == 2
    assert expected in capsys.readouterr().err


def test_a_test_in_a_package_is_imported_by_its_name(folder: Path) -> None:
    package = folder / "checks"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "subject.py").write_text(KEEPER)
    (package / "test_it.py").write_text(TEST.format(keeper="Hasty").replace("from keeper", "from .subject"))
    assert status(["replay", scenario(folder, "checks/test_it.py::test_durable")]) == 1


def test_a_test_within_a_function_is_replayed_by_itself_only(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    from keeper import Hasty, durable, nodes  # type: ignore[import-not-found]

    test = et.check(nodes(Hasty), runs=50, faults=et.faults(keep={"client"}), store=folder)(durable)
    with pytest.raises(et.CheckFailed, match=r"replay: durable\.replay\("):
        test()
    (stored,) = folder.glob("durable-????.json")
    assert "test" not in json.loads(stored.read_text())
