"""Nodes as processes of their own: how they start, what they hold, how they end, and that nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, Constant, ShiftedExponential
from emuml.errors import NodeFailed, NodeLost, RunFailed, Timeout, UserError
from emuml.experiment.experiment import Experiment
from emuml.experiment.result import Result
from emuml.outcome import Run
from emuml.protocols.gradient_coding import FractionalRepetition, Uncoded
from emuml.runtime.coordinator import RemoteError
from emuml.runtime.deployment import call_spec
from emuml.runtime.settings import RuntimeSettings
from emuml.spec import Inputs
from emuml.testing.running import run_nodes
from emuml.workloads import LogisticRegression
from tests.runtime.nodes import Altered, Lean, Player, Thrower, Unborn

pytestmark = pytest.mark.slow

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
from tests.runtime.test_processes import experiment

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


def ran(worker: Callable[[], Any], **options: Any) -> Run:
    nodes = {
        "server-0": ("server", partial(Player, 50)),
        "worker-0": ("worker", Player),
        "worker-1": ("worker", worker),
    }
    return run_nodes(nodes, "tcp", **options)


def test_the_reason_goes_without_a_folder_too() -> None:
    run = ran(Thrower)
    assert isinstance(run.error, NodeFailed)
    assert run.error.replay == ""
    assert "LookupError: the ball is lost" in str(run.error)


@pytest.mark.parametrize(("how", "reason"), [("raise", "exit status 1"), ("exit", "exit status 7")])
def test_a_node_that_cannot_start_is_named_with_its_last_lines(how: str, reason: str) -> None:
    run = ran(partial(Unborn, how))
    assert isinstance(run.error, NodeLost)
    assert (run.error.node, run.error.reason) == ("worker-1", reason)
    assert ("RuntimeError: no such data set" if how == "raise" else "a line before the end") in str(run.error)


def test_the_start_deadline_names_who_is_missing() -> None:
    run = ran(partial(Unborn, "hang"), runtime=RuntimeSettings(start_deadline_s=3.0))
    assert isinstance(run.error, Timeout)
    assert "of 3 nodes joined" in str(run.error)
    assert "worker-1: a line before the end" in str(run.error)


def test_a_python_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    run = ran(Player)
    assert isinstance(run.error, RunFailed)
    assert "server-0 cannot be started" in str(run.error)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    run = ran(Player)
    assert isinstance(run.error, NodeLost)
    assert "exit status 1" in str(run.error)


def test_factories_must_be_importable() -> None:
    for factory in (lambda: Player(), partial(Player, rallies=3)):
        with pytest.raises(UserError, match="cannot import"):
            call_spec(factory, Inputs())
    assert call_spec(partial(Player, 3), Inputs()) == {"call": "tests.runtime.nodes:Player", "arguments": [3]}


def test_node_processes_are_lean_and_unpickle_nothing(tmp_path: Path) -> None:
    given = experiment(workers=3, rounds=3, server="WeighedServer", worker="WeighedWorker")
    result = emuml.run(given, "tcp", out=tmp_path / "run")
    reports = [item for item in result.run.logs if "heavy" in item.metrics]
    assert {str(item.node) for item in reports} == {"server-0", "worker-0", "worker-1", "worker-2"}
    assert {(item.metrics["heavy"], item.metrics["unpickled"]) for item in reports} == {("", "")}

    run = run_nodes({"server-0": ("server", Lean)}, "tcp")
    assert [dict(item.metrics) for item in run.logs] == [{"heavy": "", "unpickled": ""}]


_unpickled: list[str] | None = None


def _audit(event: str, details: Any) -> None:
    if event == "pickle.find_class" and _unpickled is not None:
        _unpickled.append(str(details))


sys.addaudithook(_audit)


def test_the_launcher_unpickles_nothing() -> None:
    import pickle

    global _unpickled
    _unpickled = []
    try:
        pickle.loads(pickle.dumps(np.dtype("f8")))
        assert _unpickled, "the hook works"
        _unpickled.clear()
        assert ran(Player).stopped == "enough"
        assert _unpickled == []
    finally:
        _unpickled = None


def test_the_secret_stays_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    token_hex = secrets.token_hex

    def token(n_bytes: int) -> str:
        made.append(token_hex(n_bytes))
        return made[-1]

    monkeypatch.setattr(secrets, "token_hex", token)
    seen: list[bytes] = []

    def look() -> None:
        for node in ("server-0", "worker-0", "worker-2"):
            process = Path(f"/proc/{pid_of(tmp_path / 'run', node)}")
            seen.extend([(process / "cmdline").read_bytes(), (process / "environ").read_bytes()])

    over_tcp(experiment(workers=3, rounds=20), tmp_path / "run", 5, look)
    secret = max(made, key=len)
    assert len(secret) == 40
    assert len(seen) == 6
    assert f"EMUML_PARENT={os.getpid()}".encode() in seen[1].split(b"\0")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 15
    for place in [*seen, *(path.read_bytes() for path in files)]:
        assert secret.encode() not in place
        assert bytes.fromhex(secret) not in place


def test_a_stopped_process_is_down_and_comes_back(tmp_path: Path) -> None:
    """SIGSTOP for longer than the detector's patience: DOWN, then UP in a new session; nobody is replaced."""
    states: list[str] = []

    def watch(item: Any) -> None:
        metrics = item.metrics
        if metrics.get("returns") == 5:
            os.kill(pid_of(tmp_path, "worker-0"), signal.SIGSTOP)
        if str(item.node) == "server-0" and metrics.get("peer") == "worker-0":
            states.append(str(metrics["state"]))
            if metrics["state"] == "down":
                os.kill(pid_of(tmp_path, "worker-0"), signal.SIGCONT)

    from emuml.node import NodeId
    from emuml.roster import Roster
    from emuml.runtime.deployment import Job, deploy

    ids = (NodeId("server", 0), NodeId("worker", 0))
    inputs = Inputs()
    nodes = {ids[0]: ("server", Returned), ids[1]: ("worker", Player)}
    job = Job(
        nodes,
        Roster(ids, 0),
        Cluster(workers=1),
        lambda id: call_spec(nodes[id][1], inputs),
        inputs,
        log_sinks=[watch],
    )
    run = deploy(job, RuntimeSettings(detector="lan"), tmp_path)
    assert run.error is None
    assert run.stopped == "it came back"
    assert "down" in states
    assert states[-1] == "up"
    assert run.ends == []


