"""Messages as flows that share links: completion times of given flows, and the network of an emulated cluster."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emuml._kernels import FlowSystem
from emuml.cluster.networks import ServerCosts, ServerWires, Wires, topology_called
from emuml.cluster.topology import Crossing
from emuml.cluster.topology_shapes import Shape
from emuml.des.environment import NORMAL, TIMER, Call
from emuml.errors import UserError
from emuml.node import NodeId

if TYPE_CHECKING:
    from emuml.cluster.cluster import Cluster
    from emuml.des.environment import Environment

SETTLING = TIMER + 1
"""Class of equal times in which rates are computed: after all else, so that what an instant sends is one solve."""

Arrive = Callable[[float, float], None]
"""Called with the time at which a message has arrived, and the one at which its last byte left the sender."""


def completion_times(topology: Shape | str | Path, flows: Iterable[Sequence[Any]]) -> NDArray[np.float64]:
    """Return when each of some flows has arrived, by weighted max-min fair sharing.

    A flow takes part from its start plus the latency of its route on. Until it ends it has its share of the links,
    computed anew whenever a flow begins or ends: the level of all flows is raised until a link is full, which stops
    those that cross it, and so on. A flow's rate is its weight times that level; the weight is ``1 / latency`` of its
    route, and 1 for a route without latency. Agrees with SimGrid's ``CM02`` model without its factors for TCP.

    Parameters
    ----------
    topology : Topology, shape, or name or path of one
    flows : iterable of (start_s, source, destination, size_bytes)
        Seconds >= 0, names of hosts, a whole number of bytes.

    Returns
    -------
    ndarray of float64, shape (flows,)
        Seconds, absolute, in the order of the flows.

    Raises
    ------
    UserError
        If a flow is malformed or has no route; it is named by its index.

    References
    ----------
    Velho, Schnorr, Casanova and Legrand, On the Validity of Flow-level TCP Network Models for Grid and Cloud
    Simulations, ACM TOMACS 23(4), 2013.

    Examples
    --------
    >>> from emuml.cluster import Star
    >>> star = Star(hosts=3, bandwidth_bps=8e6)
    >>> completion_times(star, [(0.0, "host-1", "host-0", 1_000_000), (0.0, "host-2", "host-0", 500_000)])
    array([1.5, 1. ])
    """
    network = (topology_called(topology, "topology") if isinstance(topology, str | Path) else topology).build()
    given = [_checked(flow, i) for i, flow in enumerate(flows)]
    done, starts, sizes = np.empty(len(given)), np.empty(len(given)), np.empty(len(given))
    crossings: list[Crossing] = []
    for i, (start_s, source, destination, size_bytes) in enumerate(given):
        try:
            crossings.append(network.crossing(source, destination))
        except UserError as error:
            raise UserError(error.what, f"flows[{i}]", error.allowed, error.hint) from error
        starts[i], sizes[i] = start_s, size_bytes
    latencies = np.array([crossed.latency_s for crossed in crossings])
    most = np.array([crossed.most_bytes_per_s for crossed in crossings])
    done[:] = starts + latencies
    takes_time = [i for i, each in enumerate(crossings) if sizes[i] and (each.channels or most[i] < math.inf)]
    if takes_time:
        chosen = np.array(takes_time)
        routes = [crossings[i].channels for i in takes_time]
        first = np.cumsum([0, *map(len, routes)]).astype(np.intc)
        route = np.fromiter((channel for each in routes for channel in each), np.intc, int(first[-1]))
        out = np.empty(len(chosen))
        weights = np.array([_weight(latency_s) for latency_s in latencies[chosen]])
        system = FlowSystem(network.capacities_bytes_per_s)
        system.finish(done[chosen], first, route, weights, most[chosen], sizes[chosen], out)
        done[chosen] = out
    return done


def _weight(latency_s: float) -> float:
    return 1.0 / latency_s if latency_s > 0 else 1.0


def _checked(flow: Any, index: int) -> tuple[float, str, str, int]:
    where = f"flows[{index}]"
    try:
        start_s, source, destination, size_bytes = flow
        start_s, whole = float(start_s), int(size_bytes)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"got {flow!r}", where, "(start_s, source, destination, size_bytes)") from error
    if not 0 <= start_s < math.inf:
        raise UserError(f"start_s is {start_s!r}", where, "a finite number >= 0")
    if whole != size_bytes or whole < 0:
        raise UserError(f"size_bytes is {size_bytes!r}", where, "an integer >= 0")
    return start_s, str(source), str(destination), whole


class _Waiting:
    """A message on its link: from when on it may arrive, and what to do then."""

    __slots__ = ("arrive", "from_s", "number", "size_bytes")

    def __init__(self, number: int, from_s: float, size_bytes: int, arrive: Arrive) -> None:
        self.number, self.from_s, self.size_bytes, self.arrive = number, from_s, size_bytes, arrive


class _Pair:
    """One direction between two nodes: its messages follow each other, the first one is a flow."""

    __slots__ = ("crossing", "messages", "slot", "to", "weight")

    def __init__(self, crossing: Crossing, to: NodeId) -> None:
        self.crossing, self.to = crossing, to
        self.weight = _weight(crossing.latency_s)
        self.messages: deque[_Waiting] = deque()
        self.slot = -1


class Carrier:
    """Carries the messages of a run over shared links, and through the network cards and processors of servers.

    Parameters
    ----------
    env : Environment
    cluster : Cluster
    ids : sequence of NodeId
        Servers first.
    """

    def __init__(self, env: Environment, cluster: Cluster, ids: Sequence[NodeId]) -> None:
        self._env = env
        self._costs: ServerCosts = cluster.server_costs
        wires: Wires = cluster.network.wires(ids)
        if self._costs.nic_bps is not None:
            wires = ServerWires(wires, ids, self._costs.nic_bps)
        self._wires = wires
        self._system = FlowSystem(wires.capacities_bytes_per_s)
        self._pairs: dict[tuple[NodeId, NodeId], _Pair] = {}
        self._of_slot: dict[int, _Pair] = {}
        self._cpu_free_s: dict[NodeId, float] = {}
        self._next: Call | None = None
        self._next_s = math.inf
        self._sent = 0
        self._is_settling = False

    @property
    def fillings(self) -> int:
        """How often rates were computed."""
        return int(self._system.fillings)

    def latency_s(self, sender: NodeId, to: NodeId) -> float:
        """Return the latency from one node to another."""
        return self._wires.crossing(sender, to).latency_s

    def send(self, sender: NodeId, to: NodeId, size_bytes: int, arrive: Arrive) -> None:
        """Put a message on its way; messages of one pair arrive in their order."""
        pair = self._pairs.get((sender, to))
        if pair is None:
            pair = self._pairs[sender, to] = _Pair(self._wires.crossing(sender, to), to)
        crossing, left_s = pair.crossing, self._worked_on(sender, size_bytes)
        self._sent += 1
        message = _Waiting(self._sent, left_s + crossing.latency_s, size_bytes, arrive)
        if not crossing.channels and crossing.most_bytes_per_s == math.inf:
            if self._costs.use_cpu and to.role == "server":
                self._env.call_at(message.from_s, NORMAL, self._reached, pair, message).lane = (sender, to)
            else:
                arrive(message.from_s, left_s)
            return
        pair.messages.append(message)
        if pair.slot < 0:
            self._begin(pair)

    def _worked_on(self, node: NodeId, size_bytes: int) -> float:
        """Return when the processor of a node is done with a message that it gets now."""
        now = self._env._now
        if not self._costs.use_cpu or node.role != "server":
            return now
        done_s = self._cpu_free_s[node] = max(self._cpu_free_s.get(node, 0.0), now) + self._costs.cpu_s(size_bytes)
        return done_s

    def _begin(self, pair: _Pair) -> None:
        """Make a flow of the first message of a pair."""
        now, first, crossing = self._env._now, pair.messages[0], pair.crossing
        start_s = max(first.from_s, now)
        pair.slot = self._system.add(
            now, start_s, crossing.channels, pair.weight, crossing.most_bytes_per_s, float(first.size_bytes)
        )
        self._of_slot[pair.slot] = pair
        self._settle_soon()

    def _settle_soon(self) -> None:
        if not self._is_settling:
            self._is_settling = True
            self._env.call_at(self._env._now, SETTLING, self._settle)

    def _settle(self) -> None:
        """Compute rates, once for all that this instant has changed, and wait for what happens next."""
        self._is_settling = False
        now = self._env._now
        while (at := self._system.next_time()) <= now:
            self._end(self._system.advance(now))
        if at != self._next_s:
            if self._next is not None:
                self._env.cancel(self._next)
            self._next_s = at
            self._next = self._env.call_at(at, NORMAL, self._happen) if at < math.inf else None

    def _happen(self) -> None:
        """Let flows begin and end."""
        self._next, self._next_s = None, math.inf
        self._end(self._system.advance(self._env._now))
        self._settle_soon()

    def _end(self, slots: list[int]) -> None:
        """Hand over the messages whose flows ended in one instant, in the order in which they were sent."""
        pairs = [self._of_slot.pop(slot) for slot in slots]
        ended = [(pair.messages.popleft(), pair) for pair in pairs]
        for pair in pairs:  # now that all slots are known to be free
            pair.slot = -1
            if pair.messages:
                self._begin(pair)
        for message, pair in sorted(ended, key=lambda each: each[0].number):
            self._reached(pair, message)

    def _reached(self, pair: _Pair, message: _Waiting) -> None:
        """Hand a message over, after the processor of a server has worked on it."""
        arrives_s = self._worked_on(pair.to, message.size_bytes)
        message.arrive(arrives_s, self._env._now - pair.crossing.latency_s)

    def forget(self, sender: NodeId, to: NodeId) -> None:
        """End all that is on the way from one node to another: their session is over."""
        pair = self._pairs.pop((sender, to), None)
        if pair is not None:
            self._cut(pair)

    def crashed(self, node: NodeId) -> None:
        """End the flows of a node: those to it at once, those from it when the last byte that left has arrived."""
        self._cpu_free_s.pop(node, None)
        for sender, to in [ends for ends in self._pairs if node in ends]:
            pair = self._pairs.pop((sender, to))
            if to == node:
                self._cut(pair)
            elif pair.messages:
                # Bytes travel for the latency; an end at that very time still counts, so this comes after it.
                at = self._env._now + pair.crossing.latency_s
                self._env.call_at(at, SETTLING, partial(self._cut, pair))

    def _cut(self, pair: _Pair) -> None:
        pair.messages.clear()
        if pair.slot >= 0:
            self._system.remove(self._env._now, pair.slot)
            del self._of_slot[pair.slot]
            pair.slot = -1
            self._settle_soon()
