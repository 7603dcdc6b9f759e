"""What a TCP run is to do, as the coordinator takes it: roster, faults, observers, and how nodes are started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from emuml.cluster.faults import FaultPlan
from emuml.node import NodeId
from emuml.outcome import LogSink, Observer
from emuml.roster import Roster
from emuml.runtime.connection import Security
from emuml.runtime.settings import RuntimeSettings


class Handle(Protocol):
    """One started incarnation of a node."""

    exited: asyncio.Future[str]
    """Done when it is gone; how it ended."""

    def kill(self) -> None:
        """End it at once, without any clean-up."""

    def last_lines(self, count: int = 12) -> str:
        """Return the end of what it printed."""


Starter = Callable[[NodeId, int, tuple[str, int]], Handle]
"""Starts (node, incarnation), which is to join the coordinator at an address."""


@dataclass
class Deployment:
    """One run.

    Attributes
    ----------
    vital : frozenset of str
        Roles that the run cannot do without: an unplanned end of such a node ends the run.
    original_errors : dict
        Exceptions of nodes that live in this process, by (node, incarnation).
    """

    roster: Roster
    settings: RuntimeSettings
    security: Security
    start: Starter
    faults: FaultPlan = field(default_factory=FaultPlan)
    observers: Sequence[Observer] = ()
    log_sinks: Sequence[LogSink] = ()
    vital: frozenset[str] = frozenset()
    until_s: float | None = None
    original_errors: dict[tuple[str, int], BaseException] = field(default_factory=dict)
