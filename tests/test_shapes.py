"""Stop rules: the incremental and the array form agree, are monotone, and know when waiting is hopeless."""

import copy
import pickle
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cover_times import CoverTimes
from emuml.errors import ContractError, UserError
from emuml.shapes import All, Count, Cover, CoverOrCount, Push, Round, StopRule, miss_probability


def contiguous(sizes):
    bounds = np.concatenate(([0], np.cumsum(sizes))).tolist()
    return tuple(tuple(range(a, b)) for a, b in pairwise(bounds))


@st.composite
def rules(draw):
    groups = contiguous(draw(st.lists(st.integers(1, 4), min_size=1, max_size=8)))
    relabel = draw(st.permutations(range(groups[-1][-1] + 1)))
    groups = tuple(tuple(relabel[worker] for worker in group) for group in groups)
    workers = len(relabel)
    count = draw(st.integers(1, workers))
    times = CoverTimes(groups, draw(st.integers(1, min(map(len, groups)))))
    return draw(
        st.sampled_from([All(workers), Count(workers, count), Cover(groups), CoverOrCount(groups, count), times])
    )


@st.composite
def arrivals(draw):
    """Return a rule and an order of arrivals with repeats, in which some workers may be missing."""
    rule = draw(rules())
    return rule, draw(st.lists(st.integers(0, rule.workers - 1), max_size=2 * rule.workers))


def closes(rule, responders):
    tracker = rule.tracker()
    return any(tracker.arrived(worker) for worker in responders)


@given(arrivals())
def test_tracker_and_stop_index_agree(case):
    rule, order = case
    tracker = rule.tracker()
    first = next((i for i, worker in enumerate(order, start=1) if tracker.arrived(worker)), len(order))

    assert rule.stop_index(np.array(order, dtype=np.int64)) == first
    assert tracker.arrived_workers == tuple(sorted(set(order[:first])))
    assert tracker.n_arrived == len(set(order[:first]))


@given(arrivals())
def test_a_closed_round_stays_closed(case):
    rule, order = case
    tracker = rule.tracker()
    answers = [tracker.arrived(worker) for worker in order]

    assert answers == sorted(answers)
    assert tracker.closed == bool(answers and answers[-1])


@given(arrivals(), st.data())
def test_rules_are_monotone_in_the_responders(case, data):
    rule, order = case
    more = data.draw(st.lists(st.integers(0, rule.workers - 1)))

    assert closes(rule, order) <= closes(rule, [*more, *order])


@given(arrivals(), st.data())
def test_hopeless_means_that_all_living_workers_together_do_not_close_the_round(case, data):
    rule, order = case
    down = data.draw(st.sets(st.integers(0, rule.workers - 1)))
    tracker = rule.tracker()
    for worker in order:
        tracker.arrived(worker)

    living = [worker for worker in range(rule.workers) if worker not in down]
    assert tracker.hopeless(down) == (not closes(rule, [*order, *living]))


@pytest.mark.parametrize(
    ("rule", "used"),
    [
        (All(4), 4),
        (Count(4, 2), 2),
        (Cover(((0, 1), (2, 3))), 3),
        (CoverOrCount(((0, 1), (2, 3)), 2), 2),
        (CoverOrCount(((0, 1), (2, 3)), 4), 3),
        (CoverOrCount(((0, 2), (1, 3)), 4), 2),
        (CoverTimes(((0, 1), (2, 3)), 1), 3),
        (CoverTimes(((0, 1), (2, 3)), 2), 4),
        (CoverTimes(((0, 1, 2, 3),), 3), 3),
    ],
)
def test_arrivals_used_in_the_order_1_0_2_3(rule, used):
    order = [1, 0, 2, 3]

    assert rule.stop_index(np.array(order)) == used
    assert closes(rule, order[:used])
    assert not closes(rule, order[: used - 1])


def test_the_answer_of_a_worker_that_went_down_later_still_counts():
    tracker = Cover(((0, 1), (2, 3))).tracker()
    tracker.arrived(0)

    assert not tracker.hopeless({0, 1})
    assert not tracker.hopeless({2})
    assert tracker.hopeless({2, 3})


