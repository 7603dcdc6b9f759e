"""Who is called the fastest, and how rarely wrongly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from emuml.comparison.analysis import Comparison, Pair, analyse
from emuml.comparison.measures import ROUND, TARGET
from emuml.comparison.plan import plan
from emuml.comparison.race import Runs, race
from emuml.comparison.ranking import ranked_by, ranking, told_apart
from emuml.comparison.statistics import Interval, Paired, paired
from emuml.comparison.verdict import verdict
from tests.comparison.files import three


@pytest.fixture(scope="module")
def of_three(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("three")
    planned, runs = plan(three(folder), seeds=5, target=0.5), Runs()
    race(planned, folder / "runs", runs)
    return analyse(planned, runs)


def with_times(comparison: Comparison, **times: list[float | None]) -> Comparison:
    """Return the comparison with other times to the target and per round."""
    runs = {}
    for name, each in times.items():
        runs[name] = {}
        for seed, value in zip(comparison.seeds, each, strict=True):
            old = comparison.runs[name][seed]
            values = {key: number for key, number in old.values.items() if key not in (TARGET, ROUND)}
            values |= {} if value is None else {TARGET: value}
            runs[name][seed] = replace(old, values={**values, ROUND: (value or 100.0) / 10})
    return replace(comparison, runs=runs, targets=dict.fromkeys(comparison.seeds, 0.5))


NOISE = [0.1, -0.2, 0.15, 0.05, -0.1]


def around(mean: float, noise: list[float] = NOISE) -> list[float | None]:
    return [mean + each for each in noise]


def test_contestants_are_in_the_order_of_their_means(of_three: Comparison) -> None:
    found = ranking(of_three)
    means = [of_three.mean(place.name, TARGET) for place in found.places]
    assert found.measure == TARGET
    assert None not in means
    assert means == sorted(means, key=float)  # type: ignore[arg-type]
    assert found.places[0].behind is None


def test_who_is_told_apart_from_all_is_the_fastest_by_so_much(of_three: Comparison) -> None:
    found = with_times(of_three, all=around(20.0), four=around(10.0, NOISE[::-1]), pairs=around(12.0))
    ratio = paired([12 + e for e in NOISE], [10 + e for e in NOISE[::-1]]).ratio
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    assert verdict(found) == (
        f"four is fastest to train loss 0.5: {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] times as fast as "
        "pairs, the next (Holm over 2 comparisons)."
    )


def test_who_cannot_be_told_apart_is_not_called_the_fastest(of_three: Comparison) -> None:
    wild = [5.0, -4.0, 3.0, -5.0, 1.5]
    found = with_times(of_three, all=around(40.0, NOISE[::-1]), four=around(10.0), pairs=around(10.5, wild))
    assert verdict(found) == (
        "four comes first, but cannot be told apart from pairs at 95 % in the time to train loss 0.5 "
        "(Holm over 2 comparisons)."
    )
    assert [place.is_apart for place in ranking(found).places] == [None, False, True]


def test_of_two_neither_is_called_the_fastest(of_three: Comparison) -> None:
    two = replace(of_three, plan=replace(of_three.plan, contestants=of_three.plan.contestants[:2]))
    found = with_times(two, all=around(10.5, [5.0, -4.0, 3.0, -5.0, 1.5]), four=around(10.0))
    assert verdict(found) == "four and all cannot be told apart at 95 % in the time to train loss 0.5."


def test_who_does_not_reach_the_target_comes_last_and_is_told(of_three: Comparison) -> None:
    short: list[float | None] = [1.0, 1.0, 1.0, 1.0, None]
    found = with_times(of_three, all=around(20.0), four=short, pairs=around(12.0))
    assert [place.name for place in ranking(found).places] == ["pairs", "all", "four"]
    assert verdict(found).endswith("all, the next; not reached by four on 1 of 5 seeds.")


def test_where_nobody_reaches_the_target_seconds_per_round_decide(of_three: Comparison) -> None:
    never: list[float | None] = [None] * 5
    found = with_times(of_three, all=never, four=never, pairs=never)
    assert ranking(found).measure == ROUND
    assert verdict(found) == (
        "Nobody reaches train loss 0.5 on every seed. all, four and pairs take the same time per round on every seed."
    )


def test_a_difference_that_is_the_same_on_every_seed_needs_no_test(of_three: Comparison) -> None:
    found = with_times(of_three, all=[20.0] * 5, four=[10.0] * 5, pairs=[15.0] * 5)
    assert verdict(found) == "four is fastest to train loss 0.5: 1.5 times as fast as pairs, the next."


def told(p_value: float, low: float, high: float) -> Pair:
    ratio = Interval(1.5, low, high)
    return Pair("x", TARGET, Paired(5, "seeds", Interval(1.0, 0.5, 1.5), ratio, p_value, 2.0))


def test_several_comparisons_are_corrected_for() -> None:
    # Alone 0.02 would do; of three the smallest must be below 0.05 / 3.
    assert told_apart([told(0.02, 1.2, 1.8), told(0.9, 1.2, 1.8), told(0.9, 1.2, 1.8)])[0] == [False] * 3
    assert told_apart([told(0.016, 1.2, 1.8), told(0.9, 1.2, 1.8), told(0.9, 1.2, 1.8)])[0] == [True, False, False]


def test_a_ratio_whose_interval_holds_one_is_not_claimed() -> None:
    assert told_apart([told(1e-6, 0.9, 1.8)])[0] == [False]


@pytest.mark.parametrize(("contestants", "equal"), [(2, 2), (3, 2), (6, 2), (6, 6)])
def test_one_of_several_equal_ones_is_called_the_fastest_as_rarely_as_promised(contestants: int, equal: int) -> None:
    """At most 5 %; of 300 comparisons at most 15 + 15.1, four standard deviations."""
    draws = np.random.default_rng([contestants, equal])
    wrong = 0
    for _ in range(300):
        times = 50.0 + draws.normal(size=(contestants, 5))
        times[equal:] += 20.0
        first = int(times.mean(axis=1).argmin())
        pairs = [Pair("x", TARGET, paired(times[i], times[first])) for i in range(contestants) if i != first]
        wrong += all(told_apart(pairs)[0])
    assert wrong <= 30


def test_ranking_by_another_measure_has_its_own_leader(of_three: Comparison) -> None:
    means = {name: of_three.mean(name, ROUND) or 0.0 for name in of_three.runs}
    assert ranked_by(of_three, ROUND).leader == min(means, key=means.__getitem__)
