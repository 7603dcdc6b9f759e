"""Asynchronous updates on several servers, explored: workers and servers may crash."""

import pytest

import emuml.testing as et
from emuml.protocols.async_updates import ASP, BSP, SSP, AsyncUpdates
from tests.testing.soak import RUNS, SOAK

BARRIERS = [BSP(), SSP(0), SSP(1), SSP(2), ASP()]


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("servers", [2, 3])
@pytest.mark.parametrize("barrier", BARRIERS, ids=str)
def test_crashes_of_workers_and_servers_cost_no_push_and_no_round(barrier, servers):
    protocol = AsyncUpdates(barrier=barrier)
    found = et.explore(
        lambda: protocol,
        et.shipped(protocol),
        runs=RUNS if SOAK else 150,
        clusters=et.clusters(workers=(servers, 4), servers=(servers, servers)),
        faults=et.faults(crash=3, keep=()),
    )
    assert found.failure is None, found.failure.trial.report()
    assert found.ok


def crash(server, at_s, servers, workers):
    fault = et.CrashFault(node=server, at_s=at_s, restart_after_s=0.5)
    return et.Scenario(workers=workers, servers=servers, rounds=1, faults=(fault,))


@pytest.mark.parametrize(
    "scenario", [crash("server-0", 1.2, 2, 2), crash("server-1", 0.8, 3, 3)], ids=["the first", "another"]
)
def test_a_crash_of_one_of_several_servers_ends_in_no_deadlock(scenario):
    assert et.run(lambda: AsyncUpdates(barrier=ASP()), scenario, faults=et.faults(keep=())).ok


def test_what_is_done_again_for_one_server_is_not_twice_in_the_copy_that_a_worker_goes_on_with():
    """A worker dies when one of two servers has its push; what it sent to the other one is too late."""
    scenario = et.Scenario(
        servers=2,
        faults=(et.CrashFault(node="worker-1", at_s=2.3, restart_after_s=0.2),),
        deviations=(et.Deviation(message=("worker-1", "server-0", "Update", 0), late_s=0.6),),
    )
    assert et.run(lambda: AsyncUpdates(barrier=SSP(2)), scenario).ok


def test_a_push_that_one_server_lost_is_made_again_and_may_read_what_the_other_kept():
    """The last message that a dead worker had sent is lost on the way to one of two servers."""
    scenario = et.Scenario(
        servers=2,
        rounds=1,
        faults=(et.CrashFault(node="worker-1", at_s=2.3, restart_after_s=0.5),),
        deviations=(et.Deviation(lost=("worker-1", "server-0", 0), count=1),),
    )
    trial = et.run(lambda: AsyncUpdates(barrier=BSP()), scenario)

    assert trial.ok, trial.report()
    assert trial.run.published[-1].parameters.tolist() == [1.0, 1.0]
