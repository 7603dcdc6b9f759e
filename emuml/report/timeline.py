"""What each worker did in the first rounds, drawn from trace records: computed, cancelled, lost, down, or waiting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from emuml.node import NodeId
from emuml.report.charts import axes, svg
from emuml.report.markup import tag
from emuml.report.scales import Scale

ROUNDS_MAX = 6
WORKERS_MAX = 40
_TOP, _LABELS = 18.0, 58.0
KINDS = {
    "computed": "computed",
    "late": "computed too late",
    "cancelled": "cancelled",
    "lost": "lost in a crash",
    "down": "down",
}
"""Kind of span -> words."""
# Kinds differ by height, too, for those who do not tell their colours apart.
_HEIGHTS = {"computed": 0.8, "late": 0.6, "cancelled": 0.4, "lost": 0.4, "down": 0.15}


class Span(NamedTuple):
    """One task of one node, or one time it was down."""

    node: str
    begin_s: float
    end_s: float
    kind: str


def spans(rows: Iterable[tuple[Any, ...]]) -> list[Span]:
    """Return, from rows in the order of time, the tasks of all nodes and the times they were ``down``.

    Tasks are ``computed``, ``late`` when their round was over by then, ``cancelled`` (also by the end of the run), or
    ``lost`` in a crash.
    """
    rows = list(rows)
    closes = _closes(rows)
    found: list[Span] = []
    running: dict[tuple[str, Any], float] = {}
    down: dict[str, float] = {}
    last_s = rows[-1][0] if rows else 0.0
    for time_s, node, kind, *details in rows:
        if kind == "begin":
            running[node, _key(details[0])] = time_s
        elif kind in ("computed", "cancel"):
            begin_s = running.pop((node, _key(details[0])), None)
            if begin_s is not None:
                found.append(Span(node, begin_s, time_s, _ending(kind, time_s, details, closes)))
        elif kind == "crash":
            for key in [key for key in running if key[0] == node]:
                found.append(Span(node, running.pop(key), time_s, "lost"))
            down[node] = time_s
        elif kind == "start" and node in down:
            found.append(Span(node, down.pop(node), time_s, "down"))
    found.extend(Span(node, begin_s, last_s, "cancelled") for (node, _), begin_s in running.items())
    found.extend(Span(node, begin_s, last_s, "down") for node, begin_s in down.items())
    return found


def _closes(rows: list[tuple[Any, ...]]) -> dict[int, float]:
    """Return when each round was decided, rounds counted from 1: a server may say so before it publishes."""
    closes = {details[0]: at for at, _, kind, *details in rows if kind == "publish"}
    logged = (details[0] for _, _, kind, *details in rows if kind == "log")
    return closes | {int(row["round"]): row["decided_s"] for row in logged if "decided_s" in row}


def _ending(kind: str, time_s: float, details: list[Any], closes: dict[int, float]) -> str:
    if kind == "cancel":
        return "cancelled"
    is_late = len(details) > 1 and isinstance(details[1], int) and time_s > closes.get(details[1] + 1, time_s)
    return "late" if is_late else "computed"


def timeline(
    rows: list[tuple[Any, ...]],
    title: str,
    until_s: float | None = None,
    width: float = 760,
    row: float = 10,
    found: list[Span] | None = None,
) -> Element | None:
    """Draw the first rounds of the first workers, or their first seconds; None when the trace has no tasks.

    ``width`` and ``row``, the height of a worker's row, are in pixels; ``found`` are the spans, if they are known.
    """
    closes = [at for at, _, kind, *details in rows if kind == "publish" and details[0] > 0]
    closes = closes[:ROUNDS_MAX] if until_s is None else [at for at in closes if at <= until_s]
    all_spans = spans(rows) if found is None else found
    workers = sorted({span.node for span in all_spans if span.node.startswith("worker-")}, key=NodeId.parse)[
        :WORKERS_MAX
    ]
    if not workers or not closes or closes[-1] <= 0:
        return None
    y = {worker: _TOP + i * row for i, worker in enumerate(workers)}
    bottom = _TOP + len(workers) * row
    x = Scale(0.0, float(closes[-1]) if until_s is None else until_s, _LABELS, width - 12.0)
    shown = [span for span in all_spans if span.node in y and span.begin_s < x.high]
    bars = [_bar(span, x, y[span.node], row) for span in shown if span.end_s > span.begin_s]
    ends = [tag("line", x1=x(at), x2=x(at), y1=_TOP - 4, y2=bottom, class_="close") for at in closes]
    numbers = [tag("text", str(i), x=x(at), y=_TOP - 7, class_="middle") for i, at in enumerate(closes, 1)]
    labels = [
        tag("text", worker, x=_LABELS - 6, y=y[worker] + 8, class_="end small")
        for worker in workers[:: _every(workers)]
    ]
    tasks = [span.kind for span in shown if span.kind != "down"]
    done, late = tasks.count("computed"), tasks.count("late")
    ends_of_tasks = (
        f"{done} tasks computed, {f'{late} too late, ' if late else ''}{len(tasks) - done - late} not finished"
    )
    words = f"{len(workers)} workers, {len(closes)} rounds: {ends_of_tasks}."
    frame = axes(x, Scale(0, 1, bottom, _TOP), "seconds", "")
    kept = [element for element in frame if element.get("class") not in ("grid", "end")]
    return svg(bottom + 40, title, words, *kept, *bars, *ends, *numbers, *labels, width=width)


def _bar(span: Span, x: Scale, top: float, row: float) -> Element:
    end_s = min(span.end_s, x.high)
    height = row * _HEIGHTS[span.kind]
    left = x(span.begin_s)
    hint = tag("title", f"{span.node}: {KINDS[span.kind]}, {span.begin_s:.4g} to {span.end_s:.4g} s")
    return tag(
        "rect",
        hint,
        x=left,
        y=top + (row - height) / 2,
        width=max(x(end_s) - left - 1, 0.5),
        height=height,
        class_=span.kind,
    )


def _every(workers: list[str]) -> int:
    return 1 if len(workers) <= 12 else 5


def _key(tag_of_task: Any) -> Any:
    return tuple(tag_of_task) if isinstance(tag_of_task, list) else tag_of_task
