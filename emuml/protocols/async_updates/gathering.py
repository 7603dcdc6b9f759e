"""The slices of each round on their way to whole parameters, at the server that publishes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from emuml.message import Array
from emuml.node import NodeId
from emuml.protocols.async_updates.messages import Finish
from emuml.protocols.async_updates.slices import joined

if TYPE_CHECKING:
    from emuml.context import Context


class Gathering:
    """Collects what each server holds at the end of a round.

    A round of several servers is made of the slices that each had when it had so many pushes. Where a slice was lost
    with a crash of this server, a newer one of the same server takes its place.

    Parameters
    ----------
    me : NodeId
        The server that gathers.
    others : tuple of NodeId
        The other servers.
    """

    def __init__(self, me: NodeId, others: tuple[NodeId, ...]) -> None:
        self.servers = tuple(sorted((me, *others)))
        self._me, self._others = me, others
        self._slices: dict[int, dict[NodeId, Array]] = {}
        self._newest: dict[NodeId, tuple[int, Array]] = {}
        self._logs: dict[int, Mapping[str, Any]] = {}

    @property
    def is_shared(self) -> bool:
        """Whether there are several servers."""
        return bool(self._others)

    def add(self, round: int, server: NodeId, value: Array, log: Mapping[str, Any] | None = None) -> None:
        """Keep a slice, and with that of this server the log of the round."""
        self._slices.setdefault(round, {})[server] = value
        if round >= self._newest.get(server, (0, value))[0]:
            self._newest[server] = round, value
        if log is not None:
            self._logs[round] = log

    def finish(self, ctx: Context, round: int) -> None:
        """Ask the others for what they have, as the end of a round."""
        for server in self._others:
            ctx.send(server, Finish(round))

    def whole(self) -> Iterator[tuple[int, Mapping[str, Any], Array]]:
        """Yield the rounds that are complete, with their logs and parameters, and forget them."""
        for round in sorted(self._logs):
            slices = [self._slice(round, server) for server in self.servers]
            found = [one for one in slices if one is not None]
            if len(found) < len(slices):
                return
            self._slices = {later: kept for later, kept in self._slices.items() if later > round}
            yield round, self._logs.pop(round), joined(found)

    def _slice(self, round: int, server: NodeId) -> Array | None:
        exact = self._slices.get(round, {}).get(server)
        newest = self._newest.get(server, (0, None))
        return exact if exact is not None or newest[0] < round else newest[1]

    def waiting_for(self) -> str:
        """Name the servers whose slices are missing."""
        rounds = sorted(self._logs)
        missing = [str(server) for server in self.servers if rounds and self._slice(rounds[0], server) is None]
        return f"slices of round {rounds[0]} from {', '.join(missing)}" if missing else "nothing"
