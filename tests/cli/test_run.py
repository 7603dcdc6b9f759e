"""``emuml run`` at its edges: a full disk, a training that diverges, two runs at one moment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from emuml.cli.main import status

EXAMPLE = Path(__file__).parents[2] / "examples" / "erasurehead.yaml"
SMALL = ["rounds=5", "cluster.workers=6", "protocol.collect=4"]


def test_a_full_disk_is_one_line_and_what_was_written_before_is_kept(tmp_path: Path) -> None:
    # The kernel refuses to let any file grow beyond the limit, as a full disk does.
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000));"
        "from emuml.cli.main import status; sys.exit(status(sys.argv[1:]))"
    )
    folder = tmp_path / "run"
    command = [sys.executable, "-c", code, "run", str(EXAMPLE), "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 3
    said = done.stderr.splitlines()
    assert said[0].startswith(f"emuml: cannot write {folder}: File too large; what was written before is kept")
    assert "Traceback" not in done.stderr
    assert (folder / "config.yaml").is_file()
    assert (folder / "trace").stat().st_size > 10_000


def test_a_training_that_diverges_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    diverging = ["workload.kind=linear-regression", "workload.data=diabetes", "rounds=400"]
    optimizer = "workload.optimizer={kind: gradient-descent, rate: 1e6}"
    assert status(["run", str(EXAMPLE), *SMALL, *diverging, optimizer, "--out", str(tmp_path / "run")]) == 0

    assert "diverged" in capsys.readouterr().out
    assert "diverged" in (tmp_path / "run" / "report.html").read_text()


def test_two_runs_at_one_moment_get_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "emuml.cli.main", "run", str(EXAMPLE), *SMALL, "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for one in both:
        assert one.communicate()[1] == ""
        assert one.returncode == 0
    folders = sorted(path for path in (tmp_path / "runs").iterdir() if not path.is_symlink())
    assert len(folders) == 2
    assert all((folder / "summary.json").is_file() for folder in folders)


def test_the_tier_is_chosen_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for tier in ("event", "array"):
        assert status(["run", str(EXAMPLE), *SMALL, "--json", "--tier", tier, "--out", str(tmp_path / tier)]) == 0
        found.append(json.loads(capsys.readouterr().out))

    assert [one["tier"] for one in found] == ["event", "array"]
    assert found[0]["parameters_sha256"] == found[1]["parameters_sha256"]
    assert found[0]["final"] == found[1]["final"]


def test_a_plan_in_the_terminal_names_the_tier(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["run", str(EXAMPLE), *SMALL, "--plan"]) == 0
    assert "event tier (about 60 messages)" in capsys.readouterr().out


def test_a_tier_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["run", str(EXAMPLE), "--tier", "arry"]) == 2
    assert "--tier: got 'arry'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ("[{kind: crash, node: worker-99, at_s: 1}]", "faults[0].node: 'worker-99' is not in the cluster"),
        (
            "[{kind: crash, node: worker-9, at_s: 1}, {kind: crash, node: worker-9, at_s: 2}]",
            "faults[1].at_s: worker-9 crashes at 2 s, but is down since 1 s (faults[0])",
        ),
    ],
)
def test_faults_that_cannot_be_executed_are_refused_in_one_line_before_anything_runs(faults, said, tmp_path, capsys):
    folder = tmp_path / "run"
    assert status(["run", str(EXAMPLE), f"faults={faults}", "--out", str(folder)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not folder.exists()
