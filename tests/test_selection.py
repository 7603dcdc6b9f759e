"""Rounds closed at once: as a tracker closes them that is told arrival by arrival."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster import ShiftedExponential
from emuml.durations import durations
from emuml.selection import Closing
from emuml.shapes import Count, StopRule, Tracker
from tests.theory.laws import rules


class Odd(StopRule):
    """A rule of another kind: closes once an odd worker has answered."""

    def __init__(self, workers):
        self.workers = workers

    def tracker(self):
        return OddTracker(self.workers, None, None)

    def stop_index(self, order):
        odd = np.flatnonzero(order % 2)
        return int(odd[0]) + 1 if odd.size else order.size


class OddTracker(Tracker):
    @property
    def closed(self):
        return any(worker % 2 for worker in self.arrived_workers)


def one_by_one(rule, times):
    """Return when a tracker closes, and whom it was told until then, in the order of time and worker."""
    tracker = rule.tracker()
    for time_s, worker in sorted((time_s, worker) for worker, time_s in enumerate(times) if time_s < np.inf):
        if tracker.arrived(worker):
            return time_s, set(tracker.arrived_workers)
    return np.inf, set(tracker.arrived_workers)


few_times = st.sampled_from([0.0, 1.0, 2.0, np.inf]) | st.floats(0, 3)


@given(rules() | st.builds(Odd, st.integers(1, 6)), st.data())
def test_a_round_closes_as_its_tracker_does(rule, data):
    times = data.draw(st.lists(few_times, min_size=rule.workers, max_size=rule.workers))
    closing = Closing(rule)

    at, used = closing.of(np.array(times))

    assert (at, set(np.flatnonzero(used).tolist())) == one_by_one(rule, times)
    assert closing.time(np.array(times)) == at


@given(
    rules().filter(lambda rule: Closing(rule).has_parts),
    st.integers(0, 2**64 - 1),
    st.floats(0.1, 10),
    st.sampled_from(["fixed", "scaled"]),
    st.booleans(),
)
def test_rounds_of_exponential_draws_are_those_of_their_times(rule, seed, load, tail, to_all):
    law, closing = ShiftedExponential(0.05, 0.5, tail), Closing(rule)
    decided_s, ended_s, used = closing.exponential(law, seed, load, 5, to_all, asks_who=True)
    fill, times, start_s = durations(law, seed, rule.workers), np.empty(rule.workers), 0.0
    for draw in range(5):
        fill(draw, load, times)
        at, who = closing.of(start_s + times)
        start_s = float((start_s + times).max()) if to_all else at
        assert (decided_s[draw], ended_s[draw], used[draw].tolist()) == (at, start_s, who.tolist())
    assert closing.exponential(law, seed, load, 5, to_all)[0].tolist() == decided_s.tolist()


def test_the_order_of_one_instant_is_that_of_the_workers():
    at, used = Closing(Count(4, 2)).of(np.ones(4))
    assert (at, used.tolist()) == (1.0, [True, True, False, False])
