"""The package's own form of topologies: YAML with units in the names of its keys, as in ``topologies/``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from emuml import names
from emuml.cluster.topology import Direction, Link, Route, Topology, unknown
from emuml.errors import UserError, did_you_mean

T = TypeVar("T")

FORMAT = 1
_TOP = ("format", "name", "description", "hosts", "routers", "links", "routes", "routing", "shape")
_LINK = ("name", "between", "bandwidth_bps", "latency_s", "sharing")
_ROUTE = ("from", "to", "through", "one_way")


def from_yaml(text: str, where: str) -> Topology:
    """Return the topology of a YAML text: either its parts, or a ``shape`` such as ``{kind: fat-tree, k: 8}``."""
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        said = " ".join(str(error).split()).replace('"<unicode string>"', where)
        raise UserError(f"is no YAML: {said}", where) from error
    return _Reader(where).topology(root)


class _Reader:
    def __init__(self, where: str) -> None:
        self._where = where

    def topology(self, root: Any) -> Topology:
        given = self._mapping(root, _TOP)
        version = self._scalar(given["format"]) if "format" in given else None
        if version != FORMAT:
            what = f"format is {version!r}" if "format" in given else "format is missing"
            hint = "" if "format" in given else f"write format: {FORMAT} at its top"
            raise UserError(what, self._place(given.get("format", root)), str(FORMAT), hint)
        if "shape" in given:
            return self._shape(given["shape"])
        kept: dict[str, Any] = {
            name: self._scalar(given[name]) for name in ("name", "description", "routing") if name in given
        }
        for name in ("hosts", "links"):
            if name not in given:
                raise UserError(f"{name} is missing", self._place(root), "a list", did_you_mean(name, given))
        places: dict[str, Any] = {
            name: tuple(map(self._name, self._list(given[name]))) for name in ("hosts", "routers") if name in given
        }
        links = tuple(self._link(item, i) for i, item in enumerate(self._list(given["links"])))
        known = {link.name: link for link in links}
        routes = tuple(route for item in self._list(given.get("routes")) for route in self._routes(item, known))
        return self._made(root, lambda: Topology(links=links, routes=routes, **places, **kept))

    def _shape(self, node: Any) -> Topology:
        given = self._mapping(node)
        kind = self._scalar(given["kind"]) if "kind" in given else None
        known = [name for name in names.REGISTRY["topology"] if name != "topology"]
        if kind not in known:
            hint = did_you_mean(str(kind), known)
            raise UserError(f"kind is {kind!r}", self._place(given.get("kind", node)), ", ".join(known), hint)
        cls = names.resolve("topology", kind)
        values = {name: self._scalar(value) for name, value in given.items() if name != "kind"}
        for name in values:
            if name not in cls.__dataclass_fields__:
                raise self._unknown(given[name], name, tuple(cls.__dataclass_fields__))
        built: Topology = self._made(node, lambda: cls(**values).build())
        return built

    def _link(self, node: Any, number: int) -> Link:
        given = self._mapping(node, _LINK)
        for name in ("between", "bandwidth_bps"):
            if name not in given:
                raise UserError(f"{name} is missing", self._place(node), "", did_you_mean(name, given))
        ends = tuple(map(self._name, self._list(given["between"])))
        values: dict[str, Any] = {
            key: self._scalar(given[key]) for key in ("latency_s", "sharing", "bandwidth_bps") if key in given
        }
        name = self._name(given["name"]) if "name" in given else "--".join(ends)
        return self._made(node, lambda: Link(name, between=ends, **values))

    def _routes(self, node: Any, known: Mapping[str, Link]) -> list[Route]:
        given = self._mapping(node, _ROUTE)
        for name in ("from", "to", "through"):
            if name not in given:
                raise UserError(f"{name} is missing", self._place(node), "", did_you_mean(name, given))
        source, destination = self._name(given["from"]), self._name(given["to"])
        place, links = source, []
        directions: list[Direction] = []
        for item in self._list(given["through"]):
            name = self._name(item)
            if name not in known:
                raise unknown(name, known, "link", self._place(item))
            first, second = known[name].between
            if place not in (first, second):
                raise UserError(f"{name!r} does not begin at {place!r}", self._place(item), f"{first} - {second}")
            links.append(name)
            directions.append("up" if place == first else "down")
            place = second if place == first else first
        if place != destination:
            raise UserError(f"the route ends at {place!r}", self._place(node), repr(destination))
        there = self._made(node, lambda: Route(source, destination, tuple(links), tuple(directions)))
        if self._scalar(given["one_way"]) if "one_way" in given else False:
            return [there]
        turned: Any = tuple("down" if way == "up" else "up" for way in reversed(directions))
        return [there, Route(destination, source, tuple(reversed(links)), turned)]

    def _made(self, node: Any, make: Callable[[], T]) -> T:
        try:
            return make()
        except UserError as error:
            place = f"{self._place(node)}: {error.where}" if error.where else self._place(node)
            raise UserError(error.what, place, error.allowed, error.hint) from error
        except TypeError as error:
            raise UserError(str(error).rpartition("__init__() ")[2], self._place(node)) from error

    def _place(self, node: Any) -> str:
        if node is None:
            return self._where
        return f"{self._where}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"

    def _mapping(self, node: Any, known: tuple[str, ...] | None = None) -> dict[str, Any]:
        if getattr(node, "id", "") != "mapping":
            raise UserError(f"got {_shown(node)}", self._place(node), "a mapping of keys to values")
        given: dict[str, Any] = {}
        for key, value in node.value:
            name = self._name(key)
            if name in given:
                raise UserError(f"{name!r} is there twice", self._place(key))
            if known is not None and name not in known:
                raise self._unknown(key, name, known)
            given[name] = value
        return given

    def _unknown(self, node: Any, name: str, known: tuple[str, ...]) -> UserError:
        return UserError(f"unknown key {name!r}", self._place(node), ", ".join(known), did_you_mean(name, known))

    def _list(self, node: Any) -> list[Any]:
        if node is None:
            return []
        if node.id != "sequence":
            raise UserError(f"got {_shown(node)}", self._place(node), "a list")
        return list(node.value)

    def _name(self, node: Any) -> str:
        if getattr(node, "id", "") != "scalar":
            raise UserError(f"got {_shown(node)}", self._place(node), "a name")
        return str(node.value)

    def _scalar(self, node: Any) -> bool | int | float | str:
        """Return a value; unlike YAML 1.1, ``10e9`` is a number."""
        text = self._name(node)
        if node.style in ("'", '"', "|", ">"):
            return text
        if text in ("true", "false"):
            return text == "true"
        for kind in (int, float):
            try:
                return kind(text.replace("_", "x"))
            except ValueError:
                continue
        return text


def _shown(node: Any) -> str:
    kind = getattr(node, "id", "nothing")
    return (
        repr(str(node.value)[:60])
        if kind == "scalar"
        else {"sequence": "a list", "mapping": "a mapping"}.get(kind, kind)
    )
