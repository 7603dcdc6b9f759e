"""Named random streams: every draw is a pure function of (seed, node, stream name, position).

1. A new draw here moves no draw elsewhere; opening a stream again starts it again. Name streams by position.
2. Draws by position use raw Philox words and IEEE ``+ - * /`` only, so they are the same on every machine and under
   every numpy. ``generator`` hands out numpy's generator, whose methods numpy may change between versions.
3. The emulator's own streams have an empty node name, such as ``stream_key(seed, "", "compute/worker-3")``.

No module-level state and no clock here; the compiled kernel or its twin does the arithmetic.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emuml import _kernels
from emuml._kernels.reference_tails import normals_of
from emuml.errors import UserError

_WORD = (1 << 64) - 1
_TOGETHER = 1 << 16


def stream_key(seed: int, node: str, stream: str) -> int:
    """Return the 128-bit key of a named stream.

    Parameters
    ----------
    seed : int
        Experiment seed, 0 <= seed < 2**64.
    node : str
        Printed node id, such as ``worker-3``; empty for the emulator's own streams.
    stream : str
        Name of the stream, by position where there are several, such as ``batch/17``.

    Returns
    -------
    int
        ``BLAKE2b(u64le(seed) + u16le(len(node)) + node + stream)`` of 16 bytes, personalised ``emuml-stream-v1``,
        read in little-endian order; node and stream in UTF-8.

    Raises
    ------
    UserError
        If the seed or the length of the node name does not fit.

    Examples
    --------
    >>> stream_key(7, "worker-3", "batch/0").to_bytes(16, "little").hex()
    '67c69f02ca967832a01b8919ba344f0b'
    """
    return int.from_bytes(_digest(_stream_head(seed, node) + stream.encode()), "little")


def stream_keys(seed: int, node: str, stems: str, count: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the halves of the keys of ``count`` numbered streams: ``stream_key(seed, node, f"{stems}{number}")``.

    Parameters
    ----------
    seed : int
        As for :func:`stream_key`.
    node : str
        As for :func:`stream_key`.
    stems : str
        What the names of the streams begin with, such as ``compute/worker-``; the number follows.
    count : int
        How many streams there are, numbered from 0.

    Returns
    -------
    lows, highs : ndarray of uint64, shape (count,)
        See :func:`halves`.

    Examples
    --------
    >>> lows, highs = stream_keys(7, "", "compute/worker-", 4)
    >>> halves(stream_key(7, "", "compute/worker-3")) == (lows[3], highs[3])
    True
    """
    begun = _hash(_stream_head(seed, node) + stems.encode())
    lows, highs = np.empty(count, np.uint64), np.empty(count, np.uint64)
    for first in range(0, count, _TOGETHER):  # as many digests as objects: all at once they would outweigh the keys
        numbers = range(first, min(first + _TOGETHER, count))
        digests = b"".join([_digest_of(begun.copy(), b"%d" % number) for number in numbers])
        keys = np.frombuffer(digests, "<u8").reshape(len(numbers), 2)
        lows[first : numbers.stop], highs[first : numbers.stop] = keys[:, 0], keys[:, 1]
    return lows, highs


def generator(seed: int, node: str, stream: str) -> np.random.Generator:
    """Return a new numpy generator at the beginning of a named stream; see :func:`stream_key` for the arguments.

    Examples
    --------
    >>> float(generator(7, "worker-3", "batch/0").random())
    0.9059423237839247
    """
    return np.random.Generator(np.random.Philox(key=stream_key(seed, node, stream)))


def halves(key: int) -> tuple[int, int]:
    """Return the low and the high 64 bits of a key, which is what the kernels take."""
    return key & _WORD, key >> 64


def word(key: int, position: int) -> int:
    """Return draw number ``position`` (0 <= position < 2**64) of a stream as a 64-bit word.

    It is the first word of the block that numpy's ``Philox(key=key, counter=position)`` returns.
    """
    return _kernels.word(key & _WORD, key >> 64, position)


def uniform(key: int, position: int) -> float:
    """Return draw number ``position`` of a stream as a uniform number in [0, 1), a multiple of ``2**-53``."""
    return _kernels.uniform(key & _WORD, key >> 64, position)


def unit_exponential(key: int, position: int) -> float:
    """Return draw number ``position`` of a stream as an exponential number of mean 1.

    It is ``-log(1 - uniform(key, position))`` by a logarithm of our own, with an error below 1 unit in the last place.

    Examples
    --------
    >>> unit_exponential(stream_key(7, "", "compute/worker-3"), 0)
    1.1800254737167317
    """
    return _kernels.unit_exponential(key & _WORD, key >> 64, position)


