"""Networks as data: hosts, routers, links with bandwidth and latency, and the routes between hosts.

A link is one of three sorts. ``"split-duplex"`` has its bandwidth in each direction; ``"shared"`` has it once, for both
together; ``"fatpipe"`` limits each flow alone, as an over-provisioned backbone does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from annotated_types import Ge, Le

from emuml.cluster.compute import MOST_S
from emuml.cluster.topology_paths import Hop, Paths
from emuml.errors import UserError, did_you_mean
from emuml.spec import check

Sharing = Literal["split-duplex", "shared", "fatpipe"]
Direction = Literal["up", "down"]


@dataclass(frozen=True)
class Link:
    """A cable between two places.

    Parameters
    ----------
    name : str
        By which routes know it.
    bandwidth_bps : float
        Bits per second, at least 1e-6.
    latency_s : float
        One way, in seconds.
    sharing : {"split-duplex", "shared", "fatpipe"}
        See the module.
    between : pair of str, optional
        The hosts or routers at its ends; from the first to the second is ``"up"``. Without it only routes that are
        written out cross the link.
    """

    name: str
    bandwidth_bps: Annotated[float, Ge(1e-6)]
    latency_s: Annotated[float, Ge(0), Le(MOST_S)] = 0.0
    sharing: Sharing = "split-duplex"
    between: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(self)
        if len(self.between) not in (0, 2) or len(set(self.between)) != len(self.between):
            raise UserError(f"link {self.name!r} lies between {list(self.between)}", "Link.between", "two places")


@dataclass(frozen=True)
class Route:
    """The links that messages from one host to another cross, in their order.

    Parameters
    ----------
    source : str
        Host that sends.
    destination : str
        Host that receives.
    links : tuple of str
        Names; a link may be crossed more than once.
    directions : tuple of {"up", "down"}
        Of each link.
    """

    source: str
    destination: str
    links: tuple[str, ...]
    directions: tuple[Direction, ...]

    def __post_init__(self) -> None:
        check(self)
        if len(self.links) != len(self.directions):
            what = f"{len(self.directions)} directions of {len(self.links)} links"
            raise UserError(what, "Route.directions", "a direction for each link")


class Crossing(NamedTuple):
    """What a flow from one host to another meets.

    Attributes
    ----------
    channels : tuple of int
        Capacities that it shares with others; see :attr:`Topology.capacities_bytes_per_s`.
    latency_s : float
        Sum of the latencies of its links.
    most_bytes_per_s : float
        What it never exceeds by itself; infinity if no link limits it so.
    """

    channels: tuple[int, ...]
    latency_s: float
    most_bytes_per_s: float


@dataclass(frozen=True)
class Topology:
    """A network.

    Parameters
    ----------
    hosts : tuple of str
        Where nodes may be.
    links : tuple of Link
        What connects them.
    routers : tuple of str
        Places without nodes.
    routes : tuple of Route
        Where messages do not take the shortest path; each is one way.
    routing : {"shortest", "ecmp"}
        The shortest path is the one of least latency, of these of the fewest links. Of several, ``"shortest"`` takes
        at each place the next place and link of the least name; ``"ecmp"`` takes one by a hash of source, destination
        and place, so that flows spread, and the same pair always goes the same way.
    name : str
        For reports.
    description : str
        In a sentence.

    Raises
    ------
    UserError
        If names are used twice or unknown, or if some hosts cannot be reached from others.

    Examples
    --------
    >>> lan = Topology(("a", "b"), (Link("cable", 1e9, 5e-6, between=("a", "b")),))
    >>> lan.crossing("b", "a")
    Crossing(channels=(1,), latency_s=5e-06, most_bytes_per_s=inf)
    """

    hosts: tuple[str, ...]
    links: tuple[Link, ...]
    routers: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()
    routing: Literal["shortest", "ecmp"] = "shortest"
    name: str = "topology"
    description: str = ""

    def __post_init__(self) -> None:
        check(self)
        if not self.hosts:
            raise UserError("there are no hosts", "Topology.hosts", "at least one")
        _once(self._places, "Topology.hosts", "host or router")
        _once([link.name for link in self.links], "Topology.links", "link")
        self._check_names()
        self._check_connected()

    @classmethod
    def from_file(cls, path: str | Path, bandwidth_bps: float | None = None) -> Topology:
        """Read a topology; its suffix says of which form it is.

        Parameters
        ----------
        path : str or Path
            ``.yaml`` (the form of ``topologies/``), ``.graphml``, ``.json`` (node-link, as topohub has it) or ``.xml``
            (SimGrid platform: hosts, routers, links and routes of one zone).
        bandwidth_bps : float, optional
            Bits per second of links of a graph that states none; default 10 Gbit/s.

        Raises
        ------
        UserError
            If there is no such file or it is of another form, with the line where a reader knows it.
        """
        from emuml.cluster.topology_files import read

        return read(Path(path), bandwidth_bps)

    def build(self) -> Topology:
        """Return itself: shapes such as :class:`FatTree` return the topology that they stand for."""
        return self

    @property
    def in_short(self) -> str:
        """Name and size, for reports."""
        return f"{self.name}: {len(self.hosts)} hosts, {len(self.links)} links"

    @property
    def capacities_bytes_per_s(self) -> tuple[float, ...]:
        """Capacities that flows share: two of each split-duplex link (up, down), one of each shared link."""
        return self._channels[0]

    def crossing(self, source: str, destination: str) -> Crossing:
        """Return what a flow between two hosts meets; nothing for a host and itself, unless a route says otherwise.

        Raises
        ------
        UserError
            If a host is unknown, or nothing leads from one to the other.
        """
        key = (source, destination)
        if key not in self._crossings:
            self._crossings[key] = self._crossed(self.path(source, destination))
        return self._crossings[key]

    def path(self, source: str, destination: str) -> tuple[Hop, ...]:
        """Return the links between two hosts, each with its direction; see :meth:`crossing`."""
        for name in (source, destination):
            if name not in self._known_hosts:
                raise unknown(name, self.hosts, "host")
        route = self._routes.get((source, destination))
        if route is not None:
            return tuple(map(Hop, route.links, route.directions))
        if source == destination:
            return ()
        return self._paths.path(source, destination)

    def _crossed(self, hops: Iterable[Hop]) -> Crossing:
        channels, latency_s, most = [], 0.0, float("inf")
        for name, direction in hops:
            link, first = self._links[name], self._channels[1][name]
            latency_s += link.latency_s
            if link.sharing == "fatpipe":
                most = min(most, link.bandwidth_bps / 8)
            else:
                channels.append(first + (direction == "down" and link.sharing == "split-duplex"))
        return Crossing(tuple(channels), latency_s, most)

    @cached_property
    def _channels(self) -> tuple[tuple[float, ...], dict[str, int]]:
        """Capacities, and where those of each link begin."""
        capacities: list[float] = []
        first: dict[str, int] = {}
        for link in self.links:
            first[link.name] = len(capacities)
            capacities += [link.bandwidth_bps / 8] * {"split-duplex": 2, "shared": 1, "fatpipe": 0}[link.sharing]
        return tuple(capacities), first

    @cached_property
    def _crossings(self) -> dict[tuple[str, str], Crossing]:
        return {}

    @cached_property
    def _links(self) -> dict[str, Link]:
        return {link.name: link for link in self.links}

    @cached_property
    def _routes(self) -> dict[tuple[str, str], Route]:
        return {(route.source, route.destination): route for route in self.routes}

    @cached_property
    def _known_hosts(self) -> frozenset[str]:
        return frozenset(self.hosts)

    @cached_property
    def _paths(self) -> Paths:
        cables = [(link.name, link.between, link.latency_s) for link in self.links if link.between]
        return Paths(cables, self.routing == "ecmp")

    @property
    def _places(self) -> tuple[str, ...]:
        return (*self.hosts, *self.routers)

    def _check_names(self) -> None:
        places, links = frozenset(self._places), frozenset(link.name for link in self.links)
        for link in self.links:
            for end in link.between:
                if end not in places:
                    raise unknown(end, self._places, "host or router", f"link {link.name!r}")
        for route in self.routes:
            where = f"route from {route.source!r} to {route.destination!r}"
            for end in (route.source, route.destination):
                if end not in places:
                    raise unknown(end, self._places, "host or router", where)
            for name in route.links:
                if name not in links:
                    raise unknown(name, sorted(links), "link", where)

    def _check_connected(self) -> None:
        near: dict[str, list[str]] = {place: [] for place in self._places}
        pairs = [link.between for link in self.links if link.between]
        for first, second in (*pairs, *((route.source, route.destination) for route in self.routes)):
            near[first].append(second)
            near[second].append(first)
        reached, ahead = {self.hosts[0]}, deque([self.hosts[0]])
        while ahead:
            fresh = [place for place in near[ahead.popleft()] if place not in reached]
            reached.update(fresh)
            ahead.extend(fresh)
        lost = [host for host in self.hosts if host not in reached]
        if lost:
            what = f"nothing leads from {self.hosts[0]!r} to {lost[0]!r}"
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            raise UserError(what + more, "Topology.links", "links or routes that connect all hosts")


def unknown(name: str, known: Iterable[str], what: str, where: str = "") -> UserError:
    """Return the error that a name is not among those known."""
    names = list(known)
    allowed = ", ".join(names) if len(names) <= 12 else f"one of {len(names)}: {names[0]} to {names[-1]}"
    return UserError(f"there is no {what} {name!r}", where, allowed, did_you_mean(name, names))


def _once(names: Iterable[str], where: str, what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UserError(f"{what} {name!r} is there twice", where, "each name once")
        seen.add(name)
