"""Readable twins of the compiled kernels; a twin and its kernel give the same bits.

They serve where no kernel was compiled, under ``EMUML_REFERENCE=1``, and as what the kernels are tested against. Like
the kernels they check little: their callers do. Only integers and IEEE ``+ - * /`` are used, so that results are the
same on every machine; ``frexp`` is exact.
"""

from __future__ import annotations

from math import frexp
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", float, NDArray[np.float64])
Words = NDArray[np.uint64]

_WORD = (1 << 64) - 1
_MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_WEYL = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B

# log(2) in two parts: the first has 42 bits, so that its products with whole numbers up to 53 are exact.
_LOG2_HIGH, _LOG2_LOW = 0.6931471805598903, 5.497923018708371e-14


def word(low: int, high: int, position: int) -> int:
    """Return the draw at ``position``: the first word of Philox4x64-10 block ``position + 1``.

    numpy increments the 256-bit counter before it makes a block, hence the 1. ``low`` and ``high`` are the halves of
    the 128-bit key. Source: Salmon et al., SC 2011, section 4.3.
    """
    for value in (low, high, position):
        if not 0 <= value <= _WORD:
            raise OverflowError(f"{value} is no unsigned 64-bit integer")
    a, b, c, d = (position + 1) & _WORD, (position + 1) >> 64, 0, 0
    for _ in range(10):
        first, second = _MULTIPLIERS[0] * a, _MULTIPLIERS[1] * c
        a, b, c, d = (second >> 64) ^ b ^ low, second & _WORD, (first >> 64) ^ d ^ high, first & _WORD
        low, high = (low + _WEYL[0]) & _WORD, (high + _WEYL[1]) & _WORD
    return a


def uniform(low: int, high: int, position: int) -> float:
    """Return the draw at ``position`` as a uniform number in [0, 1), a multiple of ``2**-53``."""
    return (word(low, high, position) >> 11) * 2.0**-53


def unit_exponential(low: int, high: int, position: int) -> float:
    """Return the draw at ``position`` as an exponential number of mean 1."""
    x, exponent = frexp((1 << 53) - (word(low, high, position) >> 11))
    return _negative_log(x, float(exponent))


def words(low: int, high: int, positions: NDArray[np.uint64], out: NDArray[np.uint64]) -> None:
    """Write the words at ``positions`` to ``out``."""
    for index, position in enumerate(positions.tolist()):
        out[index] = word(low, high, position)


