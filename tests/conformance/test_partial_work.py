"""Partial work on both engines: equal bits where all partitions are waited for, and runs over TCP that are replayed."""

import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import PartialWork
from emuml.runtime.settings import RuntimeSettings
from emuml.workloads import LogisticRegression

ENGINES = {"shared": RuntimeSettings(processes="shared"), "processes": RuntimeSettings(processes="each")}


@pytest.mark.slow
@pytest.mark.parametrize("processes", ENGINES)
@pytest.mark.parametrize("code", [PartialWork(3), PartialWork(2, 0.3, "prefix", "groups")], ids=str)
def test_a_run_over_tcp_is_replayed_bit_for_bit(code, processes):
    given = emuml.Experiment(
        workload=LogisticRegression(data="two-gaussians:120x4"),
        protocol=GradientCoding(code),
        cluster=Cluster(workers=4, compute=ShiftedExponential(shift_s=0.01, mean_s=0.02, tail="scaled")),
        rounds=8,
        seed=5,
    )
    deployed = emuml.run(given, "tcp", runtime=ENGINES[processes])

    again = emuml.replay(deployed)
    assert again.parameters_sha256 == deployed.parameters_sha256
    assert [row["covered_set"] for row in again.metrics.rows[1:]] == [
        row["covered_set"] for row in deployed.metrics.rows[1:]
    ]
    if not code.tolerance:
        assert deployed.parameters_sha256 == emuml.run(given).parameters_sha256
