"""Censored times, time against load, changes of the law: exact cases, and mistakes that they would not forgive."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml.protocols.adaptive_coding import chooser, loads, observed
from emuml.protocols.adaptive_coding.chooser import Settings
from emuml.protocols.adaptive_coding.drift import LIMIT, MOST, SLACK, Drift
from emuml.protocols.adaptive_coding.following import follow
from emuml.protocols.adaptive_coding.loads import Line, LoadLaw, learned, quantiles_of
from emuml.protocols.adaptive_coding.observed import Observed, completed, mean_beyond
from tests.protocols.adaptive import exponential, indices, menu_of, value, values


def closed(times, count):
    """Return times, answers and knowledge of rounds that close at a count of answers."""
    ends = np.sort(times, axis=1)[:, count - 1 : count]
    return np.minimum(times, ends), times <= ends, np.ones(times.shape, bool)


def seen(load, times, answered=None):
    times = np.asarray(times, float)
    flags = np.ones(times.size, bool)
    return Observed(load, times, flags if answered is None else answered, flags, np.ones(times.size))


# Censoring


def test_the_mean_beyond_the_shortest_time_is_the_censored_maximum_likelihood_estimate():
    """Five exponential workers, cancelled at the second answer: 4000 rounds; the standard error is 1.1 %."""
    times = np.random.default_rng(5).exponential(2.0, (4000, 5))
    cut, answered, _ = closed(times, 2)

    mean_s, own = mean_beyond(answered.sum(axis=0), cut.sum(axis=0))

    assert mean_s == pytest.approx(np.full(5, cut.sum() / answered.sum()), rel=0.03)
    assert mean_s == pytest.approx(np.full(5, 2.0), rel=0.035)
    assert own.max() < 0.9
    assert times[answered].mean() < 0.7  # what one gets who forgets whom nobody waited for


def test_times_that_are_completed_have_the_mean_of_those_that_nobody_saw():
    """The mean time of the slowest of five, from rounds that closed at the second answer; error 2 %."""
    draws = np.random.default_rng(6)
    times = draws.exponential(2.0, (4000, 5))
    full = completed(*closed(times, 2), draws.exponential(1.0, (4000, 5)))

    assert full.max(axis=1).mean() == pytest.approx(2.0 * (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5), rel=0.06)


def test_workers_that_differ_have_their_own_means_and_those_that_do_not_have_one():
    answers = np.array([50, 50, 50, 2])
    mean_s, own = mean_beyond(answers, np.array([50.0, 50.0, 50.0, 100.0]))
    assert mean_s[3] > 10 * mean_s[0]
    assert own[3] > 0.5

    mean_s, own = mean_beyond(np.array([10, 11, 9, 10]), np.full(4, 20.0))
    assert mean_s == pytest.approx(np.full(4, 2.0))
    assert own.max() == 0


def test_a_worker_that_is_always_cancelled_is_as_slow_as_when_it_was_last_seen():
    times, answered, known = closed(np.tile([1.0, 1.1, 1.2, 3.0], (20, 1)), 3)
    full = completed(times, answered, known, np.ones((20, 4)), last=np.array([1.0, 1.1, 1.2, 3.0]))

    assert np.all(full == [1.0, 1.1, 1.2, 3.0])


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=40))
def test_quantiles_without_censoring_are_the_plain_ones_and_never_earlier_with_it(samples):
    times = np.array([time for time, _ in samples], float)
    levels = np.array([0.1, 0.5, 0.9])
    plain = quantiles_of(times, np.ones(times.size, bool), levels)
    censored = quantiles_of(times, np.array([flag for _, flag in samples]), levels)

    assert plain.tolist() == np.quantile(times, levels, method="inverted_cdf").tolist()
    assert np.all(censored >= plain)


# Time against load


@pytest.mark.parametrize(
    "form", [lambda load, z: load * (1 + z), lambda load, z: load + z, lambda load, z: 2 + load / 2 + 0 * z]
)
def test_load_dependence_is_learned_exactly_from_equal_draws(form):
    z = np.linspace(0.1, 3.0, 64)
    law = learned([seen(1.0, form(1.0, z)), seen(2.0, form(2.0, z))])

    for load in (1.0, 2.0, 5.0):
        assert law.moved(form(2.0, z), 2.0, load) == pytest.approx(form(load, z))


def test_one_load_tells_nothing_of_others():
    assert learned([seen(2.0, [1.0, 2.0]), seen(2.0, [2.0, 3.0])]) is None


lines = st.builds(Line, st.floats(0, 10), st.floats(0, 10))


@settings(max_examples=40)
@given(st.builds(LoadLaw, lines, lines), st.lists(st.floats(0.01, 100), min_size=1), st.floats(1, 10), st.floats(1, 10))
def test_moved_times_lie_between_those_that_ignore_the_load_and_those_in_proportion(law, times, old, new):
    given_s = np.array(times)
    moved = law.moved(given_s, old, new)
    low, high = np.minimum(given_s, given_s * new / old), np.maximum(given_s, given_s * new / old)

    assert np.all((low * (1 - 1e-12) <= moved) & (moved <= high * (1 + 1e-12)))


# Changes


def test_a_change_is_noticed_after_as_many_rounds_as_the_sum_needs_and_dated_to_its_first():
    estimated, drift = np.full(64, 1.0), Drift()
    assert [drift.notes(1.0, estimated) for _ in range(100)] == [0] * 100

    found = [drift.notes(2.0, estimated) for _ in range(8)]
    needed = int(LIMIT // (MOST - SLACK)) + 1
    assert [bool(since) for since in found[:needed]] == [False] * (needed - 1) + [True]
    assert found[needed - 1] in (needed - 1, needed)


@pytest.mark.slow
def test_false_alarms_are_rare():
    """20,000 rounds of normal logarithms: at most 6 alarms, where one in 10,000 is stated; the seed is fixed."""
    logs = np.random.default_rng(1).normal(0, 0.3, 20_000)
    estimated, drift, alarms = np.exp(np.random.default_rng(2).normal(0, 0.3, 64)), Drift(), 0
    for log in logs.tolist():
        if drift.notes(float(np.exp(log)), estimated):
            alarms, drift = alarms + 1, Drift()

    assert alarms <= 6


# Mistakes


def settled_value(menu, times_of, rounds, settings):
    """Return the seconds per progress of the candidates that were best in the second half, over the least one's."""
    found = values(menu, times_of, rounds)
    chosen = indices(follow(menu, times_of, rounds, settings))
    return found[chosen[len(chosen) // 2 :]].mean() / found.min()


def check_censored_times_count_as_longer():
    """Replicas make rounds close early, so that most times are censored; waiting for more is far worse."""
    menu = menu_of(20, (1, 4), (0.2,))
    times_of = exponential(20, 150, 0.02, 1.0, seed=8)
    assert settled_value(menu, times_of, 150, Settings(probe=1000)) < 1.05


def check_load_dependence_is_learned():
    """Two laws that agree at load 1 and want opposite replications."""
    for tail, shift_s in (("fixed", 0.02), ("scaled", 0.5)):
        menu, times_of = menu_of(20, (1, 2, 5)), exponential(20, 150, shift_s, 0.3, tail, seed=9)
        assert settled_value(menu, times_of, 150, Settings("exact")) < 1.05


def without_cancelled(times, answered, known, drawn, last=None):
    """Forget whom nobody waited for: the mean of those who answered stands for all."""
    mean_s = (times[answered] - times[answered].min()).mean()
    return np.where(answered, times, times[answered].min() + mean_s * drawn)


def cancelled_as_arrivals(times, answered, known, drawn, last=None):
    return times


@pytest.mark.slow
def test_censored_times_count_as_longer():
    check_censored_times_count_as_longer()


@pytest.mark.slow
def test_load_dependence_is_learned():
    check_load_dependence_is_learned()


@pytest.mark.parametrize("wrong", [without_cancelled, cancelled_as_arrivals])
def test_who_forgets_censoring_or_counts_it_as_arrivals_chooses_wrongly(monkeypatch, wrong):
    monkeypatch.setattr(chooser, "completed", wrong)
    with pytest.raises(AssertionError):
        check_censored_times_count_as_longer()


@pytest.mark.slow
def test_who_leaves_out_load_dependence_chooses_wrongly(monkeypatch):
    monkeypatch.setattr(loads.LoadLaw, "moved", lambda self, times, old, new: times)
    with pytest.raises(AssertionError):
        check_load_dependence_is_learned()


@pytest.mark.slow
def test_who_never_forgets_is_slower_after_a_change(monkeypatch):
    """Without alarms and with a window over everything, the old law stays in all estimates."""
    tails, calm = exponential(20, 240, 0.02, 1.0, seed=3), exponential(20, 240, 1.0, 0.01, seed=4)
    menu = menu_of(20, (1, 5))

    def times_of(i, load):
        return (calm if i >= 120 else tails)(i, load)

    ours = value(follow(menu, times_of, 240, Settings("exact")))
    monkeypatch.setattr(chooser.Drift, "notes", lambda self, seconds, estimated: 0)
    assert value(follow(menu, times_of, 240, Settings("exact", window=240))) > 1.05 * ours


def test_the_estimate_is_that_of_the_module_under_test():
    """The mutants above replace what is really used."""
    assert chooser.completed is observed.completed
