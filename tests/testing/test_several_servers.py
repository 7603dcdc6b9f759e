"""Asynchronous updates on several servers, explored as bare nodes: workers and servers may crash."""

import pytest

import emuml.testing as et
from emuml.protocols.async_updates import ASP, BSP, SSP, AsyncUpdates
from emuml.protocols.async_updates.oracles import held
from emuml.roster import Roster
from emuml.stopping import Rounds
from emuml.testing.probe import Probe
from tests.testing.soak import RUNS, SOAK

BARRIERS = [BSP(), SSP(0), SSP(2), ASP()]


def nodes(barrier, servers):
    """Return what builds the nodes of a scenario; a push takes a second."""

    def make(scenario):
        workers = max(scenario.workers, servers)
        problem = Probe(workers)
        problem.full_cost = float(workers)
        roster = Roster.of_counts(scenario.seed, Rounds(scenario.rounds), server=servers, worker=workers)
        return AsyncUpdates(barrier=barrier).nodes(problem, roster)

    return make


def describe(barrier):
    def described(run):
        if barrier.slack is not None:
            run.always(
                lambda nodes: all(spread(server) <= barrier.slack + 1 for server in nodes["server"]),
                "spread",
                of="server",
            )
        run.at_end(lambda finished: None not in held(finished.published[-1].parameters), "every push is there once")
        run.at_end(
            lambda finished: rounds(finished) == list(range(finished.scenario.rounds + 1)), "all rounds, in order"
        )
        run.eventually("done", within_s=120.0)

    return described


def spread(server):
    return max(server.completed) - min(server.completed)


def rounds(finished):
    """Return the rounds that the last life of the first server published."""
    versions = [item.version for item in finished.published]
    return versions[len(versions) - 1 - versions[::-1].index(0) :]


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("servers", [2, 3])
@pytest.mark.parametrize("barrier", BARRIERS, ids=str)
def test_crashes_of_workers_cost_no_push_and_no_round(barrier, servers):
    found = et.explore(
        nodes(barrier, servers),
        describe(barrier),
        runs=RUNS if SOAK else 100,
        faults=et.faults(crash=3, keep={"server"}),
    )
    assert found.ok, found.failure.trial.report()


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("servers", [2, 3])
@pytest.mark.parametrize("barrier", BARRIERS, ids=str)
def test_crashes_of_servers_end_in_no_deadlock_and_cost_no_push(barrier, servers):
    found = et.explore(
        nodes(barrier, servers), describe(barrier), runs=RUNS if SOAK else 100, faults=et.faults(crash=2, keep=())
    )
    assert found.ok, found.failure.trial.report()


def crash(server, at_s, workers):
    fault = et.CrashFault(node=server, at_s=at_s, restart_after_s=0.5)
    return et.Scenario(workers=workers, rounds=1, faults=(fault,))


@pytest.mark.parametrize(
    ("servers", "scenario"),
    [(2, crash("server-0", 1.2, 1)), (3, crash("server-1", 0.8, 3))],
    ids=["the first", "another"],
)
def test_a_crash_of_one_of_several_servers_ends_in_no_deadlock(servers, scenario):
    assert et.run(nodes(ASP(), servers), scenario, describe(ASP()), faults=et.faults(keep=())).ok
