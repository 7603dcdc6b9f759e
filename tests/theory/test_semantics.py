"""The recursions of the straggler semantics: by hand, on the published trace, in order, and as the emulator runs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml.cluster import DelayTrace, ErasureHeadDelays
from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes import FractionalRepetition, IgnoreStragglers
from emuml.shapes import All, Count
from emuml.theory import round_ends
from tests.protocols.training import Tally, train
from tests.theory.laws import rules

SEMANTICS = ("cancel", "skip-stale", "carry-over", "wait-all")


def code_of(replication, collect, workers=30):
    declaration = IgnoreStragglers() if replication == 1 else FractionalRepetition(replication)
    return declaration.build(workers, collect=collect)


# Three workers, two answers, four rounds. Worker 2 is stale from round 0 on and worker 0 in rounds 2 and 3.
BY_HAND = np.array([[1.0, 2.0, 9.0], [4.0, 1.0, 1.0], [8.0, 1.0, 2.0], [1.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    ("stragglers", "decided", "ended", "drained", "sent"),
    [
        ("cancel", [2, 3, 5, 6], [2, 3, 5, 6], 6, [2, 2, 2, 3]),
        # Worker 2 is busy until 9 and then does round 2, which ends at 11; the newest parameters are next.
        ("skip-stale", [2, 6, 11, 12], [2, 6, 11, 12], 14, [3, 2, 2, 2]),
        # Worker 2 ends its rounds at 9, 10, 12, 13; worker 0 at 1, 6, 14, 15; worker 1 at 2, 3, 7, 13.
        ("carry-over", [2, 6, 12, 13], [2, 6, 12, 13], 15, [3] * 4),
        ("wait-all", [2, 10, 15, 22], [9, 13, 21, 22], 22, [3] * 4),
    ],
)
def test_three_workers_by_hand(stragglers, decided, ended, drained, sent):
    found = round_ends(BY_HAND, Count(3, 2), stragglers)

    assert found.decided_s.tolist() == decided
    assert found.ended_s.tolist() == ended
    assert (found.drained_s, found.sent.tolist()) == (drained, sent)


TRACE_MEANS = {
    # (replication, collect): seconds per round under cancel, skip-stale and carry-over.
    (1, 30): (1.986423, 1.986423, 1.986423),
    (1, 29): (1.528332, 1.578183, 1.581675),
    (1, 27): (1.072621, 1.190206, 1.195505),
    (1, 24): (0.754641, 0.915195, 0.949269),
    (1, 15): (0.323088, 0.556945, 0.660822),
    (2, None): (0.804175, 0.958113, 1.007208),
    (3, None): (0.499903, 0.692855, 0.750469),
    (5, None): (0.247541, 0.470009, 0.614571),
    (3, 15): (0.315211, 0.552346, 0.656649),
    (3, 20): (0.438798, 0.668839, 0.722954),
    (5, 15): (0.227919, 0.434840, 0.600668),
}


@pytest.mark.parametrize(("replication", "collect"), TRACE_MEANS)
def test_means_on_the_delays_of_erasurehead(replication, collect):
    rule, delays = code_of(replication, collect).stop_rule(), ErasureHeadDelays().trace.array
    means = {stragglers: round_ends(delays, rule, stragglers).ended_s[-1] / 100 for stragglers in SEMANTICS}

    assert list(means.values())[:3] == pytest.approx(TRACE_MEANS[replication, collect], abs=1e-6)
    assert means["wait-all"] == pytest.approx(1.986423, abs=1e-6)


def test_waiting_for_all_decides_as_fresh_starts_do():
    rule, delays = code_of(3, 15).stop_rule(), ErasureHeadDelays().trace.array
    fresh, waits = (round_ends(delays, rule, stragglers) for stragglers in ("cancel", "wait-all"))
    begun_s = np.concatenate([[0.0], waits.ended_s[:-1]])

    # What the program logs adds up to a sixth of what it takes.
    assert np.sum(waits.decided_s - begun_s) == pytest.approx(fresh.decided_s[-1], rel=1e-12)
    assert np.array_equal(waits.answered, fresh.answered)
    covered = waits.answered.reshape(100, 10, 3).any(axis=2)
    assert waits.answered.sum(axis=1).mean() == pytest.approx(14.80, abs=5e-3)
    assert covered.all(axis=1).sum() == 21
    assert covered.mean() == pytest.approx(0.883, abs=5e-4)


@st.composite
def delays_and_rule(draw):
    """Return a stop rule and delays of one of four laws; integers and constants have many ties."""
    rule, rounds = draw(rules()), draw(st.integers(1, 12))
    generator, law = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.integers(0, 3))
    shape = rounds, rule.workers
    return rule, [
        generator.exponential(1.0, shape),
        generator.pareto(1.5, shape),
        generator.integers(0, 4, shape).astype(float),
        np.full(shape, 0.5),
    ][law]


@pytest.mark.slow
@settings(max_examples=400)
@given(delays_and_rule())
def test_no_round_ends_later_under_an_earlier_semantics(drawn):
    rule, delays = drawn
    ends = [round_ends(delays, rule, stragglers) for stragglers in SEMANTICS]
    longest, slack = ends[-1].ended_s[-1], 1e-12 * ends[-1].ended_s[-1]

    for earlier, later in pairwise(ends):
        assert np.all(earlier.decided_s <= later.ended_s + slack)
        assert earlier.drained_s <= longest + slack
    durations = [np.diff(found.ended_s, prepend=0.0) for found in ends]
    assert np.all(durations[0] <= np.minimum(*durations[1:3]) + slack)
    for found in ends[1:]:
        assert np.array_equal(found.answered[0], ends[0].answered[0])
    if isinstance(rule, All | Count):
        needed = rule.parts()[0]
        assert ends[2].ended_s[-1] >= np.sort(delays.sum(axis=0))[needed - 1] - slack


@pytest.mark.slow
@settings(max_examples=100)
@given(delays_and_rule(), st.floats(0, 2), st.floats(0, 2))
def test_messages_on_the_way_lengthen_fresh_rounds_by_their_time(drawn, question_s, answer_s):
    rule, delays = drawn
    for stragglers in ("cancel", "wait-all"):
        near = np.diff(round_ends(delays, rule, stragglers).ended_s, prepend=0.0)
        far = np.diff(round_ends(delays, rule, stragglers, question_s, answer_s).ended_s, prepend=0.0)
        assert far == pytest.approx(near + question_s + answer_s, abs=1e-9)


@pytest.mark.slow
@settings(max_examples=100)
@given(delays_and_rule())
def test_answers_that_are_sent(drawn):
    rule, delays = drawn
    rounds, workers = delays.shape
    ends = {stragglers: round_ends(delays, rule, stragglers) for stragglers in SEMANTICS}

    assert ends["wait-all"].sent.tolist() == ends["carry-over"].sent.tolist() == [workers] * rounds
    for found in ends.values():
        assert np.all((found.answered.sum(axis=1) <= found.sent) & (found.sent <= workers))
    begun_s = np.concatenate([[0.0], ends["cancel"].ended_s[:-1]])
    in_time = begun_s[:, None] + delays <= ends["cancel"].ended_s[:, None]
    assert np.array_equal(ends["cancel"].sent, in_time.sum(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("stragglers", SEMANTICS)
@pytest.mark.parametrize(("replication", "collect"), [(1, 5), (2, None), (3, 6), (4, 3)])
@settings(max_examples=8)
@given(st.sampled_from([0.0, 0.1, 1.5]), st.integers(0, 2**32 - 1))
def test_the_emulator_sends_and_ends_as_the_recursion_says(replication, collect, stragglers, latency_s, seed):
    delays = np.random.default_rng(seed).exponential(1.0, (15, 12))
    declaration = IgnoreStragglers() if replication == 1 else FractionalRepetition(replication)
    expected = round_ends(
        delays, declaration.build(12, collect=collect).stop_rule(), stragglers, question_s=latency_s, answer_s=latency_s
    )
    run = train(
        Tally(), declaration, 12, 15, collect=collect, compute=DelayTrace(delays), latency_s=latency_s,
        stragglers=stragglers,
    )  # fmt: skip

    assert [item.time_s for item in run.published[1:]] == pytest.approx(expected.ended_s, rel=1e-12)
    answers = [row for row in run.trace.rows if row[2] == "send" and row[4] == "Gradient"]
    assert len(answers) == expected.sent.sum()
    assert [log.metrics["arrivals"] for log in run.logs if "arrivals" in log.metrics] == expected.answered.sum(
        1
    ).tolist()
    if stragglers in ("carry-over", "wait-all"):
        assert run.duration_s == pytest.approx(expected.drained_s, rel=1e-12)


@pytest.mark.parametrize(
    ("delays", "stragglers", "text"),
    [
        ([[1.0, 2.0]], "cancle", "did you mean 'cancel'"),
        ([1.0, 2.0], "cancel", r"shape \(rounds, 2\)"),
        ([[1.0, 2.0, 3.0]], "cancel", r"got shape \(1, 3\)"),
        (np.zeros((0, 2)), "cancel", r"got shape \(0, 2\)"),
        ([[1.0, np.inf]], "cancel", "finite"),
        ([[1.0, -1.0]], "cancel", "finite"),
    ],
)
def test_what_are_no_delays_is_refused(delays, stragglers, text):
    with pytest.raises(UserError, match=text):
        round_ends(delays, Count(2, 1), stragglers)
