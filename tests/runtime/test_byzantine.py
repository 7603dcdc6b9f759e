"""Hostile workers as processes of their own, over TCP: the honest result, bit for bit, and what is said of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, Constant
from emuml.cluster.faults import Crash, FaultPlan
from emuml.errors import NodeFailed, Unresolved
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import StochasticCode, VerifiedRepetition, answered_in
from emuml.workloads import LogisticRegression
from tests.protocols.liars import LIES
from tests.runtime.byzantine import WithLiars

pytestmark = pytest.mark.slow


def lying(rounds: int, workers: int = 6, **changed: Any) -> emuml.Experiment:
    return emuml.Experiment(
        workload=LogisticRegression(data="breast-cancer"),
        protocol=WithLiars(**{"code": VerifiedRepetition(replication=3, adversaries=1), **changed}),
        cluster=Cluster(workers=workers, compute=Constant(seconds=0.002)),
        rounds=rounds,
        seed=3,
    )


def honest(given: emuml.Experiment) -> GradientCoding:
    """Return the protocol of an experiment without liars."""
    return GradientCoding(given.protocol.code)  # type: ignore[attr-defined]


def test_all_lies_in_each_group_change_no_bit(tmp_path: Path) -> None:
    result = emuml.run(lying(len(LIES), liars=(1, 3)), "tcp", out=tmp_path / "run")

    assert result.rounds == len(LIES)
    assert result.parameters_sha256 == emuml.run(lying(len(LIES))).parameters_sha256
    assert set(result.metrics["decode_error"][1:]) == {0.0}
    suspects = [str(item.metrics["suspects"]) for item in result.run.logs if "suspects" in item.metrics]
    assert len(suspects) == len(LIES)
    assert all(int(found, 16) & ~0b1010 == 0 for found in suspects)
    assert emuml.replay(result).parameters_sha256 == result.parameters_sha256


def test_bytes_that_are_no_frames_drop_a_connection_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = emuml.run(lying(12, vandals=(1, 5)), "tcp", out=folder)

    assert result.rounds == 12
    assert result.parameters_sha256 == emuml.run(lying(12)).parameters_sha256
    assert set(result.metrics["decode_error"][1:]) == {0.0}
    journal = (folder / "nodes" / "server-0.1" / "journal").read_bytes()
    assert b"protocol: " in journal, "why it was dropped stands in the journal of who dropped it"


def test_too_many_liars_are_named_and_nothing_is_learned(tmp_path: Path) -> None:
    with pytest.raises(NodeFailed) as caught:
        emuml.run(lying(3, liars=(3, 4), stragglers="wait-all"), "tcp", out=tmp_path / "run")
    assert caught.value.node == "server-0"
    assert Unresolved.__name__ in str(caught.value)
    assert "group 1 (worker-3, worker-4, worker-5) is not verified" in str(caught.value)


def test_a_lie_and_a_killed_member_in_each_group_change_no_bit(tmp_path: Path) -> None:
    faults = FaultPlan((Crash("worker-0", after=("round", 2), restart_after=("round", 6)), Crash("worker-7", at_s=0.0)))
    given = lying(len(LIES), liars=(2, 5), code=VerifiedRepetition(4, 1), workers=8)
    result = emuml.run(dataclasses.replace(given, faults=faults), "tcp", out=tmp_path / "run")

    assert result.rounds == len(LIES)
    assert len(result.lost) == 2
    assert result.parameters_sha256 == emuml.run(dataclasses.replace(given, protocol=honest(given))).parameters_sha256
    assert set(result.metrics["decode_error"][1:]) == {0.0}


def test_sums_of_what_arrives_go_on_without_killed_workers(tmp_path: Path) -> None:
    faults = FaultPlan((Crash("worker-1", after=("round", 2), restart_after=("round", 4)), Crash("worker-3", at_s=0.0)))
    given = lying(6, code=StochasticCode(3, 0.25), workers=7)
    result = emuml.run(dataclasses.replace(given, faults=faults), "tcp", out=tmp_path / "run")

    assert result.rounds == 6
    assert len(result.lost) == 2
    assert emuml.replay(result).parameters_sha256 == result.parameters_sha256
    built = StochasticCode(3, 0.25).build(7)
    for log in (item.metrics for item in result.run.logs if "covered_set" in item.metrics):
        assert log["decode_error"] == built.decode(np.flatnonzero(answered_in([str(log["covered_set"])], 7)[0])).error
