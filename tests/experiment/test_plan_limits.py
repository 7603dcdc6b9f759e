"""Plans of runs that end at a time, and of runs that are too long to be simulated."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, Constant, DelayTrace, Instant, ShiftedExponential
from emuml.cluster.cluster import Network
from emuml.cluster.compute import ErasureHeadDelays
from emuml.experiment import limits
from emuml.experiment.plan import plan
from emuml.experiment.plan_wording import parts
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.runtime.settings import RuntimeSettings
from emuml.shapes import Stragglers
from emuml.stopping import AnyOf, Rounds, Seconds, TargetLoss
from tests.experiment.planned import planned, sent
from tests.experiment.small import small

SEMANTICS = get_args(Stragglers)
LAW = ShiftedExponential(0.05, 0.5)
RECORDED = DelayTrace(np.random.default_rng(8).exponential(0.5, (140, 6)))


def until(limit_s, law=LAW, rounds=None, network=None, **changed):
    cluster = Cluster(6, compute=law, network=network or Network())
    return small(cluster=cluster, rounds=rounds, stop=Seconds(limit_s), **changed)


def check_exact(experiment):
    found, result = plan(experiment), emuml.run(experiment)
    assert found.basis == "exact"
    assert {each.basis for each in found.messages} == {"exact"}
    assert (found.rounds, planned(found)) == (result.rounds, sent(result))
    assert found.duration_s.low == found.duration_s.mean == found.duration_s.high
    assert found.duration_s.mean == pytest.approx(result.duration_s, rel=1e-12)
    assert found.drain_s == pytest.approx(result.drain_s, abs=1e-9)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("limit_s", [0.0, 1.0, 9.9])
@pytest.mark.parametrize("network", [Network(), Network(0.05)], ids=["near", "latency"])
@pytest.mark.parametrize("law", [Constant(0.3), Constant(0.25), RECORDED, ErasureHeadDelays()])
@pytest.mark.parametrize("stragglers", SEMANTICS)
@pytest.mark.parametrize("code", [FractionalRepetition(3), Uncoded(), FractionalRepetition(2)])
def test_without_chance_the_end_is_planned_to_the_last_byte(code, stragglers, law, network, limit_s):
    collect = 3 if code == FractionalRepetition(2) else None
    check_exact(until(limit_s, law, network=network, protocol=GradientCoding(code, collect, stragglers)))


def test_a_sum_of_latencies_just_below_the_limit_takes_another_round():
    # Six times 0.05 + 3 * 0.3 + 0.05 s in floating-point numbers; the fifth end is 4.999999999999999 s.
    code = GradientCoding(FractionalRepetition(3))
    found = check_exact(until(5.0, Constant(0.3), network=Network(0.05), protocol=code))
    assert found.rounds == 6


SEEDS = 200
# Of 200 runs with chance 0.95 each, fewer than 179 or more than 199 are inside with a chance of 0.001. Numbers of
# messages are whole, so that their intervals may cover more.
LEAST = 179


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit_s", "changed"),
    [
        (0.0, {}),
        (0.5, {}),
        (2.0, {}),
        (2.0, {"rounds": 5}),
        (6.0, {"protocol": GradientCoding(Uncoded())}),
        (6.0, {"protocol": GradientCoding(IgnoreStragglers(), 4, "skip-stale")}),
        (6.0, {"protocol": GradientCoding(FractionalRepetition(2), None, "carry-over")}),
        (6.0, {"protocol": GradientCoding(FractionalRepetition(2), 4, "wait-all"), "network": Network(0.05, 1e5)}),
    ],
)
def test_means_are_those_of_runs_and_intervals_cover_nineteen_of_twenty(limit_s, changed):
    experiment = until(limit_s, **changed)
    found = plan(experiment)
    runs = [emuml.run(replace(experiment, seed=seed)) for seed in range(1000, 1000 + SEEDS)]
    messages = [sent(result) for result in runs]

    measured = [(found.duration_s, [result.duration_s for result in runs])]
    for each in found.messages:
        measured.append((each.count, [counts[each.kind][0] for counts in messages]))
        total = np.array([counts[each.kind][1] for counts in messages])
        assert abs(total.mean() - each.total_bytes.mean) <= 4 * total.std() * (2 / SEEDS) ** 0.5 + 1e-9
    for expected, values in ((expected, np.array(values)) for expected, values in measured):
        # Four standard errors of the difference of two means; a plan has at least as many trainings.
        assert abs(np.mean(values) - expected.mean) <= 4 * np.std(values) * (2 / SEEDS) ** 0.5 + 1e-9
        assert np.sum((expected.low - 1e-9 <= values) & (values <= expected.high + 1e-9)) >= LEAST
    assert (found.basis, {each.basis for each in found.messages}) == ("simulation", {"simulation"})
    assert found.rounds == round(found.messages[0].count.mean / 6)
    assert any("or after" in note for note in found.notes)


@pytest.mark.slow
@pytest.mark.parametrize("stragglers", ["cancel", "skip-stale"])
def test_what_renewal_theory_continues_is_what_is_simulated(stragglers, monkeypatch):
    experiment = until(100.0, protocol=GradientCoding(IgnoreStragglers(), 4, stragglers))
    simulated = plan(experiment)
    assert simulated.detail.endswith("until their ends")
    monkeypatch.setattr(limits, "simulated_rounds", lambda training: 100)
    continued = plan(experiment)
    assert "20 simulated trainings of 100 rounds, continued to about" in continued.detail

    # Four standard errors of a mean over 2,000 rounds, whose times deviate by less than half of their mean.
    assert continued.rounds == pytest.approx(simulated.rounds, rel=4 * 0.5 / 2000**0.5)
    for one, other in zip(continued.messages, simulated.messages, strict=True):
        assert one.count.mean == pytest.approx(other.count.mean, rel=4 * 0.5 / 2000**0.5)
        assert one.count.high - one.count.low == pytest.approx(other.count.high - other.count.low, rel=0.6)
    assert continued.duration_s.mean - 100.0 == pytest.approx(simulated.duration_s.mean - 100.0, rel=0.2)
    assert continued.duration_s.high - 100.0 == pytest.approx(simulated.duration_s.high - 100.0, rel=0.3)


def test_the_overshoot_of_equal_rounds_is_spread_evenly_and_that_of_exponential_ones_again_exponential():
    assert limits._overshoot_s(np.full(1000, 2.0), 0.025) == 2.0  # of equal times the longest
    times_s = np.random.default_rng(0).exponential(1.0, 20_000)
    assert limits._overshoot_s(times_s, 0.025) == pytest.approx(-np.log(0.025), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {"rounds": 10**9},
        {"rounds": 10**12},
        {"rounds": 10**9, "law": Constant(0.3)},
        {"limit_s": 1e9},
        {"limit_s": 1e12},
        {"limit_s": 1e9, "law": Constant(0.3)},
        {"limit_s": 1e9, "rounds": 10**12},
        {"rounds": 10**9, "protocol": GradientCoding(IgnoreStragglers(), 4, "skip-stale")},
        {"rounds": 10**9, "law": Constant(0.3), "protocol": GradientCoding(IgnoreStragglers(), 4, "skip-stale")},
    ],
)
def test_trainings_of_any_length_are_planned(changed):
    given = {"limit_s": 1e12, **changed}
    found = plan(until(given.pop("limit_s"), **given))
    assert found.duration_s is not None
    assert found.duration_s.low <= found.duration_s.mean <= found.duration_s.high
    assert found.rounds > 10**8
    assert found.duration_s.mean == pytest.approx(found.rounds * found.round_s, rel=1e-6)
    questions = found.messages[0]
    assert questions.count.mean == pytest.approx(6 * found.rounds, rel=1e-6)
    # Their numbers take five bytes from 65,536 on, and nine from 2**32 on.
    longer = 8 if found.rounds > 2**32 else 4
    assert questions.most_bytes == questions.least_bytes + longer
    assert questions.total_bytes.mean == pytest.approx(questions.count.mean * questions.most_bytes, rel=0.03)
    if "law" in changed:
        assert "continued to" in found.detail
        assert found.basis == "estimate"


@pytest.mark.slow
def test_long_trainings_without_chance_are_continued_evenly():
    short, long = (plan(until(1e12, Constant(0.3), rounds)) for rounds in (10_000, 10**7))
    assert (short.basis, long.basis) == ("exact", "estimate")
    assert long.detail == "30,000 rounds of delays without chance, continued to 10,000,000"
    assert long.duration_s.mean == pytest.approx(1000 * short.duration_s.mean, rel=1e-9)
    assert {each.kind: each.basis for each in long.messages} == {"questions": "exact", "answers": "estimate"}


def test_sizes_add_up_to_their_sum():
    from emuml.experiment.training import Training

    for first, rounds in ((30, 1), (30, 200), (77, 70_000)):
        assert Training.bytes_between(first, 0, rounds) == Training.sizes_bytes(first, rounds).sum()
    assert Training.bytes_between(30, 100, 300) == Training.sizes_bytes(30, 300)[100:].sum()


@pytest.mark.parametrize(("limit_s", "expected"), [(0.0, 1), (0.9, 2), (1.0, 2), (1.1, 3), (100.0, 8)])
def test_the_first_of_rounds_and_seconds_ends_a_run(limit_s, expected):
    # Half a second a round, with two replicas.
    assert check_exact(until(limit_s, Constant(0.25), 8)).rounds == expected


@pytest.mark.slow
def test_a_limit_that_no_training_reaches_leaves_the_closed_form():
    found = plan(until(1e6, rounds=8))
    assert found == replace(plan(small()), ends=found.ends)
    assert found.basis == "closed form"


def test_a_limit_that_is_never_reached_says_so():
    still = plan(until(3.0, Instant()))
    assert (still.rounds, still.duration_s) == (None, None)
    recorded = plan(until(1e6, RECORDED))
    assert recorded.rounds == 140
    assert recorded.notes[0] == "the recorded delays end after 140 rounds, before 1e+06 s"


def test_limits_in_conditions_of_conditions_count():
    nested = AnyOf((AnyOf((Seconds(1.1), TargetLoss(0.0))), Rounds(8)))
    assert parts(nested) == (Seconds(1.1), TargetLoss(0.0), Rounds(8))
    found = plan(small(cluster=Cluster(6, compute=Constant(0.25)), rounds=None, stop=nested))
    assert (found.rounds, found.ends) == (3, "the end of a round after 1.1 s, or train_loss <= 0, or 8 rounds")


def test_on_real_links_a_limit_leaves_an_estimate():
    found = plan(until(2.0, Constant(0.25)), "tcp", RuntimeSettings(time_scale=0.5))
    assert found.rounds == 8  # of 0.25 real seconds
    assert found.duration_s.mean == 2.0
    assert {found.basis, *(each.basis for each in found.messages)} == {"estimate"}
    unknown = plan(until(2.0), "tcp", RuntimeSettings(inject="off"))
    assert (unknown.rounds, unknown.duration_s, unknown.round_s) == (None, None, None)


# What is possible


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_intervals_are_within_what_is_possible(rounds):
    # Of three groups in pairs, three to four answers are used and at least 0.1 s pass.
    found = plan(small(rounds=rounds))
    answers = found.messages[1].count
    assert 3 * rounds <= answers.low <= answers.mean <= answers.high <= 4 * rounds
    assert found.duration_s.low >= 0.1 * rounds


@pytest.mark.parametrize("function", ["overflows", "overflows_softly"])
def test_theory_beyond_all_numbers_is_no_closed_form(function):
    class Promising(GradientCoding):
        def oracles(self):
            target = f"tests.experiment.planned:{function}"
            return tuple(promise._replace(function=target) for promise in super().oracles())

    assert plan(small()).basis == "closed form"
    assert plan(small(protocol=Promising(FractionalRepetition(2), 4))).basis == "simulation"
