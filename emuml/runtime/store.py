"""Durable blocks of a real node: an append-only log of atomic commits, fenced by incarnation.

A commit is one record with a checksum: appended, flushed to the disk, then acknowledged. Recovery takes the valid
prefix; a record that is damaged but not the last one is reported, because it had been acknowledged. The file keeps a
format version; no pickle.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import crc32c
import msgspec
import numpy as np

from emuml.blocks import Saved, Version
from emuml.errors import FormatError, RunFailed
from emuml.journal import tag_of

FORMAT = 1
MAGIC = b"EMUMLBLK"
_HEADER = struct.Struct("<8sI")
_PREFIX = struct.Struct("<QI")


class LogStore:
    """The blocks that one node id saved, in ``folder/blocks``.

    Parameters
    ----------
    folder : Path
        Of this node id; outlives incarnations.
    incarnation : int
        A store that a later incarnation has opened refuses an earlier one.
    """

    def __init__(self, folder: Path, incarnation: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "blocks"
        self._file = self._path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise RunFailed(f"{self._path} is open in another process") from None
        self._history: dict[Any, tuple[Version, ...]] = {}
        self._commits = 0
        self._incarnation = incarnation
        try:
            self._recover()
        except BaseException:
            self._file.close()
            raise

    def _recover(self) -> None:
        self._file.seek(0)
        data = self._file.read()
        header = _HEADER.pack(MAGIC, FORMAT)
        if len(data) < len(header) and header.startswith(data):  # new, or killed while it was made
            self._file.truncate(0)
            self._file.write(header)
            self._file.flush()
            return
        if len(data) < len(header) or data[:8] != MAGIC:
            raise FormatError("this is no block store", str(self._path))
        if _HEADER.unpack_from(data)[1] != FORMAT:
            raise FormatError(f"block store format {_HEADER.unpack_from(data)[1]}", str(self._path), f"{FORMAT}")
        end = len(header)
        for position, record in _records(data, self._path):
            if record["incarnation"] > self._incarnation:
                raise RunFailed(f"fenced: {self._path} was written by life {record['incarnation']}")
            self._apply({tag_of(key): _value(value) for key, value in record["blocks"]})
            end = position
        self._file.truncate(end)

    def _apply(self, blocks: Mapping[Any, Any]) -> None:
        self._commits += 1
        for block, value in blocks.items():
            self._history[block] = (*self._history.get(block, ())[-1:], (self._commits, value))

    def commit(self, blocks: Mapping[Any, Any]) -> int:
        """Append one commit and return its number once it is durable; call it from the storage thread only."""
        record = {"incarnation": self._incarnation, "blocks": [[key, _plain(value)] for key, value in blocks.items()]}
        data = msgspec.msgpack.encode(record)
        self._file.write(_PREFIX.pack(len(data), crc32c.crc32c(data)) + data)
        self._file.flush()
        os.fdatasync(self._file.fileno())
        self._apply(blocks)
        return self._commits

    def read(self, blocks: Iterable[Any] | None = None) -> Saved:
        """Return the newest values of these blocks, or of all."""
        if blocks is None:
            return Saved(self._history)
        return Saved({block: self._history[block] for block in blocks if block in self._history})

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _records(data: bytes, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield where each record ends, and the record, until the end or a last record that was cut."""
    position = _HEADER.size
    while position + _PREFIX.size <= len(data):
        length, checksum = _PREFIX.unpack_from(data, position)
        record = data[position + _PREFIX.size : position + _PREFIX.size + length]
        if len(record) == length and crc32c.crc32c(record) != checksum and position + _PREFIX.size + length < len(data):
            raise FormatError(f"the record at byte {position} is damaged", str(path))
        if len(record) < length or crc32c.crc32c(record) != checksum:
            return
        position += _PREFIX.size + length
        yield position, msgspec.msgpack.decode(record)


def _plain(value: Any) -> Any:
    """Return a block value as msgpack: each array, tuple and mapping is marked, so that types come back."""
    if isinstance(value, np.ndarray):
        return {"a": [value.dtype.str, list(value.shape), value.tobytes()]}
    if isinstance(value, tuple):
        return {"t": [_plain(item) for item in value]}
    if isinstance(value, Mapping):
        return {"m": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(np.asarray(value))
    if isinstance(value, msgspec.Struct):
        raise TypeError(f"a {type(value).__name__} cannot be saved; save its fields")
    return value


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    ((mark, content),) = plain.items()
    if mark == "a":
        array = np.frombuffer(content[2], np.dtype(content[0])).reshape(content[1])
        array.flags.writeable = False
        return array
    if mark == "t":
        return tuple(_value(item) for item in content)
    return {_value(key): _value(item) for key, item in content}
