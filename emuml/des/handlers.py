"""Handlers that are looked up once for all nodes of a class.

Python lets an object put another function in the place of a method while it lives, so that a handler would have to be
looked up for each event. Where the code of a class does nothing of the kind, nor anything that hides it, its functions
serve as long as its nodes live.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from emuml.node import Node

NAMES = ("on_message", "on_computed", "on_timer")
_HIDING = frozenset(["__class__", "__dict__", "__setattr__", "setattr", "vars"])


def lasting(kind: type) -> tuple[FunctionType, ...] | None:
    """Return the functions of ``NAMES`` that serve each node of a class, or None if one of them may change."""
    if not issubclass(kind, Node) or kind.__getattribute__ is not object.__getattribute__:
        return None
    bases = [base for base in kind.__mro__ if base is not object]
    functions = [next(vars(base)[name] for base in bases if name in vars(base)) for name in NAMES]
    if not all(type(function) is FunctionType for function in functions):
        return None
    if any(_changes(code) for base in bases for value in vars(base).values() for code in _codes(value)):
        return None
    return tuple(functions)


def _codes(value: Any) -> Iterator[CodeType]:
    """Yield the code of a function, and of those that it encloses, wraps or was made of."""
    waiting, seen = [value], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, CodeType):
            yield value
            waiting += value.co_consts
        elif isinstance(value, FunctionType):
            cells = value.__closure__ or ()
            waiting += [value.__code__, getattr(value, "__wrapped__", None)]
            waiting += [cell.cell_contents for cell in cells if _is_filled(cell)]
        else:
            parts = ("__func__", "fget", "fset", "fdel", "func", "__wrapped__")
            waiting += [getattr(value, part, None) for part in parts] if _wraps(value) else []


def _wraps(value: Any) -> bool:
    """Tell whether a value of a class may hold a function."""
    return hasattr(type(value), "__get__") or callable(value)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _changes(code: CodeType) -> bool:
    """Tell whether code stores a handler, or may do so without naming it."""
    names = set(code.co_names)
    if names & _HIDING:
        return True
    if not names & set(NAMES):
        return False
    import dis

    return any(step.opname == "STORE_ATTR" and step.argval in NAMES for step in dis.get_instructions(code))
