"""What oracles see of living nodes, and that a campaign leaves the interpreter as it was."""

import gc

import pytest

import emuml.testing as et
from emuml.testing.scenario import CrashFault, Scenario
from emuml.testing.trial import prepared
from tests.testing.keeper import nodes

CRASH = Scenario(faults=(CrashFault(node="keeper-0", at_s=0.8, restart_after_s=0.5),))


def test_one_group_serves_a_run_and_shows_who_lives_now():
    groups, sizes = set(), []

    def look(nodes):
        groups.add(id(nodes["keeper"]))
        sizes.append(len(nodes["keeper"]))
        return True

    trial = et.run(nodes(), CRASH, lambda run: run.always(look, "looks"), faults=et.faults(keep={"client"}))
    assert len(groups) == 1
    assert {0, 1} == set(sizes[1:])
    assert (sizes[-1], trial.run.stopped) == (1, "done")


def test_nodes_are_read_and_never_set():
    def spoil(nodes):
        for keeper in nodes["keeper"]:
            keeper.number = 3
        return True

    with pytest.raises(et.OracleError, match="must not change nodes"):
        et.run(nodes(), Scenario(), lambda run: run.always(spoil, "spoils"))


def test_collecting_garbage_is_as_it_was_before_a_campaign():
    before = gc.get_threshold()
    with prepared():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before
    gc.set_threshold(0, *before[1:])
    try:
        with prepared():
            assert gc.get_threshold()[0] == 0  # whoever turned it off keeps it off
    finally:
        gc.set_threshold(*before)
