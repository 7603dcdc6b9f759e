"""``emuml doctor``: each trouble is made for real, and must be found, explained and given a way out."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emuml import _kernels
from emuml.cli.doctor import WIDTH, listing
from emuml.cli.main import status
from emuml.doctor.build import SWITCHES, _numbers, dependencies, switches
from emuml.doctor.checks import CHECKS
from emuml.doctor.data import data_folder, scikit_learn
from emuml.doctor.finding import Finding, examined, size
from emuml.doctor.limits import NODES, TASKS

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def doctor(
    before: str = "", home: Path = ROOT, folder: Path | None = None, *arguments: str, **environment: str
) -> tuple[int, dict[str, Any]]:
    """Run the command in a process of its own, after some Python, and return its status and findings by name."""
    code = f"{before}\nfrom emuml.cli.main import main\nmain(['doctor', '--json'])"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EMUML_")}
    done = subprocess.run(
        [sys.executable, *arguments, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder or home,
        env={**clean, "PYTHONPATH": str(home), **environment},
    )
    assert done.stderr == ""
    printed = json.loads(done.stdout)
    found = {item["name"]: item for item in printed["checks"]}
    assert all(item["why"] for item in found.values())
    assert all(bool(item["fix"]) == (item["state"] != "ok") for item in found.values())
    assert done.returncode == (1 if printed["state"] == "failed" else 0)
    return done.returncode, found


def test_all_is_examined_and_told_within_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    status(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    names = [name for checks in CHECKS.values() for name in checks]
    assert all(any(re.match(rf"  (ok|warning|failed) +{name}", line) for line in lines) for name in names)
    assert lines[-1].startswith(f"{len(names)} checks: ")
    assert [line for line in lines if len(line) > WIDTH and " " in line.strip()] == []


def test_a_finding_that_is_not_well_says_why_it_matters_and_what_to_do() -> None:
    found = {"machine": {"open files": Finding("failed", "8 allowed", "runs open 200", "ulimit -n 800")}}
    assert listing(found).splitlines() == [
        "machine:",
        "  failed   open files      8 allowed",
        "                           why: runs open 200",
        "                           fix: ulimit -n 800",
    ]


def test_a_check_that_breaks_has_failed() -> None:
    def broken() -> Finding:
        """What it is for."""
        raise ZeroDivisionError("oh")

    found = examined(broken)
    assert (found.state, found.found, found.why) == ("failed", "ZeroDivisionError: oh", "What it is for.")


@pytest.mark.parametrize(("bytes_", "said"), [(0, "0 B"), (1023, "1.02e+03 B"), (1024, "1 KiB"), (5 << 40, "5 TiB")])
def test_sizes(bytes_: int, said: str) -> None:
    assert size(bytes_) == said


# The build


def test_every_variable_of_the_sources_is_known() -> None:
    sources = [*ROOT.glob("emuml/**/*.py"), ROOT / "setup.py"]
    named = {name for path in sources for name in re.findall(r"\bEMUML_[A-Z]+(?:_[A-Z]+)*\b", path.read_text())}
    assert named - set(SWITCHES) == set()


def copied(folder: Path) -> Path:
    """Copy the package, kernels included, to a folder that counts as a source tree."""
    shutil.copytree(ROOT / "emuml", folder / "emuml", ignore=shutil.ignore_patterns("__pycache__", "*.c"))
    shutil.copy(ROOT / "setup.py", folder)
    for library in folder.glob("emuml/_kernels/*.so"):
        library.touch()  # built just now
    return folder


def test_reference_kernels_are_a_warning(tmp_path: Path) -> None:
    _, found = doctor(home=copied(tmp_path), EMUML_REFERENCE="1")
    assert found["kernels"]["state"] == "warning"
    assert found["kernels"]["fix"] == "unset EMUML_REFERENCE"
    assert "EMUML_REFERENCE=1: readable twins" in found["switches"]["found"]


def test_the_pure_event_core_is_a_warning(tmp_path: Path) -> None:
    _, found = doctor(home=copied(tmp_path), EMUML_PURE="1")
    assert found["kernels"]["state"] == "warning"
    assert found["kernels"]["fix"] == "unset EMUML_PURE"


def test_missing_kernels_are_a_warning_with_the_command_that_builds_them(tmp_path: Path) -> None:
    home = copied(tmp_path)
    for library in home.glob("emuml/_kernels/draws*.so"):
        library.unlink()
    _, found = doctor(home=home)
    assert found["kernels"]["state"] == "warning"
    assert found["kernels"]["found"].startswith("not compiled: draws")
    assert found["kernels"]["fix"] == f"cd {home} && {sys.executable} setup.py build_ext --inplace --force"
    assert str(home / "emuml") in found["version"]["found"]

    _, found = doctor(home=home, CC="no-such-compiler")
    assert "there is no C compiler 'no-such-compiler'" in found["kernels"]["found"]


def test_a_damaged_kernel_fails_with_what_the_loader_says(tmp_path: Path) -> None:
    home = copied(tmp_path)
    (library,) = home.glob("emuml/_kernels/draws*.so")
    library.write_bytes(b"no library")
    code, found = doctor(home=home)
    assert code == 1
    assert found["kernels"]["state"] == "failed"
    assert "draws" in found["kernels"]["found"]
    assert "file too short" in found["kernels"]["found"] or "invalid" in found["kernels"]["found"]
    assert found["kernels"]["fix"].endswith("setup.py build_ext --inplace --force")
    assert found["clock"]["state"] == "ok"  # the others go on


def test_a_kernel_older_than_its_source_is_a_warning(tmp_path: Path) -> None:
    home = copied(tmp_path)
    (library,) = home.glob("emuml/_kernels/decode*.so")
    os.utime(library, (1, 1))
    _, found = doctor(home=home)
    assert (found["kernels"]["state"], found["kernels"]["found"]) == ("warning", "older than their source: decode")


@pytest.mark.parametrize("header", ["philox.h", "queue.pxd"])
def test_kernels_older_than_a_header_are_a_warning(tmp_path: Path, header: str) -> None:
    home = copied(tmp_path)
    newest = max(library.stat().st_mtime for library in home.glob("emuml/_kernels/*.so"))
    os.utime(home / "emuml" / "_kernels" / header, (newest + 10, newest + 10))
    _, found = doctor(home=home)
    told = f"older than their source: {', '.join(_kernels.KERNELS)}"
    assert (found["kernels"]["state"], found["kernels"]["found"]) == ("warning", told)


def test_a_misspelt_variable_is_told_with_the_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMUML_REFRENCE", "1")
    found = switches()
    assert found.state == "warning"
    assert found.found == "EMUML_REFRENCE is unknown; did you mean 'EMUML_REFERENCE'?"


def test_another_copy_on_the_path_or_in_the_folder_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "emuml").mkdir()
    (tmp_path / "emuml" / "__init__.py").write_text("raise RuntimeError('the other one')\n")
    _, found = doctor(before=f"import emuml, sys; sys.path.append({str(tmp_path)!r})")
    assert found["other copies"]["state"] == "warning"
    assert str(tmp_path / "emuml") in found["other copies"]["found"]


def installed(folder: Path, *requires: str, version: str = "0.1.0") -> Path:
    """Write the metadata of an installed emuml that needs other things, and of two such things."""
    for name, of, lines in (
        ("emuml", version, [f"Requires-Dist: {line}" for line in requires]),
        ("old", "1.9.3", []),
        ("new", "2.10.0rc1", []),
    ):
        info = folder / f"{name}-{of}.dist-info"
        info.mkdir()
        text = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", f"Version: {of}", *lines, "", ""])
        (info / "METADATA").write_text(text)
    return folder


def test_old_and_missing_dependencies_fail_with_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path, "old>=1.10", "new>=2.9", "none-such>=3; extra == 'data'"))
    found = dependencies()
    assert (found.state, found.found) == ("failed", "old 1.9.3 (needs 1.10)")
    assert found.fix == f"{sys.executable} -m pip install --upgrade 'old>=1.10'"
    extras = CHECKS["build"]["extras"]()
    assert (extras.state, extras.found) == ("warning", "data: none-such is not installed")
    assert extras.fix.endswith("-m pip install 'emuml[data]'")


def test_metadata_of_another_version_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path, version="0.0.9"))
    found = CHECKS["build"]["version"]()
    assert found.state == "warning"
    assert "installed metadata are of version 0.0.9" in found.found


@pytest.mark.parametrize(("older", "newer"), [("1.9", "1.10"), ("1", "1.0.1"), ("2.0rc1", "2.1"), ("", "1")])
def test_versions_are_compared_by_number(older: str, newer: str) -> None:
    assert _numbers(older) < _numbers(newer)


def test_trailing_zeros_of_versions_do_not_count() -> None:
    assert _numbers("6.0") == _numbers("6")


# The machine

LIMIT = "import resource; resource.setrlimit(resource.{0}, ({1}, resource.getrlimit(resource.{0})[1]))"


def test_too_few_open_files_fail() -> None:
    code, found = doctor(before=LIMIT.format("RLIMIT_NOFILE", 64))
    assert code == 1
    assert found["open files"]["state"] == "failed"
    assert found["open files"]["found"].startswith("64 allowed")
    assert "ulimit -n" in found["open files"]["fix"]


def test_too_little_memory_fails() -> None:
    # Enough for Python and numpy with its threads, too little for a run.
    code, found = doctor(before=LIMIT.format("RLIMIT_AS", 200 << 20), OPENBLAS_NUM_THREADS="1")
    assert code == 1
    assert found["memory"]["state"] == "failed"
    assert "200 MiB allowed as address space" in found["memory"]["found"]


def test_too_few_processes_fail() -> None:
    """The limit does not bind the superuser, who therefore becomes somebody else."""
    code = f"""
