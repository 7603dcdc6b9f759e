"""What a plan of faults says of each node in the order of time, and what in it cannot come to pass.

Only the clock forms can be judged before a run: when a logged counter is reached is not known. A node whose next start
waits for a counter is taken to be back.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from emuml.cluster.fault_kinds import Crash, Fault, GroupCrash, Hang, Start
from emuml.errors import UserError


class Happening(NamedTuple):
    """One thing that a plan does to a node: from when until when, and by which fault of the plan."""

    begins_s: float
    fault: int
    what: str
    ends_s: float


def problems(faults: Sequence[Fault]) -> list[UserError]:
    """Return what is planned for nodes that are not there, or stand still already."""
    return [error for _, error in _problems(faults)]


def possible(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return faults without those that strike nodes that are not there, or stand still already."""
    given = tuple(faults)
    refused = {index for index, _ in _problems(given)}
    return tuple(fault for index, fault in enumerate(given) if index not in refused)


def _problems(faults: Sequence[Fault]) -> list[tuple[int, UserError]]:
    by_node: dict[str, list[Happening]] = defaultdict(list)
    for index, fault in enumerate(faults):
        for node, happening in _happenings(index, fault):
            by_node[node].append(happening)
    found = [problem for node in by_node for problem in _of_node(node, sorted(by_node[node]))]
    return sorted(found, key=lambda problem: problem[0])


def _happenings(index: int, fault: Fault) -> Iterator[tuple[str, Happening]]:
    """Yield what the clock form of a fault does to the lives of nodes."""
    at_s = getattr(fault, "at_s", None)
    if isinstance(fault, Start):
        yield fault.node, Happening(-1.0, index, "absent", -1.0 if at_s is None else at_s)
    if at_s is None:
        return
    if isinstance(fault, Crash):
        down_s = 0.0 if fault.restart_after is not None else _or_ever(fault.restart_after_s)
        yield fault.node, Happening(at_s, index, "down", at_s + down_s)
    elif isinstance(fault, GroupCrash):
        for id, after_s in fault.crashes():
            yield str(id), Happening(at_s + after_s, index, "down", at_s + after_s + _or_ever(fault.restart_after_s))
    elif isinstance(fault, Hang):
        yield fault.node, Happening(at_s, index, "hung", at_s + fault.for_s)


def _or_ever(restart_after_s: float | None) -> float:
    return math.inf if restart_after_s is None else restart_after_s


def _of_node(node: str, happenings: list[Happening]) -> Iterator[tuple[int, UserError]]:
    """Yield what strikes a node while another fault has not let go of it; a crash may strike one that hangs."""
    last: Happening | None = None
    for now in happenings:
        if last is None or now.begins_s > last.ends_s or (last.what == "hung" and now.what == "down"):
            last = now
        else:
            yield now.fault, _error(node, now, last)


def _error(node: str, now: Happening, last: Happening) -> UserError:
    if now.what == "absent":
        return UserError(f"{node} starts twice", f"faults[{now.fault}].node", "one start, of a node that is absent")
    strikes = "crashes" if now.what == "down" else "hangs"
    since = f"is {last.what} since {last.begins_s:g} s" if last.what != "absent" else "is not there yet"
    allowed = f"a time after {last.ends_s:g} s" if last.ends_s < math.inf else "faults of nodes that are there"
    what = f"{node} {strikes} at {now.begins_s:g} s, but {since} (faults[{last.fault}])"
    return UserError(what, f"faults[{now.fault}].at_s", allowed)
