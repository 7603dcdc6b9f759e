"""Blocks: versions, atomic commits, snapshots; against a dictionary that keeps everything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.blocks import MemoryStore, Saved, size_of, snapshot

ids = st.sampled_from(["table", 3, ("a", 1)])
commits = st.lists(st.dictionaries(ids, st.integers(), min_size=1))


@given(commits, st.lists(ids))
def test_a_store_has_the_newest_values_with_their_commit(history, asked):
    store, model = MemoryStore(), {}
    for number, blocks in enumerate(history, start=1):
        assert store.commit(blocks) == number
        for block, value in blocks.items():
            model.setdefault(block, []).append((number, value))

    everything, some = store.read(), store.read(asked)
    assert dict(everything) == {block: versions[-1][1] for block, versions in model.items()}
    assert dict(some) == {block: everything[block] for block in asked if block in model}
    for block, versions in model.items():
        assert everything.version(block) == versions[-1][0]
        assert everything.previous(block) == (versions[-2][1] if len(versions) > 1 else None)


def test_what_was_read_does_not_change_later():
    store = MemoryStore()
    store.commit({"a": 1})
    before = store.read()
    store.commit({"a": 2, "b": 3})

    assert dict(before) == {"a": 1}
    assert before.version("a") == 1


def test_blocks_that_were_never_saved():
    saved = Saved()

    assert len(saved) == 0
    assert "a" not in saved
    assert saved.previous("a") is None
    assert saved.get("a", 7) == 7
    with pytest.raises(KeyError):
        saved.version("a")


def test_saved_blocks_cannot_be_assigned():
    with pytest.raises(TypeError):
        Saved()["a"] = 1


def test_a_snapshot_is_out_of_reach_of_later_changes():
    array = np.arange(6.0).reshape(2, 3).T
    value = {"array": array, "list": [array, 1], "tuple": (array, {"deep": [2]})}
    taken = snapshot(value)
    array[:] = -1.0
    value["list"].append(3)
    value["tuple"][1]["deep"][0] = 4

    for copy in (taken["array"], taken["list"][0], taken["tuple"][0]):
        assert copy.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
        assert copy.flags.c_contiguous
        assert not copy.flags.writeable
    assert taken["list"][1:] == [1]
    assert taken["tuple"][1] == {"deep": [2]}
    assert array.flags.writeable


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (np.zeros(3), 24),
        (np.zeros((2, 5), np.float32), 40),
        (7, 8),
        (True, 8),
        (None, 8),
        ("abc", 3),
        (b"abcd", 4),
        ([1, "ab"], 10),
        ((np.zeros(1), (1, 2)), 24),
        ({"key": np.zeros(2)}, 19),
        ([], 0),
    ],
)
def test_sizes(value, size):
    assert size_of(value) == size
