"""Benchmarks of real runs: the bound that they are held against, and the figures they make of a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import emuml
from benchmarks import erasurehead_delays, start


def test_the_bound_is_the_emulated_time() -> None:
    assert erasurehead_delays.least_s(100) == pytest.approx(31.52, abs=0.005)
    given = erasurehead_delays.experiment(10)
    assert emuml.run(given).duration_s == pytest.approx(erasurehead_delays.least_s(10), abs=1e-9)


def test_figures_of_starts_take_the_median_time_and_the_largest_size() -> None:
    runs: list[Any] = [
        SimpleNamespace(run=SimpleNamespace(statistics={"start_s": start_s, "max_rss_bytes": peak * 1e6}))
        for start_s, peak in [(9.0, 50.0), (4.0, 61.0), (5.0, 40.0)]
    ]
    figures = start.figures_of(runs)
    assert (figures["start_s"].value, figures["node_peak_mb"].value) == (5.0, 61.0)
    assert (figures["start_s"].reached, figures["node_peak_mb"].reached) == (True, False)
    assert start.figures_of(runs[:1])["start_s"].reached is False
