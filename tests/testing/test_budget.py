"""Budgets keep explorers inside the contract: what exceeds them is dropped and counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import emuml.testing as et
from emuml.errors import UserError
from emuml.node import NodeId
from emuml.testing.scenario import CrashFault

IDS = [NodeId("server", 0), *(NodeId("worker", i) for i in range(4))]


def crash(node, at_s, after_s=1.0):
    return CrashFault(node=node, at_s=at_s, restart_after_s=after_s)


def applied(budget, *faults, survives=("worker",)):
    return budget.applied(faults, IDS, survives)


def test_roles_that_the_protocol_does_not_claim_never_crash():
    assert applied(et.faults(), crash("server-0", 1), crash("worker-0", 1)) == ((crash("worker-0", 1),), 1)
    assert applied(et.faults(keep=()), crash("server-0", 1))[1] == 0
    assert applied(et.faults(keep={"worker-1", "server"}), crash("worker-1", 1), crash("worker-2", 1))[1] == 1


def test_so_many_crashes_a_run_the_first_ones():
    faults = [crash("worker-0", 9), crash("worker-1", 1), crash("worker-2", 5)]
    assert applied(et.faults(crash=2), *faults) == ((crash("worker-1", 1), crash("worker-2", 5)), 1)
    assert applied(et.faults(crash=0), *faults) == ((), 3)


def test_every_crash_ends_within_its_time_and_before_healing():
    assert applied(et.faults(restart_within_s=3), crash("worker-0", 1, 3.5))[1] == 1
    assert applied(et.faults(heal_s=10), crash("worker-0", 8, 2.5))[1] == 1
    assert applied(et.faults(), crash("worker-0", 1, None))[1] == 1
    for_good = [crash("worker-0", 1, None), crash("worker-1", 2, None)]
    assert applied(et.faults(for_good=1), *for_good) == ((for_good[0],), 1)


def test_a_node_that_is_down_cannot_crash():
    assert applied(et.faults(), crash("worker-0", 1, 5.0), crash("worker-0", 3))[1] == 1


def test_a_quorum_lives_at_any_time():
    budget = et.faults(crash=4, keep={et.quorum(3, of="worker"), "server"})
    faults = [crash("worker-0", 1, 2.0), crash("worker-1", 2), crash("worker-2", 3.5)]
    assert applied(budget, *faults) == ((faults[0], faults[2]), 1)


def test_a_name_in_place_of_names_is_refused():
    with pytest.raises(UserError, match="a set of roles"):
        et.faults(keep="server")
    with pytest.raises(UserError, match="least"):
        et.clusters(workers=(3, 2))


FAULTS = st.builds(
    CrashFault,
    node=st.sampled_from([str(id) for id in IDS]),
    at_s=st.integers(0, 100).map(float),
    restart_after_s=st.none() | st.floats(0.1, 20),
)


@given(st.lists(FAULTS, max_size=8), st.integers(0, 4), st.integers(0, 4))
def test_what_is_left_is_legal_and_stays_legal(faults, most, least):
    budget = et.faults(crash=most, keep={"server", et.quorum(least, of="worker")})
    legal, dropped = budget.applied(faults, IDS, ())

    assert len(legal) + dropped == len(faults)
    assert budget.applied(legal, IDS, ()) == (legal, 0)
    assert len(legal) <= most
    for fault in legal:
        down = {other.node for other in legal if other.at_s <= fault.at_s <= other.ends_s}
        assert len(down) <= 4 - least
        assert "server-0" not in down


def test_cuts_and_pauses_count_against_quorums_and_each_kind_has_a_limit_of_its_own():
    cut = et.CutFault(between=(("worker-0",), ()), at_s=1.0, for_s=4.0)
    pause = et.PauseFault(node="worker-1", at_s=2.0, for_s=1.0)
    crash = CrashFault(node="worker-2", at_s=2.5, restart_after_s=1.0)
    later = et.PauseFault(node="worker-3", at_s=6.0, for_s=1.0)
    slow = et.SlowFault(node="worker-3", at_s=2.0, for_s=1.0)
    given = (cut, pause, crash, later, slow)

    free = et.faults(keep=(), pause=2)
    assert free.applied(given, IDS, ()) == (tuple(sorted(given, key=lambda fault: (fault.at_s, fault.kind))), 0)
    two = et.faults(keep={et.quorum(3, of="worker")}, pause=2)
    assert two.applied(given, IDS, ()) == ((cut, slow, later), 2)
    assert et.faults(keep=(), cut=0, slow=0).applied(given, IDS, ()) == ((pause, crash), 3)


def test_what_is_down_or_stands_still_does_not_pause_and_all_ends_before_the_healing():
    budget = et.faults(keep=(), pause=9, heal_s=20.0)
    crash = CrashFault(node="worker-0", at_s=1.0, restart_after_s=2.0)
    pauses = [et.PauseFault(node="worker-0", at_s=at_s, for_s=2.0) for at_s in (2.0, 3.0, 3.5, 5.0, 5.5, 6.0, 18.5)]

    legal, dropped = budget.applied([crash, *pauses], IDS, ())
    assert [fault.at_s for fault in legal] == [1.0, 3.5, 6.0]
    assert dropped == 5
