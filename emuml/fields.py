"""What the fields of a message may hold: the closed grammar of annotations, their checks, and how values are frozen.

A value is accepted only if it comes back from the wire by value *and* type, so subclasses, numpy scalars in ``int``
or ``float`` fields and an ``int`` in a ``float`` field are refused: nothing is converted silently. A class is analysed
when it is first used; a forbidden annotation is an error that names class and field.

This module knows neither bytes nor frames; ``emuml.message`` does.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from emuml.errors import MessageError
from emuml.lazy import Deferred
from emuml.memory import is_settled

__all__ = ["DIMENSIONS_MAX", "LITTLE_DTYPES", "TAG_BYTES_MAX", "Kind", "Plan", "freeze_array", "freeze_struct",
           "is_little", "plan_of", "tag_of", "type_name"]  # fmt: skip

TAG_BYTES_MAX = 32
DIMENSIONS_MAX = 32

# Widths that every platform agrees on: long double is 10, 12 or 16 bytes, and objects, texts and dates are no numbers.
LITTLE_DTYPES = tuple(
    np.dtype(kind + width)
    for kind, widths in {"?": [""], "<i": "1248", "<u": "1248", "<f": "248", "<c": ["8", "16"]}.items()
    for width in widths
)
_LITTLE = frozenset(LITTLE_DTYPES)

_GRAMMAR = "int, float, str, bool, bytes, Array, list[T], tuple[...], dict[str, T], T | None, or a frozen Struct"
_ANY_DTYPE = "numpy.ndarray of bool, integers, float16 to float64, complex64, complex128, or plain V of fixed width"

S = TypeVar("S", bound=msgspec.Struct)


class Kind:
    """What one annotation allows.

    Attributes
    ----------
    name : str
        The type in the schema of a protocol.
    exact, accepts : type and callable or None
        A fast check: a value of exactly this type that ``accepts`` likes needs no :meth:`check`.
    freezes : bool
        Whether freezing may give another object.
    structs : tuple of Struct classes
        Those that the annotation mentions.
    """

    # No value of a message is an Ellipsis, so by default everything takes the slow path.
    exact: type = type(Ellipsis)
    accepts: Callable[[Any], bool] | None = None
    freezes = False
    structs: tuple[type[msgspec.Struct], ...] = ()

    def __init__(self, name: str, allowed: str = "") -> None:
        self.name, self.allowed = name, allowed or name

    def check(self, value: Any, where: str) -> None:
        """Raise MessageError unless ``value`` may stand at ``where``."""
        if type(value) is not self.exact:
            raise MessageError(f"{where}: got {type_name(value)}; allowed: {self.allowed}")
        if self.accepts is not None and not self.accepts(value):
            raise MessageError(f"{where}: got {type_name(value)} {value!a:.60}; allowed: {self.allowed}")

    def freeze(self, value: Any) -> Any:
        """Return ``value`` so that its sender cannot change it any more."""
        return value


class _Scalar(Kind):
    def __init__(self, exact: type, accepts: Callable[[Any], bool] | None = None, allowed: str = "") -> None:
        super().__init__(exact.__name__, allowed)
        self.exact, self.accepts = exact, accepts


def _is_wire_int(value: int) -> bool:
    return -0x8000000000000000 <= value <= 0xFFFFFFFFFFFFFFFF


def _is_wire_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


_SCALARS: dict[Any, Kind] = {
    int: _Scalar(int, _is_wire_int, "int (-2**63 to 2**64 - 1)"),
    float: _Scalar(float),
    bool: _Scalar(bool),
    str: _Scalar(str, _is_wire_text, "str without lone surrogates"),
    bytes: _Scalar(bytes),
}


class _ArrayKind(Kind):
    exact = np.ndarray
    freezes = True

    def __init__(self, scalar: type[np.generic] | None) -> None:
        super().__init__("ndarray" if scalar is None else f"ndarray:{scalar.__name__}")
        self.allowed = _ANY_DTYPE if scalar is None else f"numpy.ndarray of {scalar.__name__}"
        self.scalar = np.generic if scalar is None else scalar
        little = [dtype for dtype in LITTLE_DTYPES if issubclass(dtype.type, self.scalar)]
        self.dtypes = frozenset([form for dtype in little for form in (dtype, dtype.newbyteorder(">"))])
        self.accepts = self._accepts

    def _accepts(self, array: Any) -> bool:
        return (array.dtype in self.dtypes or self._is_plain_void(array.dtype)) and len(array.shape) <= DIMENSIONS_MAX

    def _is_plain_void(self, dtype: np.dtype[Any]) -> bool:
        # The last condition refuses dtypes of other packages that pose as void, such as bfloat16.
        if dtype.kind != "V" or dtype.names is not None or dtype.itemsize == 0 or not issubclass(np.void, self.scalar):
            return False
        return np.dtype(dtype.str) == dtype

    def check(self, value: Any, where: str) -> None:
        if type(value) is not np.ndarray and not isinstance(value, Deferred):
            raise MessageError(f"{where}: got {type_name(value)}; allowed: {self.allowed}")
        if not self._accepts(value):
            got = f"an array of {value.dtype} with {len(value.shape)} dimensions"
            raise MessageError(f"{where}: got {got}; allowed: {self.allowed}, at most {DIMENSIONS_MAX} dimensions")

    def freeze(self, value: Any) -> Any:
        return freeze_array(value)


class _Optional(Kind):
    def __init__(self, inner: Kind) -> None:
        super().__init__(f"{inner.name}|null", f"{inner.allowed}, or None")
        self.inner, self.structs = inner, inner.structs
        self.exact, self.accepts, self.freezes = inner.exact, inner.accepts, inner.freezes

    def check(self, value: Any, where: str) -> None:
        if value is None:
            return
        try:
            self.inner.check(value, where)
        except MessageError as error:
            raise MessageError(f"{error}, or None") from None

    def freeze(self, value: Any) -> Any:
        return None if value is None else self.inner.freeze(value)


class _Sequence(Kind):
    """``list[T]`` and ``tuple[T, ...]``."""

    def __init__(self, sequence: type[list[Any]] | type[tuple[Any, ...]], inner: Kind) -> None:
        super().__init__(f"list[{inner.name}]" if sequence is list else f"tuple[{inner.name},...]")
        self.sequence, self.inner, self.structs = sequence, inner, inner.structs
        self.freezes = sequence is list or inner.freezes

    def check(self, value: Any, where: str) -> None:
        if type(value) is not self.sequence:
            raise MessageError(f"{where}: got {type_name(value)}; allowed: {self.allowed}")
        exact, accepts = self.inner.exact, self.inner.accepts
        for position, item in enumerate(value):
            if type(item) is not exact or (accepts is not None and not accepts(item)):
                self.inner.check(item, f"{where}[{position}]")

    def freeze(self, value: Any) -> Any:
        if not self.inner.freezes:
            return self.sequence(value)
        frozen = [self.inner.freeze(item) for item in value]
        if self.sequence is list:
            return frozen
        return value if all(map(_is, frozen, value)) else tuple(frozen)


def _is(a: object, b: object) -> bool:
    return a is b


class _Tuple(Kind):
    """``tuple[A, B]``: of fixed length."""

    def __init__(self, inner: Sequence[Kind]) -> None:
        super().__init__(f"tuple[{','.join(kind.name for kind in inner)}]")
        self.inner = tuple(inner)
        self.structs = tuple(struct for kind in inner for struct in kind.structs)
        self.freezes = any(kind.freezes for kind in inner)

    def check(self, value: Any, where: str) -> None:
        if type(value) is not tuple or len(value) != len(self.inner):
            got = f"{type_name(value)} of length {len(value)}" if type(value) is tuple else type_name(value)
            raise MessageError(f"{where}: got {got}; allowed: {self.allowed}")
        for position, (kind, item) in enumerate(zip(self.inner, value, strict=True)):
            kind.check(item, f"{where}[{position}]")

    def freeze(self, value: Any) -> Any:
        frozen = tuple([kind.freeze(item) for kind, item in zip(self.inner, value, strict=True)])
        return value if all(map(_is, frozen, value)) else frozen


class _Dict(Kind):
    freezes = True

    def __init__(self, inner: Kind) -> None:
        super().__init__(f"dict[str,{inner.name}]")
        self.inner, self.structs = inner, inner.structs

    def check(self, value: Any, where: str) -> None:
        if type(value) is not dict:
            raise MessageError(f"{where}: got {type_name(value)}; allowed: {self.allowed}")
        for key, item in value.items():
            _SCALARS[str].check(key, f"key of {where}")
            self.inner.check(item, f"{where}[{key!r}]")

    def freeze(self, value: Any) -> Any:
        return {key: self.inner.freeze(item) for key, item in value.items()}


class _StructKind(Kind):
    def __init__(self, struct: type[msgspec.Struct]) -> None:
        super().__init__(f"struct:{struct.__name__}", struct.__name__)
        self.structs, self.struct = (struct,), struct
        # Structs may contain themselves, so what their fields need is not asked before the first value.
        self.freezes = True

    def check(self, value: Any, where: str) -> None:
        if type(value) is not self.struct:
            raise MessageError(f"{where}: got {type_name(value)}; allowed: {self.allowed}")
        for name, kind, *_ in plan_of(self.struct).fields:
            kind.check(getattr(value, name), f"{where}.{name}")

    def freeze(self, value: Any) -> Any:
        return freeze_struct(value)


class Field(NamedTuple):
    """One field of a struct, with the fast check of its kind beside it."""

    name: str
    kind: Kind
    exact: type
    accepts: Callable[[Any], bool] | None
    required: bool


class Plan(NamedTuple):
    """How the values of one struct class are checked and frozen, in field order."""

    fields: tuple[Field, ...]
    to_freeze: tuple[tuple[str, Kind], ...]


_PLANS: dict[type[msgspec.Struct], Plan] = {}


def plan_of(struct: type[msgspec.Struct]) -> Plan:
    """Return the plan of a struct class, analysing it the first time.

    Raises
    ------
    MessageError
        If the class is not frozen, or an annotation is outside the grammar; names class and field.
    """
    plan = _PLANS.get(struct)
    if plan is None:
        if not struct.__struct_config__.frozen:
            raise MessageError(f"{struct.__name__} can be changed after it was made; declare it with frozen=True")
        plan = _PLANS[struct] = _analysed(struct)
    return plan


def tag_of(struct: type[msgspec.Struct]) -> str:
    """Return the tag of a message class: its name, at most 32 bytes.

    Raises
    ------
    MessageError
        If the class has no such tag, or is not sent as an array.
    """
    config = struct.__struct_config__
    tag = config.tag
    if not isinstance(tag, str) or not config.array_like or not 0 < len(tag.encode()) <= TAG_BYTES_MAX:
        raise MessageError(f"{struct.__name__}: a message has a tag of 1 to {TAG_BYTES_MAX} bytes and is array-like")
    return tag


def freeze_struct(struct: S) -> S:
    """Return ``struct`` with its arrays frozen and its lists and dicts copied; itself if nothing had to be copied."""
    changes: dict[str, Any] = {}
    for name, kind in plan_of(type(struct)).to_freeze:
        value = getattr(struct, name)
        frozen = kind.freeze(value)
        if frozen is not value:
            changes[name] = frozen
    return msgspec.structs.replace(struct, **changes) if changes else struct


def freeze_array(array: Any) -> Any:
    """Return an array read-only: itself if nobody can legally write to its memory any more, else a copy.

    By reference: an array that owns its memory (its flag is set), a view whose ultimate owner is read-only, memory of
    ``bytes``, a deferred result. Copied: other views, foreign writable memory, what is not C-contiguous or not
    little-endian.

    Examples
    --------
    >>> table = np.zeros(4)
    >>> freeze_array(table[:2]) is table, freeze_array(table) is table, table.flags.writeable
    (False, True, False)
    """
    if isinstance(array, Deferred):
        return array
    flags = array.flags
    if flags.c_contiguous and is_little(array.dtype) and is_settled(array):
        if flags.writeable:
            flags.writeable = False
        return array
    copy = np.array(array, dtype=array.dtype.newbyteorder("<"), order="C", copy=True)
    copy.flags.writeable = False
    return copy


def is_little(dtype: np.dtype[Any]) -> bool:
    """Return whether items are little-endian or of one byte."""
    return dtype in _LITTLE or dtype.str[0] != ">"


def type_name(value: object) -> str:
    """Return the full name of the type of ``value``, without ``builtins``."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _analysed(struct: type[msgspec.Struct]) -> Plan:
    try:
        infos = msgspec.structs.fields(struct)
    except (NameError, TypeError) as error:
        raise MessageError(f"{struct.__name__}: its annotations cannot be read: {error}") from error
    kinds = [_kind_of(info.type, f"{struct.__name__}.{info.name}") for info in infos]
    pairs = zip(infos, kinds, strict=True)
    fields = tuple([Field(info.name, kind, kind.exact, kind.accepts, info.required) for info, kind in pairs])
    return Plan(fields, tuple([(field.name, field.kind) for field in fields if field.kind.freezes]))


