"""Canonical specs: plain data from which an equal declaration can be rebuilt anywhere, and checks of declarations.

A declaration is a frozen dataclass whose fields are numbers, strings, booleans, ``None``, tuples, arrays and other
declarations. Its spec is ``{"kind": name, field: value, ...}`` with every field written out; arrays become
``{"input": sha256}`` and travel beside it. Node processes rebuild experiments from specs, so nothing here is heavy.
"""

from __future__ import annotations

import hashlib
import operator
import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import annotated_types
import numpy as np
from numpy.typing import NDArray

from emuml import names
from emuml.errors import FormatError, UserError

Spec = dict[str, Any]


class Inputs:
    """Arrays of an experiment by the SHA-256 of their content (dtype, shape and bytes)."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def add(self, array: NDArray[Any]) -> str:
        """Keep an array and return its digest."""
        digest = array_digest(array)
        self.arrays.setdefault(digest, array)
        return digest

    def get(self, digest: str) -> NDArray[Any]:
        """Return the array with this digest."""
        return self.arrays[digest]

    def write(self, folder: Path) -> None:
        """Write every array to ``folder/<sha256>.npy``."""
        folder.mkdir(parents=True, exist_ok=True)
        for digest, array in self.arrays.items():
            path = folder / f"{digest}.npy"
            if not path.exists():
                np.save(path, array, allow_pickle=False)


class InputFolder(Inputs):
    """Inputs in a folder, memory-mapped read-only when asked for.

    Parameters
    ----------
    folder : Path
    verify : bool
        Whether each file must have the digest that it is named by. Nodes trust what their launcher wrote a moment ago.
    """

    def __init__(self, folder: Path, verify: bool = False) -> None:
        super().__init__()
        self.folder, self._verify = folder, verify

    def get(self, digest: str) -> NDArray[Any]:
        """Return the array, mapped from its file."""
        if digest not in self.arrays:
            path = self.folder / f"{digest}.npy"
            if not path.is_file():
                raise FormatError(f"input {digest} is missing", str(self.folder))
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            if self._verify and array_digest(array) != digest:
                raise FormatError(f"input {digest} was changed: its content has another digest", str(self.folder))
            self.arrays[digest] = array
        return self.arrays[digest]


def array_digest(array: NDArray[Any]) -> str:
    """Return the SHA-256 over dtype, shape and C-ordered bytes of an array."""
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def to_spec(value: Any, inputs: Inputs) -> Any:
    """Return the canonical spec of a declaration (or of a value in one); arrays go into ``inputs``.

    Raises
    ------
    UserError
        If a value has no spec.
    """
    if is_dataclass(value) and not isinstance(value, type):
        spec: Spec = {"kind": names.kind_of(type(value))}
        for field in fields(value):
            if field.init:
                spec[field.name] = to_spec(getattr(value, field.name), inputs)
        return spec
    if isinstance(value, np.ndarray):
        return {"input": inputs.add(value)}
    if isinstance(value, (tuple, list)):
        return [to_spec(item, inputs) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise UserError(
        f"{type(value).__name__} has no canonical spec", allowed="frozen dataclasses, numbers, text, arrays"
    )


def from_spec(spec: Any, inputs: Inputs) -> Any:
    """Rebuild what :func:`to_spec` described.

    Raises
    ------
    FormatError
        If the kind is unknown to this version or not a declaration.
    """
    if isinstance(spec, Mapping):
        if "input" in spec:
            return inputs.get(spec["input"])
        cls = class_of(spec["kind"])
        return cls(**{name: from_spec(value, inputs) for name, value in spec.items() if name != "kind"})
    if isinstance(spec, (list, tuple)):
        return tuple(from_spec(item, inputs) for item in spec)
    return spec


def class_of(kind: str) -> Any:
    """Return the declaration class of a kind: a registered name, or ``module:Class`` of an installed module."""
    family = names.family_of(kind)
    if family is not None:
        return names.resolve(family, kind)
    if ":" not in kind:
        raise FormatError(f"{kind!r} is unknown to this version", "spec")
    found = names.load(kind)
    if not is_dataclass(found):
        raise FormatError(f"{kind!r} is not a declaration", "spec", "frozen dataclasses")
    return found


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def check(declaration: Any) -> None:
    """Check the simple types and ``Annotated`` bounds of a frozen dataclass; call it in ``__post_init__``.

    Whole numbers given for ``float`` fields become floats, numpy scalars become Python numbers and lists become
    tuples, so that equal declarations have equal specs.

    Raises
    ------
    UserError
        Naming the field, the value and what is allowed.
    """
    cls = type(declaration)
    hints: dict[str, Any] = _hints(cast("Hashable", cls))
    for field in fields(declaration):
        value = getattr(declaration, field.name)
        normal = checked(value, hints[field.name], f"{cls.__name__}.{field.name}")
        if normal is not value:
            object.__setattr__(declaration, field.name, normal)


def checked(value: Any, hint: Any, where: str) -> Any:
    """Return ``value`` in the form that ``hint`` asks for, or raise :class:`UserError`."""
    origin = get_origin(hint)
    if origin is Annotated:
        base, *bounds = get_args(hint)
        value = checked(value, base, where)
        for bound in bounds:
            _check_bound(value, bound, where)
        return value
    if origin in (Union, types.UnionType):
        return _checked_union(value, get_args(hint), where)
    if origin is Literal:
        if value not in get_args(hint):
            raise UserError(f"got {value!r}", where, " | ".join(map(repr, get_args(hint))))
        return value
    if origin is tuple and isinstance(value, (tuple, list)):
        return _checked_tuple(value, get_args(hint), where)
    return _checked_plain(value, hint, origin, where)


def _checked_union(value: Any, options: tuple[Any, ...], where: str) -> Any:
    failures: list[UserError] = []
    for option in sorted(options, key=lambda option: option is not type(None)):
        try:
            return checked(value, option, where)
        except UserError as error:
            failures.append(error)
    raise failures[-1]


def _checked_tuple(value: Any, items: tuple[Any, ...], where: str) -> Any:
    if len(items) == 2 and items[1] is Ellipsis:
        items = (items[0],) * len(value)
    if len(items) != len(value):
        raise UserError(f"got {len(value)} items", where, f"{len(items)} items")
    normal = tuple(
        checked(item, hint, f"{where}[{i}]") for i, (item, hint) in enumerate(zip(value, items, strict=True))
    )
    return value if isinstance(value, tuple) and all(a is b for a, b in zip(value, normal, strict=True)) else normal


def _checked_plain(value: Any, hint: Any, origin: Any, where: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    wanted = origin if isinstance(origin, type) else hint
    if wanted is Any or not isinstance(wanted, type) or wanted is object:
        return value
    if wanted in (int, float) and isinstance(value, bool):
        raise UserError(f"got {value!r}", where, "an integer" if wanted is int else "a number")
    if getattr(wanted, "_is_protocol", False):
        if isinstance(value, type) or not all(hasattr(value, name) for name in _members(wanted)):
            raise UserError(f"got {value!r}", where, f"an object of the kind {wanted.__name__}")
        return value
    if isinstance(value, wanted):
        return value
    allowed = {int: "an integer", float: "a number", str: "text", bool: "true or false"}.get(wanted, wanted.__name__)
    raise UserError(f"got {value!r}", where, allowed)


_BOUNDS: dict[type, tuple[Callable[[Any, Any], bool], str, str]] = {
    annotated_types.Gt: (operator.gt, "gt", "> "),
    annotated_types.Ge: (operator.ge, "ge", ">= "),
    annotated_types.Lt: (operator.lt, "lt", "< "),
    annotated_types.Le: (operator.le, "le", "<= "),
}


def _members(protocol: Any) -> set[str]:
    """Return the names that an object of a typing protocol has."""
    bases = (base for base in protocol.__mro__ if getattr(base, "_is_protocol", False))
    return {name for base in bases for name in vars(base) if not name.startswith("_")}


def _check_bound(value: Any, bound: Any, where: str) -> None:
    if value is None or type(bound) not in _BOUNDS:
        return
    test, attribute, sign = _BOUNDS[type(bound)]
    limit = getattr(bound, attribute)
    if not test(value, limit) or value != value or value in (float("inf"), float("-inf")):
        raise UserError(f"got {value!r}", where, f"a finite number {sign}{limit:g}")
