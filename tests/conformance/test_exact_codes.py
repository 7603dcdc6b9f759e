"""Exact codes on both engines: the result of training without a code, equal replays, and crashes of any s workers."""

from itertools import combinations

import numpy as np
import pytest

import emuml
from emuml import Crash, FaultPlan
from emuml.cluster import Cluster, ShiftedExponential
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import CyclicMDS, CyclicRepetition, Uncoded, YeAbbe
from emuml.runtime.settings import RuntimeSettings
from emuml.workloads import LogisticRegression

ROUNDS, WORKERS = 8, 6
CODES = {
    "cyclic repetition": CyclicRepetition(2),
    "cyclic MDS": CyclicMDS(3),
    "cyclic MDS, seeded": CyclicMDS(1, "seeded"),
    "Ye-Abbe": YeAbbe(2, 2),
    "Ye-Abbe, uneven": YeAbbe(1, 3),
}
TCP = RuntimeSettings(processes="shared")


def experiment(code, faults=(), collect=None):
    return emuml.Experiment(
        workload=LogisticRegression(data="two-gaussians:120x6"),
        protocol=GradientCoding(code, collect),
        cluster=Cluster(workers=WORKERS, compute=ShiftedExponential(shift_s=0.002, mean_s=0.02)),
        rounds=ROUNDS,
        seed=5,
        faults=FaultPlan(tuple(faults)),
    )


@pytest.fixture(scope="module")
def uncoded():
    return emuml.run(experiment(Uncoded()), "des")


def logs_of(result):
    return [row for row in result.metrics.rows if "arrivals" in row]


def check_exact(result, uncoded):
    """The parameters are those of training without a code, up to rounding, and each round says that it was exact."""
    assert result.rounds == ROUNDS
    assert max(row["decode_error"] for row in logs_of(result)) < 1e-20
    assert all(0.1 < row["noise_gain"] < 1e4 for row in logs_of(result))
    assert np.linalg.norm(result.parameters - uncoded.parameters) <= 1e-9 * np.linalg.norm(uncoded.parameters)


@pytest.mark.parametrize("code", CODES)
def test_the_emulator_trains_as_without_a_code_and_replays(code, uncoded):
    result = emuml.run(experiment(CODES[code]), "des")

    check_exact(result, uncoded)
    assert {row["arrivals"] for row in logs_of(result)} == {WORKERS - CODES[code].stragglers}
    assert emuml.replay(result).parameters_sha256 == result.parameters_sha256


@pytest.mark.parametrize("code", CODES)
def test_both_tiers_of_the_emulator_give_the_same_bits(code, monkeypatch):
    monkeypatch.setenv("EMUML_CHECK", "0")  # checks want every event
    runs = [emuml.run(experiment(CODES[code]), "des", tier=tier) for tier in ("event", "array")]

    assert runs[0].parameters_sha256 == runs[1].parameters_sha256
    assert runs[0].duration_s == runs[1].duration_s


@pytest.mark.slow
@pytest.mark.parametrize("code", CODES)
def test_tcp_trains_as_without_a_code_and_replays(code, uncoded):
    result = emuml.run(experiment(CODES[code]), "tcp", runtime=TCP)

    check_exact(result, uncoded)
    assert emuml.replay(result).parameters_sha256 == result.parameters_sha256


@pytest.mark.slow
def test_processes_of_their_own_have_the_same_rows(uncoded):
    given = experiment(CyclicRepetition(2))
    result = emuml.run(given, "tcp", runtime=RuntimeSettings(processes="each"))

    check_exact(result, uncoded)


@pytest.mark.slow
@pytest.mark.parametrize("code", CODES)
def test_a_crash_of_any_s_workers_does_no_harm(code, uncoded):
    lost = list(combinations(range(WORKERS), CODES[code].stragglers))
    for those in lost[:: max(len(lost) // 6, 1)]:
        faults = [Crash(f"worker-{worker}", after=("round", 2 + i)) for i, worker in enumerate(those)]
        result = emuml.run(experiment(CODES[code], faults), "des")

        check_exact(result, uncoded)
        assert logs_of(result)[-1]["down"] == len(those)


@pytest.mark.slow
@pytest.mark.parametrize("code", ["cyclic repetition", "cyclic MDS", "Ye-Abbe"])
def test_a_crash_over_tcp_does_no_harm(code, uncoded):
    faults = [Crash("worker-1", after=("round", 3))]
    result = emuml.run(experiment(CODES[code], faults), "tcp", runtime=TCP)

    check_exact(result, uncoded)


@pytest.mark.parametrize("code", CODES)
def test_one_loss_too_many_is_approximate_and_said(code):
    stragglers = CODES[code].stragglers
    faults = [Crash(f"worker-{worker}", after=("round", 4)) for worker in range(stragglers + 1)]
    rows = logs_of(emuml.run(experiment(CODES[code], faults), "des"))

    assert max(row["decode_error"] for row in rows[:4]) < 1e-20
    assert min(row["decode_error"] for row in rows[-3:]) > 1e-3
    assert rows[-1]["lost_rounds"] > 0


@pytest.mark.parametrize("code", CODES)
def test_fewer_answers_than_enough_are_approximate(code):
    rows = logs_of(emuml.run(experiment(CODES[code], collect=2), "des"))

    assert {row["arrivals"] for row in rows} == {2}
    assert max(row["decode_error"] for row in rows) > 1e-3  # two workers of an MDS code may suffice by luck
