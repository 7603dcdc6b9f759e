"""Messages: what they refuse, what freezing shares and copies, and that the wire gives back value and type."""

from typing import Any

import msgspec
import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from numpy.typing import NDArray

from emuml.errors import MessageError
from emuml.lazy import Deferred
from emuml.message import (
    META_BYTES_MAX,
    Array,
    Decoder,
    Message,
    chunks,
    decode,
    digest,
    encode,
    freeze,
    freeze_array,
    size_bytes,
    wire_bytes,
)
from emuml.node import NodeId
from emuml.task import Task
from tests.messages import MESSAGES, PUSH, Containers, Doubles, Everything, Pull, Push, Single, bits, make, same


@pytest.mark.slow
@given(MESSAGES)
def test_decode_of_encode_gives_value_and_type(message: Everything) -> None:
    encoded = encode(message)
    decoded = decode(encoded, Everything)
    assert same(message, decoded)
    assert message == decoded
    assert hash(message) == hash(decoded)
    assert encode(decoded).meta == encoded.meta
    assert all(segment.flags.c_contiguous and segment.dtype.str[0] in "<|" for segment in encoded.segments)


@pytest.mark.slow
@given(MESSAGES)
def test_size_is_the_sum_of_what_is_sent(message: Everything) -> None:
    meta, segments, body_bytes = encode(message)
    sizes = [len(bits(segment)[2]) for segment in segments]
    assert body_bytes == sum(sizes)
    assert size_bytes(message) == 40 + len(meta) + body_bytes + 4 * sum(size > 0 for size in sizes)


@pytest.mark.slow
@given(MESSAGES)
def test_freezing_changes_no_value_and_shares_no_container(message: Everything) -> None:
    frozen = freeze(message)
    assert same(message, frozen)
    assert frozen.numbers is not message.numbers
    assert frozen.table is not message.table
    assert all(not a.flags.writeable and a.flags.c_contiguous for a in [*frozen.blocks, *frozen.table.values()])
    assert all(not rows.flags.writeable for rows in frozen.leaf.rows)
    again = freeze(frozen)
    assert all(a is b for a, b in zip(frozen.blocks, again.blocks, strict=True))
    assert again.numbers is not frozen.numbers


def test_golden_push() -> None:
    """Golden vector of the frame format: meta and whole size."""
    meta, segments, body_bytes = encode(PUSH)
    assert meta.hex() == "94a4507573680792a33c663892020392a33c69389103"
    assert body_bytes == 72
    assert [segment.nbytes for segment in segments] == [48, 24]
    assert size_bytes(PUSH) == 142
    assert size_bytes(Pull(3)) == 47


def test_golden_size_of_64_mib() -> None:
    """64 MiB in one array: 67,108,864 + 40 + 18 + 64 checksums of 4 bytes."""

    class Push(Message):
        clock: int
        value: Array

    assert size_bytes(Push(7, np.zeros(1 << 23))) == 67_109_178
    assert wire_bytes(10, [0, 1, 1 << 20, (1 << 20) + 1]) == 50 + 5 + (1 << 20) + 4 + (1 << 20) + 1 + 8


def test_a_deferred_result_is_sized_without_being_evaluated() -> None:
    calls = []

    def work() -> NDArray[np.float64]:
        calls.append(1)
        return np.arange(6.0).reshape(2, 3)

    message = Single(Deferred(Task(work, (), 1.0, (2, 3))))  # type: ignore[arg-type]
    assert size_bytes(message) == size_bytes(Single(np.zeros((2, 3))))
    assert freeze(message) is message
    assert not calls
    assert decode(encode(message), Single).value.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert calls == [1]
    with pytest.raises(MessageError, match=r"Doubles\.value: got an array of float32"):
        Doubles(Deferred(Task(work, (), 1.0, (2, 3), "<f4")))  # type: ignore[arg-type]


def test_digest_covers_meta_and_the_checksums_of_chunks() -> None:
    array = np.arange((1 << 17) + 3, dtype="<f8")
    message = Single(array)
    memory = array.tobytes()
    parts = [encode(message).meta]
    parts += [crc32c(memory[i : i + (1 << 20)]).to_bytes(4, "little") for i in range(0, len(memory), 1 << 20)]
    assert digest(message) == crc32c(b"".join(parts))
    assert [len(chunk) for chunk in chunks(array)] == [1 << 20, 24]
    assert digest(Single(array[::-1])) != digest(message)


def test_own_memory_is_frozen_by_reference() -> None:
    array = np.zeros(3)
    message = Single(array)
    assert freeze(message) is message
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_a_view_of_writable_memory_is_copied() -> None:
    table = np.zeros((4, 3))
    frozen = freeze(Single(table[1]))
    table[1] = 9
    assert frozen.value.tolist() == [0, 0, 0]
    assert table.flags.writeable


def test_a_view_of_read_only_memory_is_shared() -> None:
    table = np.zeros((4, 3))
    view = table[1]
    table.flags.writeable = False
    assert freeze_array(view) is view
    assert not view.flags.writeable
    assert freeze_array(table[2:]).base is table


