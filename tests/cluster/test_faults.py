"""Fault plans as data: files, positions of mistakes, and what is refused."""

import pytest

from emuml import Crash, FaultPlan, Start
from emuml.cluster.faults import Hang, Partition, SlowLink
from emuml.errors import UserError
from emuml.node import NodeId

PLAN = FaultPlan(
    (
        Crash("worker-1", 2.5, 5.0),
        Crash("worker-2", after=("round", 17), restart_after=("round", 20)),
        Start("worker-3", at_s=1.0),
        Partition(("worker-0",), ("server-0",), 2.0, at_s=3.0),
        SlowLink("worker-0", "server-0", 0.5, 2.0, at_s=1.0),
    )
)


def test_a_plan_comes_back_from_its_file(tmp_path):
    PLAN.to_file(tmp_path / "plan.yaml")
    assert FaultPlan.from_file(tmp_path / "plan.yaml") == PLAN


def test_time_and_restart_are_the_second_and_third_of_a_crash():
    crash = Crash("worker-1", 2.5, 5.0)
    assert (crash.at_s, crash.restart_after_s, crash.after) == (2.5, 5.0, None)


BAD = {
    "- {kind: crash, node: worker-1, at_s: x}": r"fault 0: Crash\.at_s: got 'x'",
    "- {kind: start, node: worker-1, at_s: 1}\n- {kind: crash, node: w, at_s: 1}": r"fault 1: Crash\.node: 'w' is no",
    "- {kind: crash, node: worker-1}": "fault 0: Crash: exactly one of at_s and after",
    "- {kind: crash, node: worker-1, at_s: 1, after: [round, 3]}": "exactly one of at_s and after",
    "- {kind: crash, node: worker-1, at_s: 1, restart_after_s: 1, restart_after: [round, 3]}": "two times of restart",
    "- {kind: crash, when: 3}": "fault 0: .*unexpected keyword argument 'when'",
    "- {kind: [1]}": "fault 0: got .*a mapping with 'kind'",
    "- {kind: rounds, count: 3}": "'rounds' is no fault",
    "- 7": "a mapping with 'kind'",
    "7": "a list of faults",
    "a: [": "while parsing",
}


@pytest.mark.parametrize("text", BAD)
def test_a_mistake_is_told_with_its_position(tmp_path, text):
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(UserError, match=BAD[text]) as caught:
        FaultPlan.from_file(tmp_path / "plan.yaml")
    assert "plan.yaml" in str(caught.value)


def test_what_is_no_text_and_no_list_is_refused(tmp_path):
    (tmp_path / "plan.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"plan\.yaml"):
        FaultPlan.from_file(tmp_path / "plan.yaml")
    with pytest.raises(UserError, match="a list of faults"):
        FaultPlan(Crash("worker-1", at_s=1.0))


def test_a_plan_is_checked_for_nodes_and_for_what_an_engine_can_do():
    ids = [NodeId("worker", index) for index in range(3)]
    with pytest.raises(UserError, match="'worker-7' is not in the roster"):
        FaultPlan([Crash("worker-7", at_s=1)]).checked_for(ids, (Crash,), "des")
    with pytest.raises(UserError, match="engine des cannot execute hang; allowed: crash"):
        FaultPlan([Hang("worker-1", 1.0, at_s=1)]).checked_for(ids, (Crash,), "des")


@pytest.mark.parametrize("field", ["after", "restart_after"])
def test_a_counter_that_is_never_logged_is_refused(field):
    when = {"after": ("round", -1)} if field == "after" else {"at_s": 1.0, "restart_after": ("round", -1)}
    with pytest.raises(UserError, match=rf"Crash.{field}: got -1; allowed: a counter and an integer >= 0"):
        Crash("worker-1", **when)
    assert Crash("worker-1", after=("round", 0)).after == ("round", 0)


def test_counters_of_a_plan():
    assert PLAN.triggers() == {("round", 17), ("round", 20)}
