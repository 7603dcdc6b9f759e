"""Networks of a cluster in which messages share links, or pairs of nodes differ; and what messages cost a server."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from emuml.cluster.compute import MOST_S
from emuml.cluster.topology import Crossing, Topology
from emuml.cluster.topology_shapes import Shape
from emuml.errors import UserError, did_you_mean
from emuml.memory import rebuilt, sealed
from emuml.node import NodeId
from emuml.spec import check

_MATRIX = "latency-matrix"


class Wires(Protocol):
    """The network as the nodes of one run meet it."""

    @property
    def capacities_bytes_per_s(self) -> Sequence[float]:
        """Capacities that messages share."""
        ...

    def crossing(self, sender: NodeId, to: NodeId) -> Crossing:
        """Return what a message between two different nodes meets."""
        ...


class Alone(NamedTuple):
    """What a message between a server and a worker takes at least, if no other is on the way."""

    latency_s: float
    bandwidth_bps: float | None


@runtime_checkable
class NetworkModel(Protocol):
    """A law of how long messages take; :class:`~emuml.cluster.Network` is the plain one."""

    def wires(self, ids: Sequence[NodeId]) -> Wires:
        """Return the network between these nodes, servers first.

        Raises
        ------
        UserError
            If it has no place for them.
        """
        ...

    def alone(self, ids: Sequence[NodeId]) -> Alone:
        """Return the least that a message takes, over the pairs of a server and a worker."""
        ...


@dataclass(frozen=True)
class ServerCosts:
    """What messages cost a server: its network card, which all its messages share, and its processor, one by one.

    Parameters
    ----------
    nic_bps : float, optional
        Bits per second of the card of each server, in each direction; ``None`` means that it is never the bottleneck.
    cpu_s_per_message : float
        Seconds of the server's processor for each message that it sends or receives.
    cpu_s_per_byte : float
        The same for each byte.
    """

    nic_bps: Annotated[float, Ge(1e-6)] | None = None
    cpu_s_per_message: Annotated[float, Ge(0), Le(MOST_S)] = 0.0
    cpu_s_per_byte: Annotated[float, Ge(0), Le(MOST_S)] = 0.0

    def __post_init__(self) -> None:
        check(self)

    @property
    def are_none(self) -> bool:
        """Whether messages cost servers nothing."""
        return self.nic_bps is None and not self.use_cpu

    @property
    def use_cpu(self) -> bool:
        """Whether messages take time of a processor."""
        return self.cpu_s_per_message > 0 or self.cpu_s_per_byte > 0

    def cpu_s(self, size_bytes: int) -> float:
        """Return how long the processor works on a message."""
        return self.cpu_s_per_message + self.cpu_s_per_byte * size_bytes


@dataclass(frozen=True)
class TopologyNetwork:
    """Messages share the links of a topology fairly: weighted max-min, as SimGrid has it.

    Messages of one pair of nodes follow each other. With latencies, a flow's share has the weight ``1 / latency`` of
    its route, as TCP's has; messages within a host take no time.

    Parameters
    ----------
    topology : Topology or shape, str or Path
        Text is the name of a topology that comes with the package, such as ``"laptop-star"``, or the path of a file; it
        is read at once, and a run keeps what it says.
    placement : {"one-each", "cyclic"} or tuple of str
        Which host each node is on, servers first: a host of its own, in their order; the hosts in turn, over and over;
        or the names of the hosts, one for each node.
    """

    topology: Shape | str | Path
    placement: Literal["one-each", "cyclic"] | tuple[str, ...] = "one-each"

    def __post_init__(self) -> None:
        if isinstance(self.topology, str | Path):
            object.__setattr__(self, "topology", topology_called(self.topology, "topology-network.topology"))
        check(self)

    @cached_property
    def network(self) -> Topology:
        """The topology."""
        return cast("Shape", self.topology).build()

    def hosts(self, ids: Sequence[NodeId]) -> dict[NodeId, str]:
        """Return the host of each node.

        Raises
        ------
        UserError
            If there are not as many hosts as the placement needs, or one is unknown.
        """
        hosts, where = self.network.hosts, "topology-network.placement"
        if self.placement == "cyclic":
            return {id: hosts[i % len(hosts)] for i, id in enumerate(ids)}
        if self.placement == "one-each":
            if len(hosts) < len(ids):
                what = f"{len(ids)} nodes (servers and workers) need as many hosts, the topology has {len(hosts)}"
                raise UserError(what, where, "'one-each' on more hosts, 'cyclic', or a host for each node")
            return dict(zip(ids, hosts, strict=False))
        if len(self.placement) != len(ids):
            what = f"{len(self.placement)} hosts for {len(ids)} nodes"
            raise UserError(what, where, "a host for each node, servers first")
        for name in self.placement:
            if name not in hosts:
                raise UserError(f"there is no host {name!r}", where, "", did_you_mean(name, hosts))
        return dict(zip(ids, self.placement, strict=True))

    def wires(self, ids: Sequence[NodeId]) -> Wires:
        """See :class:`NetworkModel`."""
        return _TopologyWires(self.network, self.hosts(ids))

    def alone(self, ids: Sequence[NodeId]) -> Alone:
        """See :class:`NetworkModel`."""
        return _least(self.wires(ids), ids)


class _TopologyWires:
    def __init__(self, topology: Topology, hosts: dict[NodeId, str]) -> None:
        self._topology, self._hosts = topology, hosts
        self.capacities_bytes_per_s: Sequence[float] = topology.capacities_bytes_per_s

    def crossing(self, sender: NodeId, to: NodeId) -> Crossing:
        first, second = self._hosts[sender], self._hosts[to]
        if first == second:
            return Crossing((), 0.0, math.inf)
        return self._topology.crossing(first, second)


@dataclass(frozen=True, eq=False)
class LatencyMatrix:
    """Latencies between places as they were measured: they may differ by direction and break the triangle inequality.

    Parameters
    ----------
    latency_s : ndarray of shape (places, places)
        Seconds one way from a place (row) to another (column); nan where nothing was measured. Round-trip times are
        twice as long. The diagonal is the latency between nodes at one place.
    bandwidth_bps : float, optional
        Bits per second of each pair of nodes; ``None`` means that size costs nothing.
    placement : {"cyclic"} or tuple of int
        The place of each node, servers first: all in turn, or these.
    missing : {"refused", "reverse"}
        Whether a pair that a run needs and that was not measured is an error, or takes what the other direction has.
    """

    latency_s: NDArray[np.float64]
    bandwidth_bps: Annotated[float, Ge(1e-6)] | None = None
    placement: Literal["cyclic"] | tuple[int, ...] = "cyclic"
    missing: Literal["refused", "reverse"] = "refused"

    def __post_init__(self) -> None:
        where = f"{_MATRIX}.latency_s"
        try:
            given = np.asarray(self.latency_s)
            if given.dtype.kind in "SU":
                raise ValueError("text")  # which numpy would read as numbers
            given = given.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise UserError(f"got {self.latency_s!r}", where, "an array of seconds") from error
        if given.ndim != 2 or given.shape[0] != given.shape[1] or not len(given):
            raise UserError(f"got shape {given.shape}", where, "a square array, places x places")
        wrong = np.argwhere(~(np.isnan(given) | ((given >= 0) & (given <= MOST_S))))
        if len(wrong):
            row, column = map(int, wrong[0])
            raise UserError(f"entry [{row}, {column}] is {given[row, column]}", where, "seconds from 0 to 1e12, or nan")
        object.__setattr__(self, "latency_s", sealed(given))
        check(self)
        for place in self.placement if isinstance(self.placement, tuple) else ():
            if not 0 <= place < len(given):
                raise UserError(f"got {place}", f"{_MATRIX}.placement", f"integers in 0..{len(given) - 1}")

    @classmethod
    def from_round_trips(cls, path: str | Path, places: Sequence[str] | None = None, **settings: Any) -> LatencyMatrix:
        """Read a table of round-trip times in milliseconds; one way takes half of one.

        Parameters
        ----------
        path : str or Path
            Comma-separated: a row of names of the places that were reached, then for each place from which was measured
            its name and its times. Rows and columns are joined by name, whatever their order; an empty cell was not
            measured.
        places : sequence of str, optional
            Which places, in which order; default: all with both a row and a column, in the order of the rows.
        **settings
            The other parameters of the class.

        Raises
        ------
        UserError
            If the file cannot be read, a cell is no number, or a place is unknown.
        """
        names, round_trips_ms = _round_trips(Path(path))
        for name in places or ():
            if name not in names:
                raise UserError(
                    f"there is no place {name!r}", str(path), f"{len(names)} names", did_you_mean(name, names)
                )
        chosen = [names.index(name) for name in places or names]
        return cls(round_trips_ms[np.ix_(chosen, chosen)] / 2000.0, **settings)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LatencyMatrix):
            return NotImplemented
        return self._settings == other._settings and np.array_equal(self.latency_s, other.latency_s, equal_nan=True)

    def __hash__(self) -> int:
        return hash((self._settings, self.latency_s.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    @property
    def _settings(self) -> tuple[object, ...]:
        return self.bandwidth_bps, self.placement, self.missing

    def wires(self, ids: Sequence[NodeId]) -> Wires:
        """See :class:`NetworkModel`; every pair of nodes must have a latency."""
        places = len(self.latency_s)
        if self.placement != "cyclic" and len(self.placement) != len(ids):
            what = f"{len(self.placement)} places for {len(ids)} nodes"
            raise UserError(what, f"{_MATRIX}.placement", "a place for each node, servers first")
        chosen = range(len(ids)) if self.placement == "cyclic" else self.placement
        at = {id: place % places for id, place in zip(ids, chosen, strict=False)}
        latencies = self.latency_s
        if self.missing == "reverse":
            latencies = np.where(np.isnan(latencies), latencies.T, latencies)
        self._check_measured(at, latencies)
        return _MatrixWires(at, latencies.tolist(), self.bandwidth_bps)

    def _check_measured(self, at: dict[NodeId, int], latencies: NDArray[np.float64]) -> None:
        used = np.array(sorted(set(at.values())))
        alone = np.bincount(list(at.values()), minlength=len(latencies)) < 2
        needed = np.isnan(latencies[np.ix_(used, used)])
        needed[np.diag(alone[used])] = False  # nobody talks within a place that has one node
        if needed.any():
            row, column = (int(used[i]) for i in np.argwhere(needed)[0])
            hint = "" if np.isnan(latencies[column, row]) else "missing: reverse takes the other direction"
            what = f"nothing was measured from place {row} to place {column}"
            raise UserError(what, f"{_MATRIX}.latency_s", "a latency for each pair of places with nodes", hint)

    def alone(self, ids: Sequence[NodeId]) -> Alone:
        """See :class:`NetworkModel`."""
        return _least(self.wires(ids), ids)


def _round_trips(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    """Return the places that have both a row and a column, and the times between them."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            head, *rows = [row for row in csv.reader(file) if row]
    except (OSError, ValueError) as error:
        what = "has no rows" if isinstance(error, ValueError) else f"cannot be read: {error.strerror}"
        raise UserError(what, str(path), "a table of round-trip times in milliseconds") from error
    columns, of_row = {name: i for i, name in enumerate(head)}, {row[0]: row for row in rows}
    names = [name for name in of_row if name in columns]
    times = np.full((len(names), len(names)), np.nan)
    for i, row in enumerate(names):
        for j, column in enumerate(names):
            cell = of_row[row][columns[column]] if columns[column] < len(of_row[row]) else ""
            try:
                times[i, j] = float(cell or "nan")
            except ValueError as error:
                raise UserError(f"from {row} to {column} is {cell!r}", str(path), "milliseconds") from error
    return names, times


