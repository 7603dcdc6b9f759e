"""Coverage points: abstract states and kinds of events, without times, numbers and ids."""

import numpy as np
import pytest

import emuml.testing as et
from emuml import effects as fx
from emuml.node import NodeId, PeerState
from emuml.protocols.async_updates import SSP, AsyncUpdates
from emuml.testing.coverage import Coverage, kind_of
from emuml.testing.oracles import Description
from emuml.testing.scenario import CrashFault, Delays, Scenario
from emuml.testing.subject import Subject
from emuml.testing.trial import Trier
from tests.testing.keeper import Client, Keep, Keeper, nodes


def points(scenario, make=None):
    budget = et.faults(keep={"client"})
    return Trier(Subject(make or nodes()), Description(), budget).run(scenario, covers=True).points


def test_points_are_states_and_kinds_of_one_event_and_of_two():
    found = points(Scenario())

    assert ("keeper", "", "Started") in found
    assert ("keeper", "Started", "Received/Keep") in found
    assert ("keeper", "Received/Keep", "SaveDone") in found
    assert ("keeper", (("number", 1),), "Received/Keep") in found  # the number is no longer 0
    assert ("keeper", (), "Received/Keep") in found  # nor does it become 0 again


def test_no_time_counts():
    slow = Delays(compute=2.0, network=0.6, storage=0.6, detector=1.0)
    assert points(Scenario(delays=slow)) == points(Scenario())


def test_nodes_of_a_role_share_points_and_a_crash_adds_some():
    make = lambda: AsyncUpdates(barrier=SSP(1))  # noqa: E731
    plain = points(Scenario(workers=3, rounds=3), make)
    crash = CrashFault(node="worker-1", at_s=2.0, restart_after_s=1.0)
    crashed = points(Scenario(workers=3, rounds=3, faults=(crash,)), make)

    assert {role for role, _, _ in plain} == {"server", "worker"}
    assert {kind for _, _, kind in crashed - plain} >= {"PeerChanged/down"}


def test_nothing_is_collected_unasked():
    assert Trier(Subject(nodes()), Description()).run(Scenario()).points == set()


class Frank(Keeper):
    def abstract(self):
        return self.number % 2


def test_a_node_may_name_its_state():
    states = {state for role, state, _ in points(Scenario(), nodes(Frank, Client)) if role == "keeper"}
    assert {0, 1} == {state for state in states if isinstance(state, int)}


@pytest.mark.parametrize(
    ("value", "found"),
    [(0, 0), (7, 1), (None, 0), ([], 0), ({1}, 1), ({1, 2, 3}, 2), (np.zeros(()), 1), (np.zeros(4), 2), ("", 0)],
)
def test_classes_of_fields(value, found):
    class Holder:
        pass

    coverage, holder = Coverage(), Holder()
    holder.field = value
    coverage.after_step(NodeId("holder", 0), holder, fx.Started({}))
    assert ("holder", (("field", found),), "Started") in coverage.points


def test_kinds_of_events_have_no_numbers():
    assert kind_of(fx.Received(NodeId("a", 1), Keep(7))) == "Received/Keep"
    assert kind_of(fx.PeerChanged(NodeId("a", 1), PeerState.DOWN)) == "PeerChanged/down"
    assert kind_of(fx.TimerFired("round-17", 3)) == "TimerFired"
