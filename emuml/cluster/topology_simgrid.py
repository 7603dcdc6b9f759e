"""SimGrid platform files: one zone with hosts, routers, links and routes that are written out.

What else a platform may have (clusters, nested zones, profiles) is refused by name: it would change times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.parsers import expat

from emuml.cluster.topology import Direction, Link, Route, Sharing, Topology
from emuml.errors import UserError, did_you_mean

_RATE = {"bps": 1.0, "Bps": 8.0}
_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_BANDWIDTHS = {
    f"{before}{unit}": size * bits for unit, bits in _RATE.items() for before, size in (_DECIMAL | _BINARY).items()
}
_LATENCIES = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "m": 60.0, "h": 3600.0}
_SHARING: dict[str, Sharing] = {
    "SHARED": "shared", "SPLITDUPLEX": "split-duplex", "FULLDUPLEX": "split-duplex", "FATPIPE": "fatpipe"
}  # fmt: skip
_IGNORED = ("platform", "prop", "disk", "config")
"""What changes no time of a message; settings of SimGrid's own models are not taken over."""
_PROFILES = ("bandwidth_file", "latency_file", "state_file", "bandwidth_profile", "latency_profile", "state_profile")


def from_simgrid(text: str, where: str) -> Topology:
    """Return the topology of a SimGrid platform file.

    Latency and bandwidth factors of SimGrid's network models are not applied: times are those of its model without
    them (``network/latency-factor:1``, ``bandwidth-factor:1``, no TCP window, no cross traffic).
    """
    return _Reader(where).read(text)


class _Reader:
    def __init__(self, where: str) -> None:
        self._where = where
        self._parser = expat.ParserCreate()
        self._zone = ""
        self._hosts: list[str] = []
        self._routers: list[str] = []
        self._links: dict[str, Link] = {}
        self._routes: dict[tuple[str, str], Route] = {}
        self._written: list[tuple[str, str, bool]] = []
        self._hops: list[tuple[str, Direction]] = []
        self._elements: dict[str, Callable[[dict[str, str]], None]] = {
            "zone": self._start_zone,
            "AS": self._start_zone,
            "host": self._host,
            "router": lambda given: self._routers.append(self._needed(given, "id", "router")),
            "link": self._link,
            "route": self._start_route,
            "link_ctn": self._hop,
        }

    def read(self, text: str) -> Topology:
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        try:
            self._parser.Parse(text, True)
        except expat.ExpatError as error:
            raise UserError(f"is no XML: {error}", self._where) from error
        one_way = {(source, destination) for source, destination, _ in self._written}
        for source, destination, is_symmetrical in self._written:
            if is_symmetrical and (destination, source) not in one_way:
                self._routes[destination, source] = _back(self._routes[source, destination])
        links, routes = tuple(self._links.values()), tuple(self._routes.values())
        return Topology(tuple(self._hosts), links, tuple(self._routers), routes, name=self._zone or "platform")

    @property
    def _place(self) -> str:
        return f"{self._where}:{self._parser.CurrentLineNumber}"

    def _start(self, element: str, given: dict[str, str]) -> None:
        if element in self._elements:
            self._elements[element](given)
        elif element not in _IGNORED:
            raise UserError(f"<{element}> is not read", self._place, ", ".join(self._elements))

    def _end(self, element: str) -> None:
        if element == "route":
            source, destination, _ = self._written[-1]
            links, directions = tuple(name for name, _ in self._hops), tuple(way for _, way in self._hops)
            self._routes[source, destination] = Route(source, destination, links, directions)

    def _start_zone(self, given: dict[str, str]) -> None:
        if self._zone:
            raise UserError("a second zone is not read", self._place, "one zone")
        routing = given.get("routing", "Full")
        if routing != "Full":
            raise UserError(f"routing={routing!r} is not read", self._place, "'Full': routes that are written out")
        self._zone = self._needed(given, "id", "zone")

    def _host(self, given: dict[str, str]) -> None:
        for name in ("state_file", "state_profile"):
            if name in given:
                raise UserError(f"{name} of a host is not read", self._place, "hosts that do not fail")
        self._hosts.append(self._needed(given, "id", "host"))

    def _link(self, given: dict[str, str]) -> None:
        for name in _PROFILES:
            if name in given:
                raise UserError(f"{name} of a link is not read", self._place, "links that do not change")
        name, policy = self._needed(given, "id", "link"), given.get("sharing_policy", "SHARED")
        if policy not in _SHARING:
            raise UserError(
                f"sharing_policy is {policy!r}", self._place, ", ".join(_SHARING), did_you_mean(policy, _SHARING)
            )
        if name in self._links:
            raise UserError(f"link {name!r} is there twice", self._place)
        rate = self._quantity(self._needed(given, "bandwidth", "link"), _BANDWIDTHS, "bandwidth")
        latency_s = self._quantity(given.get("latency", "0"), _LATENCIES, "latency")
        try:
            self._links[name] = Link(name, rate, latency_s, _SHARING[policy])
        except UserError as error:
            raise UserError(error.what, f"{self._place}: {error.where}", error.allowed) from error

    def _start_route(self, given: dict[str, str]) -> None:
        source, destination = self._needed(given, "src", "route"), self._needed(given, "dst", "route")
        if (source, destination) in self._routes:
            raise UserError(f"the route from {source!r} to {destination!r} is there twice", self._place)
        is_symmetrical = given.get("symmetrical", "YES").upper() == "YES" and source != destination
        self._written.append((source, destination, is_symmetrical))
        self._hops = []

    def _hop(self, given: dict[str, str]) -> None:
        name, direction = self._needed(given, "id", "link_ctn"), given.get("direction", "NONE").upper()
        link = self._links.get(name)
        if link is None:
            raise UserError(f"there is no link {name!r} before", self._place, "", did_you_mean(name, self._links))
        if direction not in ("UP", "DOWN", "NONE") or (link.sharing == "split-duplex" and direction == "NONE"):
            raise UserError(f"direction of {name!r} is {direction!r}", self._place, "UP or DOWN")
        self._hops.append((name, "down" if direction == "DOWN" else "up"))

    def _needed(self, given: dict[str, str], name: str, element: str) -> str:
        if name not in given:
            raise UserError(f"<{element}> has no {name}", self._place, "", did_you_mean(name, given))
        return given[name]

    def _quantity(self, text: str, units: dict[str, float], what: str) -> float:
        match = re.fullmatch(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)", text.strip())
        number, unit = match.groups() if match else ("", "")
        if unit not in units or number.count(".") > 1 or number.strip(".") == "":
            allowed = f"a number with one of {', '.join(filter(None, units))}"
            raise UserError(f"{what} is {text!r}", self._place, allowed, did_you_mean(unit, units) if unit else "")
        return float(number) * units[unit]


def _back(route: Route) -> Route:
    turned: Any = tuple({"up": "down", "down": "up"}[way] for way in reversed(route.directions))
    return Route(route.destination, route.source, route.links[::-1], turned)
