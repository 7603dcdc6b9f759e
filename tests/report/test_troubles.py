"""Runs that failed, were cut or diverged say so on top, in words."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import emuml
from emuml.cluster.faults import Crash, FaultPlan
from emuml.errors import Deadlock
from emuml.experiment.result import Metrics
from emuml.protocols import AsyncUpdates
from emuml.report.facts import diverged, facts, headline, troubles
from emuml.report.html import page
from emuml.report.view import View
from emuml.workloads import GradientDescent, LogisticRegression
from tests.experiment.small import small

NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def wild() -> View:
    workload = LogisticRegression(data=small().workload.data, optimizer=GradientDescent(rate=1e200))
    return View.of_result(emuml.run(small(workload=workload, rounds=30)))


def losses(*values: float | None) -> View:
    """Return a view whose training loss has the values given."""
    rows = [{"time_s": float(i), "round": i} | ({} if v is None else {"train_loss": v}) for i, v in enumerate(values)]
    return replace(View.of_result(emuml.run(small(rounds=1))), metrics=Metrics(rows))


def test_a_diverged_run_says_so_in_words(wild: View) -> None:
    first = wild.metrics["train_loss"].tolist().index(INF)
    text = page([wild])
    said = f"The training diverged: the train loss of round {first} is no finite number, nor is any after it"
    assert said in text.partition("<nav")[0]
    assert "loss" not in headline(wild)
    assert said in dict(facts(wild))["warning"]
    assert not re.search(r"(?<![\w.-])(nan|inf)(?!\w)", re.sub("<style>.*?</style>", "", text, flags=re.DOTALL))


def test_several_runs_say_which_one_diverged(wild: View) -> None:
    top = page([View.of_result(emuml.run(small())), replace(wild, label="wild")]).partition("<nav")[0]
    assert top.count("diverged") == 1
    assert "wild: The training diverged" in top


def test_a_run_diverged_if_its_last_losses_are_no_numbers() -> None:
    assert "the train loss of round 2 is" in diverged(losses(1.0, 2.0, INF, NAN))
    assert "before it was 2" in diverged(losses(1.0, 2.0, INF, NAN))
    assert "of round 3 is" in diverged(losses(1.0, NAN, 3.0, INF))
    assert "of round 0 is" in diverged(losses(NAN, NAN))
    assert diverged(losses(1.0, NAN, 3.0)) == diverged(losses(1.0, 2.0, None)) == diverged(losses()) == ""


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failed") / "run"
    with pytest.raises(Deadlock):
        emuml.run(small(faults=FaultPlan((Crash("server-0", after=("round", 3)),))), out=folder)
    return folder


def test_a_failed_run_says_why_and_what_was_lost(failed: Path) -> None:
    view = View.of_folder(failed)
    (said,) = troubles(view)
    assert said.startswith("The run failed: nothing more can happen at t=")
    crash = next(row for row in view.trace if row[2] == "crash")
    lost = f"server-0 (life 1) crashed at t={crash[0]:.6g} s"
    assert f"Before that {lost}." in said
    assert dict(facts(view))["lost"] == lost
    top = page([view]).partition("<nav")[0]
    assert said in top
    assert "server-0: crashed (life 1)" in top


def test_runs_that_did_not_finish_are_called_so(failed: Path) -> None:
    view = View.of_folder(failed)
    assert troubles(replace(view, failure="")) == ["The run did not finish."]
    assert troubles(replace(view, failure="interrupted")) == ["The run was interrupted."]
    assert troubles(View.of_result(emuml.run(small()))) == []


def test_ends_of_processes_are_told_as_the_coordinator_does(failed: Path) -> None:
    rows = [
        (1.0, "worker-1", "crash", 1),
        (1.25, "worker-1", "exit", 1, "killed by SIGKILL"),
        (2.0, "worker-1", "start", 2),
        (3.0, "worker-1", "crash", 2),
    ]
    view = replace(View.of_folder(failed), trace=rows)
    assert view.lost == ["worker-1 (life 1) killed by SIGKILL at t=1.250 s", "worker-1 (life 2) crashed at t=3 s"]


def test_updates_without_decoding_have_their_staleness() -> None:
    view = View.of_result(emuml.run(small(protocol=AsyncUpdates())))
    known, tally = dict(facts(view)), view.tally("staleness")
    mean = sum(value * times for value, times in tally.items()) / tally.total()
    assert known["staleness"] == f"on average {mean:.4g} versions, at most {max(tally)}"
    assert "decoding" not in known
    assert "staleness" not in dict(facts(View.of_result(emuml.run(small()))))
