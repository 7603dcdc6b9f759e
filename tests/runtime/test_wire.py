"""Frames: golden vectors, any split of the stream, every flipped bit, and nothing allocated before it is checked."""

import gc
import pickle
import struct
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from emuml.message import Array, Decoder, Message, encode, size_bytes
from emuml.runtime import records
from emuml.runtime.records import Credit, Goodbye, Ping, Pong, RecordError
from emuml.runtime.wire import (
    BULK,
    CONTROL,
    ControlFrame,
    Corruption,
    DataFrame,
    Event,
    FrameReader,
    FrameType,
    Header,
    ProtocolError,
    WireError,
    control_frame,
    encode_frame,
    frame_pieces,
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


def test_golden_data_frames() -> None:
    assert data_frame(PUSH).hex() == PUSH_HEX
    assert data_frame(Pull(3), 2, 5).hex() == PULL_HEX
    events = reader().feed(bytes.fromhex(PUSH_HEX + PULL_HEX))
    assert events == [DataFrame(1, 0, PUSH, 142), DataFrame(2, 5, Pull(3), 47)]
    assert isinstance(events[0], DataFrame)
    assert isinstance(events[0].message, Push)
    assert not events[0].message.weights.flags.writeable
    assert events[0].message.weights.flags.owndata


def test_golden_control_frames() -> None:
    assert control_frame(Ping(10**9)).hex() == PING_HEX
    assert control_frame(Credit(1 << 20, 1 << 26)).hex() == CREDIT_HEX
    events = reader().feed(bytes.fromhex(PING_HEX + CREDIT_HEX))
    assert events == [
        ControlFrame(FrameType.PING, 0, Ping(10**9)),
        ControlFrame(FrameType.CREDIT, 0, Credit(1 << 20, 1 << 26)),
    ]


def test_every_control_frame_comes_back() -> None:
    roster = Roster(["worker-0"], np.arange(5.0))
    stream = b"".join(
        [
            control_frame(Pong(1, 2, 3), ack=9),
            control_frame(Goodbye("closing", "the run is over")),
            control_frame(encode(roster), ack=2),
            plain_frame(FrameType.EVENT, {"line": "hello", "at_s": 1.5, "tags": [None, True, b"x"]}),
            plain_frame(FrameType.FAULT, ["hang", 3]),
        ]
    )
    assert reader(accepts=CONTROL).feed(stream) == [
        ControlFrame(FrameType.PONG, 9, Pong(1, 2, 3)),
        ControlFrame(FrameType.GOODBYE, 0, Goodbye("closing", "the run is over")),
        ControlFrame(FrameType.SYSTEM, 2, roster),
        ControlFrame(FrameType.EVENT, 0, {"line": "hello", "at_s": 1.5, "tags": [None, True, b"x"]}),
        ControlFrame(FrameType.FAULT, 0, ["hang", 3]),
    ]


def test_pieces_come_from_array_memory_and_checksums_when_asked_for() -> None:
    array = np.zeros((1 << 17) * 2 + 700)
    encoded = encode(Block("x", [array, np.zeros(3)]))
    pieces = frame_pieces(FrameType.DATA, encoded.meta, encoded.segments, 1)
    taken = [next(pieces), next(pieces)]
    array[1] = 5.0
    taken += list(pieces)
    assert [len(piece) for piece in taken] == [40 + len(encoded.meta), 1 << 20, 4, 1 << 20, 4, 5600, 4 + 24 + 4]
    assert np.shares_memory(np.frombuffer(taken[1], np.uint8), array)
    events = reader().feed(b"".join(taken))
    assert isinstance(events[0], DataFrame)
    assert events[0].message == Block("x", [array, np.zeros(3)])


BLOCKS = st.lists(st.sampled_from([0, 1, 5, 600, 2000, 4096, 20_000, 132_000, 300_000]), max_size=4)


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[Event]]:
    """A valid stream of small and large frames, and its events."""
    pieces: list[bytes] = []
    events: list[Event] = []
    for seq in range(1, draw(st.integers(1, 5)) + 1):
        message: Message = Pull(seq)
        if draw(st.booleans()):
            sizes = draw(BLOCKS)
            message = Block("n" * draw(st.sampled_from([1, 200_000])), [np.arange(size, dtype="<u4") for size in sizes])
        pieces += [data_frame(message, seq, seq), control_frame(Ping(seq))]
        events += [DataFrame(seq, seq, message, size_bytes(message)), ControlFrame(FrameType.PING, 0, Ping(seq))]
    return b"".join(pieces), events


SIZES = st.lists(st.integers(1, 50) | st.integers(1, 2_000_000), min_size=1, max_size=6).filter(lambda s: max(s) > 1000)


