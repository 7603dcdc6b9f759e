"""What was sent in a run: messages and bytes of each kind and direction, by round, counted from the trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from emuml.report.statistics import Floats


class Flow(NamedTuple):
    """One kind of message from one kind of node to another."""

    message: str
    sender: str
    receiver: str

    def __str__(self) -> str:
        return f"{self.message}, {self.sender} to {self.receiver}"


@dataclass(frozen=True, eq=False)
class Traffic:
    """Messages and bytes of each flow.

    Attributes
    ----------
    messages, size_bytes : dict of Flow to ndarray of float64, shape (rounds,)
        Sent while each round was open, rounds counted from 1; what came after the last one is left out.
    after_bytes : int
        Sent after the last round was closed.
    """

    messages: dict[Flow, Floats]
    size_bytes: dict[Flow, Floats]
    after_bytes: int

    @property
    def total_bytes(self) -> Floats:
        """Bytes sent in each round."""
        return np.sum(list(self.size_bytes.values()), axis=0) if self.size_bytes else np.zeros(0)


def traffic(rows: Iterable[tuple[Any, ...]], rounds: int) -> Traffic:
    """Count the send records of a trace; ``rounds`` were finished."""
    counted: dict[Flow, tuple[Floats, Floats]] = {}
    current, after = 0, 0
    for _, node, kind, *details in rows:
        if kind == "publish":
            current = details[0]
        elif kind == "send":
            peer, message, size = details
            if current >= rounds:
                after += size
                continue
            flow = Flow(message, _role(node), _role(peer))
            if flow not in counted:
                counted[flow] = np.zeros(rounds), np.zeros(rounds)
            messages, sizes = counted[flow]
            messages[current] += 1
            sizes[current] += size
    ordered = sorted(counted)
    return Traffic({f: counted[f][0] for f in ordered}, {f: counted[f][1] for f in ordered}, after)


def _role(node: str) -> str:
    return str(node).rpartition("-")[0]
