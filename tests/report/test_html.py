"""The page: self-contained, well formed, and with the numbers of the run."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan
from emuml.experiment.run_dir import RunDir
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.report.html import page, write_report
from emuml.report.markup import tag
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
    assert [link for link in links if not str(link).startswith("#")] == ["data:,"]


def test_the_page_fits_light_and_dark_wide_and_narrow(text: str) -> None:
    assert "prefers-color-scheme: dark" in text
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in outline(text).seen


def test_names_are_escaped(text: str) -> None:
    assert "<b>" not in text
    assert "<b>six & co</b>" in outline(text).words


def test_every_drawing_has_a_name_and_a_description(text: str) -> None:
    seen = outline(text).seen
    drawings = [attributes for tag, attributes in seen if tag == "svg" and attributes.get("aria-hidden") != "true"]
    assert len(drawings) >= 12
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
    assert "12 of 12 rounds" in words
    assert "13 of 13 logged points" in words
    assert "replication: 2" in words


def test_several_runs_share_their_charts(view: View) -> None:
    other = View.of_result(emuml.run(EXPERIMENT), label="other")
    text = page([view, other], title="two", conclusion="Nobody wins.")
    seen = outline(text).seen
    losses = text.partition('id="round-times"')[0]
    assert losses.count('class="line s1"') % 3 == 0  # of each measure a key and two charts
    assert "Nobody wins." in text
    assert text.count('aria-label="Timeline of ') == 2
    assert [attributes["href"] for tag, attributes in seen if tag == "a"] == [
        f"#{attributes['id']}" for tag, attributes in seen if tag == "h2"
    ]


def test_headings_go_down_one_level_at_a_time(view: View, text: str) -> None:
    for shown in (text, page([view, view], title="two")):
        levels = [int(tag[1]) for tag, _ in outline(shown).seen if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_figure_has_its_numbers_and_the_command_for_it(folder: Path, text: str) -> None:
    figures = re.findall("<figure.*?</figure>", text, re.DOTALL)
    assert len(figures) == len(re.findall("<figcaption>", text)) >= 8
    for figure in figures:
        assert re.search("<details><summary.*<table>.*<tbody><tr>.*</table>", figure, re.DOTALL)
        assert f"<code>emuml report {folder}</code>" in figure


def test_boxes_that_scroll_can_be_reached_by_keyboard(text: str) -> None:
    boxes = [
        attributes for tag, attributes in outline(text).seen if tag == "pre" or attributes.get("class") == "scroll"
    ]
    assert len(boxes) > 10
    assert all(attributes["tabindex"] == "0" and attributes["aria-label"] for attributes in boxes)


def test_equal_runs_give_equal_pages_apart_from_their_folders(folder: Path, text: str, tmp_path: Path) -> None:
    again = page([View.of_result(emuml.run(EXPERIMENT, out=tmp_path / "other"))])
    assert again.replace(str(tmp_path / "other"), str(folder)) == text


def test_callers_add_sections_and_the_command() -> None:
    added = tag("section", tag("h2", "Winners & losers"), tag("p", "B beats A."))
    one = View.of_result(emuml.run(EXPERIMENT))
    text = page([one, one], sections=[added, tag("section", tag("h2", "Facts"))], command="emuml compare a b")
    assert text.index("B beats A.") < text.index(">Round times</h2>")
    assert '<a href="#winners-losers">Winners &amp; losers</a>' in text
    ids = [str(attributes["id"]) for _, attributes in outline(text).seen if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert "<code>emuml compare a b</code>" in text


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
