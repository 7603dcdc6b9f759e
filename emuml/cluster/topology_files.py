"""Topologies in files: which reader a file needs, and the readers of graphs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from emuml.cluster.topology import Link, Topology, unknown
from emuml.cluster.topology_simgrid import from_simgrid
from emuml.cluster.topology_yaml import from_yaml
from emuml.errors import UserError

ASSUMED_BPS = 10e9
"""Bandwidth of links of graphs that state none, unless another one is given."""
KM_PER_S = 200_000.0
"""Light in fibre: distances in kilometres become latencies."""
_FORMS = ".yaml, .graphml, .json (node-link), .xml (SimGrid)"


def read(path: Path, bandwidth_bps: float | None) -> Topology:
    """See :meth:`Topology.from_file`."""
    readers: dict[str, Callable[[str, str], Topology]] = {
        ".yaml": from_yaml,
        ".yml": from_yaml,
        ".xml": from_simgrid,
        ".json": lambda text, where: from_node_link(text, where, bandwidth_bps),
        ".graphml": lambda text, where: from_graphml(text, where, bandwidth_bps),
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UserError(f"{path.suffix or 'no suffix'} says nothing of the form", str(path), _FORMS)
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot be read: {why}", str(path), _FORMS) from error
    try:
        return reader(text, str(path))
    except RecursionError as error:
        raise UserError("is nested too deeply", str(path), "lists and mappings a few levels deep") from error
    except UserError as error:
        if error.where.startswith(str(path)):
            raise
        place = f"{path}: {error.where}" if error.where else str(path)
        raise UserError(error.what, place, error.allowed, error.hint) from error


def from_node_link(text: str, where: str, bandwidth_bps: float | None = None) -> Topology:
    """Return the topology of a node-link JSON, as topohub and networkx write it.

    Links take ``bandwidth_bps`` and ``latency_s``, or ``dist`` in km at 200,000 km/s.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UserError(f"is no JSON: {error}", where) from error
    edges = found.get("edges", found.get("links")) if isinstance(found, dict) else None
    if not isinstance(edges, list) or not isinstance(found.get("nodes"), list):
        raise UserError("is no node-link graph", where, "an object with the lists 'nodes' and 'edges'")
    for kind, items, needed in (("node", found["nodes"], ("id",)), ("edge", edges, ("source", "target"))):
        for i, item in enumerate(items):
            missing = [name for name in needed if not isinstance(item, dict) or name not in item]
            if missing:
                raise UserError(f"{kind} {i} has no {missing[0]!r}", where)
    nodes = [(str(node["id"]), node) for node in found["nodes"]]
    cables = [(str(edge["source"]), str(edge["target"]), edge) for edge in edges]
    named = found.get("graph", {}).get("name") if isinstance(found.get("graph"), dict) else None
    return _of_graph(nodes, cables, str(named or Path(where).stem), where, bandwidth_bps)


def from_graphml(text: str, where: str, bandwidth_bps: float | None = None) -> Topology:
    """Return the topology of a GraphML file; links as in :func:`from_node_link`, or ``LinkSpeedRaw`` in bit/s."""
    import networkx as nx  # large, and only this form needs it

    try:
        graph = nx.parse_graphml(text)
    except Exception as error:  # whatever damaged files make its parser raise
        raise UserError(f"is no GraphML: {error}", where) from error
    nodes = [(str(node), data) for node, data in graph.nodes(data=True)]
    cables = [(str(first), str(second), data) for first, second, data in graph.edges(data=True)]
    return _of_graph(nodes, cables, str(graph.graph.get("name") or Path(where).stem), where, bandwidth_bps)


def _of_graph(
    nodes: Iterable[tuple[str, Mapping[str, Any]]],
    cables: Iterable[tuple[str, str, Mapping[str, Any]]],
    name: str,
    where: str,
    bandwidth_bps: float | None,
) -> Topology:
    """Make a topology of a graph: all nodes are hosts but those whose ``kind`` is ``router``."""
    kinds = {node: str(data.get("kind", "host")) for node, data in nodes}
    for node, kind in kinds.items():
        if kind not in ("host", "router"):
            raise unknown(kind, ("host", "router"), "kind", f"{where}: node {node!r}")
    links, assumed = [], 0
    for i, (first, second, data) in enumerate(cables):
        place = f"{where}: edge {i} ({first} - {second})"
        rate = _number(data, ("bandwidth_bps", "LinkSpeedRaw"), place)
        assumed += rate is None and bandwidth_bps is None
        latency_s = _number(data, ("latency_s",), place)
        if latency_s is None:
            latency_s = (_number(data, ("dist",), place) or 0.0) / KM_PER_S
        given = rate if rate is not None else bandwidth_bps if bandwidth_bps is not None else ASSUMED_BPS
        try:
            sharing: Any = data.get("sharing", "split-duplex")
            links.append(Link(f"l{i}", given, latency_s, sharing, (first, second)))
        except UserError as error:
            raise UserError(error.what, f"{place}: {error.where}", error.allowed, error.hint) from error
    said = f"{assumed} of {len(links)} links state no bandwidth: {ASSUMED_BPS:.3g} bit/s assumed" if assumed else ""
    hosts = tuple(node for node, kind in kinds.items() if kind == "host")
    routers = tuple(node for node, kind in kinds.items() if kind == "router")
    return Topology(hosts, tuple(links), routers, name=name, description=said)


def _number(data: Mapping[str, Any], names: tuple[str, ...], place: str) -> float | None:
    for name in names:
        if name in data:
            try:
                return float(data[name])
            except (TypeError, ValueError) as error:
                raise UserError(f"{name} is {data[name]!r}", place, "a number") from error
    return None
