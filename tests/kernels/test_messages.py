"""The compiled checks and sizes of messages against the Python code that they stand in for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml._kernels import message_checks
from emuml.errors import MessageError
from emuml.lazy import Deferred
from emuml.message import Array, Message, measured_bytes, size_bytes
from emuml.plans import check_fields
from emuml.task import Task
from tests.messages import MESSAGES, TEXTS, arrays

pytestmark = pytest.mark.skipif(message_checks is None, reason="the kernels are not compiled")


class Plain(Message):
    count: int
    ratio: float
    name: str
    flag: bool
    blob: bytes
    rows: Array
    more: Array


class Derived(Plain):
    last: int = 7


INTEGERS = st.integers(-(2**63), 2**64 - 1) | st.sampled_from(
    [sign * (1 << bits) + off for bits in (5, 7, 8, 15, 16, 31, 32, 63) for sign in (1, -1) for off in (-1, 0, 1)]
).filter(lambda number: -(2**63) <= number < 2**64)
LONG = st.sampled_from([0, 31, 32, 255, 256, 65535, 65536])
PLAIN = st.builds(
    Plain,
    count=INTEGERS,
    ratio=st.floats(),
    name=TEXTS | LONG.map(lambda size: "é" * size) | LONG.map(lambda size: "x" * size),
    flag=st.booleans(),
    blob=st.binary(max_size=8) | LONG.map(bytes),
    rows=arrays(),
    more=arrays() | st.just(Deferred(Task(np.zeros, (3,), 1.0, (300, 70000, 1)))),
)


@given(PLAIN | MESSAGES)
def test_a_message_has_the_size_of_its_encoding(message):
    assert size_bytes(message) == measured_bytes(message)


@given(PLAIN.map(lambda plain: Derived(*(getattr(plain, name) for name in Plain.__struct_fields__))))
def test_fields_of_a_base_class_are_measured_too(message):
    assert size_bytes(message) == measured_bytes(message) > 0


VALUES = st.sampled_from(
    [1, True, 1.5, "a", "\ud800", b"b", None, 2**64, -(2**63) - 1, np.int64(3), np.float64(2.5), np.zeros(2), [1], (),
     np.zeros(2, object), np.zeros((1,) * 33), np.array(["a"]), np.zeros(1, "<M8[s]")]
)  # fmt: skip


@given(st.lists(VALUES, min_size=7, max_size=7))
def test_a_message_is_refused_by_both_or_by_none_and_with_one_text(values):
    try:
        message = Plain(*values)
    except MessageError as error:
        said = str(error)
    else:
        check_fields(message)
        return
    stand_in = object.__new__(type("Plain", (), {"_plan": Plain._plan}))
    stand_in.__dict__.update(zip(Plain.__struct_fields__, values, strict=True))
    with pytest.raises(MessageError) as refused:
        check_fields(stand_in)
    assert str(refused.value) == said


def test_too_much_beside_the_arrays_is_refused_with_the_same_words():
    with pytest.raises(MessageError) as refused:
        size_bytes(Derived(1, 1.0, "x" * (1 << 20), True, b"", np.zeros(1), np.zeros(1)))
    assert "1048576 bytes" in str(refused.value)
