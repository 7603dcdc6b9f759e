"""The bridge to Hypothesis: scenarios are drawn in few structured steps, and shrink to the empty one."""

import pytest
from hypothesis import HealthCheck, Phase, example, find, given, settings, target
from hypothesis.errors import InvalidArgument

import emuml.testing as et
from emuml.protocols.async_updates import SSP, AsyncUpdates
from emuml.testing.scenario import Scenario, parsed
from tests.mutants.async_nodes import OffByOne
from tests.mutants.planted import Swapped
from tests.mutants.registry import SSP1

SCENARIOS = et.scenarios(workers=(2, 4), crash=2, deviations=3, messages=("View", "Update"))


@given(SCENARIOS)
def test_drawn_scenarios_are_whole_and_survive_json(scenario):
    assert parsed(scenario.to_json()) == scenario
    assert 2 <= scenario.workers <= 4
    assert len(scenario.faults) <= 2
    assert len(scenario.deviations) <= 3


def test_the_simplest_scenario_is_the_plain_run():
    assert find(SCENARIOS, lambda scenario: True).size() == Scenario(workers=2, rounds=1).size()


@pytest.mark.slow
@settings(max_examples=60)
@given(scenario=SCENARIOS)
@example(scenario=Scenario(workers=3, rounds=3))
def test_ours_stands_drawn_scenarios(scenario):
    trial = et.run(lambda: AsyncUpdates(barrier=SSP(2)), scenario)
    assert trial.ok, trial.report()


@pytest.mark.slow
def test_a_planted_bug_is_found_and_hypothesis_shrinks_it_by_structure():
    wrong = Swapped(SSP1, OffByOne)
    describe = et.shipped(SSP1)
    least = find(
        SCENARIOS,
        lambda scenario: not et.run(lambda: wrong, scenario, describe).ok,
        settings=settings(max_examples=2000, database=None, phases=[Phase.generate, Phase.shrink],
                          suppress_health_check=list(HealthCheck)),
    )  # fmt: skip

    assert least.workers == 2
    assert len(least.faults) + len(least.deviations) <= 1


@given(et.scenarios(crash=2, deviations=0, roles=("server",)))
def test_who_may_crash_can_be_said(scenario):
    assert {fault.node for fault in scenario.faults} <= {"server-0"}
    assert scenario.deviations == ()


@given(et.scenarios(servers=(1, 3), crash=2, roles=("server", "worker"), messages=("View",), deviations=2))
def test_servers_are_drawn_crash_and_are_named(scenario):
    there = {f"server-{i}" for i in range(scenario.servers)} | {f"worker-{i}" for i in range(scenario.workers)}
    assert 1 <= scenario.servers <= 3
    assert {fault.node for fault in scenario.faults} <= there
    named = [part for item in scenario.deviations for part in item.name.split("/") if part[-2:-1] == "-"]
    assert set(named) <= there


def test_the_search_is_led_to_runs_that_cover_much():
    told = []

    @settings(max_examples=3, database=None)
    @given(scenario=SCENARIOS)
    def aimed(scenario):
        for _ in range(2):  # the second one leaves the first observation as it is
            trial = et.run(lambda: AsyncUpdates(barrier=SSP(2)), scenario)
        with pytest.raises(InvalidArgument, match="coverage points"):
            target(1.0, label="coverage points")
        told.append(len(trial.points))

    aimed()
    assert min(told) > 5
    assert not et.run(lambda: AsyncUpdates(barrier=SSP(2)), Scenario()).points  # outside of Hypothesis
