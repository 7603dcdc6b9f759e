r"""The first bytes of a connection: what a stranger looks like, the preamble, and the framing of handshake records.

Everything here works on at most 4 KiB, knows no secret and decodes no payload.

Preamble, 16 bytes little-endian: ``EMUML\0``, least and greatest version (1 byte each), flags (4 bytes, 0), CRC32C of
the first 12. Record: kind, 0, length (2 bytes, at most 4096), payload, CRC32C of all before.
"""

from __future__ import annotations

import struct
from enum import Enum, IntEnum

from crc32c import crc32c

from emuml.errors import EmumlError

__all__ = ["MAGIC", "PAYLOAD_BYTES_MAX", "PREAMBLE_BYTES", "VERSIONS", "Greeting", "Misread", "RecordKind",
           "check_record", "common_version", "describe", "greeting_of", "http_answer", "parse_preamble",
           "parse_record_head", "preamble", "record_bytes"]  # fmt: skip

MAGIC = b"EMUML\0"
PREAMBLE_BYTES = 16
PAYLOAD_BYTES_MAX = 4096
VERSIONS = (1, 1)
"""Least and greatest version of the wire format that this package speaks."""

RECORD_HEAD = struct.Struct("<BBH")
_PREAMBLE = struct.Struct("<6sBBI")
_CHECKSUM = struct.Struct("<I")

_TLS_HANDSHAKE = 0x16
_TLS_ALERT = 0x15


class Misread(EmumlError):
    """The peer's bytes break the handshake.

    Parameters
    ----------
    code : str
        REJECT code.
    text : str
        What is wrong, with values.
    hint : str
        What to do.
    """

    def __init__(self, code: str, text: str, hint: str = "") -> None:
        super().__init__(code, text, hint)
        self.code, self.text, self.hint = code, text, hint

    def __str__(self) -> str:
        return f"{self.code}: {self.text}{'; ' if self.hint else ''}{self.hint}"


class RecordKind(IntEnum):
    """The first byte of a handshake record."""

    HELLO = 0x81
    AUTH = 0x82
    WELCOME = 0x83
    REJECT = 0x84


class Greeting(Enum):
    """What the first byte of a connection says about who is there."""

    EMUML = "emuml"
    TLS = "TLS"
    HTTP = "HTTP"
    REJECT = "a refusal"
    OTHER = "something else"


def greeting_of(first: int) -> Greeting:
    """Return who begins with this byte; one byte is enough, so that a listener never waits for a second.

    Examples
    --------
    >>> greeting_of(b"E"[0]), greeting_of(0x16), greeting_of(b"G"[0])
    (<Greeting.EMUML: 'emuml'>, <Greeting.TLS: 'TLS'>, <Greeting.HTTP: 'HTTP'>)
    """
    if first == MAGIC[0]:
        return Greeting.EMUML
    if first in (_TLS_HANDSHAKE, _TLS_ALERT):
        return Greeting.TLS
    if first == RecordKind.REJECT:
        return Greeting.REJECT
    return Greeting.HTTP if first in b"GPH" else Greeting.OTHER


def describe(start: bytes) -> str:
    r"""Return what a connection that begins with ``start`` looks like, for a log line.

    Examples
    --------
    >>> describe(b"SSH-2.0-OpenSSH_9.6"), describe(bytes(3))
    ('an SSH client', "unknown bytes b'\\x00\\x00\\x00'")
    """
    match greeting_of(start[0]) if start else Greeting.OTHER:
        case Greeting.TLS:
            return "TLS"
        case Greeting.HTTP:
            return "HTTP"
    if start.startswith(b"SSH-"):
        return "an SSH client"
    return f"unknown bytes {start[:16]!r}"


def http_answer() -> bytes:
    """Return what a browser or a health check that came to this port is told."""
    sentence = b"This port speaks the emuml protocol, not HTTP.\n"
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {len(sentence)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + sentence


def preamble(versions: tuple[int, int] = VERSIONS) -> bytes:
    """Return the preamble of a side that speaks ``versions`` (least, greatest; 0 to 255).

    Examples
    --------
    >>> preamble((1, 1)).hex()
    '454d554d4c00010100000000a2894910'
    """
    fields = _PREAMBLE.pack(MAGIC, *versions, 0)
    return fields + _CHECKSUM.pack(crc32c(fields))


def parse_preamble(data: bytes) -> tuple[int, int]:
    """Return the versions (least, greatest) of 16 bytes.

    Raises
    ------
    Misread
        ``not_emuml`` or ``malformed``.
    """
    magic, least, greatest, flags = _PREAMBLE.unpack_from(data)
    (announced,) = _CHECKSUM.unpack_from(data, _PREAMBLE.size)
    found = crc32c(data[: _PREAMBLE.size])
    if magic != MAGIC:
        raise Misread("not_emuml", f"the connection begins with {magic!r}, not {MAGIC!r}", "is this the right port?")
    if announced != found:
        raise Misread("malformed", f"preamble checksum {announced:08x}, computed {found:08x}")
    if flags or least > greatest:
        raise Misread("malformed", f"preamble with flags {flags:#x} and versions {least} to {greatest}")
    return least, greatest


def common_version(mine: tuple[int, int], theirs: tuple[int, int]) -> int | None:
    """Return the highest version in both ranges, or ``None``."""
    greatest = min(mine[1], theirs[1])
    return greatest if greatest >= max(mine[0], theirs[0]) else None


def record_bytes(kind: RecordKind, payload: bytes) -> bytes:
    """Return a handshake record.

    Raises
    ------
    ValueError
        If the payload is longer than 4096 bytes.
    """
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise ValueError(f"{kind.name} of {len(payload)} bytes; at most {PAYLOAD_BYTES_MAX} are allowed")
    body = RECORD_HEAD.pack(kind, 0, len(payload)) + payload
    return body + _CHECKSUM.pack(crc32c(body))


def parse_record_head(head: bytes) -> tuple[int, int]:
    """Return kind and payload length of the first 4 bytes of a record.

    Raises
    ------
    Misread
        ``too_large`` or ``malformed``; nothing more should be read then.
    """
    kind, reserved, length = RECORD_HEAD.unpack(head)
    if length > PAYLOAD_BYTES_MAX:
        raise Misread("too_large", f"handshake record of {length} bytes, at most {PAYLOAD_BYTES_MAX} are allowed")
    if reserved:
        raise Misread("malformed", f"reserved byte of a handshake record is {reserved}")
    return kind, length


def check_record(record: bytes) -> None:
    """Raise ``Misread`` unless a whole record ends with its checksum."""
    (announced,) = _CHECKSUM.unpack_from(record, len(record) - _CHECKSUM.size)
    found = crc32c(record[: -_CHECKSUM.size])
    if announced != found:
        raise Misread("malformed", f"handshake record checksum {announced:08x}, computed {found:08x}")
