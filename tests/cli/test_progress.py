"""The progress line: only for people, only after a second, gone at the end."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from emuml import Experiment, run
from emuml.cli import progress as module
from emuml.cli.progress import line, progress
from emuml.cluster import Cluster, Constant
from emuml.protocols import GradientCoding
from emuml.workloads import LogisticRegression

ROW = {"time_s": 3.0, "round": 2, "train_loss": 0.5}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nobody_sees_it_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress(10, "emulated") as show:
        assert show is None


@pytest.mark.parametrize(("wall_s", "seen"), [(0.5, False), (1.5, True)])
def test_a_short_run_shows_nothing(wall_s: float, seen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    clock = iter([0.0, wall_s])
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock, wall_s))
    with progress(10, "emulated") as show:
        assert show is not None
        show(ROW)
    assert ("3.0 s emulated" in terminal.getvalue()) is seen


def test_line_without_a_known_end_promises_none() -> None:
    assert line(ROW, 2.0, None, "real") == "round 2 · 3.0 s real · train loss 0.5 · 1 rounds/s · 2.0 s wall"


def test_line_names_workers_that_are_down() -> None:
    assert "3 down" in line({**ROW, "down": 3.0}, 2.0, None, "real")


def test_line_of_one_of_several_runs_says_which_and_when_all_will_be_done() -> None:
    row = {**ROW, "run": "run 3 of 15: erasurehead, seed 8", "round": 300, "events": 4000}
    expected = "round 300 of 1500 · about 8 s left · run 3 of 15: erasurehead, seed 8 · 2.0 s wall"
    assert line(row, 2.0, 1500, "emulated") == expected


def test_rates_count_from_the_first_row_and_not_from_the_start_of_the_processes() -> None:
    first = (5.0, {"round": 0, "events": 20})
    found = line({**ROW, "events": 60}, 7.0, 10, "real", first)
    assert found == "round 2 of 10 · about 8 s left · 3.0 s real · train loss 0.5 · 20 events/s · 7.0 s wall"
    assert "left" not in line({**ROW, "round": 0}, 5.0, 10, "real", first)


def test_round_and_time_left_are_seen_at_80_columns() -> None:
    row = {"time_s": 123456.7, "round": 98765, "train_loss": 0.123456, "events": 123456789, "down": 12.0}
    assert "round 98765 of 100000 · about 125 s left" in line(row, 10000.0, 100000, "emulated")[:80]


def test_what_is_shown_counts_from_the_first_row(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    clock = iter([0.0, 5.0, 7.0])
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock, 7.0))
    with progress(10, "real") as show:
        assert show is not None
        show({**ROW, "round": 0})
        show(ROW)
    assert "about 8 s left" in terminal.getvalue()


class Awaited(Terminal):
    """A terminal that tells when a text has come."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.came = text, threading.Event()

    def write(self, text: str) -> int:
        if self.text in text:
            self.came.set()
        return super().write(text)


@pytest.mark.parametrize(
    ("far", "text"),
    [({}, "preparing data and nodes"), ({"time_s": 12.0, "events": 10**9}, "round 0 of 10 · 12.0 s emulated")],
)
def test_the_line_moves_before_the_first_row(far: dict[str, float], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Awaited(text)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "QUIET_S", 0.0)
    monkeypatch.setattr(module, "BETWEEN_S", 0.01)
    with progress(10, "emulated") as show:
        assert show is not None
        show.watch(lambda: far)
        assert terminal.came.wait(30.0)


@pytest.mark.parametrize("tier", ["event", "array"])
def test_a_run_says_how_far_it_is_between_rows(tier: str) -> None:
    seen: list[dict[str, float]] = []

    class Watching:
        def watch(self, peek) -> None:
            self.peek = peek

        def __call__(self, row) -> None:
            seen.append(self.peek())

    cluster = Cluster(workers=4, compute=Constant(0.25))
    found = run(Experiment(LogisticRegression(), GradientCoding(), cluster, rounds=3), progress=Watching(), tier=tier)
    assert [each["time_s"] for each in seen] == [row["time_s"] for row in found.metrics.rows]
    assert tier == "array" or seen[-1]["events"] > seen[0]["events"]
