"""Journals on disk: read back equal, cut tails left out, damage never read as something else; digests of effects."""

import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml import effects as fx
from emuml.blocks import MemoryStore
from emuml.errors import FormatError
from emuml.journal import (
    Header,
    JournalWriter,
    Step,
    blocks_digest,
    effects_digest,
    read_journal,
    tag_of,
    value_digest,
)
from emuml.lazy import Deferred
from emuml.message import Array, Message
from emuml.node import NodeId
from emuml.task import Task

HEADER = Header("run-1", "worker-3", 2, 7, {"emuml": "0.1"})
STEPS = [
    (0.0, "start", [[["table", 1, 99]], [["server-0", 3]], True, ["worker-9"]], 1),
    (0.25, "message", ["server-0", 1, 3, 1, 4_000_000_000], 2**32 - 1),
    (0.5, "computed", [["grad", 2], 12, 0.125], 0),
    (1.5, "timer", ["tick"], 5),
]
NODE = NodeId("server", 0)


def written(steps=STEPS, keep=True):
    stream = io.BytesIO()
    writer = JournalWriter(HEADER, stream, keep)
    for step in steps:
        writer.add(*step)
        writer.settle()
    return stream.getvalue(), writer


def read(data, tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(data)
    return read_journal(path)


def test_a_journal_comes_back_equal(tmp_path):
    data, writer = written()
    journal = read(data, tmp_path)

    assert journal.header == HEADER
    assert journal.steps == writer.steps == [Step(index, *step) for index, step in enumerate(STEPS)]


def test_steps_that_are_not_kept_in_memory_are_in_the_file(tmp_path):
    data, writer = written(keep=False)

    assert writer.steps == []
    assert [step.index for step in read(data, tmp_path).steps] == [0, 1, 2, 3]


def test_a_step_is_in_the_file_once_it_is_settled_and_not_before():
    stream = io.BytesIO()
    writer = JournalWriter(HEADER, stream)
    empty = len(stream.getvalue())
    writer.add(*STEPS[0])
    assert len(stream.getvalue()) == empty
    writer.settle()
    full = stream.getvalue()
    writer.settle()

    assert len(full) > empty
    assert stream.getvalue() == full


@pytest.mark.slow
def test_a_journal_cut_anywhere_is_a_prefix(tmp_path):
    data, writer = written()
    lengths = set()
    for size in range(len(data)):
        try:
            steps = read(data[:size], tmp_path).steps
        except FormatError:
            assert size < len(written([])[0])
            continue
        assert steps == writer.steps[: len(steps)]
        lengths.add(len(steps))

    assert lengths == {0, 1, 2, 3}


@pytest.mark.slow
def test_a_flipped_byte_is_refused_or_cuts_the_tail_and_changes_no_step(tmp_path):
    data, writer = written()
    outcomes = set()
    for position in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= flip
            try:
                journal = read(bytes(damaged), tmp_path)
            except FormatError as error:
                outcomes.add(f"refused {error.where}")
                continue
            assert journal.header == HEADER
            assert journal.steps == writer.steps[: len(journal.steps)]
            assert len(journal.steps) < len(writer.steps)
            outcomes.add("cut")

    assert outcomes == {f"refused {tmp_path / 'journal'}", "cut"}


def test_another_format_is_refused_by_number(tmp_path):
    data = bytearray(written()[0])
    data[8:12] = struct.pack("<I", 2)

    with pytest.raises(FormatError, match=r"journal format 2; allowed: format 1"):
        read(bytes(data), tmp_path)
    with pytest.raises(FormatError, match="this is no journal"):
        read(b"EMUMLTRC" + bytes(data[8:]), tmp_path)


# Digests


class Note(Message):
    text: str
    value: Array


DISTINCT = [
    None, 0, 0.0, False, "", b"", (), ((),), [0], (0, 0), "0", 1, -1, 1.0, "1", True, (1, 2), ((1,), 2), ("1", 2),
    {"a": 1}, {"a": 2}, {"b": 1}, np.zeros(1), np.zeros(2), np.zeros((1, 1)), np.zeros(1, np.float32), np.ones(1),
    np.array(0.0), -np.zeros(1), Note("a", np.zeros(1)), Note("b", np.zeros(1)), Note("a", np.ones(1)),
]  # fmt: skip


def test_different_values_have_different_digests():
    digests = [value_digest(value) for value in DISTINCT]

    assert len(set(digests)) == len(digests)


def test_equal_values_have_equal_digests():
    array = np.arange(6.0).reshape(2, 3)

    assert value_digest(np.asfortranarray(array)) == value_digest(array)
    assert value_digest([1, (2,)]) == value_digest((1, [2]))
    task = Task(np.arange, (3.0,), 1.0, (3,))
    assert value_digest(Deferred(task)) == value_digest(np.arange(3.0))


def test_a_task_of_a_result_is_that_of_its_array():
    """What a task was given is told by value, whether an engine has made it or not."""
    later = Deferred(Task(np.arange, (3.0,), 1.0, (3,)))
    tasks = [Task(np.sum, (given,), 1.0, ()) for given in (later, np.arange(3.0), np.ones(3))]
    found = [effects_digest([fx.Compute("a", task, 0, 1)]) for task in tasks]

    assert found[0] == found[1] != found[2]


def send(**changed):
    given = {"to": NODE, "message": Note("a", np.zeros(2)), "size_bytes": 1, **changed}
    return fx.Send(**given)


EFFECTS = [
    [],
    [send()],
    [send(), send()],
    [send(to=NodeId("server", 1))],
    [send(message=Note("b", np.zeros(2)))],
    [send(message=Note("a", -np.zeros(2)))],
    [fx.SendLatest(NODE, Note("a", np.zeros(2)), "", 1)],
    [fx.SendLatest(NODE, Note("a", np.zeros(2)), "k", 1)],
    [fx.Broadcast((NODE,), Note("a", np.zeros(2)), 1)],
    [fx.Broadcast((NODE, NODE), Note("a", np.zeros(2)), 1)],
    [fx.SetTimer("a", 1.0, 1)],
    [fx.SetTimer("a", 2.0, 1)],
    [fx.CancelTimer("a", 1)],
    [fx.Compute("a", Task(np.zeros, (2,), 1.0, (2,)), 0, 1)],
    [fx.Compute("a", Task(np.ones, (2,), 1.0, (2,)), 0, 1)],
    [fx.Compute("a", Task(np.zeros, (2,), 2.0, (2,)), 0, 1)],
    [fx.Compute("a", Task(np.zeros, (2,), 1.0, (2,), whole=2.0), 0, 1)],
    [fx.Compute("a", Task(np.zeros, (2,), 1.0, (2,), whole=3.0), 0, 1)],
    [fx.Compute("a", Task(np.zeros, (2,), 1.0, (2,)), 1, 1)],
    [fx.Compute("b", Task(np.zeros, (2,), 1.0, (2,)), 0, 1)],
    [fx.Compute("a", Task(np.zeros, (np.zeros(1),), 1.0, (2,)), 0, 1)],
    [fx.Compute("a", Task(np.zeros, (np.ones(1),), 1.0, (2,)), 0, 1)],
    [fx.Cancel("a", 1)],
    [fx.Save("a", {"b": np.zeros(1)})],
    [fx.Save("a", {"b": np.ones(1)})],
    [fx.Load("a", ("b",))],
    [fx.Log({"round": 1})],
    [fx.Log({"round": 2})],
    [fx.Publish(1, np.zeros(1))],
    [fx.Publish(1, np.ones(1))],
    [fx.Stop("a")],
    [fx.Stop("a"), send()],
    [send(), fx.Stop("a")],
]


def test_digests_of_effects_tell_kinds_arguments_and_order_apart():
    digests = [effects_digest(effects) for effects in EFFECTS]

    assert len(set(digests)) == len(digests)
    assert digests == [effects_digest(effects) for effects in EFFECTS]


def test_digests_of_blocks_have_their_version():
    store = MemoryStore()
    store.commit({"a": 1})
    store.commit({"a": 1, ("b", 2): np.zeros(1)})

    assert blocks_digest(store.read()) == [["a", 2, value_digest(1)], [("b", 2), 2, value_digest(np.zeros(1))]]


tags = st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner).map(tuple), max_leaves=6)


def as_lists(tag):
    return [as_lists(item) for item in tag] if isinstance(tag, tuple) else tag


@given(tags)
def test_tags_come_back_as_the_tuples_they_were(tag):
    assert tag_of(as_lists(tag)) == tag