class Returned(Player):
    """Stops when a peer that was down plays again."""

    def on_start(self, ctx: Any, saved: Any) -> None:
        self.was_down = False
        super().on_start(ctx, saved)

    def on_message(self, ctx: Any, sender: Any, message: Any) -> None:
        super().on_message(ctx, sender, message)
        if self.was_down:
            ctx.stop("it came back")

    def on_peer(self, ctx: Any, peer: Any, state: Any) -> None:
        self.was_down = self.was_down or state.value == "down"
        super().on_peer(ctx, peer, state)


def test_thirty_processes_with_crashes_equal_the_emulator() -> None:
    from emuml import FaultPlan
    from emuml.cluster.faults import Crash

    crashes = [
        Crash("worker-4", after=("round", 10), restart_after=("round", 16)),
        Crash("worker-5", after=("round", 10)),
        Crash("worker-29", after=("round", 30), restart_after=("round", 31)),
    ]
    given = emuml.Experiment(
        workload=LogisticRegression(data="breast-cancer"),
        protocol=Altered(code=Uncoded()),
        cluster=Cluster(workers=30, compute=ShiftedExponential(shift_s=0.002, mean_s=0.005)),
        rounds=100,
        seed=7,
        faults=FaultPlan(crashes),
    )
    deployed = emuml.run(given, "tcp")
    assert deployed.parameters_sha256 == emuml.run(given).parameters_sha256
    assert emuml.replay(deployed).parameters_sha256 == deployed.parameters_sha256
    assert len(deployed.lost) == 3
    assert deployed.run.statistics["max_rss_bytes"] < 60e6
