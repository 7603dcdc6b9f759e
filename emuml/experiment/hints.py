"""What the type hints of declarations accept, in words and as plain types, and what a wrong value probably meant."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from emuml.errors import did_you_mean

_BOUNDS: tuple[tuple[type, str, str], ...] = ((Gt, ">", "gt"), (Ge, ">=", "ge"), (Lt, "<", "lt"), (Le, "<=", "le"))
_UNITS = "write a plain number, in the unit that the key's name ends with"
_WITH_UNIT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)\s*(%|[A-Za-zµ]+(/s)?)")
_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


@cache
def field_hints(cls: type) -> dict[str, Any]:
    """Return the hints of a dataclass with their bounds; named aliases, as of arrays, are written out."""
    return {name: rebuilt(hint, lambda part: part) for name, hint in get_type_hints(cls, include_extras=True).items()}


def plain(hint: Any) -> Any:
    """Return a hint with ``Any`` for everything that is no plain value; paths are text."""
    return rebuilt(hint, _plain_part)


def rebuilt(hint: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a hint with each part that has no parts of its own replaced; named aliases are written out."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hasattr(origin, "__value__"):
        return rebuilt(origin.__value__[arguments], leaf)
    if origin is Annotated:
        return Annotated[(rebuilt(arguments[0], leaf), *arguments[1:])]
    if origin in (Union, types.UnionType):
        return Union[tuple(rebuilt(part, leaf) for part in arguments)]  # noqa: UP007 (made at run time)
    if origin is tuple:
        return tuple[tuple(part if part is Ellipsis else rebuilt(part, leaf) for part in arguments)]  # type: ignore[misc]
    return leaf(hint)


def _plain_part(part: Any) -> Any:
    if get_origin(part) is Literal or part in (int, float, str, bool, type(None)):
        return part
    return str if part is Path else Any


def parts(hint: Any) -> tuple[Any, ...]:
    """Return the parts of a hint, each once: the types and literal values that it is made of."""
    found: list[Any] = []

    def note(part: Any) -> Any:
        found.extend(get_args(part) if get_origin(part) is Literal else [part])
        return part

    rebuilt(hint, note)
    return tuple(dict.fromkeys(found))


def holds(hint: Any, *wanted: type) -> bool:
    """Tell whether a type, or a part of it, is one of ``wanted``."""
    return hint in wanted or get_origin(hint) in wanted or any(holds(part, *wanted) for part in get_args(hint))


def meant(value: Any, hint: Any) -> str:
    """Return what was probably meant by a value that a hint refuses, or an empty string.

    Examples
    --------
    >>> meant("scalled", Literal["fixed", "scaled"])
    "did you mean 'scaled'?"
    >>> meant(1000.0, int)
    'did you mean 1000?'
    >>> meant("5%", float)
    'did you mean 0.05?'
    """
    known = parts(hint)
    if isinstance(value, float) and int in known and value.is_integer() and abs(value) < 1e15:
        return f"did you mean {int(value)}?"
    if not isinstance(value, str):
        return ""
    if bool in known and value.lower() in _BOOLEANS:
        return f"did you mean {_BOOLEANS[value.lower()]}?"
    if {int, float} & set(known) and "_" in value and _is_number(value):
        return f"did you mean {value.replace('_', '')}?"
    if {int, float} & set(known) and _is_number(value):
        return "write it without quotes"
    if {int, float} & set(known) and _WITH_UNIT.fullmatch(value):
        return f"did you mean {float(value[:-1]) / 100:g}?" if value[-1] == "%" else _UNITS
    return did_you_mean(value, [part for part in known if isinstance(part, str)])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def words(hint: Any, bounds: str = "") -> str:
    """Say in words what a type accepts."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return words(arguments[0], " and".join(filter(None, map(_bound, arguments[1:]))))
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(words(option, bounds) for option in arguments))
    if origin is Literal:
        return ", ".join(map(repr, arguments))
    if origin is tuple:
        items = [words(item) for item in arguments if item is not ...]
        return f"a list of items, each {items[0]}" if ... in arguments else f"[{'; '.join(items)}]"
    plain = {
        int: f"an integer{bounds}",
        float: f"a finite number{bounds}",
        str: "text",
        bool: "true or false",
        Path: "a path",
        type(None): "null",
    }
    return plain.get(hint, "a declaration" if origin is not np.ndarray else "an array")


def _bound(bound: Any) -> str:
    for kind, sign, name in _BOUNDS:
        if isinstance(bound, kind):
            limit = getattr(bound, name)
            return f" {sign} {limit if isinstance(limit, int) else format(limit, 'g')}"
    return ""
