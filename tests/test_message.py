"""Messages: what they refuse, what freezing shares and copies, and that the wire gives back value and type."""

import contextlib
import pickle
from collections.abc import Sequence
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from emuml.errors import MessageError
from emuml.lazy import Deferred
from emuml.message import (
    META_BYTES_MAX,
    Array,
    DecodeError,
    Decoder,
    Message,
    Outline,
    chunks,
    decode,
    digest,
    encode,
    freeze,
    freeze_array,
    seal,
    size_bytes,
    wire_bytes,
)
from emuml.node import NodeId
from emuml.task import Task


class Push(Message):
    clock: int
    weights: np.ndarray
    rows: np.ndarray


class Pull(Message):
    clock: int


class Single(Message):
    value: Array


class Doubles(Message):
    value: NDArray[np.float64]


class Leaf(msgspec.Struct, frozen=True):
    name: str
    rows: list[Array]
    more: "list[Leaf]" = []


class Everything(Message):
    count: int
    ratio: float
    name: str
    flag: bool
    blob: bytes
    numbers: list[int]
    pair: tuple[str, float]
    blocks: tuple[Array, ...]
    table: dict[str, Array]
    maybe: int | None
    node: NodeId
    leaf: Leaf
    other: Array | None = None


class Containers(Message):
    numbers: list[int]
    table: dict[str, list[Array]]


PUSH = Push(7, np.arange(6.0).reshape(2, 3), np.arange(3))
WIDTHS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
DTYPES = st.sampled_from([order + code for code in WIDTHS for order in "<>"]) | st.integers(1, 40).map("V{}".format)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@st.composite
def arrays(draw: st.DrawFn) -> NDArray[Any]:
    """Arrays of every allowed dtype: 0-d, empty, strided, reversed, transposed, big-endian."""
    dtype, shape = np.dtype(draw(DTYPES)), draw(SHAPES)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    array = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8).view(dtype).reshape(shape)
    if dtype.kind == "b":
        array = np.asarray(array.view(np.uint8) & 1).view(dtype)
    change = draw(st.sampled_from(["same", "copy", "reversed", "every second", "transposed"]))
    if change == "copy":
        return array.copy()
    if change == "transposed":
        return array.T
    if array.ndim and change != "same":
        return array[::-1] if change == "reversed" else array[..., ::2]
    return array


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
LEAVES = st.recursive(
    st.builds(Leaf, TEXTS, st.lists(arrays(), max_size=2)),
    lambda inner: st.builds(Leaf, TEXTS, st.lists(arrays(), max_size=2), st.lists(inner, max_size=2)),
    max_leaves=3,
)
MESSAGES = st.builds(
    Everything,
    count=st.integers(-(2**63), 2**64 - 1),
    ratio=st.floats(),
    name=TEXTS,
    flag=st.booleans(),
    blob=st.binary(max_size=8),
    numbers=st.lists(st.integers(-(2**63), 2**64 - 1), max_size=4),
    pair=st.tuples(TEXTS, st.floats()),
    blocks=st.lists(arrays(), max_size=3).map(tuple),
    table=st.dictionaries(TEXTS, arrays(), max_size=3),
    maybe=st.none() | st.integers(0, 9),
    node=st.builds(NodeId, TEXTS, st.integers(0, 99)),
    leaf=LEAVES,
    other=st.none() | arrays(),
)


def bits(array: NDArray[Any]) -> tuple[str, tuple[int, ...], bytes]:
    """What must survive the wire: little-endian dtype, shape, and every bit (also of NaN)."""
    return array.dtype.newbyteorder("<").str, array.shape, array.astype(array.dtype.newbyteorder("<")).tobytes()


def same(a: Any, b: Any) -> bool:
    """Whether two values have one type and one value, compared without the code under test."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return bits(a) == bits(b)
    if isinstance(a, msgspec.Struct):
        return all(same(getattr(a, name), getattr(b, name)) for name in type(a).__struct_fields__)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b)


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


def make(name: str, *fields: Any) -> type[Message]:
    return cast(type[Message], msgspec.defstruct(name, fields, bases=(Message,), frozen=True))


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
