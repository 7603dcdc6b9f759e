"""Tables as plain text of a given width: no word is broken, and what is too wide goes on in another block.

A table is printed as it is or with rows and columns exchanged, whichever takes fewer lines. Cells keep together what is
joined by no-break spaces, such as a number and its interval.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from emuml.comparison.words import NO_BREAK, Words
from emuml.errors import printable

_GAP = 2
_SPLIT = 3
"""Lines that a reader would give for one block less."""
_TEXT_MIN = 16
"""Columns of text that wraps are at least so wide, if they have so much text."""


def text(words: Words, width: int) -> str:
    """Return head, rule and rows of a table, without its title and notes.

    Examples
    --------
    >>> print(text(Words("", "", ["", "one", "two"], [["seconds", "1.5", "2"], ["kind", "a", "b c"]]), 40))
             one  two
    ─────────────────
    seconds  1.5  2
    kind     a    b c
    """
    ways = [list(_lines(one, width, wraps)) for one in (words, _flipped(words)) for wraps in (False, True)]
    lines = min(ways, key=lambda lines: len(lines) + _SPLIT * lines.count(""))
    return "\n".join(printable(line.replace(NO_BREAK, " ")) for line in lines)


def _flipped(words: Words) -> Words:
    head, *columns = zip(words.head, *words.rows, strict=True)
    return words._replace(head=list(head), rows=[list(column) for column in columns])


def _lines(words: Words, width: int, names_wrap: bool) -> Iterator[str]:
    columns = [list(column) for column in zip(words.head, *words.rows, strict=True)]
    least = [max(map(_longest_word, column)) for column in columns]
    if not names_wrap and (whole := max(map(len, columns[0]))) <= width // 2:
        least[0] = whole
    start = 1
    while start < len(columns):
        end, left = start + 1, width - least[0] - _wanted(columns[start], least[start])
        while end < len(columns) and (left := left - _wanted(columns[end], least[end])) >= 0:
            end += 1
        if start > 1:
            yield ""
        shown = [0, *range(start, end)]
        yield from _block([columns[i] for i in shown], [least[i] for i in shown], width)
        start = end


def _wanted(column: Sequence[str], least: int) -> int:
    return _GAP + max(least, min(_TEXT_MIN, max(map(len, column[1:]))))


def _block(columns: Sequence[Sequence[str]], least: Sequence[int], width: int) -> Iterator[str]:
    widths = _widths(columns, least, width)
    aligned = [str.ljust, *(str.rjust if _is_numeric(column[1:]) else str.ljust for column in columns[1:])]
    head, *rows = zip(*columns, strict=True)
    for cells in (head, *rows):
        wrapped = [_wrapped(cell, size) for cell, size in zip(cells, widths, strict=True)]
        height = max(map(len, wrapped))
        for i in range(height):
            # Heads stand on the rule, cells begin on the line of their row.
            at = [i - (height - len(lines)) if cells is head else i for lines in wrapped]
            parts = [lines[j] if 0 <= j < len(lines) else "" for lines, j in zip(wrapped, at, strict=True)]
            shown = (align(part, size) for align, part, size in zip(aligned, parts, widths, strict=True))
            yield (" " * _GAP).join(shown).rstrip()
        if cells is head:
            yield "─" * (sum(widths) + _GAP * (len(widths) - 1))


def _widths(columns: Sequence[Sequence[str]], least: Sequence[int], width: int) -> list[int]:
    """Return the widths of columns: as wide as they like, or capped as little as makes them fit."""
    natural, room = [max(map(len, column)) for column in columns], width - _GAP * (len(columns) - 1)
    for cap in range(max(natural), 0, -1):
        widths = [max(small, min(large, cap)) for small, large in zip(least, natural, strict=True)]
        if sum(widths) <= room:
            return widths
    others = sum(least[1:])
    return [max(room - others, 1), *least[1:]] if others < room else [min(size, room) for size in least]


def _wrapped(cell: str, size: int) -> list[str]:
    return textwrap.wrap(cell, size) or [""]


def _longest_word(cell: str) -> int:
    return max(map(len, textwrap.wrap(cell, 1, break_long_words=False)), default=0)


def _is_numeric(cells: Sequence[str]) -> bool:
    return 2 * sum(re.match(r"-?\d|-$", cell) is not None for cell in cells) > len(cells)
