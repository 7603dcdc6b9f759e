"""Messages: what nodes send each other, checked when made, fixed when sent, one codec for size and wire.

Invariants:

1. A message is accepted only if ``decode(encode(message))`` gives it back by value *and* type. So a numpy scalar in an
   ``int`` field, an ``int`` in a ``float`` field or a ``True`` in an ``int`` field is an error, not a conversion.
2. ``size_bytes`` is what the message takes on the wire, and never evaluates a deferred result.
3. Bytes from outside are checked completely before an array is allocated; no pickle, no import by name.

Only this module and ``emuml.runtime.records`` use a codec. Nothing here opens, sends or schedules.
"""

from __future__ import annotations

import math
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from emuml._kernels import message_checks
from emuml.errors import EmumlError, MessageError
from emuml.fields import (
    DIMENSIONS_MAX,
    LITTLE_DTYPES,
    Plan,
    freeze_array,
    freeze_struct,
    is_little,
    tag_of,
    type_name,
)
from emuml.lazy import Deferred
from emuml.plans import analysed, check_fields, fingerprint, planned

__all__ = ["Array", "DecodeError", "Decoder", "Encoded", "Message", "Outline", "chunks", "decode", "digest", "encode",
           "freeze", "freeze_array", "seal", "size_bytes", "wire_bytes"]  # fmt: skip

Array: TypeAlias = NDArray[Any]
"""Annotation of an array field of any allowed dtype; ``NDArray[np.float64]`` allows one dtype only."""

