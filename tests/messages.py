"""Messages of every kind that may be sent, drawn at random, and their comparison without the code under test."""

from typing import Any, cast

import msgspec
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from emuml.message import (
    Array,
    Message,
)
from emuml.node import NodeId


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


def make(name: str, *fields: Any) -> type[Message]:
    return cast(type[Message], msgspec.defstruct(name, fields, bases=(Message,), frozen=True))
