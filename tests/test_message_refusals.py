"""Messages that cannot be sent and bytes that are no message: refused by name, before anything is allocated."""

import contextlib
import pickle
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from emuml.errors import MessageError
from emuml.message import (
    Array,
    DecodeError,
    Decoder,
    Message,
    Outline,
    decode,
    encode,
    seal,
)
from emuml.node import NodeId
from tests.messages import PUSH, Doubles, Everything, Leaf, Pull, Push, Single, make, same


class Number(int):
    pass


class Words(list):  # type: ignore[type-arg]
    pass


LEAF = Leaf("x", [])
GOOD: dict[str, Any] = {
    "count": 1, "ratio": 0.5, "name": "n", "flag": True, "blob": b"", "numbers": [1], "pair": ("a", 1.0), "blocks": (),
    "table": {}, "maybe": None, "node": NodeId("worker", 1), "leaf": LEAF,
}  # fmt: skip
BAD = [
    ("count", True, "Everything.count: got bool; allowed: int"),
    ("count", np.int64(3), "Everything.count: got numpy.int64; allowed: int"),
    ("count", 1.0, "Everything.count: got float"),
    ("count", Number(3), "Number; allowed: int"),
    ("count", 2**64, "18446744073709551616; allowed: int (-2**63 to 2**64 - 1)"),
    ("count", -(2**63) - 1, "allowed: int"),
    ("ratio", 1, "Everything.ratio: got int; allowed: float"),
    ("ratio", np.float64(0.5), "Everything.ratio: got numpy.float64; allowed: float"),
    ("name", b"n", "Everything.name: got bytes"),
    ("name", np.str_("n"), "numpy.str_"),
    ("name", "\ud800", "lone surrogates"),
    ("flag", 1, "Everything.flag: got int"),
    ("flag", np.True_, "numpy.bool"),
    ("blob", bytearray(), "Everything.blob: got bytearray"),
    ("numbers", [1, 2, True], "Everything.numbers[2]: got bool"),
    ("numbers", (1,), "Everything.numbers: got tuple"),
    ("numbers", Words(), "Words"),
    ("pair", ("a", 1), "Everything.pair[1]: got int"),
    ("pair", ("a",), "Everything.pair: got tuple of length 1"),
    ("blocks", ([1.0],), "Everything.blocks[0]: got list; allowed: numpy.ndarray"),
    ("blocks", (np.array(["a"]),), "got an array of <U1"),
    ("blocks", (np.array([None]),), "got an array of object"),
    ("blocks", (np.zeros(1, "M8[s]"),), "datetime64"),
    ("blocks", (np.zeros(1, [("a", "f8")]),), "got an array of [('a', '<f8')]"),
    ("blocks", (np.zeros(1, "S3"),), "|S3"),
    ("blocks", (np.zeros(1, np.longdouble),), "longdouble" if np.dtype("g").name == "longdouble" else "float128"),
    ("blocks", (np.ma.masked_array([1.0]),), "MaskedArray"),
    ("blocks", (np.float64(1.0),), "numpy.float64"),
    ("blocks", (np.zeros((1,) * 33),), "33 dimensions"),
    ("table", {1: np.zeros(1)}, "key of Everything.table: got int"),
    ("table", {"k": 1.0}, "Everything.table['k']: got float"),
    ("maybe", 1.0, "Everything.maybe: got float; allowed: int (-2**63 to 2**64 - 1), or None"),
    ("node", "worker-1", "Everything.node: got str; allowed: NodeId"),
    ("node", NodeId("worker", 1.0), "Everything.node.index: got float"),  # type: ignore[arg-type]
    ("leaf", Leaf("x", [], [Leaf("y", [1.0])]), "Everything.leaf.more[0].rows[0]: got float"),  # type: ignore[list-item]
    ("other", 3, "Everything.other: got int"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "text"), BAD)
def test_a_value_that_the_wire_would_change_is_refused(field: str, value: Any, text: str) -> None:
    with pytest.raises(MessageError) as caught:
        Everything(**{**GOOD, field: value})
    assert text in str(caught.value)