def test_cover_or_count_has_hope_while_either_part_has():
    rule = CoverOrCount(((0, 1, 2), (3,)), 3)

    assert not rule.tracker().hopeless({3})
    assert not rule.tracker().hopeless({1, 2})
    assert rule.tracker().hopeless({2, 3})


def test_a_repeated_worker_changes_nothing():
    tracker = Count(3, 2).tracker()

    assert [tracker.arrived(1), tracker.arrived(1), tracker.arrived(0)] == [False, False, True]


def test_an_empty_order_uses_no_arrival():
    assert Cover(((0,), (1,))).stop_index(np.array([], dtype=np.int64)) == 0


@pytest.mark.parametrize("worker", [-1, 3])
def test_an_unknown_worker_is_refused(worker):
    with pytest.raises(ContractError, match=r"workers 0\.\.2"):
        All(3).tracker().arrived(worker)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: All(0), "All.workers"),
        (lambda: Count(3, 4), "nearest is 3"),
        (lambda: Count(3, 0), "Count.count"),
        (lambda: Cover(()), "at least one group"),
        (lambda: Cover(((0,), ())), "none of them empty"),
        (lambda: Cover(((0, 1), (1,))), "exactly once"),
        (lambda: Cover(((0, 2),)), "exactly once"),
        (lambda: CoverOrCount(((0, 1),), 3), "nearest is 2"),
        (lambda: CoverOrCount(((0, 1),), 0), "nearest is 1"),
        (lambda: CoverTimes(((0, 1), (2, 3, 4)), 3), "nearest is 2"),
        (lambda: CoverTimes(((0, 1),), 0), "nearest is 1"),
        (lambda: CoverTimes(((0, 2),), 1), "exactly once"),
    ],
)
def test_impossible_rules_are_refused_with_what_is_allowed(make, text):
    with pytest.raises(UserError, match=text):
        make()


@given(arrivals())
def test_rules_and_trackers_survive_pickle_and_copy(case):
    rule, order = case
    tracker = rule.tracker()
    for worker in order[: len(order) // 2]:
        tracker.arrived(worker)

    again = pickle.loads(pickle.dumps(rule))
    assert again == rule
    assert hash(again) == hash(rule)
    twin = copy.deepcopy(tracker)
    assert [twin.arrived(worker) for worker in order] == [tracker.arrived(worker) for worker in order]


def test_a_rule_of_100_000_workers_is_evaluated_as_arrays():
    groups = contiguous([4] * 25_000)
    order = np.random.default_rng(1).permutation(100_000)
    used = CoverOrCount(groups, 99_000).stop_index(order)

    met = np.unique(order[:used] // 4).size
    assert used == 99_000 or (met == 25_000 and np.unique(order[: used - 1] // 4).size < 25_000)


def test_a_rule_without_parts_must_state_how_it_closes():
    with pytest.raises(NotImplementedError):
        StopRule().parts()


def test_miss_probability_equals_the_ratio_of_binomials():
    for workers, size, count in [(6, 2, 3), (30, 3, 15), (12, 12, 1), (12, 3, 0), (12, 3, 10)]:
        exact = comb(workers - size, count) / comb(workers, count)
        assert miss_probability(workers, size, count) == pytest.approx(exact, rel=1e-14, abs=0)


class AfterEverybody:
    def may_start(self, clock, completed):
        return min(completed) >= clock


def test_round_and_push_check_their_fields():
    shape = Round(broadcast=800, compute=3.0, stop_rule=Count(3, 2), answer=900)
    assert (shape.broadcast, shape.compute, shape.answer, shape.stragglers) == (800, 3.0, 900, "cancel")
    assert Push(pull=800, compute=1, push=900, barrier=AfterEverybody()).barrier.may_start(1, [1, 1])

    with pytest.raises(UserError, match="broadcast"):
        Round(broadcast=-1, compute=1.0, stop_rule=All(2))
    with pytest.raises(UserError, match="stragglers"):
        Round(broadcast=1, compute=1.0, stop_rule=All(2), stragglers="kill")
    with pytest.raises(UserError, match="pull"):
        Push(pull=-1, compute=1.0, push=0, barrier=AfterEverybody())
