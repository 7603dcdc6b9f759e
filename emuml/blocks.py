"""Stable storage as nodes see it: blocks with versions, saved in atomic commits, read as a mapping.

A block id is a string, an integer, or a tuple of these. The store belongs to the node id and outlives incarnations;
``version`` counts the commits of that node id from 1. Engines keep stores behind :class:`BlockStore`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from emuml.errors import ContractError
from emuml.lazy import Deferred, array_of
from emuml.node import NodeId

_SCALARS = (int, float, str, bool, bytes, type(None))
_ALLOWED = "int, float, str, bool, bytes, None, arrays, and lists, tuples and dicts of these"

BlockId = str | int | tuple[Any, ...]
Version = tuple[int, Any]
"""Number of the commit and the value it gave the block."""


class Saved(Mapping[Any, Any]):
    """Read-only mapping from block id to the newest committed value, with versions and the value before."""

    def __init__(self, history: Mapping[Any, tuple[Version, ...]] | None = None) -> None:
        self._history = dict(history or {})

    def __getitem__(self, block: Any) -> Any:
        return _handed_out(self._history[block][-1][1])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._history)

    def __len__(self) -> int:
        return len(self._history)

    def version(self, block: Any) -> int:
        """Return the number of the commit that wrote the newest value of ``block``.

        Raises
        ------
        KeyError
            If the block was never saved.
        """
        version: int = self._history[block][-1][0]
        return version

    def previous(self, block: Any) -> Any:
        """Return the value saved before the newest one, or ``None`` when there is none."""
        versions = self._history.get(block, ())
        return _handed_out(versions[-2][1]) if len(versions) > 1 else None


class BlockStore(Protocol):
    """Where one node id keeps its blocks; one writer at a time."""

    def commit(self, blocks: Mapping[Any, Any]) -> int:
        """Write all blocks atomically and durably; return the number of this commit, from 1."""

    def read(self, blocks: Iterable[Any] | None = None) -> Saved:
        """Return the newest values of these blocks (of all when ``None``); absent ids are absent."""


class MemoryStore:
    """A store in memory, for the emulator: it outlives the node's incarnations within one run."""

    def __init__(self) -> None:
        self._history: dict[Any, tuple[Version, ...]] = {}
        self._commits = 0

    def commit(self, blocks: Mapping[Any, Any]) -> int:
        """See :class:`BlockStore`. The values must be snapshots already."""
        self._commits += 1
        for block, value in blocks.items():
            self._history[block] = (*self._history.get(block, ())[-1:], (self._commits, value))
        return self._commits

    def read(self, blocks: Iterable[Any] | None = None) -> Saved:
        """See :class:`BlockStore`."""
        if blocks is None:
            return Saved(self._history)
        return Saved({block: self._history[block] for block in blocks if block in self._history})


def snapshot(value: Any) -> Any:
    """Return a copy of a block value that later changes cannot reach; arrays in it are read-only.

    Raises
    ------
    ContractError
        If a store could not give the value back with the same type.
    """
    if isinstance(value, (np.ndarray, Deferred)):
        copy = np.array(array_of(value), order="C", copy=True)
        copy.flags.writeable = False
        return copy
    if isinstance(value, Mapping):
        return {snapshot(key): snapshot(item) for key, item in value.items()}
    if type(value) is list:
        return [snapshot(item) for item in value]
    if type(value) is tuple:
        return tuple([snapshot(item) for item in value])
    if type(value) in _SCALARS:
        return value
    raise ContractError(f"a {type(value).__name__} cannot be saved; allowed: {_ALLOWED}")


def checked_id(block: Any) -> Any:
    """Return a block id.

    Raises
    ------
    ContractError
        If it is no string, integer, or tuple of these.
    """
    if type(block) in (str, int) or (type(block) is tuple and all(checked_id(part) == part for part in block)):
        return block
    raise ContractError(f"block id {block!r}; allowed: a string, an integer, or a tuple of these")


def checked_tag(tag: Any) -> Any:
    """Return the tag of a task, save or load.

    Raises
    ------
    ContractError
        If a journal could not give it back: it is no string, 64-bit integer, node id, or tuple of these.
    """
    is_plain = type(tag) in (str, bool, NodeId) or (type(tag) is int and -(2**63) <= tag < 2**63)
    if is_plain or (type(tag) is tuple and all(checked_tag(part) == part for part in tag)):
        return tag
    raise ContractError(f"tag {tag!r}; allowed: a string, a 64-bit integer, a node id, or a tuple of these")


def _handed_out(value: Any) -> Any:
    """Return a stored value with containers of its own: readers may change those, arrays are read-only."""
    if isinstance(value, dict):
        return {key: _handed_out(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_handed_out(item) for item in value]
    if isinstance(value, tuple):
        return tuple([_handed_out(item) for item in value])
    return value


def size_of(value: Any) -> int:
    """Return the approximate bytes of a block value: exact for arrays, 8 for a scalar, summed over containers."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, Mapping):
        return sum(size_of(key) + size_of(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return sum(size_of(item) for item in value)
    return len(value) if isinstance(value, (str, bytes)) else 8
