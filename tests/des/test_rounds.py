"""Rounds as arrays: the same times, decode sets, logs and parameters as event by event, ties included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster.cluster import Cluster, Network
from emuml.cluster.compute import Constant, DelayTrace, Instant, ShiftedExponential
from emuml.des.words import WordRounds
from emuml.protocols.gradient_coding import FractionalRepetition, GradientCoding, IgnoreStragglers, Uncoded
from emuml.selection import Closing
from emuml.shapes import Count
from tests.des.tiers import check_equal
from tests.protocols.straggler_checks import SEMANTICS
from tests.protocols.training import Tally, regression

NETWORKS = [
    Network(),
    Network(0.25),
    Network(latency_s=0.03),
    Network(bandwidth_bps=8000.0),
    Network(0.01, 20_000.0),
    Network(0.25, 3000.0),
]


def seconds_above(least):
    """Return nothing, or numbers that meet the delays in steps, or any."""
    return st.none() | st.integers(1, 12).map(lambda n: least + n / 4) | st.floats(least + 0.01, least + 3.0)


@st.composite
def runs(draw, laws, by_clock=False):
    workers, rounds = draw(st.integers(1, 9)), draw(st.integers(1, 8))
    replication = draw(st.integers(1, workers))
    collect = draw(st.one_of(st.none(), st.integers(1, workers)))
    code = draw(st.sampled_from([Uncoded(), IgnoreStragglers(), FractionalRepetition(replication, "covered")]))
    if isinstance(code, Uncoded):
        collect = None
    deadlines = {"deadline_s": draw(seconds_above(0.0)), "first_times": draw(seconds_above(1.0))} if by_clock else {}
    protocol = GradientCoding(code, collect, draw(st.sampled_from(SEMANTICS)), **deadlines)
    cluster = Cluster(workers=workers, compute=draw(laws(workers, rounds)), network=draw(st.sampled_from(NETWORKS)))
    return protocol, cluster, rounds, draw(st.integers(0, 2**64 - 1))


def continuous(workers, rounds):
    seconds = st.floats(0.0, 2.0, allow_subnormal=False)
    return st.builds(ShiftedExponential, seconds, st.floats(1e-3, 2.0), st.sampled_from(["fixed", "scaled"]))


def in_steps(workers, rounds):
    """Return delays that meet again and again, zeros among them."""
    cells = st.lists(st.integers(0, 3), min_size=workers * rounds, max_size=workers * rounds)
    tables = cells.map(lambda cell: DelayTrace(0.25 * np.array(cell, float).reshape(rounds, workers)))
    return st.one_of(tables, st.sampled_from([Instant(), Constant(0.5)]))


@given(runs(continuous))
def test_tiers_agree_on_continuous_laws(run):
    protocol, cluster, rounds, seed = run
    assert check_equal(protocol, Tally, cluster, rounds, seed)


@given(runs(continuous, by_clock=True))
def test_tiers_agree_on_deadlines(run):
    protocol, cluster, rounds, seed = run
    assert check_equal(protocol, Tally, cluster, rounds, seed)


@given(runs(in_steps, by_clock=True))
def test_tiers_agree_on_deadlines_where_times_meet(run):
    protocol, cluster, rounds, seed = run
    check_equal(protocol, Tally, cluster, rounds, seed)


@given(runs(in_steps))
def test_tiers_agree_where_times_meet(run):
    protocol, cluster, rounds, seed = run
    knew = check_equal(protocol, Tally, cluster, rounds, seed)
    assert knew or protocol.stragglers in ("skip-stale", "carry-over")


FEW = [0.0, 1.0, 1.0, 2.0], [Network(), Network(0.25), Network(0.125)]
SOME = np.arange(1.0, 17.0) / 4, [Network(1 / 16), Network(3 / 16), Network(0.5)]


@pytest.mark.slow
@pytest.mark.parametrize("stragglers", SEMANTICS)
@pytest.mark.parametrize(("values", "networks"), [FEW, SOME])
def test_tiers_agree_on_delays_of_few_values(values, networks, stragglers):
    """Of which one is the latency: work ends as questions come, and answers meet decisions."""
    draws, knew = np.random.default_rng(5), 0
    for case in range(240):
        workers = int(draws.integers(2, 6))
        delays, count = DelayTrace(0.25 * draws.choice(values, (10, workers))), max(1, workers - int(draws.integers(3)))
        cluster = Cluster(workers=workers, compute=delays, network=networks[case % 3])
        knew += check_equal(GradientCoding(IgnoreStragglers(), count, stragglers), Tally, cluster, 10)
    assert knew >= (240 if stragglers in ("cancel", "wait-all") else 80)


@pytest.mark.slow
@pytest.mark.parametrize("stragglers", SEMANTICS)
def test_tiers_agree_where_answers_wait_for_those_before(stragglers):
    """Messages travel about as long as work takes, so that some are still leaving when the next ones are ready."""
    for seed in range(100):
        law, network = ShiftedExponential(0.0, 0.1), Network(0.0, [2000.0, 8000.0][seed % 2])
        protocol = GradientCoding(IgnoreStragglers(), 1 + seed % 4, stragglers)
        assert check_equal(protocol, Tally, Cluster(workers=5, compute=law, network=network), 8, seed)


@pytest.mark.parametrize("stragglers", SEMANTICS)
def test_tiers_agree_on_a_regression_with_uneven_shares(stragglers):
    code = FractionalRepetition(3, "covered")
    cluster = Cluster(workers=10, compute=ShiftedExponential(0.05, 0.5, "scaled"), network=Network(0.01, 1e5))

    assert check_equal(GradientCoding(code, 6, stragglers), regression, cluster, 12)


@pytest.mark.parametrize(
    ("code", "collect"),
    [
        (Uncoded(), None),
        (IgnoreStragglers(), 7),
        (FractionalRepetition(3, "covered"), None),
        (FractionalRepetition(2), 5),
    ],
)
def test_rounds_closed_by_words_are_those_of_the_events(code, collect, monkeypatch):
    taken = []
    take = WordRounds.take
    monkeypatch.setattr(WordRounds, "take", lambda *given: taken.append(take(*given)) or taken[-1])
    cluster = Cluster(workers=12, compute=ShiftedExponential(0.05, 0.5, "scaled"))

    for seed in range(5):
        assert check_equal(GradientCoding(code, collect), Tally, cluster, 10, seed)
    assert len(taken) == 50
    assert None not in taken


@given(st.integers(0, 2**32), st.integers(1, 30))
def test_where_times_meet_after_rounding_events_and_words_agree(seed, collect):
    """A shift of 1e12 s leaves 14 bits for the tail: durations differ and arrivals are the same."""
    cluster = Cluster(workers=30, compute=ShiftedExponential(1e12, 1e-3))

    assert check_equal(GradientCoding(IgnoreStragglers(), collect), Tally, cluster, 3, seed)


def test_words_say_where_they_do_not_know_who_else_arrives():
    law = ShiftedExponential(1e12, 1e-6)  # all arrive at one instant

    def rounds(count):
        return WordRounds.of(Closing(Count(30, count)), law, 1, np.ones(30))

    assert rounds(12).take(0, 0.0) is None
    closed_s, is_used = rounds(30).take(0, 0.0)
    assert (closed_s >= 1e12, is_used.all()) == (True, True)
    assert WordRounds.of(Closing(Count(2, 1)), law, 1, np.array([1.0, 2.0])) is None
    assert WordRounds.of(Closing(Count(2, 1)), Constant(1.0), 1, np.ones(2)) is None