def test_good_values_are_accepted() -> None:
    assert same(decode(encode(Everything(**GOOD)), Everything), Everything(**GOOD))


FORBIDDEN = [set[int], Any, object, dict[int, int], list, dict, int | str, complex, np.float64, tuple[int | str, ...],
             NDArray[np.str_], NDArray[np.object_], NDArray[np.longdouble], bytearray]  # fmt: skip


@pytest.mark.parametrize("annotation", FORBIDDEN, ids=str)
def test_a_forbidden_annotation_names_class_and_field(annotation: Any) -> None:
    kind = make("Odd", ("fine", int), ("what", annotation))
    with pytest.raises(MessageError, match=r"^Odd\.what: .*cannot be sent; allowed"):
        kind(1, 2)
    with pytest.raises(MessageError, match=r"^Odd\.what"):
        Decoder([kind])


def test_a_mutable_nested_struct_is_refused() -> None:
    class Loose(msgspec.Struct):
        x: int

    class Holder(Message):
        loose: Loose

    with pytest.raises(MessageError, match="Loose can be changed after it was made"):
        Holder(Loose(1))


def test_class_options_that_break_the_wire_are_refused() -> None:
    class Unfrozen(Message, frozen=False):  # type: ignore[misc]
        x: int

    class Mapped(Message, array_like=False):
        x: int

    class Lenient(Message, forbid_unknown_fields=False):
        x: int

    class Numbered(Message, tag=3):
        x: int

    class ANameThatIsLongerThanThirtyTwoBytes(Message):
        x: int

    for kind in (Unfrozen, Mapped, Lenient, Numbered, ANameThatIsLongerThanThirtyTwoBytes):
        with pytest.raises(MessageError, match=kind.__name__):
            kind(1)
    with pytest.raises(MessageError, match="__post_init__"):

        class Own(Message):
            def __post_init__(self) -> None:
                pass


def test_a_subclass_checks_its_own_fields_after_its_base_was_used() -> None:
    class More(Pull):
        extra: float

    Pull(1)
    with pytest.raises(MessageError, match=r"More\.extra"):
        More(1, 2)
    assert encode(More(1, 2.0)).meta[2:6] == b"More"


def refuse_to_allocate(outlines: Sequence[Outline]) -> list[Array]:
    raise AssertionError(f"allocated {outlines}")


def outline(*arrays: Any) -> bytes:
    return msgspec.msgpack.encode(["Everything", *list(GOOD.values())[:-5], list(arrays), {}, None, ["worker", 1],
                                   {"name": "x", "rows": []}, None])  # fmt: skip


def test_arrays_are_allocated_by_the_caller_when_all_is_checked() -> None:
    got = []

    def allocate(outlines: Sequence[Outline]) -> list[Array]:
        got.extend([(shape, dtype.str) for shape, dtype in outlines])
        return [np.full(shape, 7, dtype) for shape, dtype in outlines]

    meta, segments, body_bytes = encode(PUSH)
    message, arrays = Decoder([Push, Pull]).decode_meta(memoryview(meta), len(segments), body_bytes, allocate)
    assert got == [((2, 3), "<f8"), ((3,), "<i8")]
    assert isinstance(message, Push)
    assert message.weights is arrays[0]
    assert message.rows is arrays[1]
    seal(arrays)
    assert not message.weights.flags.writeable


@pytest.mark.parametrize(
    ("array", "size"),
    [
        (["<f8", [2**61]], 2**64),
        (["<f8", [2**32, 2**32]], 2**67),
        (["<f8", [0, 2**62, 2**62]], 0),
        (["<f8", [-1]], -8),
        (["<f8", [-1, -1]], 8),
        (["<f8", [1.0]], 8),
        (["<f8", [True]], 8),
        (["<f8", 1], 8),
        (["<f8"], 8),
        (["<f8", [1], 1], 8),
        ([8, [1]], 8),
        ("<f8", 8),
        (None, 8),
        ({}, 8),
        (["|O", [1]], 8),
        (["<U2", [1]], 8),
        (["|S8", [1]], 8),
        (["<M8[s]", [1]], 8),
        ([">f8", [1]], 8),
        (["f8", [1]], 8),
        (["<f16", [1]], 16),
        (["<f8,<f8", [1]], 16),
        (["|V0", [1]], 0),
        (["|V01", [1]], 1),
        (["|V", [1]], 0),
        (["|V٣", [1]], 3),
        (["|V9999999999", [1]], 9999999999),
        (["<f8", [1] * 33], 8),
        (["<f8", [2]], 8),
        (["<f8", [1]], 16),
    ],
    ids=str,
)
def test_bad_arrays_are_refused_before_anything_is_allocated(array: Any, size: int) -> None:
    with pytest.raises(DecodeError):
        Decoder([Everything]).decode_meta(outline(array), 1, size, refuse_to_allocate)


