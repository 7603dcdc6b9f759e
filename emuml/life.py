"""One incarnation of a node: events go in, the effects that its handler recorded come out.

Both engines and the replay drive nodes through this class alone, so dispatch, stale timers and results, error
wrapping and contract checks exist once. It knows no time but the one it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from emuml import effects as fx
from emuml.context import Context, retire
from emuml.directory import Directory
from emuml.errors import NodeFailed
from emuml.journal import RAISED, JournalWriter, effects_digest
from emuml.node import Node, NodeId

if TYPE_CHECKING:
    from emuml.checks import Checker


class Life:
    """A node object with its identity, live timers and tasks.

    Parameters
    ----------
    node : Node
        Fresh from its factory.
    id : NodeId
    incarnation : int
    directory : Directory
    checker : Checker, optional
        Looks for contract violations around each handler (check mode).
    """

    __slots__ = (
        "_generation",
        "_peers",
        "checker",
        "directory",
        "effects",
        "events",
        "id",
        "incarnation",
        "last_event",
        "last_now",
        "node",
        "opened_streams",
        "received",
        "sent",
        "started",
        "tasks",
        "timers",
    )

    def __init__(
        self, node: Node, id: NodeId, incarnation: int, directory: Directory, checker: Checker | None = None
    ) -> None:
        self.node, self.id, self.incarnation, self.directory, self.checker = node, id, incarnation, directory, checker
        self.effects: list[fx.Effect] = []
        self.timers: dict[str, int] = {}
        self.tasks: dict[Hashable, int] = {}
        self.started = 0
        self.events = 0
        self.last_event = ""
        self.last_now = 0.0
        self.received: dict[str, int] = {}
        self.sent: dict[str, int] = {}
        self.opened_streams: set[str] | None = None if checker is None else set()
        self._generation = 0
        self._peers: dict[str, Sequence[NodeId]] = {}

    def peers(self, role: str) -> Sequence[NodeId]:
        """Return the ids of a role without this node."""
        if role not in self._peers:
            self._peers[role] = self.directory.peers(self.id, role)
        return self._peers[role]

    def why_not(self, peer: NodeId) -> str:
        """Return why this node cannot send to ``peer``, or an empty string."""
        return self.directory.why_not(self.id, peer)

    def arm(self, name: str) -> int:
        """Give a timer a new generation, which makes every earlier expiry of that name stale."""
        self._generation += 1
        self.timers[name] = self._generation
        return self._generation

    def begin(self, tag: Hashable) -> int:
        """Register a live task and return its generation."""
        self._generation += 1
        self.tasks[tag] = self._generation
        self.started += 1
        return self._generation

    def is_current(self, event: fx.Event) -> bool:
        """Tell whether an event may still be handed over; expired generations may not."""
        if isinstance(event, fx.TimerFired):
            return self.timers.get(event.name) == event.generation
        if isinstance(event, fx.Computed):
            return self.tasks.get(event.tag) == event.generation
        return True

    def handle(self, event: fx.Event, now: float) -> list[fx.Effect]:
        """Hand one event to the node and return the effects that it recorded, in call order.

        The caller has asked :meth:`is_current` before.

        Raises
        ------
        NodeFailed
            If the handler raised; its cause is the original exception. No effect of the step remains.
        """
        ctx = Context(self, now)
        self.effects = []
        self.events += 1
        self.last_now = now
        try:
            if self.checker is None:
                self._dispatch(ctx, event)
            else:
                with self.checker.around(self):
                    self._dispatch(ctx, event)
        except (Exception, SystemExit, GeneratorExit) as error:
            self.effects = []
            raise NodeFailed(str(self.id), self.incarnation, now, self.last_event) from error
        finally:
            retire(ctx)
        return self.effects

    def step(
        self, event: fx.Event, now: float, journal: JournalWriter | None, kind: str, details: Callable[[], list[Any]]
    ) -> list[fx.Effect]:
        """Handle one event and write the step into the journal, if one is kept; also a step that raises."""
        if journal is None:
            return self.handle(event, now)
        try:
            effects = self.handle(event, now)
        except NodeFailed:
            journal.add(now, kind, details(), RAISED)
            raise
        journal.add(now, kind, details(), effects_digest(effects))
        return effects

    def _dispatch(self, ctx: Context, event: fx.Event) -> None:
        node = self.node
        match event:
            case fx.Received(sender, message):
                kind = type(message).__name__
                self.received[kind] = self.received.get(kind, 0) + 1
                self.last_event = f"on_message({sender}, {kind})"
                node.on_message(ctx, sender, message)
            case fx.Computed(tag, result):
                self.last_event = f"on_computed({tag!r})"
                del self.tasks[tag]
                node.on_computed(ctx, tag, result)
            case fx.TimerFired(name):
                self.last_event = f"on_timer({name!r})"
                del self.timers[name]
                node.on_timer(ctx, name)
            case fx.PeerChanged(peer, state):
                self.last_event = f"on_peer({peer}, {state.name})"
                node.on_peer(ctx, peer, state)
            case fx.SaveDone(tag):
                self.last_event = f"on_saved({tag!r})"
                node.on_saved(ctx, tag)
            case fx.LoadDone(tag, blocks):
                self.last_event = f"on_loaded({tag!r})"
                node.on_loaded(ctx, tag, blocks)
            case fx.Started(saved):
                self.last_event = "on_start"
                node.on_start(ctx, saved)
            case fx.Handed(handler, arguments):
                self.last_event = handler
                getattr(node, handler)(ctx, *arguments)

    def _messages(self) -> tuple[tuple[str, dict[str, int]], ...]:
        return ("received", self.received), ("sent", self.sent)

    def describe(self) -> str:
        """Return one line on what this life was doing, for deadlock reports."""
        waiting = self.node.waiting_for() if self.events else ""
        parts = [f"last {self.last_event or 'nothing'} at t={self.last_now:.6g} s", f"{self.events} events"]
        parts += [f"{name} {_counted(by_type)}" for name, by_type in self._messages() if by_type]
        if self.timers:
            parts.append(f"timers {sorted(self.timers)}")
        if self.tasks:
            parts.append(f"tasks {[str(tag) for tag in self.tasks]}")
        if waiting:
            parts.append(f"waiting for {waiting}")
        return f"{self.id} (life {self.incarnation}): " + ", ".join(parts)


def _counted(by_type: dict[str, int]) -> str:
    return " and ".join(f"{count} {kind}" for kind, count in sorted(by_type.items()))
