"""What is chosen from what was observed: closed forms, enumerations, drift, and nothing that nobody could see."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml.cluster.compute import ShiftedExponential
from emuml.errors import UserError
from emuml.protocols.adaptive_coding.chooser import Settings
from emuml.protocols.adaptive_coding.following import follow
from emuml.protocols.adaptive_coding.menu import Menu, judge
from emuml.protocols.gradient_coding import BalancedRepetition, CyclicMDS, FractionalRepetition, VerifiedRepetition
from emuml.theory import agc_moments, expected_round_time
from tests.protocols.adaptive import exponential, indices, menu_of, value, values


def settled(fed, last=20):
    """Return the candidate that was best in most of the last rounds."""
    return int(np.bincount(indices(fed)[-last:]).argmax())


@pytest.mark.parametrize("of_load", [lambda load: load, lambda load: 1.0, lambda load: 3.0 + 0.1 * load])
def test_constant_delays_need_no_redundancy_and_no_early_end(of_load):
    menu = menu_of(12, shares=(0.5, 0.75))
    fed = follow(menu, lambda i, load: np.full(12, of_load(load)), 80)

    assert set(indices(fed)) == {0}
    assert (menu[0].load, menu[0].collect) == (1.0, 12)
    assert {choice.estimated_s for choice in fed.choices if choice.reason == "best"} == {of_load(1.0)}
    assert fed.chooser.changes == 0


@pytest.mark.parametrize("n_slow", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("factor", [1.2, 3.0, 8.0])
def test_in_a_cluster_of_two_speeds_the_choice_is_the_one_of_an_enumeration(n_slow, factor):
    """All candidates are judged on the true times; ties are allowed, as none is better."""
    speeds = np.ones(12)
    speeds[12 - n_slow :] = factor
    menu = menu_of(12, shares=(0.25, 0.5, 0.75))

    def times_of(i, load):
        return speeds * (0.2 + 0.8 * load)

    fed = follow(menu, times_of, 60, Settings(probe=16))
    found = values(menu, times_of, 1)

    assert found[settled(fed)] == pytest.approx(found.min(), rel=1e-9)


@pytest.mark.parametrize(
    ("shift_s", "tail", "replication"),
    [(0.05, "fixed", 5), (2.0, "fixed", 1), (0.05, "scaled", 5), (2.0, "scaled", 1)],
)
def test_the_exact_choice_is_that_of_the_closed_form(shift_s, tail, replication):
    """The second best is at least 14 % slower; the seed is fixed."""
    menu, law = menu_of(30, (1, 2, 5)), ShiftedExponential(shift_s, 0.5, tail)
    means = [expected_round_time(FractionalRepetition(r), 30, law) for r in (1, 2, 5)]
    assert menu[int(np.argmin(means))].load == replication
    assert sorted(means)[1] > 1.14 * min(means)

    fed = follow(menu, exponential(30, 120, shift_s, 0.5, tail, seed=1), 120, Settings("exact"))

    assert set(indices(fed)[64:]) == {int(np.argmin(means))}


@pytest.mark.parametrize(("shift_s", "tail"), [(0.01, "fixed"), (0.5, "fixed"), (0.05, "scaled"), (0.5, "scaled")])
def test_the_choice_per_progress_is_within_a_few_per_cent_of_the_closed_form(shift_s, tail):
    """E[seconds] / (1 - p) of what is chosen with a full window is at most 4 % above the least one; seeds are fixed."""
    menu, law = menu_of(30, (1, 2, 3, 5), (0.5, 0.8)), ShiftedExponential(shift_s, 0.5, tail)
    means = []
    for one in menu:
        mean_s = expected_round_time(FractionalRepetition(round(one.load)), 30, law, one.collect)
        means.append(mean_s / agc_moments(30, round(one.load), one.collect).mean_factor())

    fed = follow(menu, exponential(30, 130, shift_s, 0.5, tail, seed=2), 130)

    chosen = np.array(means)[indices(fed)[64:]]
    assert chosen.mean() <= 1.04 * min(means)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "shift_s", "tail"),
    [("progress", 0.05, "fixed"), ("progress", 0.5, "scaled"), ("exact", 0.5, "fixed"), ("exact", 0.05, "scaled")],
)
def test_stationary_delays_cost_little_more_than_the_best_choice_in_hindsight(objective, shift_s, tail):
    """400 rounds, 4 seeds: the mean excess is below 5 %, its standard error is below 1 %."""
    menu = menu_of(12, (1, 2, 3), (0.5, 0.75) if objective == "progress" else ())
    excess = []
    for seed in range(4):
        times_of = exponential(12, 400, shift_s, 0.5, tail, seed)
        found = follow(menu, times_of, 400, Settings(objective), seed)
        excess.append(value(found) / values(menu, times_of, 400).min() - 1)

    assert np.mean(excess) < 0.05
    assert np.std(excess) / np.sqrt(4) < 0.01


def test_after_a_change_of_the_law_the_choice_follows_within_a_window():
    """The tail goes from large to small, then back: what was best becomes the worst."""
    tails, calm = exponential(30, 360, 0.02, 1.0, seed=3), exponential(30, 360, 1.0, 0.01, seed=4)
    menu = menu_of(30, (1, 5))
    fed = follow(menu, lambda i, load: (calm if 120 <= i < 240 else tails)(i, load), 360, Settings("exact"))

    best = [choice.candidate.load for choice in fed.choices]
    assert np.mean(np.array(best[64:120]) == 5) > 0.9
    assert np.mean(np.array(best[120 + 32 : 240]) == 1) > 0.9
    assert np.mean(np.array(best[240 + 32 :]) == 5) > 0.9
    assert fed.chooser.changes >= 2
    assert value(fed) < values(menu, lambda i, load: (calm if 120 <= i < 240 else tails)(i, load), 360).min()


def test_a_lost_worker_makes_codes_that_need_it_useless():
    menu = menu_of(6, (1, 2))
    fed = follow(menu, lambda i, load: np.full(6, load), 20, Settings("exact"))

    assert fed.chooser.choose().candidate.load == 1.0
    assert fed.chooser.choose({2}).candidate.load == 2.0
    assert fed.chooser.choose().candidate.load == 1.0


def test_when_nothing_decodes_exactly_any_more_the_choice_is_that_of_most_progress():
    menu = menu_of(6, (1, 2))
    fed = follow(menu, lambda i, load: np.full(6, load), 20, Settings("exact"))

    assert fed.chooser.choose({2, 3}).candidate.load == 1.0


times_strategy = st.lists(
    st.lists(st.integers(1, 40).map(lambda n: n / 8), min_size=6, max_size=6), min_size=24, max_size=24
)


@settings(max_examples=20)
@given(times_strategy, st.integers(0, 3))
def test_choices_depend_on_nothing_that_nobody_saw(rounds, seed):
    """What workers would have answered after their rounds were closed is changed at will."""
    menu, options = menu_of(6, shares=(0.5,)), Settings(window=8, probe=5)

    def times_of(i, load):
        return np.array(rounds[i]) * (1 + load)

    first = follow(menu, times_of, 24, options, seed)

    def other(i, load):
        times, closed_s = times_of(i, load), first.seconds[i]
        return np.where(times <= closed_s, times, closed_s + 1 + np.arange(6))

    again = follow(menu, other, 24, options, seed)
    assert [c.candidate.index for c in again.choices] == [c.candidate.index for c in first.choices]
    assert [c.estimated_s for c in again.choices] == [c.estimated_s for c in first.choices]


@given(times_strategy)
@settings(max_examples=30)
def test_judged_rounds_close_as_the_stop_rule_of_their_code_says(rounds):
    times = np.array(rounds)
    for family in menu_of(6, shares=(0.5, 0.7)).families:
        for one, judged in zip(family, judge(family, times), strict=True):
            for row, seconds, progress in zip(times, judged.seconds, judged.progress, strict=True):
                order = np.argsort(row, kind="stable")
                assert seconds == row[order[one.code.stop_rule().stop_index(order) - 1]]
                decoding = one.code.decode(np.flatnonzero(row <= seconds))
                assert progress == pytest.approx(1 - decoding.error / one.code.partitions)


def test_first_rounds_try_two_loads_and_probes_are_as_rare_as_stated():
    menu = menu_of(12, (1, 2, 4), (0.5,))
    fed = follow(menu, exponential(12, 100, 1.0, 0.2), 100, Settings(first=2, probe=10, window=200))

    assert indices(fed, "first") == [0, 0, 2, 2]
    assert len(indices(fed, "probe")) == 96 // 10
    assert fed.chooser.changes == 0


@pytest.mark.parametrize(("objective", "load", "collect"), [("progress", 1.0, 9), ("balanced", 2.0, 12)])
def test_where_the_same_workers_are_always_late_a_balanced_choice_does_without_them_but_not_without_their_data(
    objective, load, collect
):
    speeds = np.ones(12)
    speeds[[1, 4, 10]] = 10.0
    menu = menu_of(12, (1, 2, 3), (0.75,))
    fed = follow(menu, lambda i, load: speeds * (0.5 + 0.5 * load), 100, Settings(objective))

    assert (menu[settled(fed)].load, menu[settled(fed)].collect) == (load, collect)


def test_codes_that_close_by_count_are_on_the_menu_beside_those_with_replicas():
    """Seven workers of which two are slow: a cyclic code of load 3 needs five answers."""
    menu = Menu.of([FractionalRepetition(1), CyclicMDS(stragglers=2)], [], 7, 0)
    fed = follow(menu, lambda i, load: (1 + load / 10) * np.array([1, 1, 9, 9, 1, 1, 1]), 30, Settings("exact"))

    assert [one.load for one in menu] == [1.0, 3.0]
    assert settled(fed) == 1
    assert set(fed.progress.tolist()) == {1.0}


def test_codes_whose_rounds_close_by_more_than_counts_and_groups_are_refused():
    with pytest.raises(UserError, match="counts and groups"):
        Menu.of([BalancedRepetition(2)], [], 7, 0)
    with pytest.raises(UserError, match="counts and groups"):
        Menu.of([VerifiedRepetition(3, 1)], [], 6, 0)