class _MatrixWires:
    def __init__(self, at: dict[NodeId, int], latencies: list[list[float]], bandwidth_bps: float | None) -> None:
        self._at, self._latencies = at, latencies
        self._most = math.inf if bandwidth_bps is None else bandwidth_bps / 8
        self.capacities_bytes_per_s: Sequence[float] = ()

    def crossing(self, sender: NodeId, to: NodeId) -> Crossing:
        return Crossing((), self._latencies[self._at[sender]][self._at[to]], self._most)


class UniformWires:
    """The same latency and bandwidth for each pair of nodes."""

    def __init__(self, latency_s: float, bandwidth_bps: float | None) -> None:
        self._crossing = Crossing((), latency_s, math.inf if bandwidth_bps is None else bandwidth_bps / 8)
        self.capacities_bytes_per_s: Sequence[float] = ()

    def crossing(self, sender: NodeId, to: NodeId) -> Crossing:
        """See :class:`Wires`."""
        return self._crossing


class ServerWires:
    """Wires with the network cards of the servers at their ends."""

    def __init__(self, wires: Wires, ids: Sequence[NodeId], nic_bps: float) -> None:
        self._wires, first = wires, len(wires.capacities_bytes_per_s)
        servers = [id for id in ids if id.role == "server"]
        self._out = {id: (first + 2 * i,) for i, id in enumerate(servers)}
        self._in = {id: (first + 2 * i + 1,) for i, id in enumerate(servers)}
        self.capacities_bytes_per_s: Sequence[float] = (
            *wires.capacities_bytes_per_s,
            *[nic_bps / 8] * (2 * len(servers)),
        )

    def crossing(self, sender: NodeId, to: NodeId) -> Crossing:
        """See :class:`Wires`."""
        crossed = self._wires.crossing(sender, to)
        channels = (*self._out.get(sender, ()), *crossed.channels, *self._in.get(to, ()))
        return crossed._replace(channels=channels)


