"""Our own protocols are clean under thousands of explored schedules and crashes; many more with ``make soak``."""

import pytest

import emuml.testing as et
from emuml.protocols.async_updates import ASP, BSP, SSP, AsyncUpdates
from emuml.protocols.gradient_coding import FractionalRepetition, GradientCoding, IgnoreStragglers, Uncoded
from tests.testing.soak import RUNS, SOAK

SEMANTICS = ("cancel", "skip-stale", "carry-over", "wait-all")
CODED = [
    *(GradientCoding(code=Uncoded(), stragglers=kind) for kind in SEMANTICS),
    *(GradientCoding(code=FractionalRepetition(2), stragglers=kind) for kind in SEMANTICS),
    *(GradientCoding(code=FractionalRepetition(2, "covered"), collect=3, stragglers=kind) for kind in SEMANTICS),
    *(GradientCoding(code=IgnoreStragglers(), collect=2, stragglers=kind) for kind in SEMANTICS),
]
ASYNCHRONOUS = [
    AsyncUpdates(barrier=barrier, on_lost=on_lost)
    for barrier in (BSP(), SSP(0), SSP(1), SSP(2), ASP())
    for on_lost in ("wait", "evict")
]


def explored(protocol, runs, budget, workers=(1, 4)):
    """Assert that no run of a campaign is objected to."""
    found = et.explore(
        lambda: protocol, et.shipped(protocol), runs=runs, clusters=et.clusters(workers=workers), faults=budget
    )
    assert found.failure is None, found.failure.trial.report()
    assert found.ok
    assert found.runs == runs


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("protocol", CODED, ids=str)
def test_gradient_coding_stands_explored_crashes_of_workers_and_of_the_server(protocol):
    explored(protocol, RUNS if SOAK else 130, et.faults(crash=3, keep=()))


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("protocol", ASYNCHRONOUS, ids=str)
def test_asynchronous_updates_stand_explored_crashes_of_workers_and_of_the_server(protocol):
    explored(protocol, RUNS if SOAK else 205, et.faults(crash=3, keep=()))


@pytest.mark.parametrize("protocol", [*CODED, *ASYNCHRONOUS], ids=str)
def test_plain_runs_of_all_sizes_are_clean(protocol):
    for workers in (1, 2, 3, 4, 6):
        if isinstance(protocol, GradientCoding) and workers < max(2, protocol.collect or 1):
            continue
        assert et.run(lambda: protocol, et.Scenario(workers=workers, rounds=3)).ok
