"""The journal of a node: the ordered events it received, with digests of what each step did.

Feeding a journal back must give the same effects, byte for byte; ``emuml.des.replay`` does that. Messages are named by
(sender, its incarnation, session, number in the session), never copied: replaying the sender re-creates them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import crc32c
import msgspec
import numpy as np

from emuml import effects as fx
from emuml.errors import FormatError
from emuml.lazy import Deferred, array_of
from emuml.message import Message, digest
from emuml.node import NodeId

FORMAT = 1
MAGIC = b"EMUMLJNL"
RAISED = -1
"""In place of the digest of effects: the handler raised, and there are none."""
_HEADER = struct.Struct("<8sIII")
_PREFIX = struct.Struct("<II")


class Header(msgspec.Struct, frozen=True):
    """What a journal is of: node, incarnation, the run's seed, and the versions that made it."""

    run: str
    node: str
    incarnation: int
    seed: int
    versions: dict[str, str]


class Step(msgspec.Struct, frozen=True, array_like=True):
    """One event and the digest of the effects that its handler recorded.

    ``details`` by kind: start [blocks, sessions, joining, absent]; message [sender, incarnation, session, seq,
    digest]; timer [name]; computed [tag, digest, seconds]; saved [tag]; loaded [tag, blocks]; peer [peer, state,
    session, reason].
    """

    index: int
    now: float
    kind: str
    details: list[Any]
    effects: int


class JournalWriter:
    """Collects the steps of one incarnation, in memory (``keep``) and in a file if one is given."""

    def __init__(self, header: Header, stream: BinaryIO | None = None, keep: bool = True) -> None:
        self.header = header
        self.steps: list[Step] = []
        self._keep, self._count = keep, 0
        self._stream = stream
        self._pending: list[bytes] = []
        if stream is not None:
            data = msgspec.msgpack.encode(header)
            stream.write(_HEADER.pack(MAGIC, FORMAT, len(data), crc32c.crc32c(data)) + data)
            stream.flush()

    def add(self, now: float, kind: str, details: list[Any], effects: int) -> None:
        """Append one step; :meth:`settle` makes it leave the process."""
        step = Step(self._count, now, kind, [_written(detail) for detail in details], effects)
        self._count += 1
        if self._keep:
            self.steps.append(step)
        if self._stream is not None:
            data = msgspec.msgpack.encode(step, enc_hook=str)
            self._pending.append(_PREFIX.pack(len(data), crc32c.crc32c(data)) + data)

    def settle(self) -> None:
        """Write what is pending to the file (no fsync): to be called before a step's first send leaves."""
        if self._pending and self._stream is not None:
            self._stream.write(b"".join(self._pending))
            self._stream.flush()
            self._pending.clear()


class Journal(msgspec.Struct, frozen=True):
    """A journal read back, or taken from memory."""

    header: Header
    steps: list[Step]


def read_journal(path: Path) -> Journal:
    """Read a journal file; a last record cut by a crash is left out.

    Raises
    ------
    FormatError
        If the file is no journal, of another version, or a record's checksum is wrong.
    """
    data = path.read_bytes()
    if len(data) < _HEADER.size or data[:8] != MAGIC:
        raise FormatError("this is no journal", str(path))
    _, version, length, checksum = _HEADER.unpack_from(data)
    if version != FORMAT:
        raise FormatError(f"journal format {version}", str(path), f"format {FORMAT}")
    start = _HEADER.size + length
    header = data[_HEADER.size : start]
    if crc32c.crc32c(header) != checksum:
        raise FormatError("the journal's header is damaged", str(path))
    return Journal(msgspec.msgpack.decode(header, type=Header), list(_steps(data, start, path)))


def _steps(data: bytes, position: int, path: Path) -> Iterator[Step]:
    while position + _PREFIX.size <= len(data):
        length, checksum = _PREFIX.unpack_from(data, position)
        record = data[position + _PREFIX.size : position + _PREFIX.size + length]
        if len(record) < length:
            return
        if crc32c.crc32c(record) != checksum:
            raise FormatError(f"journal record at byte {position} is damaged", str(path))
        yield msgspec.msgpack.decode(record, type=Step)
        position += _PREFIX.size + length


def tag_of(value: Any) -> Any:
    """Return a tag or block id as it was before it was written: tuples and node ids come back."""
    if isinstance(value, dict):
        return NodeId.parse(value["node"])
    return tuple(tag_of(item) for item in value) if isinstance(value, list) else value


def _written(value: Any) -> Any:
    """Return a detail as it is written: node ids are marked, tuples become lists."""
    if isinstance(value, NodeId):
        return {"node": str(value)}
    return [_written(item) for item in value] if isinstance(value, (list, tuple)) else value


def value_digest(value: Any, crc: int = 0) -> int:
    """Return the CRC-32C of any block value, result or tag: kinds, shapes and bytes, in a fixed order."""
    if isinstance(value, (np.ndarray, Deferred)):
        array = array_of(value)
        crc = crc32c.crc32c(f"{array.dtype.str}{array.shape}".encode(), crc)
        return int(crc32c.crc32c(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, crc))
    if isinstance(value, Message):
        return int(crc32c.crc32c(digest(value).to_bytes(4, "little"), crc))
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, (list, tuple)):
        crc = crc32c.crc32c(f"({len(value)}".encode(), crc)
        for item in value:
            crc = value_digest(item, crc)
        return crc
    return int(crc32c.crc32c(f"{type(value).__name__}:{value!r}".encode(), crc))


def blocks_digest(saved: Any) -> list[list[Any]]:
    """Return ``[id, version, digest]`` of each block of a mapping that storage handed over."""
    return [[block, saved.version(block), value_digest(saved[block])] for block in saved]


def effects_digest(effects: Iterable[fx.Effect]) -> int:
    """Return the CRC-32C of a step's effects, in call order, with the bytes of every array in them."""
    crc = 0
    for effect in effects:
        crc = value_digest([type(effect).__name__, *_parts(effect)], crc)
    return crc


def _parts(effect: fx.Effect) -> list[Any]:
    match effect:
        case fx.Send(to, message) | fx.SendLatest(to, message):
            key = effect.key if isinstance(effect, fx.SendLatest) else ""
            return [str(to), message, key]
        case fx.Broadcast(to, message):
            return [[str(peer) for peer in to], message]
        case fx.Compute(tag, task, draw):
            whole = [] if task.whole is None else [task.whole]
            return [tag, task.name, task.cost, list(task.shape), task.dtype, draw, list(_plain(task.inputs)), *whole]
        case _:
            return [getattr(effect, name) for name in effect.__struct_fields__]


_TOLD = (np.ndarray, Deferred, int, float, str, bytes, tuple, type(None))
"""Inputs that a digest tells by value; a result is the array that it is over TCP."""


def _plain(inputs: Iterable[Any]) -> Iterator[Any]:
    for item in inputs:
        yield item if isinstance(item, _TOLD) else type(item).__name__
