"""Planted bugs are found by exploration at 4 of 5 seeds, by an oracle made for them, and come back small."""

from statistics import median

import pytest

import emuml.testing as et
from emuml.protocols.async_updates import BSP, SSP, AsyncUpdates
from tests.mutants.exploration import ANY_LIFE, MUTANTS, PARTIAL, SSP1, UNCODED, AnswersTwice, RepeatsPushes, Swapped

SEEDS = range(5)


def campaign(mutant, seed):
    made = mutant.make()
    describe = et.shipped(made.protocol)
    return et.explore(lambda: made, describe, runs=mutant.runs, seed=seed, faults=mutant.budget)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_planted_bug_is_found_and_shrunk(mutant):
    failures = [failure for seed in SEEDS if (failure := campaign(mutant, seed).failure) is not None]

    assert len(failures) >= 4
    for failure in failures:
        signature = failure.trial.signature
        assert signature.name in mutant.oracles or signature.kind in mutant.oracles
        assert not failure.nondeterministic
    assert median([len(item.scenario.faults) + len(item.scenario.deviations) for item in failures]) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_what_a_planted_bug_fails_at_ours_survives(mutant):
    """The scenario blames the bug, not the protocol."""
    made = mutant.make()
    failure = campaign(mutant, 0).failure
    legal = {AnswersTwice, RepeatsPushes}
    ours = Swapped(made.protocol, worker=made.worker if made.worker in legal else None)

    describe = et.shipped(made.protocol)
    assert not et.run(lambda: made, failure.scenario, describe, faults=mutant.budget).ok
    assert et.run(lambda: ours, failure.scenario, describe, faults=mutant.budget).ok


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "worker"), [(UNCODED, AnswersTwice), (PARTIAL, AnswersTwice), (SSP1, RepeatsPushes)], ids=str
)
def test_controls_are_never_reported(protocol, worker):
    """Talkative, not wrong."""
    swapped = Swapped(protocol, worker=worker)
    found = et.explore(lambda: swapped, et.shipped(protocol), runs=150, faults=et.faults(crash=2, keep=()))

    assert found.ok


def test_a_rare_bug_is_still_caught_by_the_scenario_that_found_it():
    """GC10: an answer to a former life of the server, to a round that the new one has reached as well."""
    everybody = et.faults(crash=2, keep=())
    wrong, describe = ANY_LIFE.make(), et.shipped(PARTIAL)

    assert et.run(lambda: wrong, RARE, describe, faults=everybody).signature.kind == "reference"
    assert et.run(lambda: PARTIAL, RARE, describe, faults=everybody).ok


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
