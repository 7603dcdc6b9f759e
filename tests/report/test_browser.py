"""Pages in a real browser: quiet, alone, and readable at every width, in both schemes and in print."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, DelayTrace, ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan
from emuml.errors import Deadlock
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.report.charts import Series, lines
from emuml.report.html import write_report
from emuml.report.markup import tag
from emuml.report.view import View
from emuml.workloads import GradientDescent, LogisticRegression
from tests.report.chromium import NAMES, Chromium, find

PATH = find()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PATH is None, reason=f"no browser in PATH: {', '.join(NAMES)}"),
    pytest.mark.skipif(sys.platform != "linux", reason="the browser is spoken to over descriptors 3 and 4"),
]

CLIPPED = """[...document.querySelectorAll('svg[role=img] text')].filter(text => {
  const own = text.getBoundingClientRect(), all = text.closest('svg').getBoundingClientRect();
  return own.left < all.left - 1 || own.right > all.right + 1 || own.top < all.top - 1 || own.bottom > all.bottom + 1;
}).map(text => text.textContent)"""
OVERLAPPING = """[...document.querySelectorAll('svg[role=img]')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
    p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 2 && q.top < p.bottom - 2
  ).map(([b]) => `${svg.getAttribute('aria-label')}: ${a} and ${b}`));
})"""
COLOURS = """[...document.querySelectorAll('p, .note, th, td, caption, code, a, svg[role=img] text')].map(element => {
  const style = getComputedStyle(element);
  return element instanceof SVGElement ? style.fill : style.color;
})"""
BACK = "getComputedStyle(document.body).backgroundColor"
SILENT = """[...document.querySelectorAll('div.scroll, pre')].filter(box =>
  box.scrollWidth > box.clientWidth && box.tabIndex !== 0).length"""


def failed(folder: Path) -> View:
    """Return a run whose server crashed and did not come back."""
    faults = FaultPlan([Crash("server-0", after=("round", 3))])
    with pytest.raises(Deadlock):
        emuml.run(replace(view("failed").experiment, faults=faults), out=folder)
    return View.of_folder(folder)


def view(
    name: str, collect: int | None = 15, law: Any = None, rounds: int = 40, rate: float | None = None, **changes: Any
) -> View:
    cluster = Cluster(workers=30, compute=law or ShiftedExponential(0.05, 0.5))
    protocol = GradientCoding(FractionalRepetition(3), collect, **changes)
    experiment = emuml.Experiment(
        LogisticRegression(optimizer=GradientDescent(rate)), protocol, cluster, rounds=rounds, seed=2, name=name
    )
    return View.of_result(emuml.run(experiment))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Write pages of all kinds and return their addresses."""
    folder = tmp_path_factory.mktemp("pages")
    delays = np.random.default_rng(1).exponential(0.5, (40, 30))
    delays[:, 3:6] += 20.0
    made = {
        "single": [view("ErasureHead")],
        "biased": [view("some are always late", law=DelayTrace(delays))],
        "several": [view(one, stragglers=one) for one in ("cancel", "skip-stale", "carry-over", "wait-all")],
        "exact": [view("a-name-that-is-very-long-and-cannot-be-broken-anywhere-at-all-so-it-seems", collect=None)],
        "diverged": [view("diverged", rate=1e200)],
        "failed": [failed(folder / "failed")],
    }
    found = {name: write_report(views, folder / f"{name}.html").as_uri() for name, views in made.items()}
    found["long"] = write_report([view("long", rounds=1000)], folder / "long.html", sections=[extremes()]).as_uri()
    return found


def extremes() -> Element:
    """Return charts whose labels are as long as labels get."""
    x = np.linspace(0.0, 20_000.0, 9)
    ranges = ((1.5e5, 4.5e5), (1e-7, 9e-4), (-0.00012, 0.00034), (99_999.0, 100_000.0), (1e11, 1e12))
    drawn = [lines([Series("a", x, np.linspace(*ends, 9))], f"From {ends}", "round", "value") for ends in ranges]
    return tag("section", tag("h2", "Extremes"), *drawn)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    assert PATH is not None
    with Chromium(PATH, tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["single", "biased", "several", "exact", "long", "diverged", "failed"])
def test_a_page_is_quiet_alone_and_fits(browser: Chromium, pages: dict[str, str], name: str, width: int) -> None:
    browser.open(pages[name], width)
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(CLIPPED) == []
    assert browser.evaluate(OVERLAPPING) == []
    assert browser.evaluate(SILENT) == 0
    browser.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [pages[name]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["several", "failed"])
def test_text_stands_out_from_its_background(browser: Chromium, pages: dict[str, str], name: str, scheme: str) -> None:
    browser.open(pages[name], 1280, scheme)
    back = luminance(browser.evaluate(BACK))
    assert (back < 0.1) == (scheme == "dark")
    for colour in set(browser.evaluate(COLOURS)):
        assert contrast(luminance(colour), back) >= 4.5, colour


def test_in_print_pages_are_light_and_nothing_is_cut(browser: Chromium, pages: dict[str, str]) -> None:
    browser.open(pages["several"], 720, "dark", "print")
    assert luminance(browser.evaluate(BACK)) > 0.9
    assert browser.evaluate("document.documentElement.scrollWidth") <= 720
    assert browser.evaluate("document.querySelector('nav').offsetHeight") == 0
    assert browser.evaluate(CLIPPED) == []


def luminance(colour: str) -> float:
    """Return the relative luminance of ``rgb(r, g, b)``, as WCAG 2 defines it."""
    parts = [int(part) / 255 for part in colour.strip("rgb()").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: float, other: float) -> float:
    """Return the contrast ratio of two luminances, 1 to 21."""
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)
