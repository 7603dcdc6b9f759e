"""Stop conditions, alone and combined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.stopping import AnyOf, Never, Rounds, Seconds, StopCondition, TargetLoss, Updates

counts = st.integers(1, 6)
conditions = st.one_of(
    st.builds(Rounds, counts),
    st.builds(Updates, counts),
    st.builds(Seconds, st.integers(0, 6).map(float)),
    st.builds(TargetLoss, st.integers(0, 6).map(float)),
    st.just(Never()),
)


@pytest.mark.parametrize(
    ("condition", "before", "at"),
    [
        (Rounds(3), (2, 9, 9.0), (3, 0, 0.0)),
        (Updates(3), (9, 2, 9.0), (0, 3, 0.0)),
        (Seconds(3), (9, 9, 2.9999), (0, 0, 3.0)),
    ],
)
def test_each_looks_at_its_own_count(condition, before, at):
    assert not condition.reached(*before)
    assert condition.reached(*at)
    assert not condition.reached_by({"train_loss": -1.0})


def test_a_target_looks_at_its_metric_only():
    assert TargetLoss(0.5).reached_by({"train_loss": 0.5})
    assert not TargetLoss(0.5).reached_by({"train_loss": 0.5000001})
    assert not TargetLoss(0.5).reached_by({"train_loss": float("nan")})
    assert not TargetLoss(0.5, "validation_loss").reached_by({"train_loss": 0.0})
    assert TargetLoss(0.5, "validation_loss").reached_by({"validation_loss": 0.1})
    assert not TargetLoss(0.5).reached(10**9, 10**9, 1e9)


def test_never_is_never():
    assert not Never().reached(10**9, 10**9, 1e9)
    assert not Never().reached_by({"train_loss": 0.0})
    assert not StopCondition().reached(1, 1, 1.0)


@given(st.lists(conditions, min_size=2, max_size=4), counts, counts, st.integers(0, 6).map(float))
def test_whichever_comes_first(parts, rounds, updates, now_s):
    both = parts[0]
    for part in parts[1:]:
        both = both | part
    metrics = {"train_loss": now_s}

    assert both == AnyOf(tuple(parts))
    assert both.reached(rounds, updates, now_s) == any(part.reached(rounds, updates, now_s) for part in parts)
    assert both.reached_by(metrics) == any(part.reached_by(metrics) for part in parts)


@pytest.mark.parametrize("make", [lambda: Rounds(0), lambda: Updates(-1), lambda: Seconds(-0.1), lambda: Rounds(1.5)])
def test_impossible_limits_are_refused(make):
    with pytest.raises(UserError, match="allowed"):
        make()
