"""Rounds that close by the clock: with what is there, also if that is nothing, and what theory says of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emuml
from emuml.cluster import Cluster, Constant, DelayTrace, ShiftedExponential
from emuml.cluster.faults import Crash
from emuml.deadlines import Deadline
from emuml.errors import UserError
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.shapes import Count
from emuml.theory import (
    NoClosedForm,
    absence_at,
    expected_round_time,
    round_ends,
    round_time_cdf,
    round_time_variance,
)
from tests.experiment.small import rows_of, small
from tests.protocols.training import Tally, train, versions

THREE = DelayTrace(np.array([[1.0, 2.0, 9.0], [3.0, 3.0, 3.0], [1.0, 9.0, 9.0]]))


def closed(run, *names):
    """Return when each round was closed, and what was logged of it."""
    return [(log.time_s, *(log.metrics[name] for name in names)) for log in run.logs]


def test_a_round_closes_at_its_deadline_with_what_came_before():
    run = train(Tally(), Uncoded(), 3, 3, compute=THREE, deadline=Deadline(after_s=2.5))

    assert closed(run, "arrivals", "covered_set", "overdue") == [
        (2.5, 2, "0x3", 1),
        (5.0, 0, "0x0", 1),
        (7.5, 1, "0x1", 1),
    ]
    assert [log.metrics["decode_error"] for log in run.logs] == [1.0, 3.0, 2.0]
    assert versions(run)[1] == versions(run)[2], "nobody answered, so nothing moved"


def test_an_answer_at_the_deadline_is_late_and_one_that_closes_the_round_before_is_not():
    run = train(Tally(), Uncoded(), 3, 1, compute=Constant(2.0), deadline=Deadline(after_s=2.0))
    assert closed(run, "arrivals", "overdue") == [(2.0, 0, 1)]

    run = train(Tally(), Uncoded(), 3, 2, compute=Constant(2.0), deadline=Deadline(after_s=2.5))
    assert closed(run, "arrivals", "overdue") == [(2.0, 3, 0), (4.0, 3, 0)], (
        "the timer of a closed round closes no other"
    )


def test_the_others_are_waited_for_so_many_times_as_long_as_the_first():
    run = train(Tally(), Uncoded(), 3, 3, compute=THREE, deadline=Deadline(first_times=2.5))
    assert closed(run, "arrivals", "overdue") == [(2.5, 2, 1), (5.5, 3, 0), (8.0, 1, 1)]

    run = train(Tally(), Uncoded(), 3, 3, compute=THREE, deadline=Deadline(after_s=2.25, first_times=2.5))
    assert closed(run, "arrivals", "overdue") == [(2.25, 2, 1), (4.5, 0, 1), (6.75, 1, 1)], "the earlier of both"


def test_a_first_answer_at_once_sets_no_deadline():
    delays = DelayTrace(np.array([[0.0, 1.0]]))
    run = train(Tally(), Uncoded(), 2, 1, compute=delays, deadline=Deadline(first_times=2.0))
    assert closed(run, "arrivals", "overdue") == [(1.0, 2, 0)]


def test_the_question_travels_within_the_deadline():
    run = train(Tally(), Uncoded(), 2, 2, compute=Constant(1.0), latency_s=0.25, deadline=Deadline(after_s=1.5))
    assert closed(run, "arrivals") == [(1.5, 0), (3.0, 0)]


def test_late_answers_are_stale_and_change_nothing():
    delays = DelayTrace(np.array([[1.0, 2.5], [1.0, 1.0], [1.0, 1.0]]))
    run = train(
        Tally(), IgnoreStragglers("none"), 2, 3, compute=delays, stragglers="skip-stale", deadline=Deadline(after_s=2.0)
    )
    assert closed(run, "arrivals", "stale", "overdue") == [(2.0, 1, 0, 1), (3.5, 2, 1, 0), (4.5, 2, 0, 0)]


def test_with_wait_all_the_deadline_decides_and_the_last_answer_ends_a_round():
    run = train(Tally(), Uncoded(), 3, 1, compute=THREE, stragglers="wait-all", deadline=Deadline(after_s=2.5))
    assert closed(run, "decided_s", "arrivals", "overdue") == [(9.0, 2.5, 2, 1)]


def test_a_round_in_which_nobody_lives_waits_for_whoever_comes_back():
    faults = [Crash("worker-0", at_s=0.5, restart_after_s=5.0), Crash("worker-1", at_s=0.5)]
    run = train(Tally(), Uncoded(), 2, 2, compute=Constant(1.0), deadline=Deadline(after_s=2.0), faults=faults)
    assert closed(run, "arrivals", "down") == [(6.5, 1, 1), (7.5, 1, 1)]


def test_a_first_answer_to_a_round_that_nobody_lived_to_answer_in_time_sets_no_deadline_of_the_past():
    faults = [Crash(f"worker-{w}", at_s=0.5, restart_after_s=5.0 + w) for w in range(2)]
    run = train(Tally(), Uncoded(), 2, 1, compute=Constant(1.0), deadline=Deadline(after_s=2.0), faults=faults)
    assert closed(run, "arrivals") == [(7.5, 2)]


def test_without_a_deadline_nothing_is_logged_of_one():
    run = train(Tally(), Uncoded(), 2, 1)
    assert "overdue" not in run.logs[0].metrics


@pytest.mark.slow
def test_real_time_closes_rounds_too():
    """One worker is never done; how many of the others are there in time is up to the machine."""
    cluster = Cluster(workers=3, compute=DelayTrace(np.array([[0.005, 0.005, 600.0]] * 2)))
    experiment = small(protocol=GradientCoding(Uncoded(), deadline_s=0.5), cluster=cluster, rounds=2)
    real = emuml.run(experiment, engine="tcp")

    assert [row["overdue"] for row in real.metrics.rows[1:]] == [1, 1]
    assert all(row["arrivals"] <= 2 for row in real.metrics.rows[1:])
    assert emuml.replay(real).parameters_sha256 == real.parameters_sha256


def test_tiers_give_the_same_rows():
    protocol = GradientCoding(FractionalRepetition(2), deadline_s=0.4, first_times=3.0)
    found = [rows_of(emuml.run(small(protocol=protocol, rounds=20), tier=tier)) for tier in ("event", "array")]
    assert found[0] == found[1]


@pytest.mark.parametrize("given", [{"deadline_s": 0.0}, {"deadline_s": -1}, {"first_times": 1.0}, {"first_times": "2"}])
def test_impossible_deadlines_are_refused(given):
    with pytest.raises(UserError, match="GradientCoding"):
        GradientCoding(**given)


# Theory


def test_one_worker_is_waited_for_until_the_deadline():
    law, deadline = ShiftedExponential(0.1, 0.5), Deadline(after_s=0.6)
    mean_s = 0.1 + 0.5 * (1.0 - np.exp(-1.0))
    square = 2 * 0.25 * (1.0 - np.exp(-1.0) * 2.0)  # of min(E, 1), by parts, in units of the mean
    assert expected_round_time(Uncoded(), 1, law, deadline=deadline) == pytest.approx(mean_s, rel=1e-10)
    variance = square - (mean_s - 0.1) ** 2
    assert round_time_variance(Uncoded(), 1, law, deadline=deadline) == pytest.approx(variance, rel=1e-9)


def test_the_law_of_a_round_ends_at_the_deadline():
    law, deadline = ShiftedExponential(0.1, 0.5), Deadline(after_s=0.6)
    times = np.array([0.3, 0.59, 0.6, 5.0])
    free = round_time_cdf(FractionalRepetition(2), 6, law, times)
    assert round_time_cdf(FractionalRepetition(2), 6, law, times, deadline=deadline).tolist() == [*free[:2], 1.0, 1.0]


@pytest.mark.parametrize(
    ("code", "collect"), [(Uncoded(), None), (IgnoreStragglers(), 4), (FractionalRepetition(2), None)]
)
def test_moments_are_exact_for_recorded_times(code, collect):
    values, deadline = np.array([0.5, 1.0, 2.0, 4.0]), Deadline(after_s=1.5)
    law = DelayTrace(np.repeat(values[:, None], 6, axis=1))
    mean_s = expected_round_time(code, 6, law, collect, deadline=deadline)
    grid = np.array(np.meshgrid(*[values] * 6)).reshape(6, -1).T
    times = round_ends(grid, code.build(6, collect=collect).stop_rule(), "cancel", deadline=deadline)
    assert mean_s == pytest.approx(np.diff(times.ended_s, prepend=0.0).mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("stragglers", "deadline"),
    [
        ("skip-stale", Deadline(after_s=1.0)),
        ("carry-over", Deadline(after_s=1.0)),
        ("cancel", Deadline(first_times=2.0)),
    ],
)
def test_what_has_no_closed_form_says_so(stragglers, deadline):
    with pytest.raises(NoClosedForm, match="round_ends"):
        expected_round_time(Uncoded(), 3, ShiftedExponential(0.1, 0.5), stragglers=stragglers, deadline=deadline)


def test_the_order_of_the_semantics_does_not_hold_with_deadlines():
    """A worker that is held up is missing under skip-stale, and with it the first answer, which sets the deadline."""
    delays, rule = [[1.0, 4.0], [4.0, 9.0], [9.0, 1.0]], Count(2, 2)
    ends = [
        round_ends(delays, rule, stragglers, deadline=Deadline(after_s=3.0)).ended_s[-1]
        for stragglers in ("cancel", "skip-stale", "carry-over", "wait-all")
    ]
    assert ends[:3] == [9.0, 9.0, 9.0], "every round lasts until its deadline, whatever the semantics"
    rounds = [
        np.diff(round_ends([[4.0, 1.0], [0.5, 0.5]], rule, s, deadline=Deadline(first_times=2.0)).ended_s, prepend=0.0)
        for s in ("cancel", "skip-stale")
    ]
    assert rounds[0].tolist() == [2.0, 0.5]
    assert rounds[1].tolist() == [2.0, 1.0]


@settings(max_examples=60)
@given(st.floats(0.05, 3.0), st.floats(0.1, 2.0), st.floats(0.0, 1.0))
def test_absence_is_the_chance_to_be_late(deadline_s, load, shift_s):
    law = ShiftedExponential(shift_s, 0.5, "scaled")
    late = 1.0 if deadline_s <= load * shift_s else np.exp(-(deadline_s / load - shift_s) / 0.5)
    assert absence_at(law, deadline_s, load) == pytest.approx(late, rel=1e-9, abs=1e-12)


def test_a_time_equal_to_the_deadline_is_absent():
    assert absence_at(Constant(1.0), 1.0) == 1.0
    assert absence_at(Constant(1.0), 1.0 + 1e-9) == 0.0
