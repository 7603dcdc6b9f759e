"""Rules and laws that tests of round times share."""

from itertools import product

import numpy as np
from hypothesis import strategies as st

from emuml.cover_times import CoverTimes
from emuml.shapes import All, Count, Cover, CoverOrCount


def contiguous(sizes):
    """Return groups of these sizes, of contiguous workers."""
    workers = iter(range(sum(sizes)))
    return tuple(tuple(next(workers) for _ in range(size)) for size in sizes)


@st.composite
def rules(draw, workers_max=9):
    """Return a stop rule of any kind."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5).filter(lambda sizes: sum(sizes) <= workers_max))
    workers = sum(sizes)
    count = draw(st.integers(1, workers))
    groups, times = contiguous(sizes), draw(st.integers(1, min(sizes)))
    return draw(
        st.sampled_from(
            [All(workers), Count(workers, count), Cover(groups), CoverOrCount(groups, count), CoverTimes(groups, times)]
        )
    )


def is_closed(rule, answered):
    """Tell whether these workers close a round, by the protocol's own tracker."""
    tracker = rule.tracker()
    for worker in np.flatnonzero(answered).tolist():
        tracker.arrived(worker)
    return tracker.closed


def closed_over_all_sets(rule, level):
    """Return the chance that a round is over, summed over every set of workers that may have answered."""
    total = 0.0
    for answered in product([False, True], repeat=rule.workers):
        if is_closed(rule, answered):
            total += level ** sum(answered) * (1.0 - level) ** (rule.workers - sum(answered))
    return total


class WithRule:
    """A code that is nothing but its stop rule, of load 1."""

    load = 1.0

    def __init__(self, rule):
        self.rule = rule

    def build(self, workers, seed=0, collect=None):
        return self

    def stop_rule(self):
        return self.rule
