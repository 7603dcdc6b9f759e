"""Coverage points of a run: which abstract states nodes met which events in, and which events followed each other.

A node says its abstract state itself by a method ``abstract()``, which returns a small hashable value. Of others it is
the fields whose class changed in the step: false or true, and for what has a length whether that is 0, 1 or more.
Points name roles, not nodes, and hold no times: else everything would be new.
"""

from __future__ import annotations

from collections.abc import Hashable, Sized
from typing import Any

from emuml import effects as fx
from emuml.node import NodeId

Point = tuple[str, Hashable, str]
"""Role; abstract state, or the kind of the event before; kind of the event."""


class Coverage:
    """Collects the points of one run.

    Attributes
    ----------
    points : set of Point
    """

    def __init__(self) -> None:
        self.points: set[Point] = set()
        self._classes: dict[NodeId, dict[str, int]] = {}
        self._before: dict[NodeId, str] = {}

    def after_step(self, id: NodeId, node: Any, event: fx.Event) -> None:
        """Note the state that an event left a node in."""
        kind = kind_of(event)
        self.points.add((id.role, self._abstract(id, node), kind))
        self.points.add((id.role, self._before.get(id, ""), kind))
        self._before[id] = kind

    def _abstract(self, id: NodeId, node: Any) -> Hashable:
        own = getattr(node, "abstract", None)
        if own is not None:
            state: Hashable = own()
            return state
        before = self._classes.get(id, {})
        now = self._classes[id] = {name: _class(value) for name, value in vars(node).items()}
        return tuple(sorted((name, found) for name, found in now.items() if before.get(name) != found))


def kind_of(event: fx.Event) -> str:
    """Return what sort of event it is, such as ``Received/Push`` or ``PeerChanged/down``; no number of it counts."""
    kind = type(event).__name__
    if isinstance(event, fx.Received):
        return f"{kind}/{type(event.message).__name__}"
    return f"{kind}/{event.state.value}" if isinstance(event, fx.PeerChanged) else kind


def _class(value: Any) -> int:
    """Return 0 for what is false or empty, 1 for what is true or has one item, 2 for more."""
    try:
        return min(len(value), 2) if isinstance(value, Sized) else int(bool(value))
    except (TypeError, ValueError):  # an array without dimensions, or what has no truth value
        return 1
