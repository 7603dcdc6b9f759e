"""Frames: golden vectors, any split of the stream, every flipped bit, and nothing allocated before it is checked."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.message import Array, Message, encode, size_bytes
from emuml.runtime.records import Credit, Goodbye, Ping, Pong
from emuml.runtime.wire import (
    CONTROL,
    ControlFrame,
    Corruption,
    DataFrame,
    Event,
    FrameType,
    control_frame,
    frame_pieces,
)
from tests.runtime.frames import (
    CREDIT_HEX,
    PING_HEX,
    PULL_HEX,
    PUSH,
    PUSH_HEX,
    Block,
    Pull,
    Push,
    Roster,
    data_frame,
    only_error,
    plain_frame,
    read_split,
    reader,
)


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
