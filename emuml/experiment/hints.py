"""What the type hints of declarations accept, in words, for messages to users."""

from __future__ import annotations

import types
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

_BOUNDS: tuple[tuple[type, str, str], ...] = ((Gt, ">", "gt"), (Ge, ">=", "ge"), (Lt, "<", "lt"), (Le, "<=", "le"))


@cache
def field_hints(cls: type) -> dict[str, Any]:
    """Return the hints of a dataclass with their bounds; named aliases, as of arrays, are written out."""
    return {name: _written_out(hint) for name, hint in get_type_hints(cls, include_extras=True).items()}


def _written_out(hint: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if hasattr(origin, "__value__"):
        return origin.__value__[arguments]
    if origin in (Union, types.UnionType):
        return Union[tuple(_written_out(part) for part in arguments)]  # noqa: UP007
    if origin is tuple:
        return tuple[tuple(_written_out(part) for part in arguments)]  # type: ignore[misc]
    return hint


def holds(hint: Any, *wanted: type) -> bool:
    """Tell whether a type, or a part of it, is one of ``wanted``."""
    return hint in wanted or get_origin(hint) in wanted or any(holds(part, *wanted) for part in get_args(hint))


def words(hint: Any, bounds: str = "") -> str:
    """Say in words what a type accepts."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return words(arguments[0], "".join(map(_bound, arguments[1:])))
    if origin in (Union, types.UnionType):
        return " or ".join(words(option, bounds) for option in arguments)
    if origin is Literal:
        return ", ".join(map(repr, arguments))
    if origin is tuple:
        return "a list" if len(arguments) == 2 and arguments[1] is ... else f"a list of {len(arguments)}"
    plain = {
        int: f"an integer{bounds}",
        float: f"a finite number{bounds}",
        str: "text",
        bool: "true or false",
        Path: "a path",
    }
    plain |= {type(None): "null"}
    return plain.get(hint, "a declaration" if origin is not np.ndarray else "an array")


def _bound(bound: Any) -> str:
    for kind, sign, name in _BOUNDS:
        if isinstance(bound, kind):
            return f" {sign} {getattr(bound, name):g}"
    return ""