def _least(wires: Wires, ids: Sequence[NodeId]) -> Alone:
    servers, workers = ([id for id in ids if (id.role == "server") is wanted] for wanted in (True, False))
    found = [wires.crossing(worker, server) for server in servers for worker in workers]
    rates = [min([wires.capacities_bytes_per_s[i] for i in each.channels] + [each.most_bytes_per_s]) for each in found]
    fastest = max(rates, default=math.inf)
    return Alone(min((each.latency_s for each in found), default=0.0), None if fastest == math.inf else 8 * fastest)


def topology_called(name: str | Path, where: str) -> Topology:
    """Return a topology that comes with the package, by its name, or that of a file.

    Raises
    ------
    UserError
        If there is neither, or the file is wrong.
    """
    shipped = shipped_topologies()
    if str(name) in shipped:
        return Topology.from_file(shipped[str(name)])
    path = Path(name)
    if not path.suffix or not path.is_file():
        hint = did_you_mean(str(name), shipped)
        raise UserError(f"there is no topology {str(name)!r}", where, f"{', '.join(shipped)}, or a file", hint)
    return Topology.from_file(path)


def shipped_topologies() -> dict[str, Path]:
    """Return the files that come with the package, by name."""
    package = Path(__file__).parents[1]
    folders = (package / "topologies", package.parent / "topologies")  # installed, and in a source tree
    folder = next((folder for folder in folders if folder.is_dir()), folders[0])
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
