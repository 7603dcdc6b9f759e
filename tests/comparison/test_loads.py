"""Recorded delays in comparisons: loads that they ignore are told, and resampled rounds count as replicates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emuml.comparison.contestants import gather
from emuml.comparison.dependence import dependence
from emuml.comparison.plan import plan
from emuml.comparison.race import Runs, race
from tests.comparison.files import three

EXPONENTIAL = "{kind: shifted-exponential, shift_s: 0.05, mean_s: 0.5}"
SAME = "delays do not change with the seed: intervals speak of the order of the data alone"
IGNORED = "recorded delays ignore the load: a worker computes 2 shares of the data in pairs, in the time of one"


def recorded(folder: Path, rounds: int = 12, **settings: str) -> list[Path]:
    """Write three contestants on recorded delays that lie beside them; only "pairs" has a load of two."""
    np.savetxt(folder / "own.csv", np.random.default_rng(4).exponential(0.5, (rounds, 6)), delimiter=";")
    law = ", ".join(
        f"{name}: {value}" for name, value in {"kind": "delay-trace", "array": "own.csv", **settings}.items()
    )
    paths = three(folder)
    for path in paths:
        assert EXPONENTIAL in path.read_text()
        path.write_text(path.read_text().replace(EXPONENTIAL, f"{{{law}}}"))
    return paths


@pytest.mark.parametrize(
    ("settings", "warnings"),
    [
        ({}, (IGNORED, SAME)),
        ({"load": "scaled"}, (SAME,)),
        ({"order": "resampled"}, (IGNORED,)),
        ({"load": "scaled", "order": "resampled"}, ()),
    ],
)
def test_what_recorded_delays_leave_out_is_warned_of(
    settings: dict[str, str], warnings: tuple[str, ...], tmp_path: Path
) -> None:
    assert plan(recorded(tmp_path, **settings)).shared.warnings == warnings


def test_a_load_that_nobody_has_is_not_warned_of(tmp_path: Path) -> None:
    assert plan(recorded(tmp_path)[:2]).shared.warnings == (SAME,)


def test_resampled_rounds_are_common_at_each_seed(tmp_path: Path) -> None:
    """The round of who waits for all is never shorter than that of who waits for some of the same delays."""
    planned = plan(recorded(tmp_path, rounds=5, order="resampled"), seeds=3)
    assert planned.shared.common[-1] == "delays draw by draw"
    runs = Runs()
    race(planned, tmp_path / "runs", runs)
    for seed in planned.seeds:
        all_s, four_s, pairs_s = (
            np.asarray(runs.by_contestant[n][seed].round_times_s) for n in ("all", "four", "pairs")
        )
        assert np.all(four_s <= all_s + 1e-12)
        assert np.all(pairs_s <= all_s + 1e-12)
        assert len(set(all_s.round(9))) <= 5


@pytest.mark.parametrize(("order", "is_dependent"), [("recorded", True), ("resampled", False)])
def test_only_replayed_rounds_may_depend_on_each_other(order: str, is_dependent: bool, tmp_path: Path) -> None:
    drifting = np.linspace(1.0, 2.0, 60)
    assert bool(dependence(gather(recorded(tmp_path, order=order)[:2]), drifting, drifting**2)) is is_dependent
