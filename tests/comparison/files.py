"""Small experiment files that tests of comparisons change to their needs."""

from __future__ import annotations

from pathlib import Path

TEXT = """\
name: {name}
workload: {{kind: logistic-regression, data: "two-gaussians:120x3"}}
protocol: {{kind: gradient-coding, code: {code}, {collect}}}
cluster: {{workers: 6, compute: {{kind: shifted-exponential, shift_s: 0.05, mean_s: 0.5}}}}
rounds: 12
seed: 3
"""


def written(folder: Path, name: str, code: str = "uncoded", collect: int | None = None, extra: str = "") -> Path:
    """Write an experiment of six workers and twelve rounds, and return its path."""
    path = folder / f"{name}.yaml"
    count = "" if collect is None else f"collect: {collect}"
    path.write_text(TEXT.format(name=name, code=code, collect=count) + extra)
    return path


def three(folder: Path) -> list[Path]:
    """Write three contestants: wait for all, for four of six, for one of each pair."""
    return [
        written(folder, "all"),
        written(folder, "four", "ignore-stragglers", 4),
        written(folder, "pairs", "{kind: fractional-repetition, replication: 2}"),
    ]