@pytest.mark.slow
@given(streams(), SIZES, st.booleans())
def test_any_split_gives_the_same_events(stream: tuple[bytes, list[Event]], sizes: list[int], vectored: bool) -> None:
    data, expected = stream
    target = reader()
    assert read_split(data, sizes, target, vectored) == expected
    assert not target.inside_frame
    assert target.bytes_received == len(data)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 39, 40, 41, 141])
def test_small_reads_give_the_same_events(step: int) -> None:
    stream = bytes.fromhex(PUSH_HEX + PING_HEX + PULL_HEX)
    assert read_split(stream, [step], reader()) == reader().feed(stream)


def test_a_full_scratch_buffer_of_small_frames() -> None:
    stream = b"".join([data_frame(Pull(seq), seq) for seq in range(1, 6001)])
    for sizes in ([1 << 20], [131_072, 131_071, 1], [100_003]):
        events = read_split(stream, sizes, reader())
        assert [event.seq for event in events if isinstance(event, DataFrame)] == list(range(1, 6001))


def test_large_bodies_are_read_straight_into_their_array() -> None:
    array = np.arange(1 << 18, dtype="<f8")
    made: list[Array] = []

    def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        made.append(np.empty(shape, dtype))
        return made[-1]

    stream = data_frame(Block("x", [array]))
    target = reader(allocate=allocate)
    assert target.feed(stream[:1000]) == []
    assert target.inside_frame
    first, after = target.get_buffers()
    assert np.shares_memory(np.frombuffer(first, np.uint8), made[0])
    # Only the checksum may follow a chunk that others follow.
    assert len(after) == 4
    events = read_split(stream[1000:], [1 << 21], target, vectored=True)
    assert isinstance(events[0], DataFrame)
    assert isinstance(events[0].message, Block)
    assert events[0].message.parts[0] is made[0]
    assert events[0].message.parts[0].tolist() == array.tolist()


def test_events_before_an_error_are_kept_and_what_follows_is_ignored() -> None:
    stream = bytes.fromhex(PULL_HEX) + b"\xff" * 400
    for step in (1, 46, 48, 447):
        target = reader()
        events = read_split(stream, [step], target)
        assert events[0] == DataFrame(2, 5, Pull(3), 47)
        assert isinstance(events[1], Corruption)
        assert events[1].offset == 47
        assert events[1].values == {"type": 255}
        assert target.error is events[1]
        assert len(events) == 2


