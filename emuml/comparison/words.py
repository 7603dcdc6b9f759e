"""What a table is made of, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NO_BREAK = "\N{NO-BREAK SPACE}"


class Words(NamedTuple):
    """A table: a title, what its numbers are, the heads of its columns, its rows, and notes below, a line each."""

    title: str
    caption: str
    head: list[str]
    rows: list[list[str]]
    note: str = ""


def joined(names: Sequence[str], last: str = "and") -> str:
    """Return a list in words.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
