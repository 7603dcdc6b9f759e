"""Tables fit the width that is there, break no word and lose no cell."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from emuml.comparison.layout import text
from emuml.comparison.words import NO_BREAK, Words

cells = st.lists(st.text("abc12-", min_size=1, max_size=12), min_size=1, max_size=4).map(" ".join)


@st.composite
def tables(draw: st.DrawFn) -> Words:
    columns, rows = draw(st.integers(2, 7)), draw(st.integers(1, 6))
    row = st.lists(cells, min_size=columns, max_size=columns)
    return Words("", "", draw(row), draw(st.lists(row, min_size=rows, max_size=rows)))


@pytest.mark.slow
@given(tables(), st.integers(30, 200))
def test_lines_fit_and_every_word_is_there(words: Words, width: int) -> None:
    printed = text(words, width)
    assert max(map(len, printed.splitlines())) <= width
    shown = "".join(printed.replace("\u2500", " ").split())
    for cell in (*words.head, *(cell for row in words.rows for cell in row)):
        for word in cell.replace("-", " ").split():
            assert word in shown


def test_words_break_at_hyphens_and_spaces_alone() -> None:
    names = ["fractional-repetition", "ignore-stragglers", "uncoded"]
    printed = text(Words("", "", ["", *names], [["kind", *names], ["size", "1", "2", "3"]]), 40)
    words = set(printed.replace("-", " ").split())
    assert {"fractional", "repetition", "ignore", "stragglers", "uncoded"} <= words


def test_wide_text_gives_way_to_a_long_word() -> None:
    word = "x" * 20
    row = ["name", "aaaa bbbb cccc dddd", word]
    assert text(Words("", "", ["", "text", "word"], [row, row]), 45).count(word) == 2


def test_a_number_stays_with_its_interval() -> None:
    cell = f"1.25{NO_BREAK}\u00b1{NO_BREAK}0.12"
    printed = text(Words("", "", ["", "a", "b", "c"], [["time", cell, cell, cell], ["more", cell, cell, cell]]), 34)
    assert printed.count("1.25 \u00b1 0.12") == 6


@pytest.mark.parametrize("width", [80, 160, 200])
def test_what_fits_beside_each_other_is_not_split(width: int) -> None:
    columns = (width - 10) // 12
    rows = [[f"row {i}", *(["0.12345678"] * columns)] for i in range(columns + 5)]
    printed = text(Words("", "", ["", *(["head"] * columns)], rows), width)
    assert len(printed.splitlines()) == 2 + len(rows)


def test_rows_and_columns_are_exchanged_where_that_is_shorter() -> None:
    wide = Words("", "", ["", *(f"contestant-{i}" for i in range(12))], [["collect", *map(str, range(12))]])
    assert len(text(wide, 80).splitlines()) <= 14


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in text(Words("", "", ["", "\x1b[31m"], [["a", "b"]]), 80)
