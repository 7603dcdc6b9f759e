"""Verified repetition: the honest bits whatever some workers send, or an error that says which group; never a lie."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emuml
from emuml.cluster import Cluster, Constant, DelayTrace, ShiftedExponential
from emuml.cluster.faults import Crash
from emuml.cover_times import CoverTimes
from emuml.deadlines import Deadline
from emuml.errors import NodeFailed, Unresolved, UserError
from emuml.experiment.plan import plan
from emuml.explanation import sampling
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, VerifiedRepetition
from emuml.theory import (
    expected_decode_error,
    expected_round_time,
    order_statistic_moments,
    round_time_variance,
    sample,
)
from tests.experiment.small import rows_of, small
from tests.protocols.liars import (
    LIES,
    check_former_votes_do_not_count,
    check_half_a_lie_is_a_lie,
    check_lies_change_nothing,
    check_no_message_but_an_answer_counts,
    check_votes_of_two_liars_are_no_majority,
    honest,
    verified,
)
from tests.protocols.training import Tally, regression, train, versions

LAW = ShiftedExponential(0.1, 0.5)


@pytest.mark.slow
def test_no_lie_changes_a_bit():
    check_lies_change_nothing()


def test_three_things_said_by_three_members_are_no_majority():
    check_votes_of_two_liars_are_no_majority()


def test_the_whole_message_is_voted_on():
    check_half_a_lie_is_a_lie()


def test_votes_of_former_rounds_do_not_count():
    check_former_votes_do_not_count()


@st.composite
def placements(draw):
    """Return adversaries, members and number of groups, and liars of which no group has too many."""
    adversaries, extra, groups = draw(st.integers(0, 2)), draw(st.integers(0, 1)), draw(st.integers(1, 3))
    replication, lies = 2 * adversaries + 1 + extra, {}
    for group in range(groups):
        liars = draw(st.lists(st.integers(0, replication - 1), max_size=adversaries, unique=True))
        lies |= {group * replication + liar: draw(st.sampled_from(sorted(LIES))) for liar in liars}
    cells = draw(st.lists(st.integers(1, 4), min_size=2 * replication * groups, max_size=2 * replication * groups))
    return adversaries, replication, groups, lies, 0.25 * np.array(cells, float).reshape(2, -1)


@settings(max_examples=80)
@given(placements())
def test_every_placement_of_few_enough_liars_gives_the_honest_bits(case):
    adversaries, replication, groups, lies, delays = case
    size = {"replication": replication, "adversaries": adversaries, "workers": replication * groups, "rounds": 2}
    run = verified(lies, compute=DelayTrace(delays), **size)

    assert run.error is None
    assert versions(run) == honest(**size)
    assert {log.metrics["decode_error"] for log in run.logs} == {0.0}
    assert all(int(log.metrics["suspects"], 16) & ~sum(1 << liar for liar in lies) == 0 for log in run.logs)


def test_it_trains_what_repetition_trains():
    assert honest(problem=regression) == versions(train(regression(), FractionalRepetition(3), 6, 4))


def test_a_value_is_taken_at_its_first_confirmation():
    delays = DelayTrace(np.array([[1.0, 2.0, 9.0, 1.0, 9.0, 3.0]]))
    run = verified({}, rounds=1, compute=delays)
    assert [(log.time_s, log.metrics["arrivals"]) for log in run.logs] == [(3.0, 4)]

    run = verified({0: "colluding", 3: "shape"}, rounds=1, compute=delays)
    logged = [(log.time_s, *(log.metrics[name] for name in ("dissent", "rejected", "suspects"))) for log in run.logs]
    assert logged == [(9.0, 1, 1, "0x9")]


def test_too_many_liars_stop_the_run_and_the_group_is_named():
    run = verified({3: "colluding", 4: "nan"}, compute=Constant(1.0))
    assert isinstance(run.error, NodeFailed)
    error = run.error.__cause__
    assert isinstance(error, Unresolved)
    assert str(error) == (
        "round 1: group 1 (worker-3, worker-4, worker-5) is not verified: "
        "at most 1 of 3 answers are equal, and 2 must be"
    )
    assert len(run.published) == 1, "nothing was learned from it"


def test_malformed_answers_count_for_nothing_and_may_be_too_many():
    run = verified({0: "shape", 1: "dtype", 2: "empty"}, compute=Constant(1.0))
    assert isinstance(run.error.__cause__, Unresolved)
    run = verified({0: "shape", 1: "dtype", 2: "empty"}, on_unresolved="drop")
    assert [log.metrics["rejected"] for log in run.logs] == [3] * 4
    assert {log.metrics["covered_set"] for log in run.logs} == {"0x2"}


def test_colluders_that_could_outvote_are_contradicted_by_those_who_answer_in_time():
    """Two of six may lie, and three do, together: the other three say what two liars alone could not bring about."""
    lies = dict.fromkeys(range(3), "colluding")
    late = DelayTrace(np.array([[1.0, 1.0, 1.0, 2.0, 2.0, 2.0] + [3.0] * 6]))
    run = verified(lies, replication=6, adversaries=2, workers=12, rounds=1, compute=late)
    assert "3 answers differ from the value that 3 sent, more than 2 adversaries" in str(run.error)

    run = verified(lies, replication=6, adversaries=2, workers=12, rounds=1, compute=late, on_unresolved="drop")
    assert [(log.metrics["covered_set"], log.metrics["unresolved"]) for log in run.logs] == [("0x2", 1)]


def test_who_waits_for_all_finds_colluders_out_before_anything_is_published():
    lies, late = dict.fromkeys(range(2), "colluding"), DelayTrace(np.array([[1.0, 1.0, 3.0, 3.0]] * 2))
    size = {"replication": 4, "adversaries": 1, "workers": 4, "rounds": 2, "compute": late}
    run = verified(lies, stragglers="wait-all", **size)
    assert "2 answers differ from the value that 2 sent, more than 1 adversaries" in str(run.error)
    assert len(run.published) == 1

    run = verified({0: "colluding", 3: "shape"}, stragglers="wait-all", on_unresolved="drop", **size)
    assert [log.metrics["decided_s"] for log in run.logs] == [3.0, 6.0]
    run = verified(
        {3: "colluding"}, stragglers="wait-all", **{**size, "compute": DelayTrace(np.array([[1.0, 1.0, 2.0, 3.0]] * 2))}
    )
    logged = [
        (log.metrics["decided_s"], log.time_s, log.metrics["dissent"], log.metrics["suspects"]) for log in run.logs
    ]
    assert logged == [(1.0, 3.0, 1, "0x8"), (4.0, 6.0, 1, "0x8")]
    assert versions(run) == honest(**size)


def test_a_group_of_crashed_members_is_missed_and_said_like_that_of_any_code():
    faults = [Crash("worker-0", after=("round", 2)), Crash("worker-1", after=("round", 2))]
    run = verified({}, faults=faults, compute=Constant(1.0))
    assert run.error is None
    assert [log.metrics["decode_error"] for log in run.logs] == [0.0, 0.0, 3.0, 3.0]
    assert [log.metrics["lost_rounds"] for log in run.logs] == [0, 0, 1, 2]
    assert {log.metrics["unresolved"] for log in run.logs} == {0}


def test_a_deadline_takes_what_is_verified():
    delays = DelayTrace(np.array([[1.0, 1.0, 9.0, 1.0, 9.0, 9.0]]))
    run = verified({}, rounds=1, compute=delays, deadline=Deadline(after_s=5.0))
    assert [(log.time_s, log.metrics["covered_set"], log.metrics["overdue"]) for log in run.logs] == [(5.0, "0x1", 1)]


def test_plans_and_explanations_count_what_is_verified():
    """Two groups of three; in the first round each has one answer before the deadline, in the second one has two."""
    law = DelayTrace(np.array([[1.0, 9.0, 9.0, 1.0, 9.0, 9.0], [1.0, 1.0, 9.0, 1.0, 9.0, 9.0]]))
    protocol = GradientCoding(VerifiedRepetition(3), deadline_s=5.0)
    experiment = small(protocol=protocol, cluster=Cluster(6, compute=law), rounds=2)
    run = emuml.run(experiment, trace=False)
    assert run.metrics["decode_error"][1:].tolist() == [6.0, 3.0]
    planned = plan(experiment)
    assert (planned.decoding.error, planned.decoding.covered) == (4.5, 0.25)
    found = sampling.sample(protocol.code, 6, law, deadline=protocol.deadline, rounds=2)
    assert found.decode_error.mean == 4.5 / 6


@pytest.mark.parametrize("received", [[], [5, 4], [2, 0, 5], range(6)])
def test_honest_answers_count_from_the_second_of_a_group_on(received):
    code = VerifiedRepetition(3).build(6)
    found, groups = code.decode_honest(received), [worker // 3 for worker in received]
    assert set(found.covered) == {group for group in groups if groups.count(group) > 1}
    assert found.weights.sum() == len(found.covered)
    assert found.error == 6 - 3 * len(found.covered)


@pytest.mark.parametrize("deadline_s", [None, 0.35])
def test_tiers_give_the_same_rows(deadline_s):
    protocol = GradientCoding(VerifiedRepetition(3), deadline_s=deadline_s)
    found = [rows_of(emuml.run(small(protocol=protocol, rounds=12), tier=tier)) for tier in ("event", "array")]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: VerifiedRepetition(2, 1), "nearest are replication=3 and adversaries=0"),
        (lambda: VerifiedRepetition(6, 3), "nearest are replication=7 and adversaries=2"),
        (lambda: VerifiedRepetition(3, -1), "adversaries"),
        (lambda: VerifiedRepetition(3).build(2), "nearest is 2, for at most 0 adversaries"),
        (lambda: VerifiedRepetition(3).build(6, collect=4), "deadline_s"),
        (lambda: VerifiedRepetition(3).build(0), "workers"),
    ],
)
def test_what_cannot_verify_is_refused(make, text):
    with pytest.raises(UserError, match=text):
        make()


@pytest.mark.parametrize(("workers", "replication", "adversaries"), [(1, 1, 0), (5, 5, 2), (7, 3, 1), (3, 3, 0)])
def test_degenerate_sizes_train(workers, replication, adversaries):
    run = train(Tally(), VerifiedRepetition(replication, adversaries), workers, 3)
    assert run.error is None
    assert {log.metrics["decode_error"] for log in run.logs} == {0.0}


# Time


def test_the_time_of_a_round_is_that_of_enough_answers_of_every_group():
    code, law = VerifiedRepetition(5, 1), ShiftedExponential(0.0, 0.5)
    built = code.build(30)
    assert built.stop_rule() == CoverTimes(built.groups, 2)
    mean_s, error_s = sample.round_times(law, built.stop_rule(), 4000, seed=5, load=built.load).mean_and_error_s
    assert abs(expected_round_time(code, 30, law) - mean_s) < 4 * error_s
    assert expected_decode_error(code, 30) == 0.0


def test_one_group_takes_as_long_as_its_confirmation():
    mean_s, _ = order_statistic_moments(LAW, 7.0, 7, 4)
    assert expected_round_time(VerifiedRepetition(7, 3), 7, LAW) == pytest.approx(mean_s, rel=1e-12)


def test_without_adversaries_it_takes_as_long_as_repetition():
    times = [expected_round_time(code, 12, LAW) for code in (VerifiedRepetition(3, 0), FractionalRepetition(3))]
    assert times[0] == pytest.approx(times[1], rel=1e-12)


def test_an_emulated_mean_is_the_closed_form():
    protocol, cluster = GradientCoding(VerifiedRepetition(3)), Cluster(workers=12, compute=LAW)
    result = emuml.run(small(protocol=protocol, cluster=cluster, rounds=1500), tier="array")
    rounds_s = np.diff(result.metrics["time_s"])
    error_s = rounds_s.std() / len(rounds_s) ** 0.5
    assert abs(rounds_s.mean() - expected_round_time(VerifiedRepetition(3), 12, LAW)) < 4 * error_s


# Crashes

any_crashes = st.lists(
    st.builds(
        lambda node, n, back: Crash(node, at_s=n / 8, restart_after_s=back),
        st.sampled_from(["worker-0", "worker-6"]),
        st.integers(1, 30),
        st.sampled_from([0.25, 1.0, None]),
    ),
    max_size=2,
    unique_by=lambda crash: crash.node,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(any_crashes, st.integers(0, 3), st.sampled_from(sorted(LIES)))
def test_a_crash_and_a_lie_in_each_group_leave_the_honest_bits(faults, seed, lie):
    size = {"replication": 4, "adversaries": 1, "workers": 8, "rounds": 5}
    run = verified({1: lie, 5: lie}, compute=LAW, faults=faults, seed=seed, latency_s=0.05, **size)
    assert run.error is None
    assert versions(run) == honest(**size)


def test_only_answers_are_votes():
    check_no_message_but_an_answer_counts()


@pytest.mark.parametrize(("workers", "replication", "adversaries"), [(12, 3, 1), (15, 5, 2), (11, 3, 1), (5, 5, 1)])
def test_means_for_any_law_are_those_for_exponential_times(workers, replication, adversaries):
    """By quantiles of the group's confirmation, or by the number of arrivals used."""

    class Quantiles:
        def ppf(self, q, load=1.0):
            return LAW.ppf(q, load)

        def cdf(self, t, load=1.0):
            return LAW.cdf(t, load)

    code = VerifiedRepetition(replication, adversaries)
    assert expected_round_time(code, workers, Quantiles()) == pytest.approx(
        expected_round_time(code, workers, LAW), rel=1e-10
    )
    variances = [round_time_variance(code, workers, law) for law in (Quantiles(), LAW)]
    assert variances[0] == pytest.approx(variances[1], rel=1e-9)


def test_plans_say_who_may_lie():
    (remark,) = VerifiedRepetition(6, 2).build(12).remarks
    assert remark.startswith("2 of each group may lie, and 1 more be silent")
