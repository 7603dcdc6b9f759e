"""A node's place in the emulated cluster: what survives a crash, and what one incarnation has running."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from emuml.blocks import MemoryStore
from emuml.des.environment import Call
from emuml.effects import Compute, Save
from emuml.journal import JournalWriter
from emuml.life import Life
from emuml.links import Links
from emuml.node import Factory, Node, NodeId

Sampler = Callable[[int, float], float]
"""Maps (draw position, load) to the seconds that a task takes."""


@dataclass(slots=True)
class Work:
    """What is left of a running task, in seconds at full pace, and since when; kept where paces change."""

    effect: Compute
    left_s: float
    since_s: float
    name: str


@dataclass(slots=True)
class Stall:
    """What has come for a node that stands still: calls that wait, and late timers; ``depth`` counts what holds it."""

    since_s: float
    depth: int = 0
    events: list[tuple[Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)
    timers: list[tuple[Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)

    def keep(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function when the node goes on."""
        self.events.append((function, arguments))


class Machine:
    """Everything the emulator knows of one node id."""

    __slots__ = (
        "_first",
        "busy",
        "disk_free_s",
        "ended",
        "factory",
        "id",
        "incarnation",
        "journal",
        "known",
        "law",
        "life",
        "links",
        "name",
        "pending_saves",
        "queue",
        "running",
        "stall",
        "store",
        "timers",
        "works",
    )

    def __init__(self, id: NodeId, factory: Factory, law: Sampler, node: Node | None = None) -> None:
        self.id, self.factory, self.law = id, factory, law
        self._first = node
        self.name = str(id)
        self.incarnation = 0
        self.ended: dict[int, float] = {}
        self.store = MemoryStore()
        self.journal: JournalWriter | None = None
        self.life: Life | None = None
        self.links: Links = Links(True, id, 0)
        self.reset()

    def reset(self) -> None:
        """Forget what one incarnation had running; engine entries must have been cancelled before."""
        self.busy = 0
        self.queue: deque[Compute] = deque()
        self.running: dict[int, Call] = {}
        self.timers: dict[str, Call] = {}
        self.pending_saves: list[tuple[Save, Call]] = []
        self.disk_free_s = 0.0
        self.known: dict[NodeId, int] = {}
        self.stall: Stall | None = None
        self.works: dict[int, Work] = {}

    def born(self) -> Node:
        """Return a fresh node object; the first one was made with the machine."""
        node, self._first = self._first, None
        return self.factory() if node is None else node

    def lives(self, incarnation: int) -> bool:
        """Tell whether this incarnation is the one that lives now."""
        return self.life is not None and self.incarnation == incarnation

    def describe(self, absent: bool) -> str:
        """Return a line for reports."""
        if self.life is None:
            return f"{self.name}: {'not started' if absent else f'crashed (life {self.incarnation})'}"
        states: dict[str, Any] = self.links.states()
        links = f", links {states}" if states else ""
        saves = f", {len(self.pending_saves)} saves pending" if self.pending_saves else ""
        return self.life.describe() + links + saves


def instantly(draw: int, load: float) -> float:
    """Return how long tasks of servers take: no time, unless they are configured to."""
    return 0.0
