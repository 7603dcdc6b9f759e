"""What an engine returns: the record of one run of bare nodes, the same on both engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from emuml.errors import RunFailed
from emuml.journal import Journal
from emuml.node import Node, NodeId
from emuml.trace import Trace


@dataclass(frozen=True)
class Published:
    """One version of the parameters, as a server handed it to the observers.

    ``events`` is how many events were handled until then: by all nodes in the emulator, by this node over TCP.
    """

    time_s: float
    node: NodeId
    version: int
    parameters: NDArray[Any]
    events: int = 0


@dataclass(frozen=True)
class Logged:
    """One ``log`` effect."""

    time_s: float
    node: NodeId
    metrics: Mapping[str, float | str]


Observer = Callable[[Published], str | None]
"""Called for each published version, off the nodes; a returned text stops the run with that reason."""

LogSink = Callable[[Logged], None]
"""Called for each ``log`` effect, in order."""


@dataclass
class Run:
    """A finished run of bare nodes.

    Attributes
    ----------
    engine : str
        ``"des"`` or ``"tcp"``.
    tier : str
        Of the emulator, ``"event"`` or ``"array"``; else nothing.
    stopped : str or None
        The first reason given to ``ctx.stop``, or the observer's.
    error : RunFailed or None
        Why the run failed, if it did.
    duration_s : float
        On the engine's clock, from the start to the stop.
    journals : dict of (node, incarnation) -> Journal
        Empty when no journal was kept.
    nodes : dict of NodeId -> Node
        The node objects at the end, when they lived in this process.
    ends : list of str
        How nodes ended that ended before the run did, one sentence each.
    """

    engine: str
    trace: Trace
    tier: str = ""
    stopped: str | None = None
    error: RunFailed | None = None
    duration_s: float = 0.0
    wall_s: float = 0.0
    events: int = 0
    published: list[Published] = field(default_factory=list)
    logs: list[Logged] = field(default_factory=list)
    journals: dict[tuple[str, int], Journal] = field(default_factory=dict)
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)
    statistics: dict[str, float] = field(default_factory=dict)
    folder: Path | None = None