def uniforms(low: int, high: int, positions: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    """Write the uniform numbers at ``positions`` to ``out``."""
    drawn = np.empty(positions.shape, np.uint64)
    words(low, high, positions, drawn)
    np.multiply((drawn >> np.uint64(11)).astype(np.float64), 2.0**-53, out=out)


def unit_exponentials(low: int, high: int, positions: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    """Write the unit exponentials at ``positions`` to ``out``."""
    drawn = np.empty(positions.shape, np.uint64)
    words(low, high, positions, drawn)
    exponentials_of(drawn, out)


def exponentials_of(words: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    """Write the unit exponentials that given words stand for to ``out``."""
    x, exponent = np.frexp((np.uint64(1 << 53) - (words >> np.uint64(11))).astype(np.float64))
    out[:] = _negative_log(x, exponent.astype(np.float64))


def key_words(lows: Words, highs: Words, position: int, out: Words, plain: bool = False) -> None:
    """Write the word that each key has at ``position`` to ``out``; ``plain`` chooses among compiled loops only."""
    for index, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
        out[index] = word(low, high, position)


def key_exponentials(
    lows: Words, highs: Words, position: int, shift: float, scale: float, out: NDArray[np.float64]
) -> None:
    """Write ``shift + scale * e`` with the unit exponential ``e`` that each key has at ``position`` to ``out``."""
    drawn = np.empty(out.shape, np.uint64)
    key_words(lows, highs, position, drawn)
    exponentials_of(drawn, out)
    out *= scale
    out += shift


def cover_time(times: NDArray[np.float64], group_of: NDArray[np.int64], groups: int) -> float:
    """Return the time with which every group has its first; infinite if one has none."""
    firsts = np.full(groups, np.inf)
    np.minimum.at(firsts, group_of, times)
    return float(firsts.max())


def mark_used(
    times: NDArray[np.float64],
    at: float,
    count: int,
    group_of: NDArray[np.int64],
    groups: int,
    used: NDArray[np.uint8],
) -> None:
    """Mark in ``used`` whose answers a round uses that closes with ``at``; if that is infinite, all that come.

    ``count`` answers close a round (0: no number does), or an answer of each of the ``groups`` (0: no cover does). Of
    equal times the lower workers' are first.
    """
    used[:] = times < at
    covered = {int(group) for group in group_of[used.astype(np.bool_)]} if groups else set()
    for worker in np.flatnonzero(times == at).tolist() if at < np.inf else []:
        used[worker] = 1
        if groups:
            covered.add(int(group_of[worker]))
        if used.sum() == count or (groups and len(covered) == groups):
            return


def exponential_rounds(
    lows: Words,
    highs: Words,
    first: int,
    start: float,
    shift: float,
    scale: float,
    count: int,
    group_of: NDArray[np.int64],
    groups: int,
    to_all: bool,
    decided: NDArray[np.float64],
    ended: NDArray[np.float64],
    used: NDArray[np.uint8],
) -> None:
    """Write when rounds are decided and end whose workers all begin when the one before ends.

    Round ``i`` uses the draws at position ``first + i``; ``to_all`` makes it last until the last answer. ``used`` has
    no rows where nobody asks whose answers were used.
    """
    drawn = np.empty(lows.shape, np.uint64)
    for i in range(len(decided)):
        key_words(lows, highs, first + i, drawn)
        mine = used[i] if len(used) else np.empty(0, np.uint8)
        decided[i], last = word_round(drawn, start, shift, scale, count, group_of, groups, mine)
        ended[i] = start = last if to_all else float(decided[i])


def word_round(
    words: Words,
    start: float,
    shift: float,
    scale: float,
    count: int,
    group_of: NDArray[np.int64],
    groups: int,
    used: NDArray[np.uint8],
) -> tuple[float, float]:
    """Return when one round of given words is decided and when its last answer comes; mark whose answers it uses."""
    times = np.empty(words.shape)
    exponentials_of(words, times)
    times = start + (shift + scale * times)
    at = float(np.sort(times)[count - 1]) if count else np.inf
    if groups:
        at = min(at, cover_time(times, group_of, groups))
    if len(used):
        mark_used(times, at, count, group_of, groups, used)
    return at, float(times.max())


def _negative_log(x: Number, exponent: Number) -> Number:
    """Return ``-log(x * 2**(exponent - 53))`` for x in [0.5, 1), with an error below 1 unit in the last place.

    The argument is ``1 - u`` for a uniform number u. It is brought to the form ``x * 2**-halvings`` with x in
    (sqrt(1/2), sqrt(2)]. With ``f = x - 1`` (exact) and ``s = f / (2 + f)``, ``log x = 2 atanh(s) = 2 s + s r``, where
    ``r`` sums ``2 z**n / (2 n + 1)`` over n >= 1 with ``z = s*s <= 0.0295``; ten terms leave out less than 2e-17 of
    the result. Writing ``2 s`` as ``f - s f`` puts the rounding of the quotient into a small term. Even and odd powers
    are summed apart: two short chains of dependent operations instead of a long one. The order of all operations is
    part of the definition.
    """
    x = x * 2.0
    above = x > 1.4142135623730951
    x = x * (1.0 - 0.5 * above)
    halvings = 54.0 - exponent - above
    f = x - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = 2 / 3 + w * (2 / 7 + w * (2 / 11 + w * (2 / 15 + w * (2 / 19))))
    even = 2 / 5 + w * (2 / 9 + w * (2 / 13 + w * (2 / 17 + w * (2 / 21))))
    r = z * (odd + z * even)
    return halvings * _LOG2_HIGH - (f - (s * (f - r) + halvings * _LOG2_LOW))


def subset(low: int, high: int, size: int, taken: NDArray[np.uint8]) -> None:
    """Set ``size`` entries of ``taken`` (all 0 before) to 1, every subset being equally likely.

    Robert Floyd's method (Bentley and Floyd, CACM 30(9), 1987): one word a draw, whatever was drawn before. A word w
    becomes a whole number below m as ``floor(w m / 2**64)``, whose bias is below ``m / 2**64``.
    """
    for draw in range(size):
        last = len(taken) - size + draw
        chosen = word(low, high, draw) * (last + 1) >> 64
        taken[last if taken[chosen] else chosen] = 1


def weighted_sum(weights: NDArray[Any], arrays: list[NDArray[Any]], out: NDArray[Any]) -> bool:
    """Write ``sum_j weights[j] * arrays[j]`` to ``out`` and return True, or return False if the arguments do not fit.

    The sum starts with its first term and goes on in the order given.
    """
    if misfit(weights, arrays, out):
        return False
    np.multiply(arrays[0], weights[0], out=out)
    for weight, array in zip(weights[1:], arrays[1:], strict=True):
        out += weight * array
    return True


def misfit(weights: NDArray[Any], arrays: list[NDArray[Any]], out: NDArray[Any]) -> str:
    """Say which argument of :func:`weighted_sum` does not fit and how, or return an empty string."""
    if out.dtype not in (np.float64, np.float32) or not out.flags.carray:
        return f"the result must be a writable, aligned, C-contiguous float64 or float32 array, got {_describe(out)}"
    if weights.shape != (len(arrays),) or not arrays:
        return f"expected one weight per array and at least one, got {weights.shape} for {len(arrays)} arrays"
    for position, array in enumerate(arrays):
        if array.shape != out.shape or array.dtype != out.dtype or not array.flags.c_contiguous:
            return f"array {position} is {_describe(array)}, the result is {_describe(out)}"
        if np.may_share_memory(array, out):
            return f"array {position} shares memory with the result"
    return ""


def _describe(array: NDArray[Any]) -> str:
    flags = array.flags
    faults = {", not C-contiguous": not flags.c_contiguous, ", not aligned": not flags.aligned}
    faults[", read-only"] = not flags.writeable
    return f"{array.dtype} {array.shape}" + "".join(text for text, present in faults.items() if present)


def csr_predict(
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float64] | None,
    parameters: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write the product of each row with ``parameters`` to ``out``.

    Row i has the entries ``starts[i] .. stops[i] - 1`` of ``indices`` (columns) and ``values`` (``None``: all 1). A sum
    starts with 0 and goes on in the order stored: here all rows take their first entry, then all their second.
    """
    out[:] = 0.0
    for position in range(int((stops - starts).max(initial=0))):
        rows = np.flatnonzero(starts + position < stops)
        entries = starts[rows] + position
        terms = parameters[indices[entries]]
        out[rows] += terms if values is None else values[entries] * terms


def csr_accumulate(
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float64] | None,
    slopes: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Add ``slopes[i]`` times row i to ``out``, for each row in order; see :func:`csr_predict` for the rows."""
    lengths = stops - starts
    before = np.cumsum(lengths) - lengths
    entries = np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
    terms = np.repeat(slopes, lengths)
    np.add.at(out, indices[entries], terms if values is None else terms * values[entries])
