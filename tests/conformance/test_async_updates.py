"""Asynchronous updates on both engines: bounds from the traces, equal parameters where the schedule decides nothing."""

import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.protocols import AsyncUpdates
from emuml.protocols.async_updates import ASP, BSP, SSP
from emuml.runtime.settings import RuntimeSettings
from emuml.workloads import GradientDescent, LogisticRegression

ROUNDS, WORKERS = 10, 4
ENGINES = {
    "des": ("des", None),
    "tcp": ("tcp", RuntimeSettings(processes="shared")),
    "processes": ("tcp", RuntimeSettings(processes="each")),
}


def experiment(barrier, servers=1):
    return emuml.Experiment(
        workload=LogisticRegression(data="two-gaussians:120x4", optimizer=GradientDescent(rate=0.5)),
        protocol=AsyncUpdates(barrier),
        cluster=Cluster(workers=WORKERS, servers=servers, compute=ShiftedExponential(shift_s=0.002, mean_s=0.02)),
        rounds=ROUNDS,
        seed=5,
    )


def run(given, engine):
    name, settings = ENGINES[engine]
    return emuml.run(given, name, runtime=settings)


def check_trace(result, slack, one_clock=True):
    """What holds on every engine: iterations in order, each once, and none begun too far ahead of the slowest.

    The server's own records are in the order in which things happened to it. Records of different nodes are in
    order only if they have one clock.
    """
    begun = {f"worker-{w}": 0 for w in range(WORKERS)}
    received = dict(begun)
    for _, node, kind, *details in result.trace.rows:
        if node.startswith("worker") and kind == "begin":
            assert details[1] == begun[node]
            begun[node] += 1
            assert slack is None or not one_clock or details[1] - min(received.values()) <= slack
        elif node == "server-0" and kind == "receive" and details[1] == "Update":
            received[details[0]] += 1
            assert slack is None or max(received.values()) - min(received.values()) <= slack + 1
        elif node == "server-0" and kind == "send" and details[1] == "View":
            assert slack is None or received[details[0]] - min(received.values()) <= slack
    assert sum(received.values()) >= ROUNDS * WORKERS
    assert all(received[worker] <= begun[worker] for worker in begun)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("barrier", [BSP(), SSP(0), SSP(2), ASP()], ids=str)
def test_each_barrier_holds_on_each_engine_and_its_runs_are_replayed(barrier, engine):
    result = run(experiment(barrier), engine)

    check_trace(result, barrier.slack, one_clock=engine == "des")
    assert emuml.replay(result).parameters_sha256 == result.parameters_sha256
    if barrier == BSP():  # who is first decides nothing
        assert result.parameters_sha256 == run(experiment(barrier), "des").parameters_sha256


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_two_servers_train_what_one_does(engine):
    result = run(experiment(BSP(), servers=2), engine)

    assert result.parameters_sha256 == run(experiment(BSP()), "des").parameters_sha256
    assert emuml.replay(result).parameters_sha256 == result.parameters_sha256


def test_a_wider_bound_would_be_noticed():
    with pytest.raises(AssertionError):
        check_trace(run(experiment(SSP(3)), "des"), 1)
