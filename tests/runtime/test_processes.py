"""Nodes as processes of their own: how they start, what they hold, how they end, and that nothing is left behind."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import emuml
from emuml.errors import NodeFailed, NodeLost
from emuml.protocols.gradient_coding import Uncoded
from emuml.runtime.coordinator import RemoteError
from tests.runtime.processes import DEADLINE_S, experiment, kill, living, over_tcp, pid_of, run_of, until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("victims", [["worker-4"], ["worker-0", "worker-4", "worker-8"]])
def test_kill_9_of_workers_loses_nothing_while_every_group_lives(tmp_path: Path, victims: list[str]) -> None:
    folder = tmp_path / "a folder with spaces"
    result = over_tcp(experiment(), folder, 5, lambda: kill(folder, *victims))
    assert result.rounds == 40
    assert result.parameters_sha256 == emuml.run(experiment()).parameters_sha256
    assert sorted(sentence.partition(" at t=")[0] for sentence in result.lost) == [
        f"{victim} (life 1) killed by SIGKILL" for victim in victims
    ]
    assert set(result.metrics["decode_error"][1:]) == {0.0}
    assert result.metrics["down"][-1] == len(victims)
    assert emuml.replay(folder).parameters_sha256 == result.parameters_sha256


def test_kill_9_of_a_whole_group_is_an_error_that_is_logged(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = over_tcp(experiment(), folder, 5, lambda: kill(folder, "worker-3", "worker-4", "worker-5"))
    assert result.rounds == 40
    errors, lost = result.metrics["decode_error"], result.metrics["lost_rounds"]
    assert set(errors[1:5]) == {0.0}
    assert errors[-1] > 0
    assert lost[-1] > 0
    assert len(result.lost) == 3
    assert emuml.replay(result).parameters_sha256 == result.parameters_sha256


def test_kill_9_of_the_server_ends_the_run(tmp_path: Path) -> None:
    folder, runs = tmp_path / "run", []

    def act() -> None:
        runs.append(run_of(pid_of(folder, "server-0")))
        kill(folder, "server-0")

    with pytest.raises(NodeLost) as caught:
        over_tcp(experiment(workers=3, rounds=1_000_000), folder, 5, act)
    assert (caught.value.node, caught.value.reason) == ("server-0", "killed by SIGKILL")
    assert living(runs[0]) == []
    assert len((folder / "metrics.csv").read_text().splitlines()) >= 6


LAUNCHER = """
import sys
from pathlib import Path
import emuml
from tests.runtime.processes import experiment

try:
    emuml.run(experiment(workers=3, rounds=1_000_000), "tcp", out=Path(sys.argv[1]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@contextlib.contextmanager
def launched(script: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A program that runs an experiment; its process is gone afterwards."""
    command = [sys.executable, "-c", script, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def rows_of(folder: Path) -> int:
    path = folder / "metrics.csv"
    return len(path.read_text().splitlines()) if path.is_file() else 0


@pytest.mark.parametrize("moment", ["starting", "running"])
def test_sigkill_of_the_launcher_leaves_no_process(tmp_path: Path, moment: str) -> None:
    folder = tmp_path / "run"
    with launched(LAUNCHER, folder) as process:
        if moment == "running":
            until(lambda: rows_of(folder) > 5, "rounds")
        last = folder / "nodes/worker-2.1/pid"
        until(lambda: last.is_file() and last.read_text(), "processes")
        run = run_of(pid_of(folder, "worker-1"))
        assert len(living(run)) == 4
        process.kill()
        process.wait()
        until(lambda: living(run) == [], "the end of all nodes")


def test_ctrl_c_keeps_what_was_done(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with launched(LAUNCHER, folder) as process:
        until(lambda: rows_of(folder) > 5, "rounds")
        run = run_of(pid_of(folder, "worker-1"))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE_S)
    assert (out, err, process.returncode) == ("interrupted\n", "", 0)
    assert living(run) == []
    rounds = rows_of(folder) - 2  # without the head and the parameters before the first round
    again = emuml.replay(folder)
    assert again.rounds >= rounds
    assert (folder / "trace").stat().st_size > 1000


STUCK = """
import sys
from functools import partial
from pathlib import Path
from emuml.runtime.settings import RuntimeSettings
from emuml.testing.running import run_nodes
from tests.runtime.nodes import Player, Stuck

nodes = {"server-0": ("server", Player), "worker-0": ("worker", Stuck)}
try:
    run_nodes(nodes, "tcp", runtime=RuntimeSettings(drain_s=1e6, detector="wan"), folder=Path(sys.argv[1]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_a_second_ctrl_c_kills_what_does_not_end(tmp_path: Path) -> None:
    log, journal = tmp_path / "nodes/worker-0.1/log", tmp_path / "nodes/server-0.1/journal"
    with launched(STUCK, tmp_path) as process:
        until(lambda: log.is_file() and "stuck" in log.read_text() and journal.is_file(), "a stuck node")
        run, server = run_of(pid_of(tmp_path, "worker-0")), pid_of(tmp_path, "server-0")
        process.send_signal(signal.SIGINT)
        until(lambda: server not in living(run), "the end of the server")
        assert living(run) == [pid_of(tmp_path, "worker-0")]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE_S)
    assert (out, err, process.returncode) == ("interrupted\n", "", 0)
    assert living(run) == []


def test_a_node_that_raises_tells_where_and_how_to_see_it_again(tmp_path: Path) -> None:
    folder = tmp_path / "the run"
    # Uncoded, because a replica that answers first would cancel the task whose end raises.
    given = experiment(workers=3, worker="FaultyWorker", code=Uncoded())
    with pytest.raises(NodeFailed) as caught:
        emuml.run(given, "tcp", out=folder)
    error, cause = caught.value, caught.value.__cause__
    assert (error.node, error.incarnation, error.event) == ("worker-1", 1, "on_computed('gradient')")
    assert error.replay == f"emuml replay '{folder}'"
    assert isinstance(cause, RemoteError)
    assert (cause.error, cause.text) == ("FloatingPointError", "a gradient exploded")
    assert "nodes.py" in cause.traceback
    assert "raise FloatingPointError" in error.__notes__[0]
    with pytest.raises(NodeFailed) as again:
        emuml.replay(folder)
    assert isinstance(again.value.__cause__, FloatingPointError)
    assert again.value.args[:4] == error.args[:4]
