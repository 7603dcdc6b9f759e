"""Runs with a process for each node, and the means to find, watch and kill them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emuml
from emuml.cluster import Cluster, Constant
from emuml.experiment.experiment import Experiment
from emuml.experiment.result import Result
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.workloads import LogisticRegression
from tests.runtime.nodes import Altered

DEADLINE_S = 60.0


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for something outside of this process; the deadline only fails."""
    ends = time.monotonic() + DEADLINE_S
    while time.monotonic() < ends:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"in vain: {what}")


def living(run: str) -> list[int]:
    """Return the processes of a run, by what is in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"EMUML_RUN={run}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def pid_of(folder: Path, node: str, incarnation: int = 1) -> int:
    return int((folder / "nodes" / f"{node}.{incarnation}" / "pid").read_text())


def run_of(pid: int) -> str:
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(v.partition(b"=")[2].decode() for v in variables if v.startswith(b"EMUML_RUN="))


def experiment(workers: int = 9, rounds: int = 40, **protocol: Any) -> Experiment:
    return emuml.Experiment(
        workload=LogisticRegression(data="breast-cancer"),
        protocol=Altered(**{"code": FractionalRepetition(replication=3), **protocol}),
        cluster=Cluster(workers=workers, compute=Constant(seconds=0.005)),
        rounds=rounds,
        seed=3,
    )


def over_tcp(given: Experiment, folder: Path, at_round: int = 0, act: Callable[[], Any] = int) -> Result:
    """Run, and do something from outside when a round has been closed."""

    def progress(row: dict[str, Any]) -> None:
        if row["round"] == at_round:
            act()

    return emuml.run(given, "tcp", out=folder, progress=progress)


def kill(folder: Path, *nodes: str) -> None:
    for node in nodes:
        os.kill(pid_of(folder, node), signal.SIGKILL)
