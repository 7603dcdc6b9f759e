"""The contract a protocol author writes against: a node is a deterministic state machine, events in, effects out.

1. A node never blocks, reads no clock, opens nothing, and draws randomness only from its context.
2. Events are handled one at a time; effects are recorded while a handler runs and executed after it returned.
3. The same class runs on the emulator (``emuml.des``) and over TCP (``emuml.runtime``); engines decide nothing.

The effects a handler may record are methods of :class:`emuml.context.Context`. This module knows no engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from emuml.errors import ContractError

if TYPE_CHECKING:
    from emuml.blocks import Saved
    from emuml.context import Context
    from emuml.message import Array, Message


class NodeId(msgspec.Struct, frozen=True, order=True, array_like=True, cache_hash=True):
    """Identity of a node: its role and its index in that role, printed ``worker-3``.

    Ids are ordered by role, then by index; that order is the roster's, whatever they print as.

    Examples
    --------
    >>> str(NodeId("worker", 3)), NodeId("worker", 2) < NodeId("worker", 10)
    ('worker-3', True)
    """

    role: str
    index: int

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"

    @classmethod
    def parse(cls, text: str) -> NodeId:
        """Return the id that prints as ``text``.

        Raises
        ------
        ValueError
            If ``text`` is not of the form ``role-index``.
        """
        role, dash, index = text.rpartition("-")
        if not dash or not role or not index.isdecimal():
            raise ValueError(f"{text!r} is no node id; expected role-index, such as 'worker-3'")
        return cls(role, int(index))


class PeerState(Enum):
    """What a node is told of a peer; the legal sequences are in contract section 3.4."""

    UP = "up"
    SUSPECT = "suspect"
    DOWN = "down"
    RESTARTED = "restarted"


class Node:
    """Base of all nodes; subclasses override the handlers they need.

    A node that puts another function in the place of a handler while it lives does so in the code of its own class, or
    the emulator may go on calling the first one.

    Attributes
    ----------
    talks_to : frozenset of str or None
        Roles this node has links to; ``None`` means every other node. Two nodes are linked if either names the
        other's role.
    messages : tuple of message classes
        What the nodes of this protocol send each other. Empty: the messages defined in the class's own module.
    """

    talks_to: ClassVar[frozenset[str] | None] = None
    messages: ClassVar[tuple[type[Message], ...]] = ()

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """First event of each incarnation; ``saved`` maps block ids to the newest values this node id saved."""

    def on_message(self, ctx: Context, sender: NodeId, message: Any) -> None:
        """A message arrived; it is immutable, its arrays are read-only."""

    def on_timer(self, ctx: Context, name: str) -> None:
        """The timer set under ``name`` expired."""

    def on_computed(self, ctx: Context, tag: Hashable, result: Array) -> None:
        """The task started under ``tag`` is done; ``result`` is opaque: put it in messages or ``combine`` it."""

    def on_saved(self, ctx: Context, tag: Hashable) -> None:
        """The save started under ``tag`` is durable now."""

    def on_loaded(self, ctx: Context, tag: Hashable, blocks: Saved) -> None:
        """The blocks asked for under ``tag``; absent ids are absent from the mapping."""

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """What is known of a peer changed."""

    def waiting_for(self) -> str:
        """Say in a few words what this node waits for; read by deadlock reports, never by engines."""
        return ""


Factory = Callable[[], Node]
"""Builds a fresh node for each incarnation."""

Nodes = Mapping[NodeId, tuple[str, Factory]]
"""What a protocol hands to an engine: id -> (role, factory)."""


def check_same_messages(nodes: Iterable[Node]) -> None:
    """Make sure that all nodes of a run know the same messages: over TCP they would refuse each other.

    Raises
    ------
    ContractError
        Naming two classes and a message that only one of them knows, or what is no node at all.
    """
    nodes = list(nodes)
    for node in nodes:
        if not isinstance(node, Node):
            raise ContractError(f"a factory returned {node!r}, which is no Node")
    classes = list(dict.fromkeys(type(node) for node in nodes))
    known = [set(message_types(cls)) for cls in classes]
    for cls, messages in zip(classes[1:], known[1:], strict=True):
        for message in sorted(messages ^ known[0], key=lambda kind: kind.__name__):
            has, lacks = (cls, classes[0]) if message in messages else (classes[0], cls)
            raise ContractError(
                f"{has.__name__} knows the message {message.__name__} and {lacks.__name__} does not; "
                f"give both the same attribute 'messages'"
            )


def message_types(node: Node | type[Node]) -> tuple[type[Message], ...]:
    """Return the message classes of a node: those it declares, else those that its protocol's module has.

    The protocol's module is that of the first class below :class:`Node` whose module has any, so that a subclass
    elsewhere speaks the language of what it derives from.
    """
    from emuml.message import Message

    cls = node if isinstance(node, type) else type(node)
    if cls.messages:
        return cls.messages
    for base in reversed([base for base in cls.__mro__ if issubclass(base, Node) and base is not Node]):
        values = vars(sys.modules[base.__module__]).values() if base.__module__ in sys.modules else ()
        kinds = {
            kind for kind in values if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message
        }
        if kinds:
            return tuple(sorted(kinds, key=lambda kind: kind.__name__))
    return ()
