"""The box in the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.protocols import GradientCoding
from emuml.report.terminal import summary
from emuml.report.view import View
from emuml.workloads import LinearRegression


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_box_fits_and_has_the_facts(width: int) -> None:
    cluster = Cluster(workers=3, compute=ShiftedExponential(0.05, 0.5))
    view = View.of_result(emuml.run(emuml.Experiment(LinearRegression(), GradientCoding(), cluster, rounds=5)))
    console = Console(file=io.StringIO(), width=width)
    console.print(summary(view))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for words in ("rounds", "5 (5 rounds done)", "closed form", "all 5 rounds exact", "no node", "sha256", "wall time"):
        assert words in text


def test_brackets_in_values_are_no_markup() -> None:
    plan = emuml.FaultPlan([emuml.Crash("worker-2", after=("round", 3))])
    cluster = Cluster(workers=3, compute=ShiftedExponential(0.05, 0.5))
    experiment = emuml.Experiment(
        LinearRegression(), GradientCoding(), cluster, rounds=5, faults=plan, name="a[b]c[/x]"
    )
    console = Console(file=io.StringIO(), width=200)
    console.print(summary(View.of_result(emuml.run(experiment))))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "a[b]c[/x]" in text
    assert "[round, 3]" in text or "('round', 3)" in text
