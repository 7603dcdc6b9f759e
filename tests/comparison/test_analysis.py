"""From real runs to pairs and to the sentence: targets that all reach, and what can be compared at all."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emuml.comparison.analysis import Comparison, analyse
from emuml.comparison.measures import ERROR, ROUND, TARGET, Run, sent_bytes
from emuml.comparison.plan import plan
from emuml.comparison.race import Runs, race, rounds_to_run
from emuml.comparison.statistics import Interval, paired
from emuml.comparison.verdict import verdict
from tests.comparison.files import three, written


def compared(paths: list[Path], folder: Path, overrides: tuple[str, ...] = (), **options: object) -> Comparison:
    planned = plan(paths, overrides, **options)  # type: ignore[arg-type]
    runs = Runs()
    race(planned, folder, runs)
    return analyse(planned, runs)


@pytest.fixture(scope="module")
def of_three(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("three")
    return compared(three(folder), folder / "runs", seeds=3)


def test_a_file_against_itself_has_exactly_zero_differences_in_every_measure(tmp_path: Path) -> None:
    path = written(tmp_path, "pairs", "{kind: fractional-repetition, replication: 2}", 2)
    found = compared([path, path], tmp_path / "runs", seeds=3)
    assert len(found.pairs) == len(found.measures) >= 10
    for pair in found.pairs:
        assert pair.paired is not None, pair.measure
        assert pair.paired.difference == Interval(0.0)
        assert pair.paired.ratio in (None, Interval(1.0))
    for seed in found.seeds:
        assert found.runs["pairs"][seed].values == found.runs["pairs-2"][seed].values
    assert verdict(found).startswith("pairs and pairs-2 take the same time to train loss ")


def test_target_of_each_seed_is_the_worst_final_loss_which_all_reach(of_three: Comparison) -> None:
    for seed in of_three.seeds:
        finals = [of_three.runs[name][seed].curve[-1] for name in of_three.runs]
        assert of_three.targets[seed] == max(finals)
    assert all(None not in of_three.values(name, TARGET) for name in of_three.runs)
    assert len(set(of_three.targets.values())) == 3


@pytest.mark.slow
def test_a_target_that_somebody_misses_on_one_seed_is_not_compared(tmp_path: Path) -> None:
    paths = three(tmp_path)[:2]
    free = compared(paths, tmp_path / "free", seeds=3)
    best = {name: sorted(run.curve.min() for run in runs.values()) for name, runs in free.runs.items()}
    target = float(np.mean(best["four"][:2]))  # between two seeds
    found = compared(paths, tmp_path / "fixed", seeds=3, target=target)
    pair = found.pair("four", TARGET)
    assert pair is not None
    assert pair.paired is None
    assert "four on 2 of 3 seeds" in pair.missing
    assert found.mean("four", TARGET) is None
    assert verdict(found).startswith("Nobody reaches train loss ")


def test_a_score_is_reached_from_below(tmp_path: Path) -> None:
    found = compared(three(tmp_path), tmp_path / "runs", seeds=2, metric="accuracy")
    for seed in found.seeds:
        assert found.targets[seed] == min(found.runs[name][seed].curve[-1] for name in found.runs)
        for name in found.runs:
            run = found.runs[name][seed]
            first = int(np.argmax(run.curve >= found.targets[seed]))
            assert run.values[TARGET] == run.times_s[first]


def test_numbers_of_a_run_are_those_of_its_own_metrics(of_three: Comparison) -> None:
    run, view = of_three.runs["four"][3], of_three.views["four"]
    assert run.values[ROUND] == pytest.approx(view.duration_s / 12)
    assert run.values["covered"] == pytest.approx(4 / 6)
    assert run.values["final_train_loss"] == view.metrics.final["train_loss"]
    sizes = [row[5] for row in view.trace if row[2] == "send"]
    assert run.values["sent_bytes"] == sum(sizes) == sent_bytes(view.trace) > 0


def test_codes_that_are_not_in_groups_cover_no_groups(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, "pairs", "{kind: fractional-repetition, replication: 2}"),
        written(tmp_path, "balanced", "{kind: balanced-repetition, stragglers: 1}"),
    ]
    found = compared(paths, tmp_path / "runs", seeds=2)
    assert found.runs["pairs"][3].values["covered"] == 1.0
    assert "covered" not in found.runs["balanced"][3].values
    assert found.runs["balanced"][3].values[ERROR] == 0.0


def test_pairs_are_those_of_the_seeds(of_three: Comparison) -> None:
    four, everybody = ([of_three.runs[name][s].values[ROUND] for s in of_three.seeds] for name in ("four", "all"))
    pair = of_three.pair("four", ROUND)
    assert pair is not None
    assert pair.paired == paired(four, everybody)


def test_one_seed_pairs_rounds_and_gives_nothing_else_an_interval(tmp_path: Path) -> None:
    found = compared(three(tmp_path), tmp_path / "runs", seeds=1)
    pair = found.pair("four", ROUND)
    assert pair is not None
    assert pair.paired is not None
    assert (pair.paired.over, pair.paired.pairs) == ("rounds", 12)
    for other in found.pairs:
        if other.measure != ROUND:
            assert other.paired is not None
            assert other.paired.p_value is None
    first, second = verdict(found).split(". ")
    assert " is fastest to train loss " in first
    assert "(no interval: one seed)" in first
    assert "per round" in second


@pytest.mark.parametrize("kept", ["skip-stale", "carry-over"])
def test_rounds_that_depend_on_each_other_give_no_interval_when_few(kept: str, tmp_path: Path) -> None:
    paths = three(tmp_path)[:2]
    found = compared(paths, tmp_path / "runs", (f"protocol.stragglers={kept}",), seeds=1)
    pair = found.pair("four", ROUND)
    assert pair is not None
    assert pair.paired is not None
    assert pair.paired.over == "dependent rounds"
    assert "(no interval: work of one round is finished in the next)" in verdict(found)


def test_what_is_drained_after_the_end_is_told_apart_from_the_training(tmp_path: Path) -> None:
    paths = three(tmp_path)[:2]
    found = compared(paths, tmp_path / "runs", ("protocol.stragglers=carry-over",), seeds=2)
    for seed in found.seeds:
        run = found.runs["four"][seed]
        assert run.values["drain_s"] > 0
        assert run.values["duration_s"] == run.times_s[-1]
    assert "drain_s" in found.measures


def test_nothing_is_drained_where_work_is_cancelled(of_three: Comparison) -> None:
    assert "drain_s" not in of_three.measures


def test_seeds_that_are_not_whole_are_left_out(tmp_path: Path) -> None:
    planned = plan(three(tmp_path), seeds=2)
    runs = Runs()
    race(planned, tmp_path / "runs", runs)
    del runs.by_contestant["pairs"][4]
    assert analyse(planned, runs).seeds == (3,)


def test_a_diverged_contestant_reaches_nothing_and_sets_no_target(of_three: Comparison) -> None:
    runs = Runs({name: dict(each) for name, each in of_three.runs.items()}, of_three.views)
    for seed, run in runs.by_contestant["four"].items():
        values = {**run.values, "final_train_loss": math.nan}
        values.pop(TARGET)
        runs.by_contestant["four"][seed] = replace(run, values=values, curve=np.full(13, math.nan))
    found = analyse(of_three.plan, runs)
    assert all(target is not None and math.isfinite(target) for target in found.targets.values())
    assert found.mean("four", TARGET) is None
    assert "; not reached by four." in verdict(found)


def test_run_is_measured_without_its_optional_columns() -> None:
    run = Run(1, None, 2, {}, np.ones(2), np.arange(3.0), np.array([3.0, 2.0, 1.0]), "")
    assert run.seconds_to(2.0, higher=False) == 1.0
    assert run.seconds_to(0.5, higher=False) is None
    assert run.seconds_to(3.0, higher=True) == 0.0


def test_progress_counts_over_all_runs(tmp_path: Path) -> None:
    planned = plan(three(tmp_path)[:2], seeds=2)
    rows: list[dict] = []
    race(planned, tmp_path / "runs", Runs(), rows.append)
    assert rounds_to_run(planned) == rows[-1]["round"] == 48
    assert [row["round"] for row in rows] == sorted(row["round"] for row in rows)
    assert [row["events"] for row in rows] == sorted(row["events"] for row in rows)
    labels = list(dict.fromkeys(row["run"] for row in rows))
    assert labels[0] == "run 1 of 4: all, seed 3"
    assert labels[3] == "run 4 of 4: four, seed 4"


def test_decode_error_is_a_share_of_the_data_whatever_the_partitions(of_three: Comparison) -> None:
    # Of 6 partitions 4 count 6/4 times and 2 not at all: 4 (1/2)^2 + 2 = 3.
    assert of_three.runs["four"][3].values[ERROR] == pytest.approx(3 / 6)
    assert of_three.runs["all"][3].values[ERROR] == 0.0


def test_groups_of_different_sizes_have_comparable_errors_too(tmp_path: Path) -> None:
    # Groups of 4 and 3 workers have a partition each; the first of 7 answers leaves one of the two out.
    paths = [*three(tmp_path)[:1], written(tmp_path, "uneven", "{kind: fractional-repetition, replication: 3}", 1)]
    found = compared(paths, tmp_path / "runs", ("cluster.workers=7",), seeds=1)
    assert found.mean("uneven", ERROR) == 0.5


def test_where_objectives_differ_only_seconds_and_held_out_scores_are_compared(tmp_path: Path) -> None:
    first, second = written(tmp_path, "all"), written(tmp_path, "more")
    second.write_text(second.read_text().replace('3"}', '3", l2: 0.1}'))
    found = compared([first, second], tmp_path / "runs", seeds=2)
    assert TARGET not in found.measures
    finals = {pair.measure for pair in found.pairs if pair.measure.startswith("final_")}
    assert finals == {"final_validation_accuracy", "final_validation_auc"}
    assert found.pair("more", ROUND) is not None
    assert verdict(found) == (
        "Objectives differ, so there is no common target (a held-out score would be one: --metric validation_auc). "
        "all and more take the same time per round on every seed."
    )


def test_a_held_out_score_is_a_target_even_where_objectives_differ(tmp_path: Path) -> None:
    first, second = written(tmp_path, "all"), written(tmp_path, "four", "ignore-stragglers", 4)
    second.write_text(second.read_text().replace('3"}', '3", l2: 0.1}'))
    found = compared([first, second], tmp_path / "runs", seeds=2, metric="validation_auc")
    assert TARGET in found.measures


def test_pairs_are_against_the_baseline_that_was_asked_for(tmp_path: Path) -> None:
    found = compared(three(tmp_path), tmp_path / "runs", seeds=2, baseline="four")
    assert {pair.contestant for pair in found.pairs} == {"all", "pairs"}
    pair = found.pair("all", ROUND)
    assert pair is not None
    assert pair.paired is not None
    mine, theirs = found.mean("all", ROUND), found.mean("four", ROUND)
    assert mine is not None
    assert theirs is not None
    assert pair.paired.difference.value == pytest.approx(mine - theirs)


def test_another_target_leaves_nothing_of_the_first_behind(of_three: Comparison) -> None:
    runs = Runs({name: dict(each) for name, each in of_three.runs.items()}, of_three.views)
    for each in runs.by_contestant.values():
        each.update({seed: replace(run, values=dict(run.values)) for seed, run in each.items()})
    found = analyse(replace(of_three.plan, target=1e-9), runs)
    assert found.mean("four", TARGET) is None


@pytest.mark.slow
def test_real_runs_are_compared_too(tmp_path: Path) -> None:
    paths = three(tmp_path)[:2]
    fast = (
        "engine=tcp",
        "runtime={processes: shared}",
        "cluster.compute.mean_s=0.02",
        "cluster.compute.shift_s=0.01",
        "rounds=5",
    )
    found = compared(paths, tmp_path / "runs", fast, seeds=2)
    assert found.measures[:2] == [ROUND, TARGET]
    for name in ("all", "four"):
        assert all(value is not None and value > 0 for value in found.values(name, "sent_bytes"))
        assert found.expected_round_s[name] is not None
