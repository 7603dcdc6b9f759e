"""What crashes cost gradient coding: nothing while each group lives, and what is missed is said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster import timeline
from emuml.cluster.compute import Constant, DelayTrace, ShiftedExponential
from emuml.cluster.faults import Crash
from emuml.errors import Deadlock
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from tests.protocols.training import (
    Tally,
    check_a_restarted_worker_is_asked,
    regression,
    single_process,
    train,
    versions,
)

LAW = ShiftedExponential(0.1, 0.5)


def clean(code, workers=6, rounds=10):
    return versions(train(Tally(), code, workers, rounds, compute=LAW))


PLANS = {
    "one by the clock": [Crash("worker-1", at_s=1.0, restart_after_s=0.5)],
    "two of different groups for good": [Crash("worker-0", at_s=0.5), Crash("worker-3", at_s=1.5)],
    "one by the count and back by the count": [Crash("worker-4", after=("round", 3), restart_after=("round", 6))],
    "again and again": [Crash("worker-5", at_s=0.4 * n, restart_after_s=0.2) for n in range(1, 12)],
    "one of each group at once": [Crash(f"worker-{w}", after=("round", 2), restart_after_s=3.0) for w in (0, 2, 4)],
}


@pytest.mark.parametrize("plan", PLANS)
def test_repetition_is_exact_while_each_group_lives(plan):
    run = train(Tally(), FractionalRepetition(2), 6, 10, compute=LAW, faults=PLANS[plan])

    assert run.error is None
    assert versions(run) == clean(FractionalRepetition(2))
    assert {log.metrics["decode_error"] for log in run.logs} == {0.0}
    assert run.logs[-1].metrics["lost_rounds"] == 0
    assert len(run.ends) >= 1


def test_a_group_that_lost_everybody_is_missed_and_said():
    faults = [Crash("worker-0", after=("round", 4)), Crash("worker-1", after=("round", 4))]
    run = train(Tally(), FractionalRepetition(2), 6, 8, compute=LAW, faults=faults)
    logs = [log.metrics for log in run.logs]

    assert [log["decode_error"] for log in logs] == [0.0] * 4 + [2.0] * 4
    assert [log["covered"] for log in logs] == [3] * 4 + [2] * 4
    assert [log["lost_rounds"] for log in logs] == [0] * 4 + [1, 2, 3, 4]
    assert [log["down"] for log in logs] == [0] * 4 + [2] * 4
    assert versions(run)[:5] == clean(FractionalRepetition(2))[:5]


def test_uncoded_goes_on_without_a_lost_worker_and_says_what_it_missed():
    run = train(Tally(), Uncoded(), 4, 6, faults=[Crash("worker-2", at_s=2.5)])
    logs = [log.metrics for log in run.logs]

    assert (run.error, run.stopped) == (None, "6 rounds done")
    assert [log["arrivals"] for log in logs] == [4, 4, 3, 3, 3, 3]
    assert [log["decode_error"] for log in logs] == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    assert [(log["covered"], log["groups"]) for log in logs] == [(4, 4)] * 2 + [(3, 4)] * 4
    # The rest is waited for, then nobody is missed who lives.
    assert [log.time_s for log in run.logs] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_a_loss_that_is_noticed_after_the_others_answered_closes_the_round():
    run = train(Tally(), Uncoded(), 3, 2, compute=DelayTrace(np.array([[1.0, 9.0, 2.0]] * 2)),
                faults=[Crash("worker-1", at_s=5.0)])  # fmt: skip

    assert [log.time_s for log in run.logs] == [5.01, 7.01]
    assert [log.metrics["lost_rounds"] for log in run.logs] == [1, 2]


def test_a_worker_that_comes_back_answers_the_open_round():
    check_a_restarted_worker_is_asked()


def test_a_round_without_anybody_waits_for_whoever_comes_back():
    faults = [Crash(f"worker-{w}", at_s=0.5, restart_after_s=4.0 + 3 * w) for w in range(3)]
    run = train(Tally(), Uncoded(), 3, 2, faults=faults)

    assert run.error is None
    assert [log.time_s for log in run.logs] == [5.5, 6.5]
    assert [log.metrics["arrivals"] for log in run.logs] == [1, 1]


def test_when_nobody_comes_back_the_report_says_who_is_missing():
    faults = [Crash(f"worker-{w}", at_s=0.5) for w in range(3)]
    run = train(Tally(), Uncoded(), 3, 2, faults=faults)

    assert isinstance(run.error, Deadlock)
    assert "waiting for answers of round 1 from worker-0 (down), worker-1 (down), worker-2 (down)" in run.error.report


def test_a_restarted_server_trains_from_scratch_in_a_new_life():
    problem = regression()
    faults = [Crash("server-0", after=("round", 4), restart_after_s=1.0)]
    run = train(problem, Uncoded(), 6, 10, compute=LAW, latency_s=0.2, faults=faults)
    expected = single_process(regression(), [(p,) for p in range(6)], 6, 10)

    assert run.error is None
    assert [item.version for item in run.published] == [*range(4), *range(11)]
    assert versions(run)[4:] == expected
    assert [log.metrics["round"] for log in run.logs] == [1, 2, 3, 4, *range(1, 11)]


def test_work_for_a_former_life_is_dropped_when_the_new_one_asks():
    """Each worker is busy for the former life when the new one comes, and must begin again."""
    faults = [Crash("server-0", at_s=0.5, restart_after_s=0.25)]
    run = train(Tally(), Uncoded(), 3, 2, compute=Constant(1), latency_s=0.125, faults=faults)

    # Restart at 0.75, connected at 0.875, asked at 1, answered at 2.125; then a round of 1.25.
    assert [log.time_s for log in run.logs] == [2.125, 3.375]
    assert {log.metrics["decode_error"] for log in run.logs} == {0.0}


def test_answers_to_a_former_life_do_not_count_in_the_new_one():
    """A worker ends its work for the former life when the link is up again and the new question is on its way."""
    faults = [Crash("server-0", at_s=0.5, restart_after_s=0.25)]
    law = DelayTrace(np.array([[0.8125, 2.0, 2.0], [1.0, 1.0, 1.0]]))
    run = train(Tally(), IgnoreStragglers(), 3, 2, collect=2, compute=law, latency_s=0.125, faults=faults)

    answers = [(row.time_s, row.details["peer"]) for row in run.trace.of("receive") if row.node == "server-0"]
    assert answers[0] == (0.125 + 0.8125 + 0.125, "worker-0")
    assert run.logs[0].time_s == 1.0 + 2.0 + 0.125


crash_times = st.integers(1, 60).map(lambda n: n / 16)
worker_crashes = st.builds(
    lambda w, at_s, back: Crash(f"worker-{w}", at_s=at_s, restart_after_s=back),
    st.integers(0, 5),
    crash_times,
    crash_times,
)


@pytest.mark.slow
@given(st.lists(worker_crashes, max_size=8).map(timeline.possible), st.integers(0, 3))
def test_any_crashes_of_workers_leave_a_group_code_exact_or_say_so(faults, seed):
    run = train(Tally(), FractionalRepetition(3), 6, 8, compute=LAW, faults=faults, seed=seed, latency_s=0.05)

    assert run.error is None
    assert len(run.logs) == 8
    missed = [log.metrics["decode_error"] for log in run.logs]
    if not any(missed):
        assert versions(run) == clean(FractionalRepetition(3), rounds=8)
    for log in run.logs:
        assert log.metrics["decode_error"] == 3.0 * (2 - log.metrics["covered"])
