"""The box in the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import IgnoreStragglers
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


def box(experiment: emuml.Experiment, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(summary(View.of_result(emuml.run(experiment))))
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_control_characters_are_shown_not_sent_to_the_terminal() -> None:
    cluster = Cluster(workers=3, compute=ShiftedExponential(0.05, 0.5))
    text = box(emuml.Experiment(LinearRegression(), GradientCoding(), cluster, rounds=2, name="a\x1b[31m\x00\n\x07b"))
    assert r"a\x1b[31m\x00\n\x07b" in text
    assert all(letter.isprintable() or letter == "\n" for letter in text)


def test_seconds_that_are_logged_stand_beside_those_that_pass() -> None:
    cluster = Cluster(workers=3, compute=ShiftedExponential(0.05, 0.5))
    protocol = GradientCoding(IgnoreStragglers(), collect=1, stragglers="wait-all")
    experiment = emuml.Experiment(LinearRegression(), protocol, cluster, rounds=5)
    view = View.of_result(emuml.run(experiment))
    logged, elapsed = view.decided_round_times_s.mean(), view.round_times_s.mean()
    assert logged < elapsed
    said = f"the stop rule was met after {logged:.4g} s per round, the next one started after {elapsed:.4g} s"
    assert said in box(experiment)
