"""How many servers there are is part of a scenario: explored, refused where a protocol cannot, and shrunk."""

import pytest

import emuml.testing as et
from emuml.errors import UserError
from emuml.protocols.async_updates import SSP, AsyncUpdates
from emuml.protocols.gradient_coding import FractionalRepetition, GradientCoding
from emuml.testing.budget import Clusters
from emuml.testing.campaign import described
from emuml.testing.explorers import Ground, explorer
from emuml.testing.explorers.ground import Draws
from emuml.testing.oracles import Description
from emuml.testing.scenario import Deviation, Scenario
from emuml.testing.shrink import without
from emuml.testing.subject import Subject
from emuml.testing.trial import Trier, differs

SEVERAL = et.clusters(workers=(3, 4), rounds=(1, 2), servers=(2, 3))


def asynchronous():
    return AsyncUpdates(barrier=SSP(1))


def explored(claim, name, clusters=SEVERAL):
    return et.explore(asynchronous, lambda run: run.always(claim, name), runs=50, clusters=clusters).failure.scenario


def test_runs_have_as_many_servers_as_the_ranges_say():
    counts = set()
    describe = described(lambda run: run.always(lambda nodes: counts.add(len(nodes["server"])) or True, "counts"))
    assert et.explore(asynchronous, describe, runs=30, clusters=SEVERAL).ok
    assert counts >= {2, 3}


def test_what_needs_two_servers_shrinks_to_two():
    found = explored(lambda nodes: len(nodes["server"]) < 2, "one server")
    assert (found.servers, found.workers, found.rounds) == (2, 2, 1)  # a worker has a share of each server's slice


def test_what_needs_one_server_shrinks_to_one():
    found = explored(lambda nodes: max((server.completed[0] for server in nodes["server"]), default=0) < 1, "no push")
    assert (found.servers, found.workers) == (1, 1)
    assert (len(found.faults), len(found.deviations)) == (0, 0)


def test_servers_that_a_protocol_cannot_have_are_passed_over():
    subject = Subject(lambda: GradientCoding(code=FractionalRepetition(1)))
    ground = Ground(Trier(subject, Description()), Clusters(workers=(2, 3), servers=(1, 2)), 0)
    draws = Draws(0, "x")

    assert {ground.scenario(draws).servers for _ in range(20)} == {1}
    with pytest.raises(UserError, match="servers"):
        Ground(Trier(subject, Description()), Clusters(workers=(2, 3), servers=(2, 2)), 0).smallest()


def test_one_server_draws_nothing_more():
    subject = Subject(asynchronous)
    one = Ground(Trier(subject, Description()), et.clusters(), 0)
    drawn, numbers = Draws(0, "x"), Draws(0, "x")
    one.scenario(drawn)
    assert drawn.uniform() == [numbers.uniform() for _ in range(4)][-1]  # workers, rounds and the seed were drawn


def test_a_server_is_dropped_with_all_that_names_it_and_the_others_move_up():
    scenario = Scenario(
        servers=3,
        faults=tuple(et.CrashFault(node=f"server-{i}", at_s=1) for i in range(3)),
        deviations=(
            Deviation(message=("worker-1", "server-0", "Push", 2), late_s=0.3),
            Deviation(message=("worker-1", "server-2", "Push", 2), late_s=0.3),
        ),
    )
    dropped = without(scenario, "server", 0, 1)
    assert dropped.servers == 2
    assert [fault.node for fault in dropped.faults] == ["server-0", "server-1"]
    assert [item.name for item in dropped.deviations] == ["message/worker-1/server-1/Push/2"]


def test_ranges_are_checked():
    with pytest.raises(UserError, match=r"clusters\.servers"):
        et.clusters(servers=(2, 1))


def test_runs_with_crashes_repeat_from_their_record_whoever_connects_first():
    trier = Trier(Subject(asynchronous), Description(), et.faults(crash=2))
    chosen = explorer("random", Ground(trier, SEVERAL, 0))
    proposals = [chosen.propose(index) for index in range(40)]
    trials = [trier.run(item.scenario, item.choose) for item in proposals]

    assert sum("connect" in name for trial in trials for name, _, _ in trial.picks) > 10
    assert not any(differs(trier, trial) for trial in trials)


def test_crashes_and_starts_at_one_instant_have_names_of_their_own():
    asked = []
    crashes = [{"kind": "crash", "node": f"worker-{i}", "at_s": 1.0, "restart_after_s": 1.0} for i in (0, 1)]
    scenario = Scenario.model_validate({"workers": 3, "servers": 2, "faults": crashes})
    Trier(Subject(asynchronous), Description()).run(scenario, lambda name, n: asked.append(name) or 0)
    ties = [name[4:].split("|") for name in asked if name.startswith("tie/")]

    assert ["crash/worker-0/0", "crash/worker-1/0"] in ties
    assert ["restart/worker-0/0", "restart/worker-1/0"] in ties
    assert all(len(set(names)) == len(names) for names in ties)
