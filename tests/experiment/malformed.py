"""Real files with a mistake, given to the real command line: what it prints, and that nothing is started or left."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from emuml.cli.main import status

GOOD = """\
workload:
  kind: logistic-regression
  data: mine.npz
protocol:
  kind: gradient-coding
  code: {kind: fractional-repetition, replication: 2}
  collect: 4
cluster:
  workers: 6
  compute: {kind: shifted-exponential, shift_s: 0.05, mean_s: 0.5}
rounds: 3
seed: 7
"""

STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "socket.bind", "socket.connect"}
"""What the interpreter says of itself when a process or a connection is begun."""
started: list[str] = []
sys.addaudithook(lambda event, _: started.append(event) if event in STARTS else None)


class Case(NamedTuple):
    """What is changed in the good file, the arguments, and the lines that are printed; they begin after ``emuml: ``."""

    changes: dict[str, str]
    said: list[str]
    arguments: tuple[str, ...] = ()


def case(said: str | list[str], changes: dict[str, str] | None = None, *arguments: str) -> Case:
    return Case(changes or {}, [said] if isinstance(said, str) else said, arguments)


EARTHQUAKE = """\
from dataclasses import dataclass
from emuml.cluster.faults import Fault

@dataclass(frozen=True)
class Earthquake(Fault):
    at_s: float
"""
"""A fault that no engine can execute."""


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that experiments name, where the command runs."""
    draws = np.random.default_rng(5)
    X, y = draws.normal(size=(40, 2)), np.arange(40) % 2
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    np.savez(tmp_path / "half.npz", X=X)
    np.savez(tmp_path / "three.npz", X=X, y=np.arange(40) % 3)
    np.savez(tmp_path / "hole.npz", X=np.where(np.arange(80).reshape(40, 2) == 2, np.nan, X), y=y)
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "faults.yaml").write_text("[]\n")
    (tmp_path / "strange.py").write_text(EARTHQUAKE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delenv("EMUML_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(changes: dict[str, str]) -> str:
    text = GOOD
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def check(given: Case, folder: Path, capfd: pytest.CaptureFixture[str], *options: str) -> str:
    """Run the case, and return what it printed; nothing may be started or left behind."""
    (folder / "exp.yaml").write_text(written(given.changes))
    before = sorted(folder.iterdir())
    started.clear()
    assert status(["run", "exp.yaml", *given.arguments, *options]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert sorted(folder.iterdir()) == before  # no run directory
    assert started == []
    lines = err.splitlines()
    assert [line[: len(f"emuml: {said}")] for line, said in zip(lines, given.said, strict=True)] == [
        f"emuml: {said}" for said in given.said
    ]
    return err
