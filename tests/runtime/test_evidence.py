"""Thirty workers, a hundred rounds, real data, injected delays: both engines give the same parameters, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest

import emuml
from emuml import FaultPlan
from emuml.cluster import Cluster, ShiftedExponential
from emuml.cluster.faults import Crash
from emuml.experiment.experiment import Experiment
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.runtime.settings import RuntimeSettings
from emuml.workloads import LogisticRegression

pytestmark = pytest.mark.slow

SHARED = RuntimeSettings(processes="shared")

LOGICAL = (
    Crash("worker-4", after=("round", 17), restart_after=("round", 23)),
    Crash("worker-5", after=("round", 17)),
    Crash("worker-29", after=("round", 40), restart_after=("round", 41)),
)
BY_CLOCK = (
    Crash("worker-4", at_s=0.2, restart_after_s=0.3),
    Crash("worker-5", at_s=0.2),
    Crash("worker-29", at_s=0.5, restart_after_s=0.0),
)
FRC = FractionalRepetition(replication=3)


def experiment(protocol: GradientCoding, faults: tuple[Any, ...] = ()) -> Experiment:
    return emuml.Experiment(
        workload=LogisticRegression(data="breast-cancer"),
        protocol=protocol,
        cluster=Cluster(workers=30, compute=ShiftedExponential(shift_s=0.002, mean_s=0.005)),
        rounds=100,
        seed=1,
        faults=FaultPlan(faults),
    )


@pytest.mark.parametrize("faults", [(), LOGICAL], ids=["undisturbed", "crashes"])
@pytest.mark.parametrize("code", [Uncoded(), FRC], ids=["uncoded", "frc"])
def test_exact_codes_equal_the_emulator_outright(code: Any, faults: tuple[Any, ...]) -> None:
    given = experiment(GradientCoding(code=code), faults)
    emulated, deployed = emuml.run(given), emuml.run(given, "tcp", runtime=SHARED)
    assert deployed.rounds == emulated.rounds == 100
    assert deployed.parameters_sha256 == emulated.parameters_sha256
    for name in ("covered", "decode_error", "train_loss", "validation_loss"):
        assert deployed.metrics[name].tobytes() == emulated.metrics[name].tobytes()
    assert len(deployed.lost) == len(faults)
    assert emuml.replay(deployed).parameters_sha256 == deployed.parameters_sha256


@pytest.mark.parametrize(
    ("protocol", "faults"),
    [
        (GradientCoding(code=FRC, collect=15), ()),
        (GradientCoding(code=FRC, collect=15), LOGICAL),
        (GradientCoding(code=IgnoreStragglers(), collect=20), ()),
        (GradientCoding(code=FRC), BY_CLOCK),
        (GradientCoding(code=IgnoreStragglers(), collect=20), BY_CLOCK),
    ],
    ids=["agc", "agc-crashes", "k-of-n", "frc-clock", "k-of-n-clock"],
)
def test_runs_that_depend_on_time_equal_their_replay(protocol: GradientCoding, faults: tuple[Any, ...]) -> None:
    deployed = emuml.run(experiment(protocol, faults), "tcp", runtime=SHARED)
    again = emuml.replay(deployed)
    assert deployed.rounds == again.rounds == 100
    assert again.parameters_sha256 == deployed.parameters_sha256
    for name in ("arrivals", "decode_error", "train_loss", "validation_loss"):
        assert again.metrics[name].tobytes() == deployed.metrics[name].tobytes()
    assert len(deployed.lost) == len(faults)
