"""Rounds are paired one by one only where one says nothing about the next, and the reason given is the true one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emuml.comparison.analysis import analyse
from emuml.comparison.contestants import gather
from emuml.comparison.dependence import RECORDED, dependence, left_over
from emuml.comparison.measures import ROUND
from emuml.comparison.plan import plan
from emuml.comparison.race import Runs, race
from emuml.comparison.statistics import is_correlated
from tests.comparison.files import three

EXPONENTIAL = "kind: shifted-exponential, shift_s: 0.05, mean_s: 0.5"


@pytest.mark.parametrize(
    ("override", "why"),
    [
        ("rounds=12", ""),
        ("protocol.stragglers=wait-all", ""),
        ("protocol.stragglers=carry-over", "work of one round is finished in the next"),
        ("protocol.stragglers=skip-stale", "work of one round is finished in the next"),
        ("cluster.cancel_lag_s=0.1", "a cancelled task may hold its worker in the next round"),
        ("cluster.compute.kind=erasurehead-delays", ""),
        ("faults=[{kind: crash, node: worker-1, at_s: 1}]", "a fault lasts for more than a round"),
        ("engine=tcp", "real rounds share a machine"),
    ],
)
def test_what_one_round_leaves_to_the_next(override: str, why: str, tmp_path: Path) -> None:
    _, four, *_ = gather(three(tmp_path), [override])
    assert left_over(four) == why


@pytest.mark.parametrize("kept", ["skip-stale", "carry-over"])
def test_nothing_is_left_over_where_everybody_is_waited_for(kept: str, tmp_path: Path) -> None:
    everybody, *_ = gather(three(tmp_path), [f"protocol.stragglers={kept}"])
    assert left_over(everybody) == ""


def recorded(folder: Path, delays: np.ndarray, more: str = "") -> list[Path]:
    inputs = folder / "inputs"
    inputs.mkdir()
    np.save(inputs / "delays.npy", delays)
    paths = three(folder)[:2]
    for path in paths:
        text = path.read_text().replace(EXPONENTIAL, f"kind: delay-trace, array: inputs/delays.npy{more}")
        path.write_text(text.replace("rounds: 12", f"rounds: {len(delays)}"))
    return paths


def over(folder: Path, delays: np.ndarray, more: str = "") -> tuple[str, str]:
    planned, runs = plan(recorded(folder, delays, more), seeds=1), Runs()
    race(planned, folder / "runs", runs)
    pair = analyse(planned, runs).pair("four", ROUND)
    assert pair is not None
    assert pair.paired is not None
    return pair.paired.over, pair.dependence


def test_recorded_rounds_without_persistence_are_paired_one_by_one(tmp_path: Path) -> None:
    assert over(tmp_path, np.random.default_rng(3).exponential(size=(40, 6)) + 0.1) == ("rounds", "")


def test_recorded_rounds_that_persist_are_not(tmp_path: Path) -> None:
    draws = np.random.default_rng(3)
    slow = 1.0 + 0.9 * np.sin(np.arange(40) / 6)[:, None]
    assert over(tmp_path, slow * (0.1 + draws.exponential(size=(40, 6)))) == ("dependent rounds", RECORDED)


def test_many_recorded_rounds_that_persist_go_by_batches(tmp_path: Path) -> None:
    draws = np.random.default_rng(3)
    slow = 1.0 + 0.9 * np.sin(np.arange(200) / 6)[:, None]
    assert over(tmp_path, slow * (0.1 + draws.exponential(size=(200, 6)))) == ("batches of rounds", RECORDED)


def test_recorded_rounds_that_are_drawn_anew_are_paired_one_by_one(tmp_path: Path) -> None:
    draws = np.random.default_rng(3)
    slow = 1.0 + 0.9 * np.sin(np.arange(40) / 6)[:, None]
    delays = slow * (0.1 + draws.exponential(size=(40, 6)))
    assert over(tmp_path, delays, ", order: resampled") == ("rounds", "")


def test_draws_of_a_law_are_not_tested_for_persistence(tmp_path: Path) -> None:
    both = gather(three(tmp_path)[:2])
    assert dependence(both, np.arange(50.0), np.arange(50.0)) == ""


def test_independent_numbers_are_called_correlated_as_rarely_as_promised() -> None:
    """Level 5 %: of 1,000 samples 50 +- 27.6, which is four standard deviations."""
    draws = np.random.default_rng(11).exponential(size=(1000, 40))
    assert 20 <= sum(map(is_correlated, draws)) <= 80


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [0.1] * 50, [0.1 + 1e-17] * 30])
def test_what_is_too_short_or_constant_is_not_correlated(values: list[float]) -> None:
    assert not is_correlated(values)
