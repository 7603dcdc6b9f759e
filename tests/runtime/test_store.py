"""The block store on disk: what was acknowledged is there again; what was cut or changed never becomes a value."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from emuml.blocks import MemoryStore, snapshot
from emuml.errors import FormatError, RunFailed
from emuml.runtime.store import LogStore

COMMITS: tuple[dict[Any, Any], ...] = (
    {"weights": np.arange(3.0), ("block", 1): 7},
    {"weights": np.arange(3.0) + 1, "note": {"a": [1, (2, None)], "b": b"x"}},
    {("block", 1): 8, 5: -0.0},
)


def plain(value: Any) -> Any:
    """Return a value with types, in a form that compares exactly."""
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, Mapping):
        return ("map", [(plain(key), plain(item)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [plain(item) for item in value])
    return (type(value).__name__, repr(value))


def content(store: LogStore | MemoryStore) -> Any:
    saved = store.read()
    return {block: (saved.version(block), plain(saved[block]), plain(saved.previous(block))) for block in saved}


def after(commits: int) -> Any:
    """Return what is there after so many of the commits above."""
    model = MemoryStore()
    for blocks in COMMITS[:commits]:
        model.commit({block: snapshot(value) for block, value in blocks.items()})
    return content(model)


def opened(folder: Path, incarnation: int = 1) -> Any:
    """Open, read, close."""
    store = LogStore(folder, incarnation)
    try:
        return content(store)
    finally:
        store.close()


def written(folder: Path) -> tuple[bytes, list[int]]:
    """Make the commits above; return the file's bytes and where it ended after each commit."""
    store = LogStore(folder, 1)
    path, ends = folder / "blocks", [(folder / "blocks").stat().st_size]
    for number, blocks in enumerate(COMMITS, 1):
        assert store.commit(blocks) == number
        ends.append(path.stat().st_size)
    store.close()
    return path.read_bytes(), ends


def test_a_new_store_is_empty(tmp_path: Path) -> None:
    assert opened(tmp_path / "new") == {}


def test_what_was_committed_is_there_for_the_next_life(tmp_path: Path) -> None:
    written(tmp_path)
    assert opened(tmp_path, 2) == after(3)
    store = LogStore(tmp_path, 3)
    assert store.commit({"weights": np.zeros(0)}) == 4
    saved = store.read(["weights", "absent"])
    assert list(saved) == ["weights"]
    assert saved.version("weights") == 4
    np.testing.assert_array_equal(saved.previous("weights"), np.arange(3.0) + 1)
    store.close()


def test_values_that_were_read_do_not_change_with_later_commits(tmp_path: Path) -> None:
    store = LogStore(tmp_path, 1)
    store.commit({"a": 1})
    before = store.read()
    store.commit({"a": 2, "b": 3})
    assert dict(before) == {"a": 1}
    store.close()


SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text() | st.binary()
ARRAYS = hnp.arrays(st.sampled_from(["<f8", "<i4", "|b1", "<c16", "|u1"]), hnp.array_shapes(min_dims=0, min_side=0))
KEYS = st.text(max_size=5) | st.integers(-(2**63), 2**63 - 1)
VALUES = st.recursive(
    SCALARS | ARRAYS,
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(KEYS, inner),
    max_leaves=6,
)
IDS = st.recursive(KEYS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=3)


@given(st.lists(st.dictionaries(IDS, VALUES, max_size=3), max_size=4))
def test_it_behaves_like_a_store_in_memory(tmp_path_factory: pytest.TempPathFactory, commits: list[Any]) -> None:
    folder, model = tmp_path_factory.mktemp("store"), MemoryStore()
    store = LogStore(folder, 1)
    for blocks in commits:
        blocks = {block: snapshot(value) for block, value in blocks.items()}
        assert store.commit(blocks) == model.commit(blocks)
    assert content(store) == content(model)
    store.close()
    assert opened(folder) == content(model)


def test_every_cut_leaves_whole_commits(tmp_path: Path) -> None:
    data, ends = written(tmp_path / "whole")
    path = tmp_path / "blocks"
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        kept = sum(end <= cut for end in ends[1:])
        assert opened(tmp_path) == after(kept), cut
        # What is left can be written to again, and what was cut off does not come back.
        store = LogStore(tmp_path, 1)
        assert store.commit({"again": cut}) == kept + 1
        store.close()
        assert opened(tmp_path) == {**after(kept), "again": (kept + 1, plain(cut), plain(None))}, cut


