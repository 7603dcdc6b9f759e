"""The four semantics of stragglers on both engines: what workers do in which order, and equal parameters, bit for bit.

Exact repetition waits for all groups, so its decode sets do not depend on who was first, and neither do the parameters.
What the semantics are about, who works on which round, is read from the traces and does not depend on the clock.
"""

from collections import defaultdict

import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers
from emuml.runtime.settings import RuntimeSettings
from emuml.workloads import LogisticRegression

ROUNDS, WORKERS = 12, 6
SEMANTICS = ("cancel", "skip-stale", "carry-over", "wait-all")
ENGINES = {
    "des": ("des", None),
    "tcp": ("tcp", RuntimeSettings(processes="shared")),
    "processes": ("tcp", RuntimeSettings(processes="each")),
}


def experiment(stragglers, code=None, collect=None):
    return emuml.Experiment(
        workload=LogisticRegression(data="two-gaussians:120x4"),
        protocol=GradientCoding(code or FractionalRepetition(3), collect, stragglers),
        cluster=Cluster(workers=WORKERS, compute=ShiftedExponential(shift_s=0.002, mean_s=0.02)),
        rounds=ROUNDS,
        seed=5,
    )


def run(given, engine):
    name, settings = ENGINES[engine]
    return emuml.run(given, name, runtime=settings)


def worked_on(result):
    """Return by worker which rounds it began, ended and gave up, in order; draws are the numbers of rounds."""
    found = defaultdict(lambda: defaultdict(list))
    for _, node, kind, *details in result.trace.rows:
        if node.startswith("worker") and kind in ("begin", "computed"):
            found[node][kind].append(details[1])
        elif node.startswith("worker") and kind == "cancel":
            found[node]["cancel"].append(found[node]["begin"][-1])
    return found


def check_semantics(result, stragglers):
    """What every worker does, whoever is late: nothing here depends on how long anything took."""
    work = worked_on(result)
    assert len(work) == WORKERS
    for done in work.values():
        begun, ended, given_up = done["begin"], done["computed"], done["cancel"]
        assert begun == sorted(set(begun))  # no round twice, none after a newer one
        if stragglers == "cancel":
            assert not set(ended) & set(given_up)
        else:
            assert given_up == []
            assert ended == begun[: len(ended)]
            assert len(begun) - len(ended) <= 1
        if stragglers in ("carry-over", "wait-all"):
            assert ended == list(range(ROUNDS))
    assert (stragglers == "cancel") == any(done["cancel"] for done in work.values())
    if stragglers == "wait-all":
        check_server_waits(result)


def check_server_waits(result):
    """No question of a round leaves before every answer to the round before has come."""
    answers = questions = 0
    for _, node, kind, *details in result.trace.rows:
        if node == "server-0" and kind == "receive" and details[1] == "Gradient":
            answers += 1
        elif node == "server-0" and kind == "send" and details[1] == "Parameters":
            assert answers >= questions // WORKERS * WORKERS
            questions += 1
    assert answers == questions == ROUNDS * WORKERS


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stragglers", SEMANTICS)
def test_each_semantics_holds_on_each_engine_and_gives_the_same_parameters(stragglers, engine):
    result = run(experiment(stragglers), engine)

    check_semantics(result, stragglers)
    expected = run(experiment("cancel"), "des")
    assert result.parameters_sha256 == expected.parameters_sha256
    assert emuml.replay(result).parameters_sha256 == result.parameters_sha256


@pytest.mark.slow
@pytest.mark.parametrize("stragglers", SEMANTICS)
def test_an_approximate_run_over_tcp_is_replayed_bit_for_bit(stragglers):
    deployed = run(experiment(stragglers, IgnoreStragglers(), 3), "tcp")

    check_semantics(deployed, stragglers)
    again = emuml.replay(deployed)
    assert again.parameters_sha256 == deployed.parameters_sha256
    assert again.metrics.rows[-1]["covered_set"] == deployed.metrics.rows[-1]["covered_set"]
    assert again.drain_s == deployed.drain_s


@pytest.mark.parametrize(
    ("stragglers", "others"),
    [
        ("cancel", ["skip-stale", "carry-over", "wait-all"]),
        ("skip-stale", ["cancel"]),  # those who carry over or wait do all that skipping asks for
        ("carry-over", ["cancel", "skip-stale"]),
        ("wait-all", ["cancel", "skip-stale", "carry-over"]),
    ],
)
def test_the_semantics_can_be_told_apart(stragglers, others):
    for other in others:
        with pytest.raises(AssertionError):
            check_semantics(run(experiment(other), "des"), stragglers)
