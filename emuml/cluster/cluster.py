"""A cluster as data: how many nodes, how long work, messages and saves take, and how crashes are noticed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Gt, Le

from emuml.cluster.compute import MOST_S, ComputeModel, Instant
from emuml.cluster.networks import Alone, NetworkModel, ServerCosts, UniformWires, Wires
from emuml.errors import UserError
from emuml.node import NodeId
from emuml.spec import check

WORKERS_MAX = 10_000_000
"""More would not fit into the memory of any host: each takes about a kilobyte."""


@dataclass(frozen=True)
class Network:
    """Links without contention: a message arrives ``latency_s + 8 * size_bytes / bandwidth_bps`` after it leaves.

    Parameters
    ----------
    latency_s : float
        One way, in seconds, at most 1e12.
    bandwidth_bps : float, optional
        Bits per second of each link and direction, at least 1e-6; ``None`` means that size costs nothing.
    """

    latency_s: Annotated[float, Ge(0), Le(MOST_S)] = 0.0
    bandwidth_bps: Annotated[float, Ge(1e-6)] | None = None

    def __post_init__(self) -> None:
        check(self)

    def wires(self, ids: Sequence[NodeId]) -> Wires:
        """See :class:`NetworkModel`."""
        return UniformWires(self.latency_s, self.bandwidth_bps)

    def alone(self, ids: Sequence[NodeId]) -> Alone:
        """See :class:`NetworkModel`."""
        return Alone(self.latency_s, self.bandwidth_bps)


@dataclass(frozen=True)
class Storage:
    """Stable storage of a node: an operation takes ``latency_s + size / bytes_per_s``; operations are FIFO.

    Parameters
    ----------
    latency_s : float
        Of each operation, in seconds.
    bytes_per_s : float, optional
        ``None`` means that size costs nothing.
    """

    latency_s: Annotated[float, Ge(0)] = 0.0
    bytes_per_s: Annotated[float, Gt(0)] | None = None

    def __post_init__(self) -> None:
        check(self)

    def seconds(self, size_bytes: int) -> float:
        """Return how long reading or writing this many bytes takes."""
        return self.latency_s + (size_bytes / self.bytes_per_s if self.bytes_per_s else 0.0)


@dataclass(frozen=True)
class Detection:
    """When neighbours learn of an exit, and of a new incarnation, in the emulator.

    Parameters
    ----------
    exit_s : float
        From a crash to ``on_peer(DOWN)``.
    connect_s : float
        From a start to ``on_peer(UP | RESTARTED)`` on a living link, beyond one network latency.
    unreachable_s : float
        After which a starting node is told ``DOWN`` of a peer that is not there.
    """

    exit_s: Annotated[float, Ge(0)] = 0.01
    connect_s: Annotated[float, Ge(0)] = 0.0
    unreachable_s: Annotated[float, Ge(0)] = 10.0

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Cluster:
    """Workers and servers, and the laws they follow.

    Parameters
    ----------
    workers : int
        How many compute.
    servers : int
        How many hold parameters.
    compute : ComputeModel
        Law of task durations on nodes of role ``worker``. Other roles take no time.
    network : NetworkModel
        How long messages take: links each by itself (:class:`Network`), links of a topology that messages share
        (:class:`TopologyNetwork`), or measured latencies (:class:`LatencyMatrix`).
    storage : Storage
        Stable storage of each node.
    detection : Detection
        When the others learn of a crash.
    cores : int
        Task slots per node.
    cancel_lag_s : float
        From a cancel to the moment the slot is free, in the emulator.
    server_costs : ServerCosts
        What messages cost a server, in the emulator.
    """

    workers: Annotated[int, Gt(0)]
    servers: Annotated[int, Gt(0)] = 1
    compute: ComputeModel = field(default_factory=Instant)
    network: NetworkModel = field(default_factory=Network)
    storage: Storage = field(default_factory=Storage)
    detection: Detection = field(default_factory=Detection)
    cores: Annotated[int, Gt(0)] = 1
    cancel_lag_s: Annotated[float, Ge(0)] = 0.0
    server_costs: ServerCosts = field(default_factory=ServerCosts)

    def __post_init__(self) -> None:
        check(self)
        if self.workers > WORKERS_MAX:
            raise UserError(f"got {self.workers}", "Cluster.workers", f"at most {WORKERS_MAX:,}")

    @property
    def shares_nothing(self) -> bool:
        """Whether a message waits for nothing but earlier ones of its own pair of nodes: a plain network, no costs."""
        return type(self.network) is Network and self.server_costs.are_none

    @property
    def has_free_messages(self) -> bool:
        """Whether messages take no time and no node's work, however many and however large they are."""
        return self.network == Network() and self.server_costs.are_none