def words_at(key: int, positions: ArrayLike) -> NDArray[np.uint64]:
    """Return the words at many positions; see :func:`word`.

    Parameters
    ----------
    key : int
        From :func:`stream_key`.
    positions : array_like of int
        Each 0 <= position < 2**64; of any shape.

    Returns
    -------
    ndarray of uint64
        Of the shape of ``positions``.

    Raises
    ------
    UserError
        If positions are not whole numbers or one is negative.
    """
    flat, shape = _flat(positions)
    out = np.empty(flat.shape, np.uint64)
    _kernels.words(key & _WORD, key >> 64, flat, out)
    return out.reshape(shape)


def uniform_at(key: int, positions: ArrayLike) -> NDArray[np.float64]:
    """Return the uniform numbers at many positions; see :func:`uniform` and :func:`words_at`."""
    flat, shape = _flat(positions)
    out = np.empty(flat.shape, np.float64)
    _kernels.uniforms(key & _WORD, key >> 64, flat, out)
    return out.reshape(shape)


def unit_exponential_at(key: int, positions: ArrayLike) -> NDArray[np.float64]:
    """Return the unit exponentials at many positions; see :func:`unit_exponential` and :func:`words_at`."""
    flat, shape = _flat(positions)
    out = np.empty(flat.shape, np.float64)
    _kernels.unit_exponentials(key & _WORD, key >> 64, flat, out)
    return out.reshape(shape)


def normal_at(key: int, positions: ArrayLike) -> NDArray[np.float64]:
    """Return standard normal numbers at many positions, quantiles of the words there; see :func:`words_at`.

    Examples
    --------
    >>> float(normal_at(stream_key(7, "", "code/0"), [0])[0])
    -0.9596528756768682
    """
    words = words_at(key, positions)
    out = np.empty(words.shape, np.float64)
    normals_of(words, out)
    return out


def subset_at(key: int, rows: int, size: int) -> NDArray[np.int64]:
    """Choose ``size`` of ``rows`` rows without replacement, every subset being equally likely.

    Draws 0 to ``size - 1`` of the stream are used, so give each subset a stream of its own.

    Parameters
    ----------
    key : int
        From :func:`stream_key`.
    rows : int
        How many there are to choose from.
    size : int
        How many to choose, 0 <= size <= rows.

    Returns
    -------
    ndarray of int64, shape (size,)
        Row numbers in ascending order.

    Raises
    ------
    UserError
        If ``size`` is negative or above ``rows``.

    References
    ----------
    Floyd's algorithm: Bentley and Floyd, "A sample of brilliance", CACM 30(9), 1987.

    Examples
    --------
    >>> subset_at(stream_key(7, "", "batch/0/0"), 10, 10)
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    if not 0 <= size <= rows:
        raise UserError(f"cannot choose {size} of {rows} rows", "subset", "0 <= size <= rows")
    taken = np.zeros(rows, np.uint8)
    _kernels.subset(key & _WORD, key >> 64, size, taken)
    return np.flatnonzero(taken.view(np.bool_)).astype(np.int64, copy=False)


def _stream_head(seed: int, node: str) -> bytes:
    """Return what the keys of all streams of a node are hashes of, up to the stream's name."""
    name = node.encode()
    if not 0 <= seed <= _WORD:
        raise UserError(f"got {seed!r}", "seed", "an integer >= 0 and < 2**64")
    if len(name) > 0xFFFF:
        raise UserError(f"the node name has {len(name)} bytes", "node", "at most 65535 bytes")
    return seed.to_bytes(8, "little") + len(name).to_bytes(2, "little") + name


def _digest(data: bytes) -> bytes:
    return _hash(data).digest()


def _hash(data: bytes) -> blake2b:
    return blake2b(data, digest_size=16, person=b"emuml-stream-v1")


def _digest_of(begun: blake2b, rest: bytes) -> bytes:
    begun.update(rest)
    return begun.digest()


def _flat(positions: ArrayLike) -> tuple[NDArray[np.uint64], tuple[int, ...]]:
    """Return positions as a flat contiguous uint64 array, and their shape."""
    given = np.asarray(positions)
    if given.dtype.kind not in "iu" and given.size:
        raise UserError(f"positions are {given.dtype}", "positions", "integers >= 0 and < 2**64")
    if given.dtype.kind == "i" and given.size and given.min() < 0:
        raise UserError(f"got position {given.min()}", "positions", "integers >= 0 and < 2**64")
    return np.ascontiguousarray(given, np.uint64).reshape(-1), given.shape
