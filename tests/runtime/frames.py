"""Frames by hand, readers, and what they make of a stream in pieces, for tests of the wire."""

import struct
from typing import Any

import numpy as np
from crc32c import crc32c

from emuml.message import Array, Decoder, Message, encode
from emuml.runtime import records
from emuml.runtime.wire import (
    Event,
    FrameReader,
    FrameType,
    WireError,
    encode_frame,
)


class Push(Message):
    clock: int
    weights: np.ndarray
    rows: np.ndarray


class Pull(Message):
    clock: int


class Block(Message):
    name: str
    parts: list[Array]


class Roster(Message):
    nodes: list[str]
    table: Array | None = None


PUSH = Push(7, np.arange(6.0).reshape(2, 3), np.arange(3))
PUSH_HEX = (
    "010002001600000001000000000000000000000000000000480000000000000000000000ef0548a9"
    "94a4507573680792a33c663892020392a33c69389103"
    "0000000000000000000000000000f03f0000000000000040000000000000084000000000000010400000000000001440"
    "0d4d2bc7"
    "000000000000000001000000000000000200000000000000"
    "5e1b8fe4"
)
PULL_HEX = "0100000007000000020000000000000005000000000000000000000000000000000000002b8dad5892a450756c6c03"
PING_HEX = "030000000600000000000000000000000000000000000000000000000000000000000000095b145691ce3b9aca00"
CREDIT_HEX = "020000000b00000000000000000000000000000000000000000000000000000000000000a544913392ce00100000ce04000000"


def data_frame(message: Message, seq: int = 1, ack: int = 0) -> bytes:
    encoded = encode(message)
    return b"".join(encode_frame(FrameType.DATA, encoded.meta, encoded.segments, seq, ack))


def plain_frame(kind: FrameType, value: records.Plain) -> bytes:
    return b"".join(encode_frame(kind, records.encode_plain(value)))


def raw_frame(
    kind: int, meta: bytes, body: bytes = b"", *, n_segments: int = 0, seq: int = 0, body_bytes: int = -1,
    flags: int = 0, stream: int = 0, meta_bytes: int = -1,
) -> bytes:  # fmt: skip
    """A frame with any header, written independently of the code under test, with a right checksum."""
    sizes = (len(meta) if meta_bytes < 0 else meta_bytes, len(body) if body_bytes < 0 else body_bytes)
    fields = struct.pack("<BBHIQQQI", kind, flags, n_segments, sizes[0], seq, 0, sizes[1], stream)
    return fields + struct.pack("<I", crc32c(fields + meta)) + meta + body


def reader(**options: Any) -> FrameReader:
    return FrameReader(Decoder([Push, Pull, Block]), Decoder([Roster]), **options)


def read_split(stream: bytes, sizes: list[int], target: FrameReader, vectored: bool = False) -> list[Event]:
    """Hand over the stream in reads of these sizes (cyclically), as a socket would fill the reader's buffers."""
    events: list[Event] = []
    position = turn = 0
    while position < len(stream):
        n_wanted = sizes[turn % len(sizes)]
        turn += 1
        n_bytes = 0
        for buffer in target.get_buffers() if vectored else [target.get_buffer(n_wanted)]:
            assert len(buffer) > 0
            n_here = min(len(buffer), n_wanted - n_bytes, len(stream) - position)
            buffer[:n_here] = stream[position : position + n_here]
            n_bytes, position = n_bytes + n_here, position + n_here
            if n_here < len(buffer):
                break
        events += target.buffer_updated(n_bytes)
    return events


def only_error(stream: bytes, **options: Any) -> WireError:
    events = reader(**options).feed(stream)
    assert len(events) == 1
    assert isinstance(events[0], WireError)
    return events[0]