def test_number_and_total_of_segments_must_agree() -> None:
    meta = outline(["<f8", [2]], ["|V999999999", [0]])
    Decoder([Everything]).decode_meta(meta, 2, 16)
    for announced in [(1, 16), (3, 16), (2, 15), (2, 17), (0, 0)]:
        with pytest.raises(DecodeError, match="meta describes 2 arrays of 16 bytes"):
            Decoder([Everything]).decode_meta(meta, *announced, refuse_to_allocate)


def test_a_wrong_dtype_for_an_annotation_is_refused() -> None:
    meta = msgspec.msgpack.encode(["Doubles", ["<f4", [1]]])
    with pytest.raises(DecodeError, match=r"Doubles\.value: got an array of float32"):
        Decoder([Doubles]).decode_meta(meta, 1, 4, refuse_to_allocate)


@pytest.mark.parametrize(
    "value",
    [["Pull"], ["Pull", 1, 2], ["Pull", 1.0], ["Pull", "1"], ["Push", 1], [], 3, {}, None, ["pull", 1]],
    ids=str,
)
def test_anything_but_a_known_message_is_refused(value: Any) -> None:
    with pytest.raises(DecodeError):
        Decoder([Pull, Push]).decode_meta(msgspec.msgpack.encode(value), 0, 0)
    with pytest.raises(DecodeError):
        Decoder([]).decode_meta(msgspec.msgpack.encode(value), 0, 0)


@pytest.mark.parametrize("prefix", [b"", b"\x92\xa6Single", b"\x92\xa6Single\x92\xa3<f8"])
@pytest.mark.parametrize("nest", [b"\x91", b"\x81\xa1x", b"\xdd\x00\x00\x00\x01"])
def test_deep_nesting_is_refused(prefix: bytes, nest: bytes) -> None:
    """The codec raises RecursionError, not a decoding error, here."""
    with pytest.raises(DecodeError):
        Decoder([Single]).decode_meta(prefix + nest * 100_000, 1, 8)


@pytest.mark.slow
@given(st.binary(max_size=60) | st.binary(max_size=50).map(b"\x94\xa4Push\x07".__add__), st.integers(0, 3))
@settings(max_examples=500)
def test_random_bytes_decode_or_are_refused(meta: bytes, n_segments: int) -> None:
    with contextlib.suppress(DecodeError):
        Decoder([Push, Pull]).decode_meta(meta, n_segments, 0)


def test_the_error_survives_pickling() -> None:
    error = DecodeError("why")
    assert str(pickle.loads(pickle.dumps(error))) == str(DecodeError(*error.args)) == "why"


def test_every_flipped_bit_decodes_to_what_was_announced_or_is_refused() -> None:
    meta, _, body_bytes = encode(PUSH)
    decoder = Decoder([Push, Pull])
    accepted = 0
    for position in range(8 * len(meta)):
        flipped = bytearray(meta)
        flipped[position // 8] ^= 1 << position % 8
        try:
            message, arrays = decoder.decode_meta(flipped, 2, body_bytes)
        except DecodeError:
            continue
        accepted += 1
        assert type(message) is Push
        assert sum(array.nbytes for array in arrays) == body_bytes
    # A clock of 6, <i8 in place of <f8, and their like remain; the frame's checksum is for those.
    assert 0 < accepted < 60
    for length in range(len(meta)):
        with pytest.raises(DecodeError):
            decoder.decode_meta(meta[:length], 2, body_bytes)
