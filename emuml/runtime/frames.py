"""The frame format of the wire, version 1: types, header, what can be wrong, and the bytes of a frame to send.

Header, 40 bytes little-endian: type, flags, n_segments, meta_bytes, seq, ack, body_bytes, stream, CRC32C of all of
these and the meta. Then the meta (msgpack), then the segments in chunks of 1 MiB, each followed by its CRC32C. Flags
and stream are reserved and 0. Reading frames is ``emuml.runtime.wire``'s business.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from crc32c import crc32c

from emuml.errors import EmumlError
from emuml.message import Array, Encoded, Message, chunks
from emuml.runtime import records

__all__ = ["BULK", "CONTROL", "CONTROL_KINDS", "ControlFrame", "Corruption", "DataFrame", "Event", "FrameType",
           "Header", "ProtocolError", "WireError", "control_frame", "encode_frame", "frame_pieces"]  # fmt: skip

HEADER_FIELDS = struct.Struct("<BBHIQQQI")
CHECKSUM = struct.Struct("<I")

# Pieces up to this are joined with their neighbours: a copy is cheaper than another entry of sendmsg.
_JOIN_BYTES_MAX = 4096
_JOINED_BYTES_MAX = 128 << 10


class FrameType(IntEnum):
    """The first byte of a frame."""

    DATA = 1
    CREDIT = 2
    PING = 3
    PONG = 4
    EVENT = 5
    GOODBYE = 6
    FAULT = 7
    SYSTEM = 8


# The frame types of the two lanes of a session; a session with one lane uses their union.
BULK = frozenset({FrameType.DATA})
CONTROL = frozenset(FrameType) - BULK

CONTROL_KINDS: dict[FrameType, Any] = {
    FrameType.CREDIT: records.Credit,
    FrameType.PING: records.Ping,
    FrameType.PONG: records.Pong,
    FrameType.GOODBYE: records.Goodbye,
}
_CONTROL_TYPES: dict[type, FrameType] = {kind: type_ for type_, kind in CONTROL_KINDS.items()}


class WireError(EmumlError):
    """A stream that cannot be read on.

    Parameters
    ----------
    reason : str
        What is wrong, in a few words.
    offset : int
        Byte of the stream at which the frame began.
    values : mapping
        The values that disagree, by name.
    """

    def __init__(self, reason: str, offset: int, values: Mapping[str, int | str]) -> None:
        super().__init__(reason, offset, values)
        self.reason, self.offset, self.values = reason, offset, values

    def __str__(self) -> str:
        values = ", ".join(f"{name} {value}" for name, value in self.values.items())
        return f"{self.reason} (frame at byte {self.offset}{', ' if values else ''}{values})"


class Corruption(WireError):
    """Bytes changed on the way: close the lanes and resume the session."""


class ProtocolError(WireError):
    """The peer sent what it must not: end the session with GOODBYE ``protocol``."""


class Header(NamedTuple):
    """The first 40 bytes of a frame, without reserved fields and checksum."""

    type: FrameType
    n_segments: int
    meta_bytes: int
    seq: int
    ack: int
    body_bytes: int


class DataFrame(NamedTuple):
    """A message arrived whole and checked; its arrays are read-only. ``size_bytes`` is what it took on the wire."""

    seq: int
    ack: int
    message: Message
    size_bytes: int


class ControlFrame(NamedTuple):
    """Anything but DATA. ``body``: a record of its type; a Message (SYSTEM); plain data (EVENT, FAULT)."""

    type: FrameType
    ack: int
    body: records.Control | Message | records.Plain


Event: TypeAlias = DataFrame | ControlFrame | Corruption | ProtocolError


def frame_pieces(
    kind: FrameType, meta: bytes, segments: Iterable[Array] = (), seq: int = 0, ack: int = 0
) -> Iterator[bytes | bytearray | memoryview]:
    """Yield the bytes of a frame, chunks straight from array memory, small pieces joined.

    The checksum of a chunk is taken when the piece after it is asked for, so a writer that asks piece by piece finds
    the chunk still in the processor's cache.

    Parameters
    ----------
    kind : FrameType
    meta : bytes
        At most 1 MiB.
    segments : iterable of ndarray
        C-contiguous and little-endian, as :func:`emuml.message.encode` gives them; must not change while in use.
    seq, ack : int
        Number of a DATA frame from 1, else 0; the highest DATA frame received whole.
    """
    segments = tuple(segments)
    body_bytes = sum([segment.nbytes for segment in segments])
    fields = HEADER_FIELDS.pack(kind, 0, len(segments), len(meta), seq, ack, body_bytes, 0)
    piece = bytearray(fields + CHECKSUM.pack(crc32c(meta, crc32c(fields))) + meta)
    for segment in segments:
        for chunk in chunks(segment):
            if len(chunk) > _JOIN_BYTES_MAX or len(piece) > _JOINED_BYTES_MAX:
                yield piece
                yield chunk
                piece = bytearray()
            else:
                piece += chunk
            piece += CHECKSUM.pack(crc32c(chunk))
    yield piece


def encode_frame(
    kind: FrameType, meta: bytes, segments: Iterable[Array] = (), seq: int = 0, ack: int = 0
) -> list[bytes | bytearray | memoryview]:
    """Return the pieces of :func:`frame_pieces` at once, with all checksums taken now.

    Examples
    --------
    >>> bytes(encode_frame(FrameType.PING, records.encode_control(records.Ping(10**9)))[0][36:]).hex()
    '095b145691ce3b9aca00'
    """
    return list(frame_pieces(kind, meta, segments, seq, ack))


def control_frame(body: records.Control | Encoded, ack: int = 0) -> bytes:
    """Return a whole CREDIT, PING, PONG, GOODBYE or (for an encoded message) SYSTEM frame.

    EVENT and FAULT frames are made by :func:`encode_frame` from :func:`records.encode_plain`.
    """
    if isinstance(body, Encoded):
        return b"".join(frame_pieces(FrameType.SYSTEM, body.meta, body.segments, 0, ack))
    return b"".join(frame_pieces(_CONTROL_TYPES[type(body)], records.encode_control(body), (), 0, ack))
