"""Space-time diagrams in text: one column a node, time downwards, drawn from trace rows alone.

A pure function of rows ``(time_s, node, kind, *details)``, the same for every engine. A message is drawn where it is
received; ``*`` marks what a scenario made deviate; a dead span is dotted, a crash is ``X``, a cut ``//``; pending saves
are ``s...``, durable ones ``S``. By default only what the last row can have been caused by is drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = tuple[Any, ...]

WIDTH = 100
_TIME = 8
_LEAST = 16
_DRAWN = frozenset(
    {"start", "crash", "peer", "receive", "timer", "computed", "saved", "save", "log", "stop", "publish"}
)
_FAULTS = {
    "Partition": ("// cut off", "// heals"),
    "Hang": ("= stands still", "= goes on"),
    "SlowNode": ("~ slow", "~ fast again"),
    "SlowLink": ("~ slow link", "~ link as before"),
    "Lossy": ("% lossy link", "% link as before"),
    "GroupCrash": ("! group crash", ""),
}
"""How a fault is drawn that begins, and that ends; crashes and starts have rows of their own."""


@dataclass
class Messages:
    """Which send each receive belongs to, by the rule that a link keeps order and loses only ends of sessions."""

    sent_at: dict[int, int] = field(default_factory=dict)
    """Position of a receive -> position of its send."""
    names: dict[int, str] = field(default_factory=dict)
    """Position of a send -> sender, receiver, type and number, as in ``message/worker-1/server-0/Push/2``."""


def matched(rows: Sequence[Row]) -> Messages:
    """Pair sends and receives.

    Examples
    --------
    >>> rows = [(0.0, "a-0", "send", "b-0", "Push", 9), (1.0, "b-0", "receive", "a-0", "Push", 9)]
    >>> matched(rows).sent_at
    {1: 0}
    """
    found, on_the_way = Messages(), _Links()
    counts: Counter[tuple[str, str, str]] = Counter()
    for position, row in enumerate(rows):
        node, kind = str(row[1]), row[2]
        if kind == "send":
            key = (node, str(row[3]), str(row[4]))
            found.names[position] = f"message/{'/'.join(key)}/{counts[key]}"
            counts[key] += 1
            on_the_way.of(node, key[1]).append(position)
        elif kind == "receive":
            left = on_the_way.of(str(row[3]), node)
            match = next((sent for sent in left if rows[sent][4] == row[4]), None)
            if match is not None:
                found.sent_at[position] = match
                del left[: left.index(match) + 1]
        elif kind == "crash":
            on_the_way.lose_to(node)
        elif kind == "peer" and row[4] == "down":  # the session is over, both ways
            on_the_way.of(str(row[3]), node).clear()
            on_the_way.of(node, str(row[3])).clear()
    return found


def tasks(rows: Sequence[Row]) -> dict[int, str]:
    """Return the name of the task that each ``computed`` row is of: the one of its tag that was begun last."""
    counts: Counter[str] = Counter()
    found, begun = {}, {}
    for position, (_, node, kind, *details) in enumerate(rows):
        if kind == "begin":
            stem = f"compute/{node}/{details[0]}"
            begun[stem] = f"{stem}/{counts[stem]}"
            counts[stem] += 1
        elif kind == "computed":
            found[position] = begun.get(f"compute/{node}/{details[0]}", "")
    return found


class _Links:
    """Positions of sends that have not arrived, by link."""

    def __init__(self) -> None:
        self._links: dict[tuple[str, str], list[int]] = {}

    def of(self, sender: str, to: str) -> list[int]:
        return self._links.setdefault((sender, to), [])

    def lose_to(self, node: str) -> None:
        for (_, to), left in self._links.items():
            if to == node:
                left.clear()


def causal_past(rows: Sequence[Row], messages: Messages, of: Collection[str] = ()) -> set[int]:
    """Return the positions of the rows that the last one can depend on: before it on its node, or by a message.

    With names in ``of``: or that the last rows of these nodes can depend on.
    """
    if not rows:
        return set()
    horizon: dict[str, int] = {}
    ends = {str(row[1]): position for position, row in enumerate(rows)}
    stack = [len(rows) - 1, *(ends[name] for name in of if name in ends)]
    while stack:
        position = stack.pop()
        node = str(rows[position][1])
        known = horizon.get(node, -1)
        if position <= known:
            continue
        horizon[node] = position
        stack += [
            sent
            for received, sent in messages.sent_at.items()
            if known < received <= position and rows[received][1] == rows[position][1]
        ]
    return {i for i, row in enumerate(rows) if i <= horizon.get(str(row[1]), -1)}


def diagram(
    rows: Sequence[Row],
    marks: Iterable[str] = (),
    everything: bool = False,
    last: str = "",
    width: int = WIDTH,
    lines_max: int = 60,
    of: Collection[str] = (),
) -> str:
    """Draw rows as text of at most ``width`` columns.

    Parameters
    ----------
    rows : sequence of tuple
        A trace, in order.
    marks : iterable of str
        Names of choices that deviate; what they name is marked ``*``.
    everything : bool
        Also what the last row cannot depend on.
    last : str
        Written beside the last row, such as what is wrong there.
    lines_max : int
        Of more lines the middle ones are left out, and counted.
    of : collection of str
        Nodes whose states matter: also what their last rows can depend on.
    """
    messages = matched(rows)
    past = set(range(len(rows))) if everything else causal_past(rows, messages, of)
    chosen = [i for i, row in enumerate(rows) if (i in past and row[2] in _DRAWN) or _is_fault(row)]
    page = _Page(sorted({str(rows[i][1]) for i in chosen}, key=_order), width)
    drawn = _Drawing(rows, messages, set(marks), page)
    lines = [line for i in chosen for line in drawn.line(i)]
    if last and lines:
        lines[-1] = f"{lines[-1]:<{width}}"[:width].rstrip()
        lines.append(f"{'':{_TIME}}^ {last}"[:width])
    if len(lines) > lines_max:
        half = lines_max // 2
        lines = [*lines[:half], f"{'':{_TIME}}... {len(lines) - 2 * half} lines ...", *lines[-half:]]
    return "\n".join([page.head(), *lines])


def _is_fault(row: Row) -> bool:
    """Tell whether a row is of a fault that others notice without a message: it is drawn wherever it is."""
    return row[2] in ("fault", "healed") and row[3] in _FAULTS


def _order(name: str) -> tuple[str, int]:
    role, _, index = name.rpartition("-")
    return role, int(index) if index.isdecimal() else 0


def _clock(time_s: float) -> str:
    """Return a time in at most six characters."""
    text = f"{time_s:.5g}"
    if len(text) <= _TIME - 2:
        return text
    return f"{time_s:.4f}"[: _TIME - 2] if time_s < 1e5 else f"{time_s:.0e}"


class _Page:
    """Columns: as many nodes as fit have their own, the others share the last one."""

    def __init__(self, nodes: list[str], width: int) -> None:
        most = max(1, (width - _TIME) // _LEAST)
        self.own = nodes if len(nodes) <= most else nodes[: most - 1]
        self.folded = len(nodes) - len(self.own)
        self.columns = len(self.own) + (self.folded > 0)
        self.wide = min(30, (width - _TIME) // max(self.columns, 1))
        self.width = width

    def column(self, node: str) -> int:
        """Return the column of a node."""
        return self.own.index(node) if node in self.own else len(self.own)

    def head(self) -> str:
        """Return the line of names."""
        names = [*self.own, *([f"{self.folded} others"] if self.folded else [])]
        return (f"{'t/s':>{_TIME - 2}}  " + "".join(f"{name:<{self.wide}}"[: self.wide] for name in names)).rstrip()

    def line(self, time_s: float, cells: dict[int, str], alive: list[bool]) -> str:
        """Return a line with a text in some columns, and the life lines of the others."""
        text = f"{_clock(time_s):>{_TIME - 2}}  "
        for column in range(self.columns):
            bar = "|" if alive[column] else "."
            cell = cells.get(column)
            text += f"{bar if cell is None else cell:<{self.wide}}"[: self.wide - 1] + " "
        return text.rstrip()

    def arrow(self, time_s: float, start: int, end: int, label: str, alive: list[bool]) -> str:
        """Return a line with an arrow from one column to another."""
        low, high = min(start, end), max(start, end)
        inner = (high - low) * self.wide - 1
        body = f"{label}"[: max(inner - 3, 0)].center(inner - 1, "-") if inner > 4 else "-" * (inner - 1)
        shaft = f"{body}>" if start < end else f"<{body}"
        line = self.line(time_s, {}, alive)
        at = _TIME + low * self.wide
        line = f"{line:<{at + inner + 2}}"
        return (line[:at] + "|" + shaft + "|" + line[at + inner + 2 :]).rstrip()[: self.width]


class _Drawing:
    """Draws rows in order; knows who lives."""

    def __init__(self, rows: Sequence[Row], messages: Messages, marks: set[str], page: _Page) -> None:
        self._rows, self._messages, self._marks, self._page = rows, messages, marks, page
        self._alive = [True] * page.columns
        self._tasks = tasks(rows)

    def line(self, position: int) -> list[str]:
        """Return the lines of one row."""
        time_s, node, kind, *details = self._rows[position]
        column = self._page.column(str(node))
        if kind == "receive":
            return [self._received(position, float(time_s), column)]
        text = self._text(position, kind, details)
        if column == len(self._page.own):
            text = f"{node} {text}"
        if kind == "start":
            self._alive[column] = True
        line = self._page.line(float(time_s), {column: text}, self._alive)
        if kind == "crash" and column < len(self._page.own):
            self._alive[column] = False
        return [line]

    def _received(self, position: int, time_s: float, column: int) -> str:
        sender, kind = self._rows[position][3:5]
        sent = self._messages.sent_at.get(position)
        name = self._messages.names.get(-1 if sent is None else sent, "")
        label = f"{kind} {name.rpartition('/')[2]}{self._star(name)}".strip()
        start = self._page.column(str(sender))
        if start == column:
            return self._page.line(time_s, {column: f"< {label} of {sender}"}, self._alive)
        return self._page.arrow(time_s, start, column, label, self._alive)

    def _star(self, name: str) -> str:
        return "*" if name in self._marks else ""

    def _text(self, position: int, kind: str, details: list[Any]) -> str:
        match kind:
            case "start":
                return f"| (life {details[0]}) start"
            case "crash":
                return f"X life {details[0]} crashed"
            case "peer":
                return f"| {details[0]} {details[1]}"
            case "computed":
                return f"| computed {details[0]} {details[1]}{self._star(self._tasks.get(position, ''))}"
            case "save":
                return f"| s...{details[0]}"
            case "saved":
                return f"| S {details[0]} durable"
            case "fault" | "healed":
                return _FAULTS[details[0]][kind == "healed"]
            case "log":
                shown = ", ".join(f"{key}={value}" for key, value in list(details[0].items())[:2])
                return f"| log {shown}"
            case _:
                return f"| {kind} {details[0]}"
