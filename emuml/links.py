"""What one node knows of its links: peer states, sessions, and the position of each message in its session.

Both engines and the replay keep their view of a link here, so that fencing and numbering exist once (contract 3.4-3.6).
The state moves only when an event is handed to the handler; therefore the number of every message is a function of
the node's journal alone.
"""

from __future__ import annotations

from typing import Any

from emuml.node import NodeId, PeerState

UP, SUSPECT, DOWN, JOINING = "up", "suspect", "down", "joining"

_MOVES: dict[tuple[str, PeerState], str] = {
    (UP, PeerState.SUSPECT): SUSPECT,
    (SUSPECT, PeerState.UP): UP,
    (UP, PeerState.DOWN): DOWN,
    (SUSPECT, PeerState.DOWN): DOWN,
    (DOWN, PeerState.UP): UP,
    (DOWN, PeerState.RESTARTED): UP,
    (JOINING, PeerState.UP): UP,
    (JOINING, PeerState.DOWN): DOWN,
}


class Link:
    """One end of a link: state, session, number of messages sent in it, and what waits while it is joining."""

    __slots__ = ("sent", "session", "state", "waiting")

    def __init__(self, state: str, session: int) -> None:
        self.state = state
        self.session = session
        self.sent = 0
        self.waiting: list[Any] = []

    @property
    def carries(self) -> bool:
        """Whether messages of this link's session are handed over and may be sent."""
        return self.state is UP or self.state is SUSPECT

    def next_seq(self) -> int:
        """Count one more message of this session and return its number, from 1."""
        self.sent += 1
        return self.sent


class Links:
    """All links of one incarnation, made when first asked for.

    Parameters
    ----------
    joining : bool
        True for a fresh incarnation in a run that has begun: its links wait until each peer is reached.
    own : NodeId
        The node itself: its link to itself is always up, in a session of its own per incarnation.
    incarnation : int
    sessions : dict of NodeId -> int, optional
        The sessions at the start of the run; 0 where not given.
    absent : frozenset of NodeId
        Peers that are not there yet when the run starts: their links are joining, and ``DOWN`` comes at once.
    """

    __slots__ = ("_absent", "_links", "_sessions", "joining")

    def __init__(
        self,
        joining: bool,
        own: NodeId,
        incarnation: int,
        sessions: dict[NodeId, int] | None = None,
        absent: frozenset[NodeId] = frozenset(),
    ) -> None:
        self.joining = joining
        self._links: dict[NodeId, Link] = {own: Link(UP, incarnation)}
        self._sessions = sessions or {}
        self._absent = absent

    def of(self, peer: NodeId) -> Link:
        """Return the link to a peer."""
        link = self._links.get(peer)
        if link is None:
            state = JOINING if self.joining or peer in self._absent else UP
            link = self._links[peer] = Link(state, self._sessions.get(peer, 0))
        return link

    def allows(self, peer: NodeId, state: PeerState) -> bool:
        """Tell whether the transition table lets this event be handed over now."""
        return (self.of(peer).state, state) in _MOVES

    def change(self, peer: NodeId, state: PeerState, session: int) -> list[Any]:
        """Record that an ``on_peer`` event is handed over; return what waited: to be sent again, or discarded, now.

        Raises
        ------
        ValueError
            If the transition is not in the table: an engine's mistake.
        """
        link = self.of(peer)
        move = _MOVES.get((link.state, state))
        if move is None:
            raise ValueError(f"link to {peer} is {link.state}; {state.name} cannot follow")
        opens = move is UP and link.state is not SUSPECT
        link.state = move
        waiting, link.waiting = (link.waiting, []) if opens or move is DOWN else ([], link.waiting)
        if opens:
            link.session, link.sent = session, 0
        return waiting

    def states(self) -> dict[str, str]:
        """Return the states that are not plainly up, by peer, for reports."""
        return {str(peer): link.state for peer, link in sorted(self._links.items()) if link.state != UP}
