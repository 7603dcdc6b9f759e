"""A cluster as data: how many nodes, how long work, messages and saves take, and how crashes are noticed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from annotated_types import Ge, Gt, Le

from emuml.cluster.compute import MOST_S, ComputeModel, Instant
from emuml.cluster.detector import PhiAccrual
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


class Patience(NamedTuple):
    """How long a peer that gave regular signs of life may be silent.

    Attributes
    ----------
    suspect_s, down_s : float
        Seconds from the last sign to the two verdicts.
    interval_s : float
        Signs are given at multiples of it, in seconds; 0 for all the time.
    """

    suspect_s: float
    down_s: float
    interval_s: float

    def last_sign_s(self, until_s: float) -> float:
        """Return when a peer that falls silent at ``until_s`` had given its last sign of life."""
        if self.interval_s == 0:
            return until_s
        return max(math.ceil(until_s / self.interval_s) - 1, 0) * self.interval_s

    def next_sign_s(self, from_s: float) -> float:
        """Return when a peer gives its next sign of life, at ``from_s`` or later."""
        return math.ceil(from_s / self.interval_s) * self.interval_s if self.interval_s else from_s


@dataclass(frozen=True)
class Detection:
    """When neighbours learn of an exit, of silence, and of a new incarnation, in the emulator.

    A peer that is cut off or stands still is silent: it is suspected, then taken for dead, by the patience of
    ``silence`` or by fixed times.

    Parameters
    ----------
    exit_s : float
        From a crash to ``on_peer(DOWN)``.
    connect_s : float
        From a start to ``on_peer(UP | RESTARTED)`` on a living link, beyond one network latency.
    unreachable_s : float
        After which a starting node is told ``DOWN`` of a peer that is not there.
    silence : {"lan", "wan"}
        Setting of the failure detector that judges silence: :class:`~emuml.cluster.detector.PhiAccrual`, fed by signs
        of life at every multiple of its interval, and by every message.
    suspect_s, down_s : float, optional
        In its place: seconds from the last moment at which anything was heard, or could be, to ``on_peer(SUSPECT)``
        and to ``on_peer(DOWN)``. Both, or neither.
    """

    exit_s: Annotated[float, Ge(0)] = 0.01
    connect_s: Annotated[float, Ge(0)] = 0.0
    unreachable_s: Annotated[float, Ge(0)] = 10.0
    silence: Literal["lan", "wan"] = "lan"
    suspect_s: Annotated[float, Ge(0)] | None = None
    down_s: Annotated[float, Ge(0)] | None = None

    def __post_init__(self) -> None:
        check(self)
        if (self.suspect_s is None) != (self.down_s is None):
            raise UserError("one of suspect_s and down_s is missing", "Detection", "both, or neither")
        if self.suspect_s is not None and self.down_s is not None and self.suspect_s > self.down_s:
            raise UserError(f"got {self.suspect_s}", "Detection.suspect_s", f"at most down_s = {self.down_s:g}")

    def patience(self) -> Patience:
        """Return how long silence lasts before it is judged."""
        if self.suspect_s is not None and self.down_s is not None:
            return Patience(self.suspect_s, self.down_s, 0.0)
        detector = PhiAccrual.lan() if self.silence == "lan" else PhiAccrual.wan()
        for beat in range(3):
            detector.heard(last_s := beat * detector.interval_s)
        return Patience(detector.suspect_at - last_s, detector.dead_at - last_s, detector.interval_s)


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
