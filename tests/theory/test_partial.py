"""Partial work: the table of mean round times, and dominance over whole answers on the same delays."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster import DelayTrace, ShiftedExponential
from emuml.errors import UserError
from emuml.protocols.gradient_coding import PartialWork, Uncoded
from emuml.theory import expected_round_time, round_ends
from emuml.theory.partial import partial_round_times
from emuml.theory.seams import NoClosedForm

SCALED = ShiftedExponential(shift_s=0.01, mean_s=0.1, tail="scaled")

TABLE = {
    1: (0.437854, 0.192854, 0.127533),  # exact: order statistics
    2: (0.2952, 0.1350, 0.0919),
    4: (0.2167, 0.1066, 0.0760),
    8: (0.1757, 0.0969, 0.0728),
}
"""Mean seconds of a round of 40 workers for tolerances 0, 0.15 and 0.3, by replication."""

WHOLE = {2: 0.4364, 4: 0.4240, 8: 0.4107}
"""The same without partial messages and tolerance."""


@pytest.mark.parametrize("replication", TABLE)
def test_mean_round_times_are_those_of_the_table(replication):
    """Within four standard errors; those of the table's simulated lines are at most 0.0006."""
    for tolerance, expected in zip((0.0, 0.15, 0.3), TABLE[replication], strict=True):
        code = PartialWork(replication, tolerance).build(40)
        mean, error = partial_round_times(SCALED, code, 3000, seed=7).mean_and_error_s
        assert abs(mean - expected) < 4 * np.hypot(error, 0.0006 if replication > 1 else 0.0)


@pytest.mark.parametrize("replication", WHOLE)
def test_whole_answers_gain_little(replication):
    code, random = PartialWork(replication).build(40), np.random.default_rng(3)
    delays = replication * (0.01 + random.exponential(0.1, (3000, 40)))

    times = np.diff(round_ends(delays, code.stop_rule(), "cancel").ended_s, prepend=0.0)
    assert abs(times.mean() - WHOLE[replication]) < 4 * np.hypot(times.std() / 3000**0.5, 0.0006)


def test_one_replica_is_uncoded():
    exact = expected_round_time(Uncoded(), 40, SCALED)
    mean, error = partial_round_times(SCALED, PartialWork(1).build(40), 3000, seed=1).mean_and_error_s

    assert exact == pytest.approx(TABLE[1][0], abs=5e-7)
    assert abs(mean - exact) < 4 * error


@st.composite
def codes(draw):
    """Draw partial work for a few workers."""
    workers = draw(st.integers(1, 9))
    placement = draw(st.sampled_from(["cyclic", "groups"]))
    allowed = [r for r in range(1, workers + 1) if placement == "cyclic" or workers % r == 0]
    tolerance = draw(st.sampled_from([0.0, 0.2, 0.5, 0.9]))
    return PartialWork(draw(st.sampled_from(allowed)), tolerance, placement=placement).build(workers)


def messages_end(code, delays, each):
    """Return when a round ends in which workers send after every ``each`` shares, and at the end."""
    there = np.full(code.partitions, np.inf)
    shares = code.declared.replication
    for worker in range(code.workers):
        for place, partition in enumerate(code.order(worker)):
            sent_after = min((place // each + 1) * each, shares)
            there[partition] = min(there[partition], delays[worker] * sent_after / shares)
    return np.sort(there)[code.needed - 1]


@given(codes(), st.integers(0, 2**32), st.booleans())
def test_more_messages_are_never_later_and_whole_answers_are_the_latest(code, seed, has_ties):
    delays = np.random.default_rng(seed).exponential(size=(4, code.workers)) + 0.1
    delays = np.ceil(delays) if has_ties else delays
    found = np.diff(partial_round_times(DelayTrace(delays), code, 4).ended_s, prepend=0.0)
    whole = np.diff(round_ends(delays, code.stop_rule(), "cancel").ended_s, prepend=0.0)

    shares = code.declared.replication
    each = [[messages_end(code, row, size) for row in delays] for size in range(1, shares + 1)]
    assert found == pytest.approx(each[0], rel=1e-12)
    assert whole == pytest.approx(each[-1], rel=1e-12)
    for finer, coarser in (
        (size, multiple) for size in range(1, shares + 1) for multiple in range(size, shares + 1, size)
    ):
        assert np.all(np.array(each[finer - 1]) <= each[coarser - 1])


@given(codes(), st.integers(0, 2**32))
def test_the_order_of_semantics_holds(code, seed):
    law = DelayTrace(np.random.default_rng(seed).exponential(size=(8, code.workers)) + 0.1)
    ends = [
        partial_round_times(law, code, 8, stragglers=stragglers).ended_s
        for stragglers in ("cancel", "skip-stale", "carry-over", "wait-all")
    ]
    for earlier, later in pairwise(ends):
        assert np.all(earlier <= later * (1 + 1e-12))


@given(codes(), st.permutations(range(9)))
def test_whole_answers_close_a_round_at_enough_partitions(code, order):
    arrivals = [worker for worker in order if worker < code.workers]
    rule, there = code.stop_rule(), set()
    count = 0
    while len(there) < code.needed:
        there.update(code.order(arrivals[count]))
        count += 1
    assert rule.stop_index(np.array(arrivals)) == count
    assert rule.closing_index(np.array(arrivals[: count - 1], np.int64)) == 0
    tracker = rule.tracker()
    assert [tracker.arrived(worker) for worker in arrivals[:count]] == [False] * (count - 1) + [True]


def test_first_messages_are_all_different():
    for placement in ("cyclic", "groups"):
        code = PartialWork(3, placement=placement).build(6)
        assert sorted(code.order(worker)[0] for worker in range(6)) == list(range(6))
        assert np.array_equal(code.encode_matrix.sum(axis=0), np.full(6, 3.0))


def test_partitions_there_are_told():
    code = PartialWork(2, 0.5).build(4)
    found = partial_round_times(DelayTrace(np.array([[2.0, 4.0, 8.0, 9.0]])), code, 1, asks_who=True)

    assert found.decided_s.tolist() == [2.0]
    assert found.answered.tolist() == [[True, True, False, False]]


def test_what_is_not_known_is_refused():
    with pytest.raises(NoClosedForm):
        expected_round_time(PartialWork(2), 6, SCALED)
    for wrong, where in [
        (lambda: PartialWork(0), "replication"), (lambda: PartialWork(2, 1.0), "tolerance"),
        (lambda: PartialWork(4).build(3), "nearest is 3"), (lambda: PartialWork(2).build(4, collect=3), "collect"),
        (lambda: PartialWork(4, placement="groups").build(6), "nearest is 3"),
        (lambda: PartialWork(2).build(4).decode([0]), "decode"),
    ]:  # fmt: skip
        with pytest.raises(UserError, match=where):
            wrong()
