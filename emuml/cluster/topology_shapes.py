"""Networks of regular shape, by a few numbers: a star, racks, a fat tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol, runtime_checkable

from annotated_types import Ge, Gt, Le

from emuml.cluster.compute import MOST_S
from emuml.cluster.topology import Link, Topology
from emuml.errors import UserError
from emuml.spec import check

HOSTS_MAX = 100_000
Bandwidth = Annotated[float, Ge(1e-6)]
Latency = Annotated[float, Ge(0), Le(MOST_S)]


@runtime_checkable
class Shape(Protocol):
    """Something that stands for a topology."""

    def build(self) -> Topology:
        """Return the topology."""
        ...


@dataclass(frozen=True)
class Star:
    """Hosts on one switch, each by a full-duplex cable.

    Parameters
    ----------
    hosts : int
        Called ``host-0`` and so on; at most 100,000.
    bandwidth_bps : float
        Bits per second of each cable and direction.
    latency_s : float
        One way over one cable, in seconds; a message crosses two.
    """

    hosts: Annotated[int, Gt(0), Le(HOSTS_MAX)]
    bandwidth_bps: Bandwidth = 10e9
    latency_s: Latency = 0.0

    def __post_init__(self) -> None:
        check(self)

    def build(self) -> Topology:
        """Return the topology."""
        hosts = _numbered("host", self.hosts)
        links = [_cable(host, "switch", self.bandwidth_bps, self.latency_s) for host in hosts]
        return Topology(hosts, tuple(links), ("switch",), name="star")


@dataclass(frozen=True)
class TwoTier:
    """Racks: hosts on the switch of their rack, the switches on one core.

    Parameters
    ----------
    racks, hosts_per_rack : int
        Hosts are called ``host-0`` and so on, rack by rack; at most 100,000 in all.
    bandwidth_bps : float
        Bits per second of a host's cable in each direction.
    uplink_bps : float
        Bits per second of a rack's cable to the core in each direction; less than the hosts' together is what makes
        racks matter.
    latency_s : float
        One way over one cable, in seconds.
    """

    racks: Annotated[int, Gt(0)]
    hosts_per_rack: Annotated[int, Gt(0)]
    bandwidth_bps: Bandwidth = 10e9
    uplink_bps: Bandwidth = 25e9
    latency_s: Latency = 0.0

    def __post_init__(self) -> None:
        check(self)
        _check_hosts(self.racks * self.hosts_per_rack, "TwoTier.racks")

    def build(self) -> Topology:
        """Return the topology."""
        hosts, racks = _numbered("host", self.racks * self.hosts_per_rack), _numbered("rack", self.racks)
        links = [
            _cable(host, racks[i // self.hosts_per_rack], self.bandwidth_bps, self.latency_s)
            for i, host in enumerate(hosts)
        ]
        links += [_cable(rack, "core", self.uplink_bps, self.latency_s) for rack in racks]
        return Topology(hosts, tuple(links), (*racks, "core"), name="two-tier")


@dataclass(frozen=True)
class FatTree:
    """The fat tree of k-port switches: k pods, ``k**3 / 4`` hosts, and as much bandwidth on each tier.

    Flows spread over the equal paths by a hash of their ends, so that some links get more of them than others.

    Parameters
    ----------
    k : int
        Ports of a switch, even, at most 64.
    bandwidth_bps : float
        Bits per second of each cable and direction.
    latency_s : float
        One way over one cable, in seconds.

    References
    ----------
    Al-Fares, Loukissas and Vahdat, A Scalable, Commodity Data Center Network Architecture, SIGCOMM 2008, section 3.
    """

    k: Annotated[int, Ge(2), Le(64)]
    bandwidth_bps: Bandwidth = 10e9
    latency_s: Latency = 0.0

    def __post_init__(self) -> None:
        check(self)
        if self.k % 2:
            raise UserError(f"got {self.k}", "FatTree.k", "an even integer in 2..64")

    def build(self) -> Topology:
        """Return the topology."""
        half, ends = self.k // 2, []
        hosts, edges = _numbered("host", self.k * half * half), _numbered("edge", self.k * half)
        middles, cores = _numbered("aggregation", self.k * half), _numbered("core", half * half)
        ends += [(host, edges[i // half]) for i, host in enumerate(hosts)]
        ends += [(edge, middles[i // half * half + j]) for i, edge in enumerate(edges) for j in range(half)]
        ends += [(middle, cores[i % half * half + j]) for i, middle in enumerate(middles) for j in range(half)]
        links = tuple(_cable(first, second, self.bandwidth_bps, self.latency_s) for first, second in ends)
        return Topology(hosts, links, (*edges, *middles, *cores), routing="ecmp", name="fat-tree")


def _numbered(what: str, count: int) -> tuple[str, ...]:
    return tuple(f"{what}-{i}" for i in range(count))


def _cable(first: str, second: str, bandwidth_bps: float, latency_s: float) -> Link:
    return Link(f"{first}--{second}", bandwidth_bps, latency_s, between=(first, second))


def _check_hosts(hosts: int, where: str) -> None:
    if hosts > HOSTS_MAX:
        raise UserError(f"{hosts:,} hosts", where, f"at most {HOSTS_MAX:,}")
