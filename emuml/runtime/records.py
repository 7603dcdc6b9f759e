"""Small typed records of the runtime's own talk: handshake payloads and the content of control frames.

The only module beside ``emuml.message`` that uses a codec. Every decoder here is typed, refuses what it does not
expect with :class:`RecordError`, and reads at most what the caller has limited before: 4 KiB of a handshake record,
1 MiB of a control frame. Handshake maps ignore unknown keys, so that later versions can add some.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from emuml.errors import EmumlError

__all__ = ["AcceptorHello", "Auth", "Control", "Credit", "DialerHello", "Goodbye", "Ping", "Plain", "Pong", "Record",
           "RecordError", "Reject", "Software", "Welcome", "decode_control", "decode_plain", "decode_record",
           "encode_control", "encode_plain", "encode_record"]  # fmt: skip

Plain: TypeAlias = bool | int | float | str | bytes | list["Plain"] | dict[str, "Plain"] | None
"""What EVENT and FAULT frames carry: plain data, to be checked by whoever reads it."""

TEXT_BYTES_MAX = 64
TAG_BYTES_MAX = 32
U64_MAX = (1 << 64) - 1


class RecordError(EmumlError):
    """Bytes that are not the record expected here; the text says why."""


class Software(msgspec.Struct, frozen=True):
    """Versions of one side, for diagnosis only: differences warn and never refuse."""

    emuml: str = ""
    python: str = ""
    numpy: str = ""
    msgspec: str = ""
    os: str = ""
    machine: str = ""
    byteorder: str = ""


class DialerHello(msgspec.Struct, frozen=True):
    """What the dialer says of itself before it is believed.

    ``role`` is node, supervisor, coordinator or client; ``incarnation`` 0 asks for one; ``session`` is ``None`` on the
    first lane; ``received`` is the highest DATA frame that arrived whole; ``window`` and ``message_max`` are bytes;
    ``schema`` is 16 zero bytes if no protocol messages will be sent.
    """

    run: str
    node: str
    role: str
    incarnation: int
    boot: bytes
    nonce: bytes
    lane: str
    session: bytes | None
    received: int
    window: int
    message_max: int
    schema: bytes
    messages: dict[str, bytes]
    software: Software
    features: list[str]


class AcceptorHello(msgspec.Struct, frozen=True):
    """What the acceptor says to anybody: nothing that would help a stranger."""

    nonce: bytes
    emuml: str
    schema: bytes
    messages: dict[str, bytes]
    features: list[str]


class Auth(msgspec.Struct, frozen=True):
    """The dialer's proof that it knows the secret; empty where certificates stand for it."""

    tag: bytes


class Welcome(msgspec.Struct, frozen=True):
    """The acceptor's proof, and the terms of the session. Fields as in :class:`DialerHello`."""

    tag: bytes
    version: int
    node: str
    incarnation: int
    boot: bytes
    session: bytes
    received: int
    window: int
    message_max: int
    features: list[str]
    software: Software