def test_foreign_memory_is_copied_unless_it_is_bytes() -> None:
    memory = bytearray(8)
    foreign = np.frombuffer(memory, np.uint8)
    frozen = freeze_array(foreign)
    memory[0] = 1
    assert frozen[0] == 0
    constant = np.frombuffer(b"abc", np.uint8)
    assert freeze_array(constant) is constant
    read_only = np.frombuffer(memoryview(memory).toreadonly(), np.uint8)
    assert freeze_array(read_only) is not read_only


@pytest.mark.parametrize(
    "array", [np.zeros((2, 3), order="F"), np.zeros(4)[::2], np.zeros(2, ">f8"), np.zeros(2)[::-1]]
)
def test_strided_and_big_endian_arrays_are_copied_even_when_read_only(array: NDArray[Any]) -> None:
    array.flags.writeable = False
    frozen = freeze_array(array)
    assert frozen is not array
    assert frozen.flags.c_contiguous
    assert frozen.dtype.str == "<f8"
    assert frozen.shape == array.shape


def test_zero_dimensional_arrays_stay_zero_dimensional() -> None:
    for array in (np.array(3.0), np.array(3.0, ">f8")):
        assert freeze_array(array).shape == ()
        assert decode(encode(Single(array)), Single).value.shape == ()


def test_a_list_that_was_filled_with_something_else_is_refused_when_sent() -> None:
    numbers = [1]
    message = Containers(numbers, {})
    numbers.append(2.5)  # type: ignore[arg-type]
    with pytest.raises(MessageError, match=r"Containers\.numbers\[1\]: got float"):
        freeze(message)
    numbers[1] = object()  # type: ignore[call-overload]
    with pytest.raises(MessageError, match="Containers cannot be encoded: it holds a object"):
        encode(message)


def test_too_much_beside_the_arrays_is_refused() -> None:
    class Blob(Message):
        blob: bytes

    class Many(Message):
        arrays: list[Array]

    for message in (Blob(bytes(META_BYTES_MAX)), Many([np.zeros(1)] * 4097)):
        with pytest.raises(MessageError, match="allowed: 1048576 bytes and 4096 arrays"):
            size_bytes(message)
    assert size_bytes(Many([np.zeros(1)] * 4096)) > 0


def test_equality_is_that_of_bits() -> None:
    nan = np.array([np.nan, 0.0])
    assert Single(nan) == Single(nan.copy())
    assert Single(np.array([0.0])) != Single(np.array([-0.0]))
    assert Single(np.zeros(2)) != Single(np.zeros((2, 1)))
    assert Single(np.zeros(2)) != Single(np.zeros(2, "<i8"))
    assert Single(np.zeros(2)) != Doubles(np.zeros(2))
    assert Pull(1) != 1


def fingerprints(*kinds: type[Message]) -> tuple[bytes, dict[str, bytes]]:
    decoder = Decoder(kinds)
    return decoder.schema, decoder.message_digests


def test_schema_is_the_documented_hash() -> None:
    """First 16 bytes of SHA-256 over ``[[tag, [[field, type, required], ...]], ...]``, sorted by tag."""
    import hashlib

    schema, digests = fingerprints(Push, Pull)
    pull = '["Pull",[["clock","int",true]]]'
    push = '["Push",[["clock","int",true],["weights","ndarray",true],["rows","ndarray",true]]]'
    assert schema == hashlib.sha256(f"[{pull},{push}]".encode()).digest()[:16]
    assert digests["Pull"] == hashlib.sha256(f"[{pull}]".encode()).digest()[:8]
    assert list(digests) == ["Pull", "Push"]
    assert fingerprints(Pull, Push, Pull) == (schema, digests)


def test_schema_sees_every_difference() -> None:
    kinds = [
        make("A", ("x", int)),
        make("A", ("y", int)),
        make("A", ("x", float)),
        make("A", ("x", int, 3)),
        make("A", ("x", int), ("y", int)),
        make("A", ("x", int | None)),
        make("A", ("x", list[int])),
        make("A", ("x", tuple[int, ...])),
        make("A", ("x", tuple[int])),
        make("A", ("x", dict[str, int])),
        make("A", ("x", np.ndarray)),
        make("A", ("x", NDArray[np.float64])),
        make("A", ("x", NDArray[np.float32])),
        make("A", ("x", msgspec.defstruct("In", [("u", int)], frozen=True))),
        make("A", ("x", msgspec.defstruct("In", [("u", bool)], frozen=True))),
        make("A", ("x", msgspec.defstruct("In", [("u", list[NodeId])], frozen=True))),
    ]
    assert len({fingerprints(kind)[0] for kind in kinds}) == len(kinds)
    assert len({fingerprints(kind)[1]["A"] for kind in kinds}) == len(kinds)


def test_two_classes_with_one_tag_are_an_error() -> None:
    with pytest.raises(MessageError, match="both define a message 'Pull'"):
        Decoder([Pull, make("Pull", ("clock", int))])
