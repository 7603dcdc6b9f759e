"""Who can talk to whom: the roster with the links that node classes declare by role, shared by all nodes of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from emuml.node import NodeId
from emuml.roster import Ids, Roster


class Directory:
    """Links between the nodes of a roster; two roles are linked if either one names the other.

    Parameters
    ----------
    roster : Roster
    talks_to : mapping of role -> frozenset of roles or None
        As declared by the node class of each role; ``None`` links to every role.

    Attributes
    ----------
    linked : dict of role -> frozenset of roles
        Roles that the nodes of a role have links to.
    """

    def __init__(self, roster: Roster, talks_to: Mapping[str, frozenset[str] | None]) -> None:
        self.roster = roster
        roles = sorted(roster.roles)
        self.linked = {role: frozenset(r for r in roles if _linked(role, r, talks_to)) for role in roles}

    @cached_property
    def ids(self) -> Ids | frozenset[NodeId]:
        """All ids, made when first asked for: a million of them weigh as much as a tenth of their nodes."""
        return self.roster.ids if isinstance(self.roster.ids, Ids) else frozenset(self.roster.ids)

    def peers(self, node: NodeId, role: str) -> Sequence[NodeId]:
        """Return all ids of a role in roster order, without ``node`` itself, whatever their state.

        Of a roster that keeps no ids it is a sequence that makes them.
        """
        ids = self.roster.of(role)
        if node.role == role:
            return tuple(peer for peer in ids if peer != node)
        return ids

    def neighbours(self, node: NodeId) -> tuple[NodeId, ...]:
        """Return the ids that ``node`` has links to, in roster order, without itself."""
        roles = self.linked[node.role]
        return tuple(peer for peer in self.roster.ids if peer.role in roles and peer != node)

    def why_not(self, node: NodeId, peer: NodeId) -> str:
        """Return why ``node`` cannot send to ``peer``, or an empty string."""
        if not isinstance(peer, NodeId):
            return f"ids are of type NodeId, got {type(peer).__name__}; see ctx.peers(role)"
        if peer == node or (peer in self.ids and peer.role in self.linked[node.role]):
            return ""
        if peer not in self.ids:
            return "no such node in the roster"
        return f"roles {node.role} and {peer.role} are not linked (see talks_to of their node classes)"


def _linked(first: str, second: str, talks_to: Mapping[str, frozenset[str] | None]) -> bool:
    of_first, of_second = talks_to.get(first), talks_to.get(second)
    return of_first is None or of_second is None or second in of_first or first in of_second
