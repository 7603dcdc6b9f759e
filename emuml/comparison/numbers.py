"""Numbers and intervals as short texts."""

from __future__ import annotations

import math

from emuml.comparison.statistics import Interval


def digits(value: float) -> str:
    """Return a number with four digits."""
    return f"{value:.4g}"


def interval(given: Interval) -> str:
    """Return a value with the ends of its interval, to two digits of the half width.

    Examples
    --------
    >>> interval(Interval(0.23456, 0.22341, 0.24571)), interval(Interval(2.0))
    ('0.235 [0.223, 0.246]', '2')
    >>> interval(Interval(1.0000121, 1.0000091, 1.0000151))
    '1.0000121 [1.0000091, 1.0000151]'
    """
    if given.low is None or given.high is None:
        return digits(given.value)
    form = _form((given.high - given.low) / 2, given.value)
    return f"{given.value:{form}} [{given.low:{form}}, {given.high:{form}}]"


def plus_minus(given: Interval, scale: float = 1.0) -> str:
    """Return a value with the half width of its symmetric interval, to two digits of that.

    Examples
    --------
    >>> plus_minus(Interval(2.0, 1.9, 2.1)), plus_minus(Interval(2.0, 1.9, 2.1), scale=1e-3), plus_minus(Interval(2.0))
    ('2.00 ± 0.10', '0.00200 ± 0.00010', '2')
    """
    if given.high is None or given.high == given.value:
        return digits(scale * given.value)
    half = scale * (given.high - given.value)
    form = _form(half, scale * given.value)
    return f"{scale * given.value:{form}} ± {half:{form}}"


def _form(half: float, value: float) -> str:
    """Return the format that shows two digits of a half width; with exponents where everything is small."""
    decimals = 1 - math.floor(math.log10(half)) if half > 0 else 4
    is_small = abs(value) < 1e-2 and half < 1e-2
    return ".1e" if decimals > 5 and is_small else f"z.{min(max(decimals, 0), 12)}f"