Outline: TypeAlias = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and dtype of an array."""

HEADER_BYTES = 40
CHUNK_BYTES = 1 << 20
META_BYTES_MAX = 1 << 20
SEGMENTS_MAX = 4096

_FROM_WIRE = {dtype.str: dtype for dtype in LITTLE_DTYPES}
# Stands in for an array until all is checked; of its dtype, because the construction of a message checks that.
_STAND_INS = {dtype: np.empty(0, dtype) for dtype in LITTLE_DTYPES}
_ON_WIRE = {form: dtype.str for dtype in LITTLE_DTYPES for form in (dtype, dtype.newbyteorder(">"))}

M = TypeVar("M", bound="Message")


class DecodeError(EmumlError):
    """Bytes that are no message of the expected types; the text says why."""


# Says to type checkers what the options below mean at run time: subclasses are frozen without saying so.
@typing.dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Message(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Base of all messages: an immutable record with typed fields, tagged with its class name.

    Fields are ``int``, ``float``, ``str``, ``bool``, ``bytes``, ``Array``, ``list[T]``, ``tuple[...]``,
    ``dict[str, T]``, ``T | None`` and frozen structs of these. Messages are equal if their encoded bytes are.

    Raises
    ------
    MessageError
        At construction, if a value would not come back from the wire with the same value and type: names class and
        field, the value's type, and what is allowed.

    Examples
    --------
    >>> class Gradient(Message):
    ...     round: int
    ...     value: Array
    >>> size_bytes(Gradient(7, np.zeros(2)))
    78
    >>> Gradient(np.int64(7), np.zeros(2))
    Traceback (most recent call last):
    emuml.errors.MessageError: Gradient.round: got numpy.int64; allowed: int (-2**63 to 2**64 - 1)
    """

    _plan: ClassVar[Plan | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__post_init__" in cls.__dict__:
            raise MessageError(f"{cls.__name__} defines __post_init__, in which Message checks its fields")
        # Each class its own: a plan inherited from a base would not know the fields added here.
        cls._plan = None

    if typing.TYPE_CHECKING or message_checks is None:

        def __post_init__(self) -> None:
            check_fields(self)

    else:
        __post_init__ = message_checks.check

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = encode(self), encode(other)
        pairs = zip(mine.segments, theirs.segments, strict=False)
        return mine.meta == theirs.meta and all(np.array_equal(_flat(a), _flat(b)) for a, b in pairs)

    def __hash__(self) -> int:
        return digest(self)


class Encoded(NamedTuple):
    """A message as it travels: ``meta`` (msgpack), the C-contiguous little-endian arrays, and their total bytes."""

    meta: bytes
    segments: tuple[Array, ...]
    body_bytes: int


def encode(message: Message) -> Encoded:
    """Return the wire form; arrays are not copied unless they are strided or big-endian. Evaluates deferred results.

    Raises
    ------
    MessageError
        If the content was changed to something a message may not hold, or there is too much of it.
    """
    meta, arrays = _outline(message)
    if not arrays:
        return Encoded(meta, (), 0)
    segments = tuple([_portable(a.value() if isinstance(a, Deferred) else a) for a in arrays])
    return Encoded(meta, segments, sum([segment.nbytes for segment in segments]))


def size_bytes(message: Message) -> int:
    """Return the bytes that the message takes on the wire, without evaluating deferred results."""
    size = -1 if message_checks is None else message_checks.size_bytes(message)
    return measured_bytes(message) if size < 0 else size


def measured_bytes(message: Message) -> int:
    """Return what :func:`size_bytes` does, by encoding all but the arrays.

    Raises
    ------
    MessageError
        If there is too much of it.
    """
    meta, arrays = _outline(message)
    return wire_bytes(len(meta), [math.prod(a.shape) * a.dtype.itemsize for a in arrays]) if arrays else 40 + len(meta)


def wire_bytes(meta_bytes: int, segment_bytes: Iterable[int]) -> int:
    """Return header, meta, segments and a checksum of 4 bytes for each chunk of 1 MiB or less.

    Examples
    --------
    >>> wire_bytes(18, [1 << 26])
    67109178
    """
    return HEADER_BYTES + meta_bytes + sum([size + 4 * -(-size // CHUNK_BYTES) for size in segment_bytes])


def digest(message: Message) -> int:
    """Return CRC32C over the meta and the checksums of all chunks; equal for equal bytes on the wire."""
    encoded = encode(message)
    checksum = crc32c(encoded.meta)
    for segment in encoded.segments:
        for chunk in chunks(segment):
            checksum = crc32c(crc32c(chunk).to_bytes(4, "little"), checksum)
    return checksum


def chunks(segment: Array) -> Iterator[memoryview]:
    """Yield the memory of a C-contiguous array in pieces of 1 MiB, the last one shorter; nothing if it is empty."""
    memory = _flat(segment).data
    if 0 < len(memory) <= CHUNK_BYTES:
        yield memory
        return
    for start in range(0, len(memory), CHUNK_BYTES):
        yield memory[start : start + CHUNK_BYTES]


def freeze(message: M) -> M:
    """Return the message with its content fixed, as ``send`` takes it.

    Arrays are frozen by :func:`freeze_array`; lists and dicts are copied, so each call gives containers of its own
    while arrays stay shared. Returns ``message`` itself when nothing had to be copied.

    Raises
    ------
    MessageError
        If a list or dict was filled with something else since the message was made.
    """
    if message_checks is not None and not message_checks.freezes(message):
        return message
    return freeze_struct(message)


def seal(arrays: Iterable[Array]) -> None:
    """Make arrays from :meth:`Decoder.decode_meta` read-only, once their memory has been filled."""
    for array in arrays:
        array.flags.writeable = False


def decode(encoded: Encoded, kind: type[M]) -> M:
    """Return the message of class ``kind`` that ``encoded`` holds, in memory of its own and read-only.

    Raises
    ------
    DecodeError
        If it holds anything else.
    """
    message, arrays = Decoder([kind]).decode_meta(encoded.meta, len(encoded.segments), encoded.body_bytes)
    for array, segment in zip(arrays, encoded.segments, strict=True):
        array[...] = segment
    seal(arrays)
    return typing.cast(M, message)


class Decoder:
    """Decode the messages of one protocol. Not for two threads at a time.

    Parameters
    ----------
    types : iterable of Message classes
        All that may arrive.

    Attributes
    ----------
    schema : bytes, length 16
        Fingerprint of all tags, field names and types; equal in programs that understand each other.
    message_digests : dict of str to bytes of length 8
        The same for each message, by tag.

    Raises
    ------
    MessageError
        If two classes have one tag, or a field has a forbidden type.
    """

    def __init__(self, types: Iterable[type[Message]]) -> None:
        by_tag: dict[str, type[Message]] = {}
        for kind in types:
            other = by_tag.setdefault(tag_of(kind), kind)
            if other is not kind:
                raise MessageError(f"{other.__module__} and {kind.__module__} both define a message {tag_of(kind)!r}")
            planned(kind)
        self.schema = fingerprint(by_tag.values())[:16]
        self.message_digests = {tag: fingerprint([by_tag[tag]])[:8] for tag in sorted(by_tag)}
        union: Any = typing.Union[tuple(by_tag.values())] if by_tag else None  # noqa: UP007 (of a computed tuple)
        self._codec = msgspec.msgpack.Decoder(union, dec_hook=self._on_array)
        self._outlines: list[Outline] = []
        self._arrays: Iterator[Array] | None = None

    def decode_meta(
        self,
        meta: bytes | bytearray | memoryview,
        n_segments: int,
        body_bytes: int,
        allocate: Callable[[Sequence[Outline]], list[Array]] | None = None,
    ) -> tuple[Message, list[Array]]:
        """Return the message, and its arrays to be filled in this order and then sealed.

        Parameters
        ----------
        meta : bytes-like
            At most 1 MiB; the caller has checked that.
        n_segments, body_bytes : int
            Number of arrays and their total bytes, as announced; the meta must agree.
        allocate : callable
            Gives one array for each (shape, dtype), all at once; called only when everything has been checked, and
            not for a message without arrays. Default: fresh memory.

        Raises
        ------
        DecodeError
            Before anything is allocated.
        """
        self._outlines, self._arrays = [], None
        message = self._decode(meta)
        if not self._outlines and n_segments == 0 == body_bytes:
            return message, []
        total = sum([math.prod(shape) * dtype.itemsize for shape, dtype in self._outlines])
        if (len(self._outlines), total) != (n_segments, body_bytes):
            raise DecodeError(
                f"meta describes {len(self._outlines)} arrays of {total} bytes, "
                f"the frame announces {n_segments} of {body_bytes}"
            )
        arrays = allocate(self._outlines) if allocate else [np.empty(*outline) for outline in self._outlines]
        # Decoding twice (about 1 us) is simpler than writing into frozen structs, and handles nested arrays as well.
        self._arrays = iter(arrays)
        message = self._decode(meta)
        # Or the last message's arrays would live as long as this decoder.
        self._arrays = None
        return message, arrays

    def _decode(self, meta: bytes | bytearray | memoryview) -> Message:
        try:
            message = self._codec.decode(meta)
        except (msgspec.DecodeError, MessageError, ValueError, RecursionError) as error:
            raise DecodeError(f"{type(error).__name__}: {error}") from None
        if message is None:
            raise DecodeError("no messages are expected here")
        return typing.cast(Message, message)

    def _on_array(self, annotation: Any, outline: Any) -> Array:
        if self._arrays is not None:
            return next(self._arrays)
        shape, dtype = _checked_outline(outline)
        self._outlines.append((shape, dtype))
        stand_in = _STAND_INS.get(dtype)
        return np.empty(0, dtype) if stand_in is None else stand_in


def _checked_outline(outline: Any) -> Outline:
    """Return shape and dtype of an array on the wire; raise ValueError for what must not be allocated."""
    # Exact checks in place of a match statement: this runs for every array that arrives.
    if type(outline) is not list or len(outline) != 2 or type(outline[0]) is not str or type(outline[1]) is not list:
        raise ValueError("expected [dtype, [dimensions]] of an array")
    code, dims = outline
    dtype = _FROM_WIRE.get(code) or _void_of(code)
    least = dtype.itemsize
    for dim in dims:
        if type(dim) is not int or dim < 0:
            raise ValueError(f"array dimension {dim!r:.40}; allowed: integers >= 0")
        # numpy refuses what would be too large without its zeros, so those count as 1 here.
        least *= dim or 1
    if len(dims) > DIMENSIONS_MAX or least > sys.maxsize:
        raise ValueError(f"array of {len(dims)} dimensions and at least {least} bytes is too large")
    return tuple(dims), dtype


def _void_of(code: str) -> np.dtype[Any]:
    width = code[2:]
    # At most 9 digits: wider items do not fit numpy's C int. isdecimal alone would accept other scripts' digits.
    if code[:2] != "|V" or not (width.isascii() and width.isdecimal()) or width[0] == "0" or len(width) > 9:
        raise ValueError(f"array dtype {code!r:.40}; allowed: {', '.join(_FROM_WIRE)}, and |V1 to |V999999999")
    return np.dtype(code)


def _outline(message: Message) -> tuple[bytes, list[Array | Deferred]]:
    """Return the meta and the arrays of a message in depth-first field order."""
    arrays: list[Array | Deferred] = []

    def describe(value: Any) -> tuple[str, tuple[int, ...]]:
        if type(value) is not np.ndarray and not isinstance(value, Deferred):
            raise TypeError(f"it holds a {type_name(value)}")
        arrays.append(value)
        return _ON_WIRE.get(value.dtype) or value.dtype.str, value.shape

    try:
        meta = msgspec.msgpack.encode(message, enc_hook=describe)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise MessageError(f"{type(message).__name__} cannot be encoded: {error}") from None
    if len(meta) > META_BYTES_MAX or len(arrays) > SEGMENTS_MAX:
        raise MessageError(
            f"{type(message).__name__} has {len(meta)} bytes beside its {len(arrays)} arrays; allowed: "
            f"{META_BYTES_MAX} bytes and {SEGMENTS_MAX} arrays (put many numbers into one array)"
        )
    return meta, arrays


def _flat(array: Array) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _portable(array: Array) -> Array:
    if array.flags.c_contiguous and is_little(array.dtype):
        return array
    # Not ascontiguousarray: it makes a 0-d array 1-d.
    return np.array(array, dtype=array.dtype.newbyteorder("<"), order="C", copy=True)


if message_checks is not None:
    message_checks.configure(
        analysed, check_fields, np.ndarray, Deferred, lambda dtype: _ON_WIRE.get(dtype) or dtype.str
    )
