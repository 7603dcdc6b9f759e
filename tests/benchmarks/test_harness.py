"""The benchmark harness: who takes turns when, what a ratio is, and the JSON form."""

import json

import pytest

from benchmarks import decode, harness
from benchmarks.harness import Figure


@pytest.fixture
def clock(monkeypatch):
    """CPU time that passes only when work says so."""

    class Clock:
        now_s = 0.0

        def spend(self, seconds):
            self.now_s += seconds

    clock = Clock()
    monkeypatch.setattr(harness.time, "process_time", lambda: clock.now_s)
    return clock


def test_contestants_take_turns_in_changing_order(clock):
    order = []

    def contestant(name):
        def work():
            order.append(name)
            clock.spend(1.0)

        return work

    times = harness.alternate({"a": contestant("a"), "b": contestant("b")}, turns=3)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab"
    assert times == {"a": [1.0] * 3, "b": [1.0] * 3}


def test_short_work_is_repeated_within_a_turn(clock):
    times = harness.alternate({"a": lambda: clock.spend(0.001)}, turns=2, least_s=0.1)
    assert times["a"] == pytest.approx([0.001, 0.001])
    assert harness.calls_per_turn(lambda: clock.spend(0.001), 0.1) >= 99


def test_a_ratio_is_the_median_within_turns():
    # The machine is ten times slower in the second turn: the ratio of medians would be 1 or 20.
    times = {"ours": [1.0, 10.0, 1.0], "theirs": [2.0, 20.0, 3.0]}
    assert harness.ratio_of(times, "theirs", "ours") == 2.0
    figure = harness.speedup(times, "theirs", "ours", 1.5)
    assert (figure.ratio, figure.reached) == (2.0, True)
    assert figure.details == {"ours_s": 1.0, "baseline_s": 3.0}


@pytest.mark.parametrize(("better", "reached"), [("higher", False), ("lower", True)])
def test_a_target_has_a_direction(better, reached):
    assert Figure("idle", 2.0, better, value=1.0).reached is reached
    assert Figure("idle", None, better, value=1.0).reached is None


def test_a_figure_has_either_a_ratio_or_a_value():
    for numbers in ({}, {"ratio": 1.0, "value": 1.0}):
        with pytest.raises(ValueError, match="either a ratio or a value"):
            Figure("idle", None, **numbers)


def test_json_is_one_object_of_figures(capsys):
    harness.main(
        lambda brief: {"speed": Figure("numpy", 2.0, ratio=3.0), "brief": Figure("n", None, value=brief)},
        ["--json", "--smoke"],
    )
    assert json.loads(capsys.readouterr().out) == {
        "speed": {"ratio": 3.0, "baseline": "numpy", "target": 2.0, "better": "higher"},
        "brief": {"value": True, "baseline": "n", "target": None, "better": "higher"},
    }


def test_text_says_whether_targets_are_reached(capsys):
    harness.main(
        lambda brief: {"speed": Figure("numpy", 2.0, ratio=1.0), "size": Figure("n", 4.0, "lower", value=3)}, []
    )
    fast, small = capsys.readouterr().out.splitlines()
    assert "1.00x" in fast
    assert "missed" in fast
    assert "reached" in small


def test_all_ways_to_decode_agree():
    sums = {name: way().copy() for name, way in decode.contestants(5, 40).items()}
    assert sums.keys() == {decode.OURS, *decode.TARGETS}
    for name, found in sums.items():
        assert found == pytest.approx(sums[decode.OURS], rel=1e-12, abs=1e-12), name
