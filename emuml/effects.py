"""Events and effects as plain values: what engines hand to a node, and what they execute after its handler returned.

Generations tell a timer or task from a later one of the same name or tag; protocols never see them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from emuml.blocks import Saved
from emuml.message import Message
from emuml.node import NodeId, PeerState
from emuml.task import Task


class Started(msgspec.Struct, frozen=True):
    """First event of an incarnation."""

    saved: Saved


class Received(msgspec.Struct, frozen=True):
    """A message is handed over."""

    sender: NodeId
    message: Message


class TimerFired(msgspec.Struct, frozen=True):
    """A timer expired; dropped when it was cancelled or re-armed since."""

    name: str
    generation: int


class Computed(msgspec.Struct, frozen=True):
    """A task ended; dropped when it was cancelled since."""

    tag: Any
    result: Any
    generation: int


class SaveDone(msgspec.Struct, frozen=True):
    """A save is durable."""

    tag: Any


class LoadDone(msgspec.Struct, frozen=True):
    """Blocks were read."""

    tag: Any
    blocks: Saved


class PeerChanged(msgspec.Struct, frozen=True):
    """The state of a peer changed."""

    peer: NodeId
    state: PeerState


class Handed(msgspec.Struct, frozen=True):
    """An array tier calls a handler of its own with what many events would bring."""

    handler: str
    arguments: tuple[Any, ...]


Event = Started | Received | TimerFired | Computed | SaveDone | LoadDone | PeerChanged | Handed


class Send(msgspec.Struct, frozen=True):
    """Send one message; ``size_bytes`` is its size on the wire."""

    to: NodeId
    message: Message
    size_bytes: int


class SendLatest(msgspec.Struct, frozen=True):
    """Send, replacing a queued message of the same peer and key that has not begun to leave."""

    to: NodeId
    message: Message
    key: str
    size_bytes: int


class Broadcast(msgspec.Struct, frozen=True):
    """Send one message to several peers, in this order."""

    to: Sequence[NodeId]
    message: Message
    size_bytes: int


class SetTimer(msgspec.Struct, frozen=True):
    """Arm or re-arm a named timer."""

    name: str
    after_s: float
    generation: int


class CancelTimer(msgspec.Struct, frozen=True):
    """Disarm a named timer."""

    name: str
    generation: int


class Compute(msgspec.Struct, frozen=True):
    """Queue a task for a slot; ``draw`` is the position of its delay."""

    tag: Any
    task: Task
    draw: int
    generation: int


class Cancel(msgspec.Struct, frozen=True):
    """Stop a task; ``generation`` is the one it was started with."""

    tag: Any
    generation: int


class Save(msgspec.Struct, frozen=True):
    """Commit blocks to stable storage; the values are snapshots."""

    tag: Any
    blocks: Mapping[Any, Any]


class Load(msgspec.Struct, frozen=True):
    """Read blocks from stable storage."""

    tag: Any
    ids: tuple[Any, ...]


class Log(msgspec.Struct, frozen=True):
    """Numbers and short texts for the record; never an input."""

    metrics: Mapping[str, float | str]


class Publish(msgspec.Struct, frozen=True):
    """Hand a version of the parameters to the observers, which are off the nodes and in no engine's time."""

    version: int
    parameters: Any


class Stop(msgspec.Struct, frozen=True):
    """End the run."""

    reason: str


Effect = Send | SendLatest | Broadcast | SetTimer | CancelTimer | Compute | Cancel | Save | Load | Log | Publish | Stop
