"""Wrong, damaged and hostile streams: one error each, before anything is allocated."""

import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from emuml.message import Array, encode
from emuml.runtime import records
from emuml.runtime.records import Ping, RecordError
from emuml.runtime.wire import (
    BULK,
    CONTROL,
    Corruption,
    DataFrame,
    FrameReader,
    FrameType,
    Header,
    ProtocolError,
    WireError,
    control_frame,
)
from tests.runtime.frames import (
    PING_HEX,
    PULL_HEX,
    PUSH,
    PUSH_HEX,
    Block,
    Pull,
    Roster,
    data_frame,
    only_error,
    plain_frame,
    raw_frame,
    read_split,
    reader,
)


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
