"""What becomes of stragglers: each semantics event by event, on the delays of ErasureHead's program, and under crashes.

Reference: the recursions over a matrix of delays, ``emuml.theory.round_ends``; ErasureHead, arXiv:1901.09671, whose
program waits for all after it stopped its clock; Tandon et al., arXiv:1612.03301, whose program carries work over.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster.faults import Crash
from emuml.node import PeerState
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.protocols.gradient_coding.server import Server
from emuml.theory import round_ends
from tests.protocols.code_checks import erasurehead_trace
from tests.protocols.straggler_checks import (
    DELAYS,
    ENDS,
    SEMANTICS,
    check_event_by_event,
    emulate,
    ends,
    logged,
    trained,
)
from tests.protocols.training import Server1, Tally, versions


@pytest.mark.parametrize("stragglers", SEMANTICS)
def test_each_semantics_event_by_event(stragglers):
    check_event_by_event(stragglers)


def test_wait_all_logs_when_the_rounds_were_decided():
    run = emulate(DELAYS, IgnoreStragglers(), 2, "wait-all")

    assert logged(run, "decided_s") == [2, 8, 11.5]
    assert run.duration_s == 14


def test_carry_over_drains_what_is_queued_after_the_last_round():
    run = emulate(DELAYS, IgnoreStragglers(), 2, "carry-over")

    assert run.logs[-1].metrics == {"drain_s": 0.5, "stale": 1}
    assert run.duration_s == 9.5


@pytest.mark.parametrize("stragglers", ["cancel", "skip-stale", "wait-all"])
def test_only_carry_over_drains(stragglers):
    run = emulate(DELAYS, IgnoreStragglers(), 2, stragglers)

    assert run.duration_s == ENDS[stragglers][-1]
    assert "drain_s" not in run.logs[-1].metrics


RULES = {
    # Rule -> replication, collect, and seconds per round on the delays of ErasureHead's program under cancel,
    # skip-stale and carry-over.
    "k = 30": (1, 30, 1.986423, 1.986423, 1.986423),
    "k = 29": (1, 29, 1.528332, 1.578183, 1.581675),
    "k = 27": (1, 27, 1.072621, 1.190206, 1.195505),
    "k = 24": (1, 24, 0.754641, 0.915195, 0.949269),
    "k = 15": (1, 15, 0.323088, 0.556945, 0.660822),
    "FRC r=2": (2, None, 0.804175, 0.958113, 1.007208),
    "FRC r=3": (3, None, 0.499903, 0.692855, 0.750469),
    "FRC r=5": (5, None, 0.247541, 0.470009, 0.614571),
    "AGC r=3 c=15": (3, 15, 0.315211, 0.552346, 0.656649),
    "AGC r=3 c=20": (3, 20, 0.438798, 0.668839, 0.722954),
    "AGC r=5 c=15": (5, 15, 0.227919, 0.434840, 0.600668),
}


@pytest.mark.slow
@pytest.mark.parametrize("stragglers", SEMANTICS)
@pytest.mark.parametrize("rule", RULES)
def test_seconds_per_round_on_the_delays_of_erasurehead(rule, stragglers):
    replication, collect, *means = RULES[rule]
    code = IgnoreStragglers() if replication == 1 else FractionalRepetition(replication)
    trace = erasurehead_trace()
    run = emulate(trace, code, collect, stragglers)

    expected = dict(zip(SEMANTICS, [*means, 1.986423], strict=True))[stragglers]
    assert ends(run)[-1] / 100 == pytest.approx(expected, abs=1e-6)
    reference = round_ends(trace, code.build(30, collect=collect).stop_rule(), stragglers)
    assert ends(run) == pytest.approx(reference.ended_s, rel=1e-12)


@st.composite
def cases(draw):
    """A matrix of delays, with ties or without, and a code that may be stopped early."""
    workers, rounds = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    whole = st.integers(1, 4).map(float)
    real = st.floats(0.01, 5.0) | st.sampled_from([0.01, 20.0])
    entries = draw(st.sampled_from([whole, real]))
    delays = np.array(draw(st.lists(entries, min_size=workers * rounds, max_size=workers * rounds)))
    code = draw(
        st.sampled_from([Uncoded(), IgnoreStragglers(), IgnoreStragglers("none")])
        | st.integers(1, workers).map(FractionalRepetition)
    )
    collect = None if isinstance(code, Uncoded) else draw(st.none() | st.integers(1, workers))
    return delays.reshape(rounds, workers), code, collect


@pytest.mark.slow
@given(case=cases(), stragglers=st.sampled_from(SEMANTICS))
def test_the_emulator_follows_the_recursions_and_late_answers_change_nothing(case, stragglers):
    delays, code, collect = case
    built = code.build(delays.shape[1], collect=collect)
    run = emulate(delays, code, collect, stragglers)
    reference = round_ends(delays, built.stop_rule(), stragglers)

    assert ends(run) == pytest.approx(reference.ended_s, rel=1e-12)
    if stragglers == "wait-all":
        assert logged(run, "decided_s") == pytest.approx(reference.decided_s, rel=1e-12)
    if stragglers == "carry-over":
        assert run.duration_s == pytest.approx(reference.drained_s, rel=1e-12)
    if stragglers in ("cancel", "wait-all"):  # everybody starts at once, so equal ends come in the order of workers
        assert logged(run, "arrivals") == reference.answered.sum(axis=1).tolist()
        sets = [np.flatnonzero(row).tolist() for row in reference.answered]
        covered = [built.decode(received).covered for received in sets]
        assert logged(run, "covered_set") == [hex(sum(1 << j for j in groups)) for groups in covered]
    assert versions(run) == trained(Tally(), built, logged(run, "covered_set"))


def test_a_worker_that_is_free_at_the_instant_at_which_a_round_ends_skips_it():
    run = emulate(np.array([[2.0, 1.0], [2.0, 1.0], [1.0, 2.0], [1.0, 3.0]]), IgnoreStragglers(), 1, "skip-stale")

    assert ends(run) == [1, 2, 3, 4]


@pytest.mark.slow
@given(case=cases())
def test_cancelling_is_never_slower_than_skipping_nor_that_than_carrying_over_nor_that_than_waiting(case):
    delays, code, collect = case
    runs = {stragglers: emulate(delays, code, collect, stragglers) for stragglers in SEMANTICS}
    times = np.array([ends(runs[stragglers]) for stragglers in SEMANTICS])

    assert (np.diff(times, axis=0) >= -1e-9).all()
    durations = np.diff(times, axis=1, prepend=0.0)
    assert (durations[0] <= durations[1:3] + 1e-9).all()
    assert len({tuple(logged(run, "covered_set")[:1]) for run in runs.values()}) == 1


# Crashes: nobody waits for the dead, and who comes back is asked for what is open


def test_wait_all_goes_on_without_a_straggler_that_dies():
    run = emulate(DELAYS, IgnoreStragglers(), 2, "wait-all", faults=[Crash("worker-2", at_s=3.0)])

    assert ends(run) == [3.01, 6.01, 10.01]  # a crash is noticed after 0.01 s
    assert logged(run, "decided_s") == [2, 6.01, 10.01]


def test_wait_all_does_not_wait_for_a_worker_that_came_back_after_the_round_was_decided():
    faults = [Crash("worker-2", at_s=3.0, restart_after_s=0.5)]
    delays = np.array([[1.0, 6.0, 7.0], [3.0, 1.0, 1.0], [1.0, 4.0, 1.5]])
    run = emulate(delays, IgnoreStragglers(), 1, "wait-all", faults=faults)

    assert ends(run) == [6, 9, 13]


def test_wait_all_asks_a_worker_that_came_back_before_the_round_was_decided():
    faults = [Crash("worker-2", at_s=0.5, restart_after_s=0.5)]
    run = emulate(DELAYS, Uncoded(), None, "wait-all", faults=faults)

    assert ends(run) == [8, 11, 15]


def test_a_queue_dies_with_its_worker():
    delays = np.array([[1.0, 9.0], [1.0, 2.0], [1.0, 2.0], [1.0, 3.0]])
    faults = [Crash("worker-1", at_s=2.5, restart_after_s=0.25)]
    run = emulate(delays, IgnoreStragglers(), 1, "carry-over", faults=faults)

    assert ends(run) == [1, 2, 3, 4]
    begins = [(row[0], row[4]) for row in run.trace.rows if row[1:3] == ("worker-1", "begin")]
    assert begins == [(0, 0), (2.75, 2), (4.75, 3)]  # round 1 was in the queue that died; round 2 was open
    assert run.logs[-1].metrics["drain_s"] == 3.75


@pytest.mark.parametrize("stragglers", SEMANTICS)
def test_a_server_that_starts_again_is_not_kept_waiting_by_its_former_life(stragglers):
    delays = np.array([[1.0, 50.0, 2.0]] * 4)
    faults = [Crash("server-0", at_s=5.5, restart_after_s=0.5)]
    run = emulate(delays, IgnoreStragglers(), 2, stragglers, faults=faults)

    begins = [row[0] for row in run.trace.rows if row[1:3] == ("worker-1", "begin")]
    assert 6.0 in begins
    assert len(run.logs) >= 4


class WaitsForAll(Server):
    def __init__(self, *arguments):
        super().__init__(*arguments, "wait-all")


def test_a_straggler_that_was_thought_dead_is_waited_for_again_and_its_late_answer_is_asked_for():
    hand = Server1(IgnoreStragglers("none").build(3, collect=1), Tally(columns=1), server=WaitsForAll)
    hand.answer(0, [1.0])
    hand.peer(1, PeerState.DOWN)
    asked = len(hand.asked)
    hand.peer(1, PeerState.UP)
    assert [worker for worker, _ in hand.asked[asked:]] == [1]
    hand.answer(2, [1.0])
    assert hand.logs == []
    hand.answer(1, [1.0])
    assert [log["stale"] for log in hand.logs] == [2]


def test_a_straggler_that_starts_again_after_the_decision_is_not_waited_for():
    hand = Server1(IgnoreStragglers("none").build(3, collect=1), Tally(columns=1), server=WaitsForAll)
    hand.answer(0, [1.0])
    hand.peer(1, PeerState.RESTARTED)
    hand.answer(2, [1.0])
    assert len(hand.logs) == 1
