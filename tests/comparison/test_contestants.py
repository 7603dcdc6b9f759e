"""Who is compared: names, run directories joined by seed, and every problem at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import emuml
from emuml.comparison.contestants import gather
from emuml.errors import UserError
from emuml.experiment.config import ConfigError, load
from tests.comparison.files import three, written


def run_into(path: Path, folder: Path, *seeds: int) -> list[Path]:
    experiment = load(path).experiment
    made = [folder / f"{path.stem}-{seed}" for seed in seeds]
    for seed, out in zip(seeds, made, strict=True):
        emuml.run(replace(experiment, seed=seed), out=out)
    return made


def test_contestants_are_called_as_their_experiments(tmp_path: Path) -> None:
    assert [one.name for one in gather(three(tmp_path))] == ["all", "four", "pairs"]


def test_equal_names_give_way_to_those_of_the_files_and_then_to_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, "all")
    other = tmp_path / "other.yaml"
    other.write_text(path.read_text())
    assert [one.name for one in gather([path, other, path])] == ["all", "other", "all-2"]


def test_an_experiment_without_a_name_is_called_as_its_file(tmp_path: Path) -> None:
    paths = three(tmp_path)
    for path in paths:
        path.write_text(path.read_text().replace(f"name: {path.stem}\n", ""))
    assert [one.name for one in gather(paths)] == ["all", "four", "pairs"]


def test_runs_without_a_name_are_called_as_their_folders(tmp_path: Path) -> None:
    folders = []
    for path in three(tmp_path)[:2]:
        unnamed = replace(load(path).experiment, name="experiment")
        for seed in (1, 2):
            folders.append(tmp_path / "sweep" / path.stem / f"seed-{seed}")
            emuml.run(replace(unnamed, seed=seed), out=folders[-1])
    assert [one.name for one in gather(folders)] == ["all", "four"]
    (tmp_path / "one").symlink_to(folders[0].parent)
    assert [one.name for one in gather([tmp_path / "one" / "seed-1", folders[2]])] == ["all", "four"]


def test_names_differ_as_folders_too(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(written(tmp_path, "x").read_text().replace("name: x", "name: A b"))
    (tmp_path / "b.yaml").write_text(written(tmp_path, "x").read_text().replace("name: x", "name: a-B"))
    assert [one.name for one in gather([tmp_path / "a.yaml", tmp_path / "b.yaml"])] == ["A b", "a-B-2"]


def test_overrides_are_laid_over_every_file(tmp_path: Path) -> None:
    found = gather(three(tmp_path), ["rounds=4", "seed=9"])
    assert {(one.loaded.experiment.rounds, one.loaded.experiment.seed) for one in found} == {(4, 9)}


def test_run_directories_that_differ_in_the_seed_alone_are_one_contestant(tmp_path: Path) -> None:
    first, second, _ = three(tmp_path)
    folders = [*run_into(first, tmp_path, 1, 2), *run_into(second, tmp_path, 2)]
    found = gather(folders)
    assert [(one.name, sorted(one.done)) for one in found] == [("all", [1, 2]), ("four", [2])]


def test_one_run_is_not_counted_twice(tmp_path: Path) -> None:
    (folder,) = run_into(written(tmp_path, "all"), tmp_path, 1)
    with pytest.raises(UserError, match=r"the same experiment and seed \(1\)"):
        gather([folder, folder])


def test_a_run_that_did_not_finish_is_refused(tmp_path: Path) -> None:
    folders = [run_into(path, tmp_path, 1)[0] for path in three(tmp_path)]
    (folders[1] / "summary.json").unlink()
    with pytest.raises(UserError, match="four-1: the run did not finish"):
        gather(folders)


def test_settings_over_runs_that_are_done_are_refused(tmp_path: Path) -> None:
    folders = [run_into(path, tmp_path, 1)[0] for path in three(tmp_path)]
    with pytest.raises(UserError, match="'rounds=3', but all runs are done"):
        gather(folders, ["rounds=3"])


def test_all_problems_of_all_files_are_told(tmp_path: Path) -> None:
    good, *_ = three(tmp_path)
    bad = written(tmp_path, "bad", "uncodid")
    with pytest.raises(ConfigError) as caught:
        gather([good, bad, tmp_path / "fuor.yaml", tmp_path])
    assert len(caught.value.problems) == 3
    text = str(caught.value)
    assert "bad.yaml:3:41: protocol.code" in text
    assert "did you mean 'uncoded'?" in text
    assert "did you mean 'four.yaml'?" in text
    assert "there is no config.yaml" in text


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_are_refused(count: int, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"got {count} to compare"):
        gather(three(tmp_path)[:count])
