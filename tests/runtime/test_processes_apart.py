"""Node processes from start to end: what fails by name, what they load, where the secret is, and who comes back."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.errors import NodeFailed, NodeLost, RunFailed, Timeout, UserError
from emuml.outcome import Run
from emuml.protocols.gradient_coding import Uncoded
from emuml.runtime.deployment import call_spec
from emuml.runtime.settings import RuntimeSettings
from emuml.spec import Inputs
from emuml.testing.running import run_nodes
from emuml.workloads import LogisticRegression
from tests.runtime.nodes import Altered, Lean, Player, Thrower, Unborn
from tests.runtime.processes import experiment, over_tcp, pid_of

pytestmark = pytest.mark.slow


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