class Reject(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why the connection is refused: a code, the values that disagree, and what to do. No hint, no key."""

    code: str
    text: str
    hint: str = ""


Record: TypeAlias = DialerHello | AcceptorHello | Auth | Welcome | Reject

# Lengths in bytes of byte strings; None means: of any length that fits.
_LENGTHS = {"boot": 16, "nonce": 32, "session": 16, "schema": 16}

R = TypeVar("R", DialerHello, AcceptorHello, Auth, Welcome, Reject)
T = TypeVar("T")


def encode_record(record: Record) -> bytes:
    """Return the payload of a handshake record (msgpack map).

    Raises
    ------
    RecordError
        If a field is longer than the peer would accept.
    """
    if not isinstance(record, Reject):
        _check_limits(record)
    return msgspec.msgpack.encode(record)


def decode_record(payload: bytes | memoryview, kind: type[R]) -> R:
    """Return the handshake record of class ``kind``.

    Raises
    ------
    RecordError
        If a field is missing, of another type, or too long.
    """
    record: R = _decode(_RECORD_CODECS[kind], payload)
    if not isinstance(record, Reject):
        _check_limits(record)
    return record


class Credit(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Flow control: bytes the receiver has consumed since the session began, and its window, both absolute."""

    consumed_bytes: int
    window: int


class Ping(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A sign of life that asks for one; ``t_ns`` is the sender's own clock in nanoseconds."""

    t_ns: int


class Pong(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The answer: the asker's ``t_ns``, and when the ping came and this left on the answerer's clock, nanoseconds."""

    t_ns: int
    received_ns: int
    sent_ns: int


class Goodbye(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The last frame of a session that ends on purpose: a reason from a fixed list and a sentence for people."""

    reason: str
    text: str


Control: TypeAlias = Credit | Ping | Pong | Goodbye

C = TypeVar("C", Credit, Ping, Pong, Goodbye)


def encode_control(body: Control) -> bytes:
    """Return the meta of a control frame."""
    return msgspec.msgpack.encode(body)


def decode_control(meta: bytes | bytearray | memoryview, kind: type[C]) -> C:
    """Return the content of a control frame of class ``kind``.

    Raises
    ------
    RecordError
        If it is anything else, or a number is negative.
    """
    body: C = _decode(_CONTROL_CODECS[kind], meta)
    for name in kind.__struct_fields__:
        value = getattr(body, name)
        if isinstance(value, int) and value < 0:
            raise RecordError(f"{kind.__name__}.{name}: expected a count >= 0, got {value}")
    return body


def encode_plain(value: Plain) -> bytes:
    """Return the meta of an EVENT or FAULT frame.

    Raises
    ------
    RecordError
        If the value is not plain data.
    """
    _check_plain(value)
    try:
        return msgspec.msgpack.encode(value)
    except (ValueError, OverflowError, RecursionError) as error:
        raise RecordError(f"cannot be encoded: {error}") from None


def decode_plain(meta: bytes | bytearray | memoryview) -> Plain:
    """Return the plain data of an EVENT or FAULT frame.

    Raises
    ------
    RecordError
        If it is no well-formed msgpack of plain data with text keys.
    """
    value = _decode(_PLAIN_CODEC, meta)
    _check_plain(value)
    return cast(Plain, value)


def _check_plain(value: object) -> None:
    pending = [value]
    while pending:
        item = pending.pop()
        if type(item) is dict and all(type(key) is str for key in item):
            pending.extend(item.values())
        elif type(item) is list:
            pending.extend(item)
        elif type(item) not in _PLAIN_TYPES:
            raise RecordError(f"a {type(item).__name__} is no plain data")


def _decode(codec: msgspec.msgpack.Decoder[T], data: bytes | bytearray | memoryview) -> T:
    try:
        return codec.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        # Deep nesting raises RecursionError, and broken text UnicodeDecodeError, a ValueError.
        raise RecordError(f"{type(error).__name__}: {error}") from None


def _check_limits(record: Record | Software) -> None:
    for name in record.__struct_fields__:
        problem = _problem_of(name, getattr(record, name))
        if problem:
            raise RecordError(f"{name}: {problem}")


def _problem_of(name: str, value: object) -> str:
    """Return what is wrong with the value of a handshake field, or an empty string."""
    match value:
        case Software():
            _check_limits(value)
        case str() if len(value.encode()) > TEXT_BYTES_MAX:
            return f"expected at most {TEXT_BYTES_MAX} bytes"
        case bytes() if name in _LENGTHS and len(value) != _LENGTHS[name]:
            return f"expected {_LENGTHS[name]} bytes, got {len(value)}"
        case bytes() if len(value) > TEXT_BYTES_MAX:
            return f"expected at most {TEXT_BYTES_MAX} bytes, got {len(value)}"
        case int() if not 0 <= value <= U64_MAX:
            return f"expected 0 to 2**64 - 1, got {value}"
        case list() if any(len(str(item).encode()) > TEXT_BYTES_MAX for item in value):
            return f"expected at most {TEXT_BYTES_MAX} bytes each"
        case dict() if any(len(tag.encode()) > TAG_BYTES_MAX or len(digest) != 8 for tag, digest in value.items()):
            return f"expected tags of at most {TAG_BYTES_MAX} bytes with digests of 8 bytes"
    return ""


_RECORD_CODECS: dict[type, Any] = {
    kind: msgspec.msgpack.Decoder(kind) for kind in (DialerHello, AcceptorHello, Auth, Welcome, Reject)
}
_CONTROL_CODECS: dict[type, Any] = {kind: msgspec.msgpack.Decoder(kind) for kind in (Credit, Ping, Pong, Goodbye)}
_PLAIN_CODEC = msgspec.msgpack.Decoder()
_PLAIN_TYPES = (type(None), bool, int, float, str, bytes)
