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

    A round of several servers is made of the slices that each had when it had so many pushes; between two of them a
    worker may be ahead.

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
        self._logs: dict[int, Mapping[str, Any]] = {}

    def add(self, round: int, server: NodeId, value: Array, log: Mapping[str, Any] | None = None) -> None:
        """Keep a slice, and with that of this server the log of the round."""
        self._slices.setdefault(round, {})[server] = value
        if log is not None:
            self._logs[round] = log

    def finish(self, ctx: Context, round: int) -> None:
        """Ask the others for what they have, as the end of a round."""
        for server in self._others:
            ctx.send(server, Finish(round))

    def whole(self) -> Iterator[tuple[int, Mapping[str, Any], Array]]:
        """Yield the rounds that are complete, with their logs and parameters, and forget them."""
        for round in sorted(self._logs):
            slices = self._slices[round]
            if len(slices) < len(self.servers):
                return
            del self._slices[round]
            yield round, self._logs.pop(round), joined([slices[server] for server in self.servers])

    def waiting_for(self) -> str:
        """Name the servers whose slices are missing."""
        rounds = sorted(self._logs)
        missing = [str(server) for server in self.servers if rounds and server not in self._slices[rounds[0]]]
        return f"slices of round {rounds[0]} from {', '.join(missing)}" if missing else "nothing"
