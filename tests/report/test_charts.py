"""Drawings: points where the numbers say, round ticks, and nothing that is not a number."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.report.bars import BARS_MAX, Band, bars, bins, histogram
from emuml.report.charts import BOTTOM, LEFT, POINTS_MAX, RIGHT, TOP, Series, legend, lines, steps
from emuml.report.markup import table, tag, to_text
from emuml.report.scales import Scale, scale_for
from emuml.report.timeline import Span, spans, timeline


def polylines(series: list[Series]) -> list[list[tuple[float, float]]]:
    drawn = lines(series, "title", "x", "y").iter("polyline")
    return [[tuple(map(float, pair.split(","))) for pair in str(one.get("points")).split()] for one in drawn]  # type: ignore[misc]


def test_a_line_goes_from_corner_to_corner() -> None:
    (points,) = polylines([Series("a", np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]))])
    assert points == [(LEFT, BOTTOM), ((LEFT + RIGHT) / 2, (BOTTOM + TOP) / 2), (RIGHT, TOP)]


def test_values_that_span_much_are_drawn_by_logarithms() -> None:
    (points,) = polylines([Series("a", np.array([0.0, 1.0, 2.0]), np.array([0.01, 0.1, 1.0]))])
    assert points[1][1] == (BOTTOM + TOP) / 2


def test_gaps_and_long_series_are_thinned_and_keep_their_ends_and_peaks() -> None:
    x = np.arange(10_000.0)
    y = np.where(x % 2 == 0, np.nan, np.where(x == 5001, 7.0, np.where(x == 6001, -7.0, np.sin(x))))
    (points,) = polylines([Series("a", x, y)])
    assert POINTS_MAX // 2 < len(points) <= POINTS_MAX
    assert points[0][0] == pytest.approx(LEFT, abs=0.1)
    assert points[-1][0] == RIGHT
    places = [round(LEFT + peak / 9999 * (RIGHT - LEFT), 1) for peak in (5001, 6001)]
    assert (places[0], TOP) in points
    assert (places[1], BOTTOM) in points


@pytest.mark.parametrize("values", [[], [3.0], [0.0, 0.0], [-1.0, -1.0]])
def test_degenerate_series_are_drawn(values: list[float]) -> None:
    numbers = np.array(values)
    polylines([Series("a", np.arange(float(len(values))), numbers)])


@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12))
def test_linear_ticks_are_few_inside_and_even(low: float, span: float) -> None:
    high = low + span
    if not high - low > 1e-6 * max(abs(low), abs(high)):
        return  # closer than the digits that a label shows
    ticks = Scale(low, high, 0, 1).ticks()
    assert 2 <= len(ticks) <= 8
    slack = 1e-6 * span
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    assert np.ptp(np.diff(ticks)) <= slack


@given(st.floats(1e-12, 1e12), st.floats(1.5, 1e12))
def test_logarithmic_ticks_are_few_and_inside(low: float, factor: float) -> None:
    ticks = Scale(low, low * factor, 0, 1, is_log=True).ticks()
    assert len(ticks) <= 8
    assert all(low * (1 - 1e-6) <= tick <= low * factor * (1 + 1e-6) for tick in ticks)


def test_equal_values_get_room_around_them() -> None:
    scale = scale_for([2.0, 2.0], 0, 10)
    assert scale(2.0) == 5.0


def test_a_histogram_counts_every_value_once() -> None:
    drawn = histogram(np.array([0.1, 0.1, 0.9]), np.linspace(0, 1, 5), "title", "s", mark=0.5)
    heights = sorted(float(str(bar.get("height"))) for bar in drawn.iter("rect"))
    assert len(heights) == 2
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
    assert "mean 0.3667 s, closed form 0.5 s" in str(drawn.get("aria-label"))


def test_what_is_expected_is_drawn_over_a_histogram() -> None:
    values, edges = np.array([0.1, 0.1, 0.9]), np.linspace(0, 1, 3)
    drawn = histogram(values, edges, "title", "s", expected=np.array([4.0, 2.0]))
    (line,) = [one for one in drawn.iter("polyline") if one.get("class") == "line theory"]
    (left, top), (right, low) = [tuple(map(float, pair.split(","))) for pair in str(line.get("points")).split()]
    assert left == pytest.approx(LEFT + (RIGHT - LEFT) / 4)
    assert right == pytest.approx(LEFT + 3 * (RIGHT - LEFT) / 4)
    assert top == TOP  # 4 of 4, the largest
    assert low == pytest.approx((TOP + BOTTOM) / 2)


def test_bars_outside_of_their_bands_are_marked_and_those_of_no_height_are_seen() -> None:
    band = Band(np.full(3, 0.5), np.full(3, 0.4), np.full(3, 0.6))
    drawn = bars(np.array([0.5, 0.0, 0.61]), "title", "group", "share", band)
    boxes = [one for one in drawn.iter("rect") if str(one.get("class")).startswith("bar")]
    assert [one.get("class") for one in boxes] == ["bar s0", "bar bad", "bar bad"]
    assert float(str(boxes[1].get("height"))) == 2.0
    assert "3 shares from 0 to 0.61, 2 outside of their bands" in str(drawn.get("aria-label"))


@pytest.mark.parametrize("count", [1, 2, BARS_MAX, BARS_MAX + 1, 1000])
def test_many_bars_are_thinned_to_the_least_of_their_neighbours(count: int) -> None:
    values = np.ones(count)
    values[-1] = 0.25
    boxes = list(bars(values, "title", "group", "share").iter("rect"))
    assert len(boxes) == min(count, BARS_MAX)
    heights = [float(str(one.get("height"))) for one in boxes]
    assert heights.index(min(heights)) == len(boxes) - 1
    assert min(heights) == pytest.approx((BOTTOM - TOP) / 4, abs=0.1)


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=60))
def test_bins_hold_every_value(values: list[float]) -> None:
    numbers = np.array(values)
    counts, _ = np.histogram(numbers, bins(numbers))
    assert counts.sum() == len(values)


def test_steps_rise_at_the_values() -> None:
    line = steps("a", np.array([3.0, 1.0]))
    assert line.x.tolist() == [1.0, 1.0, 3.0, 3.0]
    assert line.y.tolist() == [0.0, 0.5, 0.5, 1.0]


def test_text_is_escaped() -> None:
    assert to_text(table(["<a>"], [["&", '"']], "it's")).count("<a>") == 0
    assert to_text(tag("p", title='">')) == '<p title="&quot;&gt;"></p>'


ROWS = [
    (0.0, "worker-0", "begin", "g", 0),
    (0.0, "worker-1", "begin", ["g", 1], 0),
    (0.0, "worker-2", "begin", "g", 0),
    (1.0, "worker-0", "computed", "g", 0),
    (1.0, "server-0", "publish", 1),
    (1.5, "worker-1", "cancel", ["g", 1]),
    (1.5, "worker-1", "cancel", "never begun"),
    (1.75, "worker-2", "crash", 1),
    (1.75, "worker-0", "begin", "g", 1),
    (2.0, "server-0", "publish", 2),
    (2.0, "server-0", "stop", "done"),
]


def test_spans_say_how_each_task_ended() -> None:
    assert spans(ROWS) == [
        Span("worker-0", 0.0, 1.0, "computed"),
        Span("worker-1", 0.0, 1.5, "cancelled"),
        Span("worker-2", 0.0, 1.75, "lost"),
        Span("worker-0", 1.75, 2.0, "cancelled"),
        Span("worker-2", 1.75, 2.0, "down"),
    ]


def test_work_on_a_round_that_was_over_is_late() -> None:
    rows = [*ROWS[:8], (1.8, "worker-1", "begin", "h", 0), (1.9, "worker-1", "computed", "h", 0), *ROWS[8:]]
    assert Span("worker-1", 1.8, 1.9, "late") in spans(rows)


def test_a_round_is_over_when_it_was_decided_not_when_the_next_one_starts() -> None:
    logged = (2.0, "server-0", "log", {"round": 1, "decided_s": 0.9})
    assert spans([*ROWS[:4], logged, (2.0, "server-0", "publish", 1)])[0] == Span("worker-0", 0.0, 1.0, "late")


def test_a_node_is_down_until_it_starts_again() -> None:
    rows = [*ROWS[:8], (1.9, "worker-2", "start", 2), *ROWS[8:]]
    assert Span("worker-2", 1.75, 1.9, "down") in spans(rows)


def test_the_timeline_draws_a_bar_for_each_task() -> None:
    drawn = timeline(ROWS, "title")
    assert drawn is not None
    assert sorted(str(bar.get("class")) for bar in drawn.iter("rect")) == [
        "cancelled",
        "cancelled",
        "computed",
        "down",
        "lost",
    ]
    assert "3 workers, 2 rounds: 1 tasks computed, 3 not finished" in str(drawn.get("aria-label"))


def test_the_timeline_stops_at_the_time_asked_for() -> None:
    drawn = timeline(ROWS, "title", until_s=1.2)
    assert drawn is not None
    assert len(list(drawn.iter("rect"))) == 3


def test_without_tasks_there_is_no_timeline() -> None:
    assert timeline([(0.0, "server-0", "publish", 0)], "title") is None
    assert timeline([], "title") is None


NAN, INF = float("nan"), float("inf")


def test_a_line_of_one_number_is_a_dot_and_the_axis_shows_where_it_stopped() -> None:
    x = np.arange(31.0)
    diverged = [Series(name, x, np.where(x == 0, 0.5, end)) for name, end in (("a", INF), ("b", NAN))]
    drawn = lines([*diverged, Series("c", x, np.full(31, NAN))], "title", "round", "loss")
    dots = list(drawn.iter("circle"))
    assert [(dot.get("cx"), dot.get("class")) for dot in dots] == [(str(LEFT), "dot s0"), (str(LEFT), "dot s1")]
    assert dots[0].get("cy") == dots[1].get("cy") == str((TOP + BOTTOM) // 2)
    assert float(str(dots[0].get("r"))) > float(str(dots[1].get("r")))  # both are seen
    assert "30" in [text.text for text in drawn.iter("text")]
    label = str(drawn.get("aria-label"))
    assert "a is finite up to round 0, where it is 0.5" in label
    assert "c has no finite number" in label
    key = legend([*diverged, Series("c", x, np.full(31, NAN)), Series("d", np.zeros(0), np.zeros(0), "mark")])
    assert [str(item[0].tail) for item in key] == ["a", "b", "d"]
    assert [item[0][0].tag for item in key] == ["circle", "circle", "polyline"]


def test_where_nothing_is_a_number_words_say_so() -> None:
    drawn = lines([Series("a", np.arange(3.0), np.full(3, NAN))], "title", "round", "loss")
    assert "nothing here is a finite number" in [text.text for text in drawn.iter("text")]


def test_what_may_not_be_drawn_by_logarithms_is_not() -> None:
    series = [Series("a", np.array([0.0, 1.0]), np.array([0.01, 1.0]))]
    assert "logarithmic" in str(lines(series, "title", "x", "y").get("aria-label")) + to_text(
        lines(series, "t", "x", "y")
    )
    assert "logarithmic" not in to_text(lines(series, "title", "x", "y", may_log=False))


def test_characters_that_a_page_may_not_have_are_escaped() -> None:
    name = "a\x00b\x07c\x1b[31m\r\x85\u202e\udcff\ufffe\tend\n"
    text = to_text(tag("p", name, tag("b"), name, title=name))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\udcff\ufffe]", text)
    assert text.count(r"a\x00b\x07c\x1b[31m\r\x85\u202e\udcff\ufffe") == 3
    text.encode()
