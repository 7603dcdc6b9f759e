"""Which arrays are shared and which are copied, by who may still write to their memory."""

import numpy as np
import pytest

from emuml.memory import is_settled, owned


def read_only(array):
    array.flags.writeable = False
    return array


def mapped(tmp_path, mode):
    np.save(tmp_path / "array.npy", np.arange(4.0))
    return np.load(tmp_path / "array.npy", mmap_mode=mode)


SHARED = {
    "that owns its memory": lambda path: read_only(np.arange(4.0)),
    "view of a read-only one": lambda path: read_only(np.arange(8.0))[2:6],
    "bytes": lambda path: np.frombuffer(bytes(32)),
    "mapped file": lambda path: mapped(path, "r"),
    "view of a mapped file": lambda path: np.asarray(mapped(path, "r"))[1:],
}
COPIED = {
    "writable": lambda path: np.arange(4.0),
    "read-only view of a writable one": lambda path: read_only(np.arange(4.0)[:]),
    "read-only view of a view of a writable one": lambda path: read_only(np.arange(4.0)[:][1:]),
    "bytearray": lambda path: read_only(np.frombuffer(bytearray(32))),
    "sealed view of a bytearray": lambda path: np.frombuffer(memoryview(bytearray(32)).toreadonly()),
    "file mapped to be written": lambda path: read_only(mapped(path, "r+")),
    "file mapped privately": lambda path: read_only(mapped(path, "c")),
    "not contiguous": lambda path: read_only(np.arange(8.0))[::2],
    "at an odd address": lambda path: np.frombuffer(bytes(25), np.float64, offset=1),
    "of another type": lambda path: read_only(np.arange(4)),
}


@pytest.mark.parametrize("case", sorted(SHARED))
def test_what_nobody_writes_to_is_shared(case, tmp_path):
    array = SHARED[case](tmp_path)
    assert np.shares_memory(owned(array), array)
    assert type(owned(array)) is np.ndarray
    assert not owned(array).flags.writeable


@pytest.mark.parametrize("case", sorted(COPIED))
def test_what_others_may_write_to_is_copied(case, tmp_path):
    array = COPIED[case](tmp_path)
    own = owned(array)
    np.testing.assert_array_equal(own, array)
    assert not np.shares_memory(own, array)
    assert not own.flags.writeable
    assert own.flags.c_contiguous
    assert is_settled(own)


def test_a_file_counts_only_where_it_may(tmp_path):
    assert is_settled(mapped(tmp_path, "r"), mapped=True)
    assert not is_settled(mapped(tmp_path, "r"))
