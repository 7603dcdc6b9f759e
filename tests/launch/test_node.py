"""The entry point of a node process: its spec, the node it builds, and the lifeline it hangs on."""

from __future__ import annotations

import dataclasses
import os
import select
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import emuml
from emuml.cluster import DelayTrace
from emuml.launch.node import factory_of
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.protocols.gradient_coding.server import Server
from emuml.protocols.gradient_coding.worker import Worker
from emuml.runtime.deployment import call_spec
from emuml.runtime.node_spec import NodeSpec, decode_spec, encode_spec
from emuml.runtime.settings import RuntimeSettings
from emuml.spec import Inputs, to_spec
from emuml.stopping import Rounds
from emuml.workloads import LogisticRegression
from tests.runtime.nodes import Player

DEADLINE_S = 60.0


def spec_of(folder: Path, node: str = "worker-1", inputs: Inputs | None = None, **fields: Any) -> NodeSpec:
    found = {
        "run": "run1",
        "node": node,
        "incarnation": 2,
        "secret": "ab" * 20,
        "coordinator": ("127.0.0.1", 4),
        "folder": str(folder),
        "ids": ["server-0", *(f"worker-{number}" for number in range(6))],
        "seed": 7,
        "stop": to_spec(Rounds(5), Inputs()),
        "settings": RuntimeSettings(time_scale=0.5, detector="lan"),
        "cores": 2,
        "unit_cost": 3.5,
        "compute": {},
        "triggers": [("round", 3)],
        "build": {},
        "versions": {"emuml": "1"},
        **fields,
    }
    (inputs or Inputs()).write(folder / "inputs")
    return NodeSpec(**found)


def test_a_spec_is_one_line_and_comes_back(tmp_path: Path) -> None:
    spec = spec_of(tmp_path / "with a\nnewline")
    line = encode_spec(spec)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    again = decode_spec(line)
    assert again == spec
    assert dataclasses.asdict(again.settings) == dataclasses.asdict(spec.settings)
    assert again.roster().stop == Rounds(5)
    assert str(again.id) == "worker-1"


def test_incarnations_share_a_store_and_nothing_else(tmp_path: Path) -> None:
    first, second = spec_of(tmp_path, incarnation=1), spec_of(tmp_path, incarnation=2)
    assert first.store_folder == second.store_folder
    assert first.own_folder != second.own_folder
    assert spec_of(tmp_path, "worker-2").store_folder != first.store_folder


def test_a_node_of_an_experiment_is_rebuilt_from_plain_data(tmp_path: Path) -> None:
    problem = LogisticRegression(data="breast-cancer").problem(7)
    protocol, inputs = GradientCoding(code=FractionalRepetition(replication=3)), Inputs()
    build = {"experiment": {"problem": to_spec(problem, inputs), "protocol": to_spec(protocol, inputs)}}
    spec = decode_spec(encode_spec(spec_of(tmp_path, inputs=inputs, build=build)))
    worker = factory_of(spec)()
    assert isinstance(worker, Worker)
    assert worker.code.assignment(worker.index) == (0, 1, 2)
    values = problem.initial + 0.25
    mine, theirs = (found.gradient(values, (0, 1), 6).run() for found in (problem, worker.workload))
    assert mine.tobytes() == theirs.tobytes()
    server = factory_of(msgspec.structs.replace(spec, node="server-0"))()
    assert isinstance(server, Server)
    assert server.stop == Rounds(5)


def test_a_bare_node_is_rebuilt_by_its_name_and_arguments(tmp_path: Path) -> None:
    inputs = Inputs()
    build = call_spec(partial(Player, 3, 8), inputs)
    first, second = (factory_of(spec_of(tmp_path, inputs=inputs, build=build))() for _ in range(2))
    assert isinstance(first, Player)
    assert (first.rallies, first.size) == (3, 8)
    assert first is not second


def test_arrays_of_a_law_come_through_the_folder(tmp_path: Path) -> None:
    from emuml.spec import from_spec

    inputs = Inputs()
    law = DelayTrace(np.arange(6.0).reshape(3, 2))
    spec = spec_of(tmp_path, inputs=inputs, compute=to_spec(law, inputs))
    assert len(encode_spec(spec)) < 4096
    assert from_spec(decode_spec(encode_spec(spec)).compute, spec.inputs()) == law


def entry(source: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


# PR_SET_PDEATHSIG does on Linux what the lifeline does everywhere; here the lifeline alone is tried.
WITHOUT_PDEATHSIG = """
import sys
from types import SimpleNamespace
from emuml.launch import node
node.ctypes = SimpleNamespace(CDLL=lambda name: SimpleNamespace(prctl=lambda *options: 0))
sys.exit(node.main())
"""


@pytest.mark.slow
def test_a_node_ends_when_its_lifeline_breaks(tmp_path: Path) -> None:
    """It cannot reach its coordinator for as long as the deadline lasts, so only the lifeline can end it."""
    settings = RuntimeSettings(dial_deadline_s=1e6)
    build = call_spec(Player, Inputs())
    compute = to_spec(emuml.cluster.Instant(), Inputs())
    process = entry(WITHOUT_PDEATHSIG)
    assert process.stdin is not None
    try:
        process.stdin.write(encode_spec(spec_of(tmp_path, settings=settings, build=build, compute=compute)))
        process.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
        process.stdin.close()
        assert process.wait(DEADLINE_S) == 3
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


PARENT = """
import os, subprocess, sys
stdin = os.open(sys.stdin.readline().strip(), os.O_RDWR)
environment = {**os.environ, "EMUML_PARENT": str(os.getpid())}
child = subprocess.Popen([sys.executable, "-m", "emuml.launch.node", "-"], stdin=stdin, env=environment)
os.write(1, b"%d\\n" % child.pid)
os.read(0, 1)
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="PDEATHSIG is Linux's")
def test_a_node_ends_with_its_parent_even_if_its_lifeline_does_not_break(tmp_path: Path) -> None:
    """Somebody else may hold the other end of its standard input: here this test does."""
    os.mkfifo(tmp_path / "stdin")
    held = os.open(tmp_path / "stdin", os.O_RDWR)
    process = entry(PARENT)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(f"{tmp_path / 'stdin'}\n".encode())
    process.stdin.flush()
    child = os.pidfd_open(int(process.stdout.readline()))
    process.stdin.close()
    process.wait(DEADLINE_S)
    ended, _, _ = select.select([child], [], [], DEADLINE_S)
    if not ended:
        signal.pidfd_send_signal(child, signal.SIGKILL)
    for descriptor in (child, held):
        os.close(descriptor)
    process.stdout.close()
    process.stderr.close()
    assert ended, "the node outlives its parent"
