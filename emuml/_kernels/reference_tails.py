"""Readable twins of draws with other tails than the exponential one; the same bits as the kernels.

Like everything here they use IEEE ``+ - * /``, and the square root, which IEEE rounds correctly, too; ``frexp``,
``ldexp`` and ``floor`` are exact. The order of all operations is part of the definition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emuml._kernels.reference import _LOG2_HIGH, _LOG2_LOW, _negative_log, exponentials_of, key_words, word

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

POWER, GROWTH, NORMAL = 0, 1, 2
"""Kinds of tails: ``e ** p``, ``exp(p * e)`` and ``exp(p * z)``, of a unit exponential ``e`` or a normal ``z``."""

_CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_NEAR = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
_FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip


def exp_of(x: Floats) -> Floats:
    """Return ``exp(x)`` for ``|x| < 700``, with an error below 1 unit in the last place.

    ``x = n log 2 + r`` with ``|r| <= log(2) / 2``, and the series of ``exp(r)`` up to ``r**13 / 13!``, which leaves out
    less than 5e-18. Even and odd powers are summed apart; the largest terms are added last.
    """
    whole = np.floor(x * 1.4426950408889634 + 0.5)
    r, low = x - whole * _LOG2_HIGH, whole * _LOG2_LOW
    z = r - low
    w = z * z
    odd = 1 / 6 + w * (1 / 120 + w * (1 / 5040 + w * (1 / 362880 + w * (1 / 39916800 + w * (1 / 6227020800)))))
    rest = w * (0.5 + w * (1 / 24 + w * (1 / 720 + w * (1 / 40320 + w * (1 / 3628800 + w * (1 / 479001600))))))
    rest = rest + z * w * odd
    return np.ldexp(1.0 + (r - (low - rest)), whole.astype(np.int64))


def log_of(x: Floats) -> Floats:
    """Return ``log(x)`` for positive normal numbers."""
    fraction, exponent = np.frexp(x)
    return -_negative_log(fraction, exponent.astype(np.float64) + 53.0)


def normals_of(words: Words, out: Floats) -> None:
    """Write the normal numbers that words stand for to ``out``: quantiles at odd multiples of ``2**-53``.

    By rational functions of ``1/2 - p``, or of ``sqrt(-log p)`` in the tails, right to about 1e-16. Source: Wichura,
    "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37(3), 1988.
    """
    steps = 2 * (words >> np.uint64(12)).astype(np.int64) + 1
    q = (steps - (1 << 52)).astype(np.float64) * 2.0**-53
    out[:] = _normal(q, np.where(q > 0, (1 << 53) - steps, steps).astype(np.float64) * 2.0**-53)


def normal_quantile(chance: Floats) -> Floats:
    """Return the quantiles of the normal law for chances from 0 to 1, whose ends are infinite."""
    found = np.where(chance > 0.5, np.inf, -np.inf)
    inside = (chance > 0.0) & (chance < 1.0)
    p = chance[inside]
    found[inside] = _normal(p - 0.5, np.minimum(p, 1.0 - p))
    return found


def _normal(q: Floats, rare: Floats) -> Floats:
    """Return normal quantiles by their distance from 1/2, and by the chance of what lies beyond them."""
    found = np.empty(q.shape)
    centre = np.abs(q) <= 0.425
    found[centre] = q[centre] * _rational(_CENTRE, 0.180625 - q[centre] * q[centre])
    r = np.sqrt(-log_of(rare[~centre]))
    beyond = np.where(r <= 5.0, _rational(_NEAR, r - 1.6), _rational(_FAR, r - 5.0))
    found[~centre] = np.where(q[~centre] > 0, beyond, -beyond)
    return found


def _rational(coefficients: tuple[tuple[float, ...], tuple[float, ...]], r: Floats) -> Floats:
    above, below = (np.full(r.shape, side[0]) for side in coefficients)
    for up, down in zip(coefficients[0][1:], coefficients[1][1:], strict=True):
        above, below = above * r + up, below * r + down
    return np.asarray(above / below)


def tails_of(kind: int, parameter: float, words: Words, out: Floats) -> None:
    """Write what given words stand for to ``out``; see the kinds above."""
    if kind == NORMAL:
        normals_of(words, out)
        out[:] = exp_of(parameter * out)
        return
    exponentials_of(words, out)
    if kind == GROWTH:
        out[:] = exp_of(parameter * out)
    else:
        positive = out > 0.0
        out[positive] = exp_of(parameter * log_of(out[positive]))


def unit_tail(kind: int, parameter: float, low: int, high: int, position: int) -> float:
    """Return the draw at ``position`` with a tail of some kind; ``low`` and ``high`` are the halves of the key."""
    out = np.empty(1)
    tails_of(kind, parameter, np.array([word(low, high, position)], np.uint64), out)
    return float(out[0])


def key_tails(
    kind: int, parameter: float, lows: Words, highs: Words, position: int, shift: float, scale: float, out: Floats
) -> None:
    """Write ``shift + scale * g`` with the draw ``g`` of some kind that each key has at ``position`` to ``out``."""
    drawn = np.empty(out.shape, np.uint64)
    key_words(lows, highs, position, drawn)
    tails_of(kind, parameter, drawn, out)
    out *= scale
    out += shift
