"""What callers hand in: nodes by their ids, and functions of so many arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from emuml.errors import UserError
from emuml.node import Factory, NodeId, Nodes


def required(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters that a function must be given; of what has no signature, none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [item.name for item in parameters if item.default is item.empty and item.kind not in variadic]


def checked_nodes(made: Any) -> Nodes:
    """Return bare nodes by their ids.

    Raises
    ------
    UserError
        If this is no mapping of id -> (role, factory).
    """
    allowed = "a mapping of id -> (role, factory), such as {'worker-0': ('worker', Worker)}"
    if not isinstance(made, Mapping) or not made:
        raise UserError(f"got {made!r}", "nodes", f"a protocol, or {allowed}")
    found: dict[NodeId, tuple[str, Factory]] = {}
    for given, entry in made.items():
        try:
            id = NodeId.parse(given) if isinstance(given, str) else given
        except ValueError as error:
            raise UserError(str(error), "nodes") from None
        if not isinstance(entry, tuple) or len(entry) != 2 or not callable(entry[1]):
            raise UserError(f"got {entry!r}", f"nodes[{str(given)!r}]", allowed)
        if entry[0] != id.role:
            raise UserError(f"got the role {entry[0]!r}", f"nodes[{str(given)!r}]", f"{id.role!r}, as its id says")
        found[id] = entry
    return found