import json, os
from dataclasses import asdict
from emuml.doctor.limits import processes
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(54321); os.setuid(54321)
{LIMIT.format("RLIMIT_NPROC", 5)}
print(json.dumps(asdict(processes())))
"""
    code = f"import resource\n{code}"  # while it can be read
    found = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT).stdout)
    assert found["state"] == "failed"
    assert re.fullmatch(r"-?\d+ more allowed", found["found"])
    assert int(found["found"].split()[0]) < 5  # the process itself counts
    assert str(TASKS) in found["why"]
    assert str(NODES) in found["why"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no process to cores")
def test_a_single_core_is_a_warning() -> None:
    _, found = doctor(before="import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])")
    assert found["cores"]["state"] == "warning"
    assert found["cores"]["found"].startswith("1 of ")


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_a_machine_without_loopback_fails() -> None:
    """A network of its own, whose loopback is down."""
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        pytest.skip("this user may not make a network of its own")
    command = [sys.executable, "-m", "emuml.cli.main", "doctor", "--json"]
    done = subprocess.run(
        ["unshare", "--net", *command], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    found = {item["name"]: item for item in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert found["loopback"]["state"] == "failed"
    assert found["loopback"]["found"].startswith("127.0.0.1: ")
    assert found["loopback, IPv6"]["state"] == "warning"
    assert found["node processes"]["state"] == "failed"


def test_node_processes_that_cannot_start_fail(tmp_path: Path) -> None:
    (tmp_path / "emuml").mkdir()
    (tmp_path / "emuml" / "__init__.py").write_text("raise RuntimeError('the other one')\n")
    code, found = doctor(folder=tmp_path, before=f"import sys; sys.path[:1] = [{str(ROOT)!r}]")
    assert code == 1
    assert found["node processes"]["state"] == "failed"
    assert "the other one" in found["node processes"]["found"]
    assert found["other copies"]["state"] == "warning"


@pytest.mark.parametrize("folder", ["/no/such/folder", "/proc"])
def test_a_folder_of_temporary_files_that_cannot_be_written_fails(folder: str) -> None:
    code, found = doctor(TMPDIR=folder)
    assert code == 1
    assert found["temporary files"]["state"] == "failed"
    assert f"TMPDIR={folder} cannot be written" in found["temporary files"]["found"]


def test_node_processes_really_answer() -> None:
    found = CHECKS["machine"]["node processes"]()
    assert (found.state, found.found.partition(" within")[0]) == ("ok", "two started and answered")


# Data


def test_a_data_folder_that_is_none_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMUML_DATA", "/no/such/folder")
    found = data_folder()
    assert (found.state, found.found) == ("failed", "EMUML_DATA names '/no/such/folder', which is no folder")


def test_the_data_folder_tells_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMUML_DATA", str(tmp_path))
    assert data_folder().state == "warning"
    assert "breast-cancer.npz" in data_folder().fix
    np.savez(tmp_path / "digits.npz", X=np.eye(2), y=np.array([0, 1]))
    assert (data_folder().state, data_folder().found) == ("ok", f"{tmp_path} holds digits")


def test_the_cache_of_scikit_learn_tells_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    assert scikit_learn().found.endswith(f"nothing that emuml knows is kept in {tmp_path}")
    (tmp_path / "covertype").mkdir()
    (tmp_path / "covertype" / "samples_py3").touch()
    assert scikit_learn().found.endswith(f"{tmp_path} holds covertype")


def test_limits_of_this_process_are_left_as_they_are() -> None:
    before = [resource.getrlimit(kind) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_NPROC)]
    for check in CHECKS["machine"].values():
        examined(check)
    kinds = (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_NPROC)
    assert [resource.getrlimit(kind) for kind in kinds] == before
