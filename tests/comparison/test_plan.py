"""What is common is found, what is not is said, and what cannot be compared is refused before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import emuml
from emuml.comparison.plan import plan
from emuml.errors import UserError
from emuml.experiment.config import ConfigError, load
from tests.comparison.files import three, written

EXPONENTIAL = "kind: shifted-exponential, shift_s: 0.05, mean_s: 0.5"


def changed(folder: Path, old: str, new: str) -> list[Path]:
    """Write two files that differ in one place."""
    first, second = written(folder, "all"), folder / "other.yaml"
    text = first.read_text().replace("name: all", "name: other")
    assert old in text
    second.write_text(text.replace(old, new))
    return [first, second]


def test_seeds_follow_the_first_files_seed(tmp_path: Path) -> None:
    paths = changed(tmp_path, "seed: 3", "seed: 70")
    assert plan(paths).seeds == (3, 4, 5, 6, 7)
    assert plan(paths[::-1], seeds=2).seeds == (70, 71)


def test_only_settings_that_differ_are_shown(tmp_path: Path) -> None:
    found = plan(three(tmp_path))
    assert [(row.setting, row.values) for row in found.differences] == [
        (
            "protocol.code",
            ("uncoded", "ignore-stragglers(scale=covered)", "fractional-repetition(replication=2, scale=none)"),
        ),
        ("protocol.collect", ("-", "4", "-")),
    ]
    assert found.shared.warnings == ()
    assert found.shared.common == ("data, order of rows, held-back rows, initial parameters", "delays draw by draw")


@pytest.mark.parametrize(
    ("old", "new", "setting", "warning"),
    [
        ("workers: 6", "workers: 4", "cluster.workers", "numbers of workers differ: only the workers that all have"),
        ("mean_s: 0.5", "mean_s: 0.6", "cluster.compute.mean_s", "compute laws differ"),
        (EXPONENTIAL, "kind: constant, seconds: 1.0", "cluster.compute", "compute laws differ"),
        ("rounds: 12", "rounds: 13", "rounds", "rounds differ: totals and final losses"),
        ('3"}', '3", l2: 0.1}', "workload.l2", "objectives differ (workload.l2): losses are not comparable"),
        ('3"}', '3", chunk_rows: 7}', "workload.chunk_rows", "sizes of blocks differ"),
        ('3"}', '3", initial_scale: 0.1}', "workload.initial_scale", "initial parameters differ"),
        ('3"}', '3", optimizer: {kind: gradient-descent, rate: 0.1}}', "workload.optimizer.rate", "optimizers differ"),
    ],
)
def test_what_is_not_common_is_warned_of(old: str, new: str, setting: str, warning: str, tmp_path: Path) -> None:
    found = plan(changed(tmp_path, old, new))
    assert [row.setting for row in found.differences] == [setting]
    assert len(found.shared.warnings) == 1
    assert found.shared.warnings[0].startswith(warning)


def test_other_faults_and_another_engine_are_warned_of(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, "calm"),
        written(tmp_path, "crash", extra="faults: [{kind: crash, node: worker-1, at_s: 1}]\n"),
    ]
    paths[1].write_text(paths[1].read_text() + "engine: tcp\n")
    warnings = plan(paths).shared.warnings
    assert [text.partition(":")[0] for text in warnings] == ["engines differ", "faults differ"]


@pytest.mark.parametrize(
    ("new", "common"),
    [
        ("mean_s: 0.6", "the draws behind the delays, under laws that differ"),
        ("mean_s: 0.5", "delays draw by draw"),
    ],
)
def test_delays_are_called_common_where_they_are(new: str, common: str, tmp_path: Path) -> None:
    assert plan(changed(tmp_path, "mean_s: 0.5", new)).shared.common[-1] == common


@pytest.mark.parametrize(
    "law", ["kind: constant, seconds: 1.0", "kind: erasurehead-delays, rounds: 12, workers: 6", "kind: instant"]
)
def test_delays_that_do_not_change_with_the_seed_are_warned_of(law: str, tmp_path: Path) -> None:
    paths = three(tmp_path)
    for path in paths:
        path.write_text(path.read_text().replace(EXPONENTIAL, law))
    warning = "delays do not change with the seed: intervals speak of the order of the data alone"
    assert warning in plan(paths).shared.warnings
    assert warning not in plan(paths, seeds=1).shared.warnings


def test_a_file_against_itself_is_told_to_give_zeros(tmp_path: Path) -> None:
    first, second, _ = three(tmp_path)
    (warning,) = plan([first, second, first]).shared.warnings
    assert warning == "all-2 is the same experiment as all: all differences between them are zero by construction"


def test_contestants_that_scale_differently_are_warned_of(tmp_path: Path) -> None:
    paths = [*three(tmp_path)[:2], written(tmp_path, "some", "{kind: fractional-repetition, replication: 2}", 3)]
    (warning,) = plan(paths).shared.warnings
    # A pair of 6 is missed by 3 of them with probability 1 * (4 choose 3) / (6 choose 3) = 1/5.
    assert warning == (
        "answers that are missing are treated differently: four scales the rest up (scale=covered), "
        "some leaves them out (scale=none, so its steps are 20 % shorter on average), all misses nothing; "
        "losses differ for that reason too"
    )


@pytest.mark.parametrize("collect", [None, 5, 6])  # of any five of six workers one is in each pair
def test_a_scale_of_what_is_never_missing_is_not_warned_of(collect: int | None, tmp_path: Path) -> None:
    pairs = written(tmp_path, "some", "{kind: fractional-repetition, replication: 2}", collect)
    assert plan([*three(tmp_path)[:2], pairs]).shared.warnings == ()


def test_shorter_steps_beside_complete_ones_are_warned_of(tmp_path: Path) -> None:
    paths = [written(tmp_path, "all"), written(tmp_path, "four", "{kind: ignore-stragglers, scale: none}", 4)]
    (warning,) = plan(paths).shared.warnings
    assert "four leaves them out (scale=none, so its steps are 33 % shorter on average)" in warning


def test_sums_that_are_right_on_average_are_no_shorter_steps(tmp_path: Path) -> None:
    some = written(tmp_path, "some", "{kind: stochastic-code, replication: 2}", 3)
    assert plan([written(tmp_path, "all"), some]).shared.warnings == ()


def test_what_a_deadline_cuts_off_is_missing(tmp_path: Path) -> None:
    late = written(tmp_path, "late", "{kind: ignore-stragglers, scale: none}")
    late.write_text(late.read_text().replace("kind: gradient-coding", "kind: gradient-coding, deadline_s: 0.5"))
    (warning,) = plan([written(tmp_path, "all"), late]).shared.warnings
    assert "late leaves them out (scale=none), all misses nothing" in warning


def test_one_scale_for_all_is_not_warned_of(tmp_path: Path) -> None:
    plain = "{kind: ignore-stragglers, scale: none}"
    assert plan([written(tmp_path, "four", plain, 4), written(tmp_path, "five", plain, 5)]).shared.warnings == ()


@pytest.mark.parametrize(
    ("settings", "comparable"),
    [
        ({}, {"train_loss", "accuracy", "auc", "validation_loss", "validation_accuracy", "validation_auc"}),
        ({"l2": 0.1}, {"validation_accuracy", "validation_auc"}),
        ({"standardize": False}, {"validation_accuracy", "validation_auc"}),
        ({"validation": 0.3}, set()),
        ({"batch": 5}, {"train_loss", "accuracy", "auc", "validation_loss", "validation_accuracy", "validation_auc"}),
    ],
)
def test_only_what_means_the_same_for_all_is_comparable(
    settings: dict[str, float], comparable: set[str], tmp_path: Path
) -> None:
    more = "".join(f", {name}: {str(value).lower()}" for name, value in settings.items())
    found = plan(changed(tmp_path, '3"}', f'3"{more}}}'))
    assert set(found.comparable) == comparable
    assert found.has_target is ("train_loss" in comparable)


def test_a_target_in_what_is_not_comparable_is_refused(tmp_path: Path) -> None:
    paths = changed(tmp_path, '3"}', '3", l2: 0.1}')
    with pytest.raises(UserError, match=r"--target: objectives differ, so train_loss 0\.3 is not the same target"):
        plan(paths, target=0.3)
    assert plan(paths, target=0.9, metric="validation_auc").has_target


def test_a_baseline_is_one_of_the_names(tmp_path: Path) -> None:
    found = plan(three(tmp_path), baseline="pairs")
    assert found.baseline.name == "pairs"
    assert [one.name for one in found.others] == ["all", "four"]
    assert plan(three(tmp_path)).baseline.name == "all"
    with pytest.raises(UserError, match="--baseline: got 'fuor'; allowed: all, four, pairs; did you mean 'four'"):
        plan(three(tmp_path), baseline="fuor")


@pytest.mark.parametrize(("old", "new"), [("120x3", "120x4"), ("logistic", "linear")])
def test_other_data_or_another_model_are_refused(old: str, new: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"other\.yaml trains something else than .*all\.yaml"):
        plan(changed(tmp_path, old, new))


def test_one_data_set_under_two_paths_is_the_same(tmp_path: Path) -> None:
    draws = np.random.default_rng(1)
    X = draws.normal(size=(60, 2))
    for name in ("a.npz", "b.npz"):
        np.savez(tmp_path / name, X=X, y=(X[:, 0] > 0).astype(float))
    paths = changed(tmp_path, "two-gaussians:120x3", "b.npz")
    paths[0].write_text(paths[0].read_text().replace("two-gaussians:120x3", "a.npz"))
    found = plan(paths)
    assert found.differences == ()


@pytest.mark.parametrize(("metric", "hint"), [("trian_loss", "did you mean 'train_loss'?"), ("r2", "")])
def test_a_metric_that_is_not_there_is_refused(metric: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"'{metric}' is no metric of all, four, pairs") as caught:
        plan(three(tmp_path), metric=metric)
    assert hint in str(caught.value)


def test_a_target_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--target: got nan"):
        plan(three(tmp_path), target=float("nan"))


def test_what_does_not_fit_the_data_is_refused_for_all_files_at_once(tmp_path: Path) -> None:
    paths = three(tmp_path)
    for path in paths:
        path.write_text(path.read_text() + "stop: {kind: target-loss, value: 0.1, metric: los}\n")
    with pytest.raises(ConfigError) as caught:
        plan(paths)
    assert [text.partition(":")[0] for text in caught.value.problems] == list(map(str, paths))
    assert all("stop.metric: 'los' is no metric here" in text for text in caught.value.problems)


def test_files_take_the_seeds_of_run_directories(tmp_path: Path) -> None:
    first, second, third = three(tmp_path)
    folders = []
    for path, seeds in ((first, (5, 2, 9)), (second, (2, 5))):
        for seed in seeds:
            folders.append(tmp_path / f"{path.stem}-{seed}")
            emuml.run(replace(load(path).experiment, seed=seed), out=folders[-1])
    assert plan([*folders, third]).seeds == (2, 5)
    assert plan([*folders, third], seeds=1).seeds == (2,)
    with pytest.raises(UserError, match="at most 2"):
        plan([*folders, third], seeds=3)
    with pytest.raises(UserError, match="no seed in common"):
        plan([folders[2], folders[3]])
