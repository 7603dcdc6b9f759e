"""Settings of a TCP run; every one has a default, none changes what a protocol means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt

from emuml.spec import check


@dataclass(frozen=True)
class RuntimeSettings:
    """How a run over TCP is made.

    Parameters
    ----------
    processes : {"each", "shared"}
        A process for each node, or all nodes on one loop of the calling process (fast tests; still real sockets).
    inject : {"floor", "add", "off"}
        How the cluster's compute law acts on real tasks: a task ends no sooner than its drawn duration, or that much
        later than it would, or as it does.
    time_scale : float
        Real seconds per second of the compute law. Times of fault plans and stop conditions are real seconds: they
        are not scaled.
    detector : {"lan", "wan"}
        Patience with silent peers.
    start_deadline_s : float
        For all nodes to join and connect.
    handshake_s : float
        For both ends of a new connection to prove themselves.
    dial_deadline_s : float
        For attempts to reach a peer, before it counts as unreachable.
    drain_s : float
        For a node to end by itself after the run stopped.
    stall_s : float
        Nothing handled and nothing pending anywhere for so long is a deadlock.
    message_bytes_max : int
        Larger messages are refused before anything is allocated for them.
    journal, trace : bool
        Whether nodes write them.
    """

    processes: Literal["each", "shared"] = "each"
    inject: Literal["floor", "add", "off"] = "floor"
    time_scale: Annotated[float, Gt(0)] = 1.0
    detector: Literal["lan", "wan"] = "wan"
    start_deadline_s: Annotated[float, Gt(0)] = 60.0
    handshake_s: Annotated[float, Gt(0)] = 5.0
    dial_deadline_s: Annotated[float, Gt(0)] = 20.0
    drain_s: Annotated[float, Ge(0)] = 5.0
    stall_s: Annotated[float, Gt(0)] = 30.0
    message_bytes_max: Annotated[int, Gt(0)] = 4 << 30
    journal: bool = True
    trace: bool = True

    def __post_init__(self) -> None:
        check(self)