def _kind_of(annotation: Any, where: str) -> Kind:
    """Return the kind of an annotation."""
    if isinstance(annotation, type) and annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if hasattr(origin, "__value__"):  # a named alias with parameters: what NDArray is from NumPy 2.5 on
        return _kind_of(origin.__value__[arguments], where)
    if annotation is np.ndarray:
        return _ArrayKind(None)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return _StructKind(annotation)
    if origin is np.ndarray:
        return _array_kind(arguments, annotation, where)
    if origin in (types.UnionType, typing.Union) and len(arguments) == 2 and type(None) in arguments:
        return _Optional(_kind_of(arguments[arguments[0] is type(None)], where))
    if origin is list or (origin is tuple and arguments[1:] == (Ellipsis,)):
        return _Sequence(origin, _kind_of(arguments[0], where))
    if origin is tuple:
        return _Tuple(list(_kinds_of(arguments, where)))
    if origin is dict and arguments[0] is str:
        return _Dict(_kind_of(arguments[1], where))
    raise MessageError(f"{where}: {_annotation_name(annotation)} cannot be sent; allowed: {_GRAMMAR}")


def _kinds_of(annotations: Sequence[Any], where: str) -> Iterator[Kind]:
    for annotation in annotations:
        yield _kind_of(annotation, where)


def _array_kind(arguments: tuple[Any, ...], annotation: Any, where: str) -> Kind:
    """Return the kind of ``NDArray[scalar]``, which is ``ndarray[shape, dtype[scalar]]``."""
    scalars = typing.get_args(arguments[1]) if len(arguments) == 2 else ()
    if not scalars or scalars[0] is Any or isinstance(scalars[0], TypeVar):
        return _ArrayKind(None)
    if isinstance(scalars[0], type) and issubclass(scalars[0], np.generic):
        kind = _ArrayKind(scalars[0])
        if kind.dtypes or scalars[0] is np.void:
            return kind
    raise MessageError(f"{where}: {_annotation_name(annotation)} cannot be sent; allowed: {_ANY_DTYPE}")


def _annotation_name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) and not typing.get_args(annotation) else str(annotation)
