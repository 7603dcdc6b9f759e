"""Planted bugs are found by exploration, by an oracle made for them, and come back small; controls are not reported.

By default each bug is sought with one seed; ``make soak`` asks for 4 of 5 and explores the controls far longer.
"""

from statistics import median

import pytest

import emuml.testing as et
from emuml.protocols.async_updates import BSP, SSP, AsyncUpdates
from tests.mutants import coding_nodes
from tests.mutants.planted import RUN_TWICE, Swapped, size_of
from tests.mutants.registry import CONTROLS, ELSEWHERE, EVERYBODY, MUTANTS, NOT_YET, SKIPPING, ends_closed_rounds
from tests.testing.soak import RUNS, SOAK

BY_ID = {mutant.id: mutant for mutant in MUTANTS}


def found(mutant, seed):
    """Return what a campaign found, by an oracle that is made for the bug; ours survives it."""
    campaign = mutant.campaign(seed)
    assert mutant.is_caught_by(campaign), campaign.summary()
    failure = campaign.failure
    if failure is None or failure.nondeterministic:
        assert RUN_TWICE in mutant.oracles
        return None
    assert not mutant.tried(mutant.wrong, failure.scenario).ok
    assert mutant.tried(mutant.ours, failure.scenario).ok
    return failure.scenario


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_planted_bug_is_found_by_its_oracle_and_shrunk(mutant):
    sizes, missed = [], []
    for seed in range(5) if SOAK else [MUTANTS.index(mutant) % 5]:
        try:
            scenario = found(mutant, seed)
        except AssertionError as error:
            missed.append(error)
        else:
            sizes += [] if scenario is None else [size_of(scenario)]
    assert len(missed) <= SOAK, missed
    assert max(sizes or [0]) <= 5
    assert not SOAK or median(sizes or [0]) <= 2


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_controls_are_never_reported(control):
    """Talkative or slow, not wrong."""
    runs = RUNS if SOAK else 150
    found = et.explore(lambda: control, et.shipped(control.protocol), runs=runs, faults=EVERYBODY)

    assert found.ok, found.failure.trial.report()


def test_the_message_that_ends_work_names_closed_rounds_only():
    """GC6, by the other oracle that may find it: it needs no race."""
    ours = Swapped(SKIPPING, coding_nodes.CancelsThenAsks, coding_nodes.Cancellable)
    wrong = Swapped(SKIPPING, coding_nodes.CancelsTheNext, coding_nodes.Cancellable)
    scenario = et.Scenario(workers=3, rounds=2)

    assert et.run(lambda: ours, scenario, ends_closed_rounds).ok
    assert et.run(lambda: wrong, scenario, ends_closed_rounds).signature.kind == "each_sent"


def test_who_waits_for_whom_is_told():
    """X8: the report names both ends."""
    mutant = BY_ID["X8"]
    trial = mutant.tried(mutant.wrong, et.Scenario(workers=2))

    assert trial.signature.roles == ("server", "worker")
    assert "server-0 waits for updates of iteration 0" in trial.violation.text
    assert "worker-1 waits for a view for iteration 1 from server-0" in trial.violation.text


def test_every_number_is_planted_or_has_a_reason():
    there = {mutant.id.partition(",")[0] for mutant in MUTANTS} | ELSEWHERE.keys()

    assert there.isdisjoint(NOT_YET)
    assert there - {"W23"} | NOT_YET.keys() == {
        *(f"GC{i}" for i in range(1, 15)),
        *(f"SSP{i}" for i in range(1, 14)),
        *(f"X{i}" for i in range(1, 9)),
    }


def test_a_rare_bug_is_caught_by_the_bits_too():
    """GC10, where the answer to a former life differs from the one that is asked for."""
    mutant = BY_ID["GC10"]

    def bits_alone(run):
        shipped = et.Description()
        mutant.description(shipped)
        run.ends += [oracle for oracle in shipped.ends if oracle.kind == "reference"]

    assert et.run(lambda: mutant.wrong, RARE, bits_alone, faults=EVERYBODY).signature.kind == "reference"
    assert mutant.tried(mutant.ours, RARE).ok


RARE = """
{"format": 1, "workers": 3, "faults": [{"node": "server-0", "at_s": 3.1, "restart_after_s": 2.9, "kind":
"crash"}], "deviations": [{"message": ["worker-0", "server-0", "Gradient", 0], "late_s": 0.3}, {"message":
["server-0", "worker-2", "Parameters", 1], "late_s": 0.9}, {"compute": ["worker-2", "gradient", 1], "late_s":
4.0}, {"message": ["server-0", "worker-2", "Parameters", 2], "late_s": 1.2}]}
"""


@pytest.mark.parametrize("barrier", [BSP(), SSP(2)], ids=str)
def test_who_comes_back_when_nobody_counts_joins_the_open_iteration(barrier):
    """What exploration found in ours: all were evicted, and the first to return went on with an iteration long over."""
    protocol = AsyncUpdates(barrier=barrier, on_lost="evict")

    assert et.run(lambda: protocol, FOUND[barrier], faults=et.faults(crash=3)).ok


FOUND = {
    BSP(): """
{"format": 1, "workers": 3, "rounds": 3, "faults": [{"node": "worker-2", "at_s": 0.1, "restart_after_s": 3.1,
"kind": "crash"}, {"node": "worker-1", "at_s": 2.6, "restart_after_s": 0.6, "kind": "crash"}, {"node":
"worker-0", "at_s": 3.3, "restart_after_s": 1.5, "kind": "crash"}]}
""",
    SSP(2): """
{"format": 1, "rounds": 3, "faults": [{"node": "worker-0", "at_s": 0.5, "restart_after_s": 4.7, "kind":
"crash"}, {"node": "worker-1", "at_s": 5.3, "restart_after_s": 0.5, "kind": "crash"}]}
""",
}
