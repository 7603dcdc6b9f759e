"""How long rounds may take, and who may rest: oracles of performance, for what the slack of a code hides from others.

Where new parameters end old work, a worker answers when the question has come, its task has taken its time, and the
answer has come back. The round is over as soon as its stop rule is content with that: at an order statistic of these
times. Work that is begun late, or not ended when its round is over, makes rounds longer. Whatever becomes of old work,
nobody rests who was asked for more. Runs with faults are not judged: what was lost on the way is asked again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from emuml.shapes import StopRule

if TYPE_CHECKING:
    from emuml.protocols.gradient_coding.protocol import GradientCoding

_TROUBLE = frozenset({"fault", "crash", "exit", "peer"})

SLACK_S = 1e-6
"""Of sums of times in another order."""


def closes_in_time(finished: Any, protocol: GradientCoding) -> bool:
    """Tell whether each round closed when the answers that it needs could be there.

    Parameters
    ----------
    finished : emuml.testing.views.Finished
    protocol : GradientCoding
    """
    code = protocol.code.build(finished.scenario.workers, finished.scenario.seed, protocol.collect)
    return close_in_time(finished, lambda log: code.stop_rule())


def close_in_time(finished: Any, rule_of: Callable[[Any], StopRule]) -> bool:
    """Tell the same where the stop rule of a round is told by what was logged of it."""
    rows = finished.trace.rows
    if had_trouble(rows):
        return True
    possible = _possible(rows)
    for item in finished.logs:
        log = item.metrics
        if "covered_set" in log:
            could_s = _decided_s(rule_of(log).tracker(), possible.get(int(log["round"]) - 1, {}))
            if float(log.get("decided_s", item.time_s)) > could_s + SLACK_S:
                return False
    return True


def had_trouble(rows: Iterable[Any]) -> bool:
    """Tell whether a run had faults, or what looks like it."""
    return any(row[2] in _TROUBLE for row in rows)


def nobody_rests(finished: Any) -> bool:
    """Tell whether every worker went on at once with what it was asked, when it had nothing else to do."""
    rows = finished.trace.rows
    if had_trouble(rows):
        return True
    busy: set[str] = set()
    rests: dict[str, float] = {}  # since when a worker has work and does none
    asked: set[str] = set()
    for time_s, node, kind, *details in rows:
        if any(time_s > since_s + SLACK_S for since_s in rests.values()):
            return False
        if kind == "receive" and details[1] == "Parameters":
            asked.add(node)
        elif kind == "begin":
            busy.add(node)
            asked.discard(node)
        elif kind in ("computed", "freed"):
            busy.discard(node)
        else:
            continue
        if node in asked and node not in busy:
            rests.setdefault(node, time_s)
        else:
            rests.pop(node, None)
    return True


def _decided_s(tracker: Any, arrivals: dict[int, float]) -> float:
    """Return when a round closes with answers at these times."""
    for worker, time_s in sorted(arrivals.items(), key=lambda item: item[1]):
        tracker.arrived(worker)
        if tracker.closed:
            return time_s
    return math.inf


def _possible(rows: Iterable[Any]) -> dict[int, dict[int, float]]:
    """Return when each worker's answer to each round could be there, by round and worker."""
    server_round = 0
    asked: dict[str, list[int]] = {}  # rounds of the questions on their way, as links keep order
    came: dict[tuple[str, int], float] = {}
    began: dict[str, float] = {}
    done: dict[str, tuple[int, float]] = {}  # round and duration of the work whose answer is sent next
    answers: dict[str, list[tuple[int, float, float]]] = {}
    found: dict[int, dict[int, float]] = {}
    for time_s, node, kind, *details in rows:
        if kind == "publish":
            server_round = details[0]
        elif kind == "begin":
            began[node] = time_s
        elif kind == "computed":
            done[node] = details[1], time_s - began[node]
        elif kind == "send" and details[1] == "Parameters":
            asked.setdefault(details[0], []).append(server_round)
        elif kind == "receive" and details[1] == "Parameters":
            came.setdefault((node, asked[node].pop(0)), time_s)
        elif kind == "send" and details[1] == "Gradient":
            answers.setdefault(node, []).append((*done.get(node, (-1, 0.0)), time_s))
        elif kind == "receive" and details[1] == "Gradient":
            round, duration_s, sent_s = answers[details[0]].pop(0)
            could_s = came.get((details[0], round), math.inf) + duration_s + time_s - sent_s
            found.setdefault(round, {}).setdefault(int(details[0].rpartition("-")[2]), could_s)
    return found
