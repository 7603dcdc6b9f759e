"""The page: self-contained, well formed, and with the numbers of the run."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan
from emuml.experiment.run_dir import RunDir
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.report.html import page, write_report
from emuml.report.view import View
from emuml.workloads import LinearRegression, LogisticRegression

EXPERIMENT = emuml.Experiment(
    workload=LogisticRegression(),
    protocol=GradientCoding(code=FractionalRepetition(replication=2), collect=4),
    cluster=Cluster(workers=6, compute=ShiftedExponential(shift_s=0.05, mean_s=0.5)),
    rounds=12,
    seed=3,
    name="<b>six & co</b>",
    faults=FaultPlan([Crash("worker-2", at_s=0.4)]),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report") / "run"


@pytest.fixture(scope="module")
def view(folder: Path) -> View:
    return View.of_result(emuml.run(EXPERIMENT, out=folder))


@pytest.fixture(scope="module")
def text(view: View) -> str:
    return page([view])


class Outline(HTMLParser):
    """Collects what there is, and fails on elements that are not closed in order."""

    VOID = ("meta", "link", "br", "img", "input", "hr")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def outline(text: str) -> Outline:
    parsed = Outline()
    parsed.feed(text)
    parsed.close()
    assert parsed.open == []
    return parsed


def test_the_page_loads_nothing(text: str) -> None:
    assert not re.search(r"https?:|//|\bsrc=|@import|url\(|<script|<iframe|\bon\w+=", text)
    links = [attributes["href"] for tag, attributes in outline(text).seen if "href" in attributes]
    assert links == ["data:,"]


def test_the_page_fits_light_and_dark_wide_and_narrow(text: str) -> None:
    assert "prefers-color-scheme: dark" in text
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in outline(text).seen


def test_names_are_escaped(text: str) -> None:
    assert "<b>" not in text
    assert "<b>six & co</b>" in outline(text).words


def test_every_drawing_has_a_name_and_a_description(text: str) -> None:
    seen = outline(text).seen
    drawings = [attributes for tag, attributes in seen if tag == "svg" and attributes.get("aria-hidden") != "true"]
    assert len(drawings) == 4
    for attributes in drawings:
        assert attributes["role"] == "img"
        assert len(str(attributes["aria-label"])) > 20
    assert sum(tag == "desc" for tag, _ in seen) == len(drawings)


def test_the_page_has_the_numbers_of_the_run(view: View, text: str) -> None:
    words = "".join(outline(text).words)
    assert f"{view.metrics.final['train_loss']:.4g}" in words
    assert view.summary["parameters_sha256"][:16] in words
    assert "worker-2 (life 1) crashed at t=0.4 s" in words
    assert f"{view.expected_round_s():.4g}" in words
    assert "12 of 12" not in words
    assert "13 of 13 logged points" in words
    assert "replication: 2" in words


def test_several_runs_share_their_charts(view: View) -> None:
    other = View.of_result(emuml.run(EXPERIMENT), label="other")
    text = page([view, other], title="two", conclusion="Nobody wins.")
    seen = outline(text).seen
    assert sum(attributes.get("class") == "line s1" for _, attributes in seen) == 3  # a key and two charts
    assert "Nobody wins." in text
    assert text.count('aria-label="Timeline of ') == 2


def test_folder_and_result_give_the_same_page(view: View, folder: Path, text: str) -> None:
    assert page([View.of_folder(folder)]) == text


@pytest.mark.slow
def test_a_report_stays_small_for_long_runs_and_many_workers(tmp_path: Path) -> None:
    experiment = emuml.Experiment(
        LinearRegression(), GradientCoding(), Cluster(workers=50, compute=ShiftedExponential(0.05, 0.5)), rounds=400
    )
    path = write_report([View.of_result(emuml.run(experiment))], tmp_path / "report.html")
    assert path.stat().st_size < 500_000


def test_a_run_that_was_cut_before_its_first_round_has_a_page(tmp_path: Path) -> None:
    RunDir(tmp_path / "run", EXPERIMENT, "des").close()
    text = page([View.of_folder(tmp_path / "run")])
    assert "No round was finished." in text
    assert "the run did not finish" in text
    outline(text)
