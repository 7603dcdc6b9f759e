"""Scenarios: JSON and back, names that stay valid, and what they become on the emulator."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import emuml.testing as et
from emuml.cluster.faults import Crash, FaultPlan, Hang, Partition, SlowNode
from emuml.errors import UserError
from emuml.testing.picks import Picks
from emuml.testing.scenario import CrashFault, Deviation, Scenario, as_name, as_text, load_stored, parsed

FULL = Scenario(
    workers=3,
    seed=4,
    faults=(
        CrashFault(node="worker-2", at_s=3.5, restart_after_s=2.0, keep=("save/1/0",)),
        CrashFault(node="a-0", at_s=1),
    ),
    deviations=(
        Deviation(message=("worker-1", "server-0", "Push", 2), late_s=0.9),
        Deviation(compute=("worker-0", "a/b", 1), late_s=3.0),
        Deviation(tie=(("timer", "server-0", "deadline", 1), ("message", "worker-1", "server-0", "Push", 1))),
        Deviation(lost=("worker-1", "server-0", 0), count=2),
        Deviation(verdict=("server-0", "worker-1", 0), late_s=0.5),
        Deviation(storage=("worker-0", "s", 3), late_s=0.3),
    ),
)


def test_the_empty_scenario_is_the_plain_run_and_says_little():
    assert json.loads(Scenario().to_json()) == {"format": 1}


def test_files_of_the_first_format_load_and_are_still_written_where_it_says_enough():
    first = '{"format": 1, "workers": 3}'
    assert parsed(first) == Scenario(workers=3)
    assert Scenario(workers=3).to_json() == first
    several = Scenario(servers=2)
    assert json.loads(several.to_json()) == {"format": 2, "servers": 2}
    assert parsed(several.to_json()) == several


def test_a_file_says_which_test_it_is_of(tmp_path):
    FULL.to_file(tmp_path / "s.json", "test_it.py::test_it")

    assert load_stored(tmp_path / "s.json") == (FULL, "test_it.py::test_it")
    assert et.load(tmp_path / "s.json") == FULL
    assert json.loads((tmp_path / "s.json").read_text())["format"] == 2


def test_scenarios_survive_json_and_files(tmp_path):
    FULL.to_file(tmp_path / "s.json")

    assert parsed(FULL.to_json()) == et.load(tmp_path / "s.json") == FULL
    assert json.loads(FULL.to_json())["faults"][0] == {
        "kind": "crash",
        "node": "worker-2",
        "at_s": 3.5,
        "restart_after_s": 2.0,
        "keep": ["save/1/0"],
    }


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"format": 4}', "format"),
        ('{"wrokers": 2}', "wrokers"),
        ('{"workers": 0}', "workers"),
        ('{"servers": 0}', "servers"),
        ('{"links": "datagram"}', "links"),
        ('{"faults": [{"kind": "cutt", "node": "worker-1", "at_s": 1}]}', "faults.0"),
        ('{"faults": [{"kind": "cut", "at_s": 1, "for_s": 2}]}', "faults.0.cut.between"),
        ('{"faults": [{"kind": "pause", "node": "worker-1", "at_s": 1, "for_s": 0}]}', "faults.0.pause.for_s"),
        (
            '{"faults": [{"kind": "slow", "node": "worker-1", "at_s": 1, "for_s": 1, "factor": 1}]}',
            "faults.0.slow.factor",
        ),
        ('{"deviations": [{"late_s": 1.0}]}', "deviations.0"),
        ('{"deviations": [{"compute": ["w-0", "t", 0], "storage": ["w-0", "t", 0]}]}', "deviations.0"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_field(text, field):
    with pytest.raises(UserError) as error:
        parsed(text, "f.json")
    assert error.value.where == f"f.json: {field}"


def test_times_are_tenths_of_a_second():
    assert CrashFault(node="a-0", at_s=0.1 + 0.2).at_s == 0.3
    assert CrashFault(node="a-0", at_s=1.26).at_s == 1.3


@given(st.sampled_from(["message", "compute", "verdict"]), st.text("ab/-", min_size=1), st.integers(0, 9))
def test_names_are_parts_and_back(kind, tag, n):
    text = f"{kind}/worker-1/server-0/{tag}/{n}" if kind == "message" else f"{kind}/worker-1/{tag}/{n}"

    assert as_text(as_name(text)) == text
    assert as_name(text)[-1] == n


def test_recorded_picks_become_deviations_and_kept_saves_of_their_crash():
    two = (CrashFault(node="worker-0", at_s=1, restart_after_s=1), CrashFault(node="worker-0", at_s=5))
    picks = [
        ("message/worker-1/server-0/Push/2", 3, 0.0),
        ("save/worker-0/t/4", 1, 1.0),
        ("tie/message/a-0/b-0/X/0|timer/b-0/t/1", 1, 2.0),
        ("lost/worker-0/server-0/1", 2, 5.0),
        ("save/worker-0/t/9", 1, 5.0),
    ]
    scenario = Scenario(faults=two).with_picks(picks)

    assert [fault.keep for fault in scenario.faults] == [("save/t/4",), ("save/t/9",)]
    assert scenario.deviations == (
        Deviation(message=("worker-1", "server-0", "Push", 2), late_s=0.9),
        Deviation(tie=(("timer", "b-0", "t", 1), ("message", "a-0", "b-0", "X", 0))),
        Deviation(lost=("worker-0", "server-0", 1), count=2),
    )
    replayed = Picks(scenario, None, 70.0)
    assert [replayed(name, 6 if name.startswith("message") else 4) for name, _, _ in picks] == [3, 1, 1, 2, 1]
    assert replayed("message/worker-1/server-0/Push/3", 6) == 0
    assert replayed("tie/timer/b-0/t/1|message/a-0/b-0/X/0", 2) == 0  # the first named is first
    assert replayed("tie/message/c-0/b-0/X/0|timer/b-0/t/1|message/a-0/b-0/X/0", 3) == 0  # of two others


def test_nothing_deviates_after_healing():
    picks = Picks(FULL, lambda name, n: n - 1, heal_s=70.0)
    assert picks("message/worker-1/server-0/Push/2", 6) == 3
    assert picks("message/other/server-0/Push/2", 6) == 5
    picks.now = lambda: 70.1
    assert picks("message/worker-1/server-0/Push/2", 6) == picks("message/other/server-0/Push/2", 6) == 0
    assert [name for name, _, _ in picks.recorded] == ["message/other/server-0/Push/2"]


def test_faults_have_their_clock_form():
    assert FULL.fault_plan().faults == (
        Crash("worker-2", at_s=3.5, restart_after_s=2.0),
        Crash("a-0", at_s=1.0),
    )


def test_smaller_is_fewer_nodes_then_rounds_then_faults_then_deviations():
    one = FULL.model_copy(update={"deviations": FULL.deviations[:1]})
    assert Scenario(rounds=9).size() < Scenario(workers=3).size() < Scenario(servers=2).size()
    assert Scenario(workers=2, rounds=9).size() < Scenario(workers=3).size() < one.size() < FULL.size()


def test_cuts_pauses_and_slow_nodes_are_faults_of_the_newest_format():
    text = (
        '{"format": 3, "faults": [{"kind": "cut", "between": [["worker-1"], []], "at_s": 6.0, "for_s": 4.0},'
        ' {"kind": "pause", "node": "server-0", "at_s": 1.04, "for_s": 0.5},'
        ' {"kind": "slow", "node": "worker-0", "factor": 3, "at_s": 2.0, "for_s": 1.0}]}'
    )
    scenario = parsed(text)

    assert parsed(scenario.to_json()) == scenario
    assert json.loads(scenario.to_json())["format"] == 3
    assert [fault.ends_s for fault in scenario.faults] == [10.0, 1.5, 3.0]
    assert scenario.fault_plan() == FaultPlan(
        (
            Partition(("worker-1",), (), 4.0, at_s=6.0),
            Hang("server-0", 0.5, at_s=1.0),
            SlowNode("worker-0", 3.0, 1.0, at_s=2.0),
        )
    )
