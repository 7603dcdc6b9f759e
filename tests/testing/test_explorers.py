"""Explorers are functions of their seed, stay within ranges and budgets, and reach what only they can."""

import os
import subprocess
import sys

import pytest

import emuml.testing as et
from emuml.errors import UserError
from emuml.protocols.gradient_coding import FractionalRepetition, GradientCoding
from emuml.testing.campaign import described
from emuml.testing.explorers import Ground, explorer
from emuml.testing.subject import Subject
from emuml.testing.trial import Trier, differs
from tests.testing.keeper import Torn, durable, nodes, whole

NAMES = ["portfolio", "fifo", "random", "swarm", "sparse"]
CLUSTERS = et.clusters(workers=(2, 3), rounds=(1, 3))
CRASHES = et.faults(cut=0, pause=0, slow=0, keep={"client"})


def trials(name, seed=0, count=25, budget=None, make=None):
    trier = Trier(Subject(make or nodes()), described(durable), budget or et.faults(keep={"client"}))
    chosen = explorer(name, Ground(trier, CLUSTERS, seed))
    proposals = (chosen.propose(index) for index in range(count))
    return trier, [trier.run(item.scenario, item.choose) for item in proposals if item is not None]


@pytest.mark.parametrize("name", NAMES)
def test_runs_are_functions_of_seed_and_number_and_repeat_from_their_record(name):
    trier, first = trials(name)
    _, again = trials(name)
    assert [trial.digest() for trial in first] == [trial.digest() for trial in again]
    assert not any(differs(trier, trial) for trial in first)
    if name != "fifo":
        assert [trial.digest() for trial in trials(name, seed=1)[1]] != [trial.digest() for trial in first]


@pytest.mark.parametrize("name", NAMES)
def test_runs_stay_within_ranges_and_budget(name):
    _, found = trials(name, count=40, budget=et.faults(crash=1, keep={"client"}))
    for trial in found:
        assert 2 <= trial.scenario.workers <= 3
        assert 1 <= trial.scenario.rounds <= 3
        kinds = [fault.kind for fault in trial.scenario.faults]
        assert max(map(kinds.count, kinds), default=0) <= 1
        assert all(fault.node == "keeper-0" for fault in trial.scenario.faults if fault.kind == "crash")
    assert any(trial.scenario.faults for trial in found)


def test_cuts_pauses_and_slow_nodes_are_explored_with_crashes_and_move_no_pick():
    (_, many), (_, none) = trials("swarm", count=60), trials("swarm", count=60, budget=CRASHES)
    assert {fault.kind for trial in many for fault in trial.scenario.faults} == {"crash", "cut", "pause", "slow"}
    for one, other in zip(many, none, strict=True):
        assert [fault for fault in one.scenario.faults if fault.kind == "crash"] == list(other.scenario.faults)


def test_the_grid_has_cuts_and_pauses_long_enough_for_suspicion_and_for_a_verdict():
    _, found = trials("fifo", count=500)
    told = {row[4] for trial in found for row in trial.run.trace.rows if row[2] == "peer"}
    assert told == {"up", "suspect", "down", "restarted"}
    lives = [trial for trial in found if not trial.run.trace.of("crash")]
    assert any(row.details["state"] == "down" for trial in lives for row in trial.run.trace.of("peer"))


def test_the_first_run_is_the_plain_one():
    for name in ("portfolio", "fifo"):
        _, (first,) = trials(name, count=1)
        assert (first.scenario.to_json(), first.picks) == (et.Scenario(rounds=1).to_json(), [])


def test_fifo_never_deviates_and_sparse_seldom():
    assert not any(trial.picks for trial in trials("fifo")[1])
    assert 0 < max(len(trial.picks) for trial in trials("sparse")[1]) <= 4
    assert max(len(trial.picks) for trial in trials("random")[1]) > 4


def test_numbers_of_workers_that_do_not_fit_are_left_out():
    found = et.explore(
        lambda: GradientCoding(code=FractionalRepetition(3)),
        lambda run: run.at_end(lambda finished: finished.scenario.workers >= 3, "three"),
        runs=40,
        clusters=et.clusters(workers=(1, 5)),
    )
    assert (found.ok, found.runs) == (True, 40)
    with pytest.raises(UserError):
        et.explore(lambda: GradientCoding(code=FractionalRepetition(7)), durable, clusters=CLUSTERS)


def test_an_unknown_explorer_is_refused_with_the_nearest():
    with pytest.raises(UserError, match="did you mean 'swarm'"):
        et.explore(nodes(), durable, explorer="swrm")


def test_a_save_in_two_parts_is_found_by_a_crash_between_them():
    sizes = []
    for seed in range(5):
        failure = et.explore(nodes(Torn), whole, runs=500, seed=seed, faults=et.faults(keep={"client"})).failure
        sizes.append((len(failure.scenario.faults), len(failure.scenario.deviations)))

    assert sorted(sizes)[2] == (1, 0)
    assert max(sizes) <= (2, 0)


def test_a_run_that_differs_from_its_repetition_is_reported():
    count = iter(range(10**6))

    def describe(run):
        run.eventually("done")

    def make():
        from tests.testing.keeper import Client

        last = 2 + next(count) % 5
        return {"client-0": ("client", lambda: Client(last)), "keeper-0": nodes()()["keeper-0"]}

    found = et.explore(make, describe, runs=50, faults=et.faults(keep={"client"}))
    assert not found.ok
    assert found.nondeterministic is not None
    assert found.difference.startswith("first at ")
    assert ", then at " in found.difference or ", then the end" in found.difference


TWICE = """
import emuml.testing as et
from emuml.protocols.async_updates import SSP, AsyncUpdates
from emuml.testing.campaign import described
from emuml.testing.explorers import Ground, explorer
from emuml.testing.subject import Subject
from emuml.testing.trial import Trier

make = lambda: AsyncUpdates(barrier=SSP(1))
trier = Trier(Subject(make), described(lambda run: run.eventually("done")))
chosen = explorer("portfolio", Ground(trier, et.clusters(servers=(1, 2)), 0))
for index in range(60):
    item = chosen.propose(index)
    trial = trier.run(item.scenario, item.choose)
    again = et.run(make, trial.recorded().to_json(), lambda run: run.eventually("done"))
    assert again.digest() == trial.digest(), trial.recorded().to_json()
    print(trial.digest(), trial.recorded().to_json())
"""


@pytest.mark.slow
def test_scenarios_and_traces_are_the_same_in_processes_of_other_hash_seeds():
    runs = [
        subprocess.run(
            [sys.executable, "-c", TWICE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "4711")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].splitlines()) == 60