def test_every_flipped_bit_is_noticed() -> None:
    """No flip gives a wrong message: a checksum, or a limit that comes before it, catches each."""
    stream = bytes.fromhex(PUSH_HEX)
    follow = bytes.fromhex(PULL_HEX) * 40
    for bit in range(8 * len(stream)):
        flipped = bytearray(stream)
        flipped[bit // 8] ^= 1 << bit % 8
        target = reader()
        events = target.feed(bytes(flipped) + follow)
        if events:
            assert isinstance(events[0], Corruption), (bit, events[0])
            assert len(events) == 1
        else:
            # A larger meta_bytes: the reader waits for more, within its limit of 1 MiB.
            assert 32 <= bit < 64
            assert target.inside_frame


def test_a_flipped_bit_in_a_chunk_names_segment_and_offset() -> None:
    stream = bytearray(data_frame(Block("x", [np.zeros(3), np.zeros(1 << 18)])))
    stream[-100] ^= 1
    error = only_error(bytes(stream))
    assert isinstance(error, Corruption)
    assert error.reason == "chunk checksum"
    assert error.values["segment"] == 1
    assert error.values["offset"] == 1 << 20
    assert str(error.values["announced"]) in str(error)
    assert str(error.values["found"]) in str(error)


def test_a_truncated_stream_gives_no_event() -> None:
    for stream in (bytes.fromhex(PUSH_HEX), data_frame(Block("x", [np.zeros(40_000)]))):
        for length in {0, 1, 39, 40, 41, 60, 100, len(stream) // 2, len(stream) - 5, len(stream) - 1} - {len(stream)}:
            target = reader()
            assert target.feed(stream[:length]) == []
            assert target.inside_frame is (length > 0)


def test_a_closed_reader_lets_go_of_an_unfinished_message_at_once() -> None:
    made: list[weakref.ref[Array]] = []

    def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        array = np.empty(shape, dtype)
        made.append(weakref.ref(array))
        return array

    target = reader(allocate=allocate)
    assert target.feed(data_frame(Block("x", [np.zeros(1 << 15)]))[:90_000]) == []
    gc.disable()
    try:
        assert made[0]() is not None
        target.close()
        assert made[0]() is None
    finally:
        gc.enable()
    assert target.feed(bytes.fromhex(PULL_HEX)) == []


def refuse_to_allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    raise AssertionError("allocated")


PUSH_META = encode(PUSH).meta
WRONG: dict[str, tuple[bytes, type[WireError], str]] = {
    "type 0": (raw_frame(0, b""), Corruption, "unknown frame type"),
    "type 9": (raw_frame(9, b""), Corruption, "unknown frame type"),
    "meta over 1 MiB": (raw_frame(1, b"", meta_bytes=(1 << 20) + 1, seq=1), Corruption, "meta too large"),
    "meta of 4 GiB": (raw_frame(1, b"", meta_bytes=(1 << 32) - 1, seq=1), Corruption, "meta too large"),
    "4097 segments": (raw_frame(1, b"", n_segments=4097, seq=1), Corruption, "too many segments"),
    "checksum": (raw_frame(3, b"\x91\x01")[:36] + bytes(4) + b"\x91\x01", Corruption, "header checksum"),
    "flags": (raw_frame(3, b"\x91\x01", flags=1), ProtocolError, "reserved field"),
    "stream": (raw_frame(3, b"\x91\x01", stream=1 << 31), ProtocolError, "reserved field"),
    "seq in ping": (raw_frame(3, b"\x91\x01", seq=1), ProtocolError, "seq does not fit"),
    "no seq in data": (raw_frame(1, PUSH_META, n_segments=2, body_bytes=72), ProtocolError, "seq does not fit"),
    "body in ping": (raw_frame(3, b"\x91\x01", body_bytes=1), ProtocolError, "control frame with a body"),
    "segment in ping": (raw_frame(3, b"\x91\x01", n_segments=1), ProtocolError, "control frame with a body"),
    "ping of text": (raw_frame(3, b"\x91\xa1x"), ProtocolError, "meta: ValidationError"),
    "ping of two": (raw_frame(3, b"\x92\x01\x02"), ProtocolError, "meta: ValidationError"),
    "negative credit": (raw_frame(2, b"\x92\x01\xff"), ProtocolError, "Credit.window"),
    "no meta": (raw_frame(6, b""), ProtocolError, "meta: "),
    "nested event": (raw_frame(5, b"\x91" * 90_000), ProtocolError, "meta: RecursionError"),
    "event of int keys": (raw_frame(5, b"\x81\x01\x01"), ProtocolError, "no plain data"),
    "event of an extension": (raw_frame(5, b"\xd4\x05\x00"), ProtocolError, "no plain data"),
    "event of a time": (raw_frame(5, b"\xd6\xff\x00\x00\x00\x00"), ProtocolError, "no plain data"),
    "broken text": (raw_frame(5, b"\xa1\xff"), ProtocolError, "meta: "),
    "unknown message": (raw_frame(1, b"\x91\xa4Nope", seq=1), ProtocolError, "meta: "),
    "body too short": (raw_frame(1, PUSH_META, n_segments=2, seq=1, body_bytes=71), ProtocolError, "2 arrays of 72"),
    "body too long": (raw_frame(1, PUSH_META, n_segments=2, seq=1, body_bytes=1 << 31), ProtocolError, "announces 2"),
    "few segments": (raw_frame(1, PUSH_META, n_segments=1, seq=1, body_bytes=72), ProtocolError, "announces 1 of"),
    "over the limit": (
        raw_frame(1, PUSH_META, n_segments=2, seq=1, body_bytes=(4 << 30) + 1), ProtocolError, "message_bytes_max"),
    "system is data": (raw_frame(8, b"\x92\xa4Pull\x03"), ProtocolError, "meta: "),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("step", [1, 1 << 20])
def test_a_wrong_frame_is_one_error_before_anything_is_allocated(name: str, step: int) -> None:
    stream, kind, text = WRONG[name]
    target = reader(allocate=refuse_to_allocate)
    events = read_split(stream, [step], target)
    assert len(events) == 1
    assert type(events[0]) is kind
    assert text in str(events[0])
    assert read_split(bytes.fromhex(PULL_HEX), [47], target) == []


def test_lanes_accept_only_their_frames() -> None:
    assert "frame type not allowed on this lane" in str(only_error(bytes.fromhex(PULL_HEX), accepts=CONTROL))
    assert "frame type not allowed on this lane" in str(only_error(bytes.fromhex(PING_HEX), accepts=BULK))
    without_messages = FrameReader()
    (error,) = without_messages.feed(bytes.fromhex(PULL_HEX))
    assert isinstance(error, ProtocolError)
    assert "no messages are expected" in str(error)


def test_a_smaller_limit_of_messages_names_the_setting() -> None:
    error = only_error(bytes.fromhex(PUSH_HEX), message_bytes_max=71)
    assert isinstance(error, ProtocolError)
    assert error.values == {"body_bytes": 72, "message_bytes_max": 71}
    assert "message_bytes_max" in error.reason
    assert len(reader(message_bytes_max=72).feed(bytes.fromhex(PUSH_HEX))) == 1


def test_flow_control_is_asked_before_arrays_are_allocated() -> None:
    asked: list[tuple[Header, int]] = []

    def admit(header: Header, size_bytes: int) -> str | None:
        asked.append((header, size_bytes))
        return "over the window" if size_bytes > 100 else None

    target = reader(admit=admit, allocate=refuse_to_allocate)
    events = target.feed(bytes.fromhex(PULL_HEX + PING_HEX + PUSH_HEX))
    assert events[0] == DataFrame(2, 5, Pull(3), 47)
    assert isinstance(events[2], ProtocolError)
    assert events[2].values == {"type": "DATA", "seq": 1, "size_bytes": 142}
    assert [(header.seq, size) for header, size in asked] == [(2, 47), (1, 142)]


def test_no_memory_is_an_error_of_the_stream() -> None:
    def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        raise MemoryError

    assert "no memory" in str(only_error(bytes.fromhex(PUSH_HEX), allocate=allocate))


def peak_bytes(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_claims_allocate_nothing() -> None:
    """Headers at their limits, of which nothing follows, cost at most the scratch buffer and one meta of 1 MiB."""
    claims = [
        raw_frame(1, PUSH_META, n_segments=2, seq=1, body_bytes=4 << 30),
        raw_frame(1, b"", meta_bytes=1 << 20, n_segments=4096, seq=1, body_bytes=(1 << 64) - 1),
        raw_frame(1, msgspec.msgpack.encode(["Push", 1, ["<f8", [2**28]], ["<f8", [2**28]]]), n_segments=2, seq=1,
                  body_bytes=72),
        raw_frame(5, b"\xdd\xff\xff\xff\xff"),
        raw_frame(5, b"\xc6\xff\xff\xff\xff"),
    ]  # fmt: skip
    for claim in claims:
        assert peak_bytes(lambda claim=claim: reader().feed(claim)) < (1 << 20) + (512 << 10)  # type: ignore[misc]


@pytest.mark.slow
@given(st.data())
def test_damaged_streams_never_raise_nor_give_a_wrong_message(data: st.DataObject) -> None:
    frames = [data_frame(PUSH, 1), control_frame(Ping(3)), data_frame(Block("b", [np.arange(900.0)]), 2),
              plain_frame(FrameType.EVENT, {"a": [1]}), control_frame(encode(Roster(["x"])))]  # fmt: skip
    sound = reader().feed(b"".join(frames))
    stream = bytearray(b"".join(frames))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(stream) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "insert"])):
            case "flip":
                stream[position] ^= data.draw(st.integers(1, 255))
            case "cut":
                del stream[position : position + data.draw(st.integers(1, 60))]
            case _:
                stream[position:position] = data.draw(st.binary(min_size=1, max_size=60))
    events = read_split(bytes(stream), [data.draw(st.integers(1, 3000))], reader())
    good = [event for event in events if not isinstance(event, WireError)]
    # A cut may fall exactly on frames; what is left of them is still in order and unchanged.
    remaining = iter(sound)
    assert all(any(event == other for other in remaining) for event in good)
    assert all(not isinstance(event, WireError) for event in events[:-1])


@pytest.mark.slow
@given(st.binary(max_size=300), st.sampled_from([1, 2, 3, 5, 6, 7, 8]), st.integers(0, 3), st.integers(0, 100))
def test_random_metas_with_right_checksums_never_raise(meta: bytes, kind: int, n_segments: int, body: int) -> None:
    events = reader().feed(raw_frame(kind, meta, n_segments=n_segments, seq=int(kind == 1), body_bytes=body))
    assert len(events) <= 1


@pytest.mark.parametrize("kind", [Corruption, ProtocolError])
def test_errors_survive_pickling(kind: type[WireError]) -> None:
    error = kind("why", 3, {"found": 1})
    assert str(pickle.loads(pickle.dumps(error))) == str(kind(*error.args)) == "why (frame at byte 3, found 1)"


@pytest.mark.parametrize("value", [(1,), {1: 2}, object(), np.float64(1.0), {"a": [np.zeros(1)]}, 2**64, "\ud800"])
def test_only_plain_data_goes_into_events(value: Any) -> None:
    with pytest.raises(RecordError):
        records.encode_plain(value)
