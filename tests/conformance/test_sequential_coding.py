"""Sequential coding on both engines: the same parameters, bit for bit, and runs over TCP that are replayed."""

import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.protocols import SequentialGradientCoding
from emuml.protocols.sequential_coding import MultiplexedCoding, SelectiveRepetition
from emuml.runtime.settings import RuntimeSettings
from emuml.workloads import LogisticRegression

ROUNDS, WORKERS = 10, 4
ENGINES = {"shared": RuntimeSettings(processes="shared"), "processes": RuntimeSettings(processes="each")}


def experiment(code):
    return emuml.Experiment(
        workload=LogisticRegression(data="two-gaussians:120x4"),
        protocol=SequentialGradientCoding(code),
        cluster=Cluster(workers=WORKERS, compute=ShiftedExponential(shift_s=0.01, mean_s=0.01)),
        rounds=ROUNDS,
        seed=5,
    )


@pytest.mark.slow
@pytest.mark.parametrize("processes", ENGINES)
@pytest.mark.parametrize("code", [SelectiveRepetition(1, 2, 2), MultiplexedCoding(1, 2, 1)], ids=str)
def test_a_run_over_tcp_is_replayed_bit_for_bit(code, processes):
    deployed = emuml.run(experiment(code), "tcp", runtime=ENGINES[processes])

    again = emuml.replay(deployed)
    assert again.parameters_sha256 == deployed.parameters_sha256
    assert [row["late"] for row in again.metrics.rows[1:]] == [row["late"] for row in deployed.metrics.rows[1:]]
    if isinstance(code, MultiplexedCoding):  # each job takes as many rounds, so who is late decides nothing
        assert deployed.parameters_sha256 == emuml.run(experiment(code)).parameters_sha256