def test_no_changed_bit_becomes_a_value(tmp_path: Path) -> None:
    data, ends = written(tmp_path / "whole")
    path = tmp_path / "blocks"
    outcomes = set()
    for position in range(len(data)):
        for bit in range(8):
            path.write_bytes(data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :])
            intact = sum(end <= position for end in ends[1:])
            try:
                found = opened(tmp_path)
            except FormatError:
                assert path.stat().st_size == len(data), "a damaged file was changed"
                outcomes.add("reported")
                continue
            assert found == after(intact), (position, bit)
            outcomes.add("cut")
    assert outcomes == {"reported", "cut"}


def test_a_damaged_commit_before_others_is_reported(tmp_path: Path) -> None:
    data, ends = written(tmp_path)
    middle = bytearray(data)
    middle[ends[1] + 20] ^= 1
    (tmp_path / "blocks").write_bytes(middle)
    with pytest.raises(FormatError, match=f"blocks: the record at byte {ends[1]} is damaged"):
        LogStore(tmp_path, 1)


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"EMUMLBLK\x63\0\0\0", b"EMUMLBLX\x01\0\0\0"])
def test_another_file_is_refused_and_kept(tmp_path: Path, start: bytes) -> None:
    path = tmp_path / "blocks"
    path.write_bytes(start + b"precious")
    with pytest.raises(FormatError):
        LogStore(tmp_path, 1)
    assert path.read_bytes() == start + b"precious"


def test_a_second_opener_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    first = LogStore(tmp_path, 1)
    with pytest.raises(RunFailed, match="open in another process"):
        LogStore(tmp_path, 2)
    first.commit({"a": 1})
    first.close()
    assert list(opened(tmp_path, 2)) == ["a"]


def test_a_former_life_is_fenced_before_it_changes_anything(tmp_path: Path) -> None:
    store = LogStore(tmp_path, 3)
    store.commit({"a": 1})
    store.close()
    before = (tmp_path / "blocks").read_bytes()
    with pytest.raises(RunFailed, match=r"fenced.*life 3"):
        LogStore(tmp_path, 2)
    assert (tmp_path / "blocks").read_bytes() == before
    assert list(opened(tmp_path, 3)) == ["a"]


WRITER = """
import sys
from pathlib import Path
from emuml.runtime.store import LogStore

store = LogStore(Path(sys.argv[1]), 1)
number = 0
while True:
    number = store.commit({"number": number, ("half", number % 2): [number] * 50})
    print(number, flush=True)
"""


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line == "20\n":
            break
    process.send_signal(signal.SIGKILL)
    acknowledged = max([20, *(int(line) for line in process.stdout if line.endswith("\n"))])
    process.wait(60)
    process.stdout.close()
    store = LogStore(tmp_path, 2)
    saved = store.read()
    number = saved["number"] + 1
    assert number in (acknowledged, acknowledged + 1)
    assert saved["half", saved["number"] % 2] == [saved["number"]] * 50
    assert store.commit({}) == number + 1
    store.close()


def test_a_commit_is_acknowledged_when_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, synced = LogStore(tmp_path, 1), []
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    for number in (1, 2):
        assert store.commit({"a": number}) == number
        assert synced[number - 1 :] == [(tmp_path / "blocks").stat().st_size]
    store.close()


def test_a_commit_that_the_disk_refuses_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError("input/output error")

    store = LogStore(tmp_path, 1)
    monkeypatch.setattr(os, "fdatasync", refuse)
    with pytest.raises(OSError, match="input/output"):
        store.commit({"a": 1})
    assert dict(store.read()) == {}
    store.close()


def test_a_full_disk_is_told_and_leaves_the_last_commit(tmp_path: Path) -> None:
    process = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert process.stdout == "OSError\n", process.stderr
    assert opened(tmp_path, 2) == {"a": (1, plain(1), plain(None))}


FULL = """
import resource, signal, sys
from pathlib import Path
from emuml.runtime.store import LogStore

store = LogStore(Path(sys.argv[1]), 1)
store.commit({"a": 1})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
try:
    store.commit({"a": bytes(10_000)})
except OSError as error:
    print(type(error).__name__, flush=True)
import os
os._exit(0)
"""
