"""Numbers and intervals as short texts."""

from __future__ import annotations

import math

from emuml.comparison.statistics import SAME, Interval


def digits(value: float) -> str:
    """Return a number with four digits.

    Examples
    --------
    >>> digits(0.12345), digits(22064.3), digits(1.5e9), digits(1.234567e-5)
    ('0.1235', '22,060', '1.5e+09', '1.235e-05')
    """
    if 1e3 <= abs(value) < 1e9:
        return _to_digits(value, math.floor(math.log10(abs(value))) - 3)
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
    if given.low is None or given.high is None or _is_none((given.high - given.low) / 2, given.value):
        return digits(given.value)
    half = (given.high - given.low) / 2
    value, low, high = (_to_half(each, half, given.value) for each in (given.value, given.low, given.high))
    return f"{value} [{low}, {high}]"


def plus_minus(given: Interval, scale: float = 1.0) -> str:
    """Return a value with the half width of its symmetric interval, to two digits of that.

    Examples
    --------
    >>> plus_minus(Interval(2.0, 1.9, 2.1)), plus_minus(Interval(2.0, 1.9, 2.1), scale=1e-3), plus_minus(Interval(2.0))
    ('2.00 ± 0.10', '0.00200 ± 0.00010', '2')
    >>> plus_minus(Interval(28272.0, 27674.0, 28870.0)), plus_minus(Interval(0.25, 0.25 - 1e-17, 0.25 + 1e-16))
    ('28,270 ± 600', '0.25')
    """
    if given.high is None or _is_none(given.high - given.value, given.value):
        return digits(scale * given.value)
    half = scale * (given.high - given.value)
    return f"{_to_half(scale * given.value, half, scale * given.value)} ± {_to_half(half, half, scale * given.value)}"


def compact(given: Interval) -> str:
    """Return a value with its interval as short as it goes: as ± the longer side where the sides are nearly equal.

    Examples
    --------
    >>> compact(Interval(0.2331, 0.2257, 0.2407)), compact(Interval(1.5, 1.0, 2.5))
    ('0.2331 ± 0.0076', '1.50 [1.00, 2.50]')
    """
    if given.low is None or given.high is None:
        return digits(given.value)
    below, above = given.value - given.low, given.high - given.value
    longer = max(below, above)
    if longer - min(below, above) > 0.1 * longer:
        return interval(given)
    return plus_minus(Interval(given.value, given.value - longer, given.value + longer))


def times(value: float) -> str:
    """Return a factor with two digits.

    Examples
    --------
    >>> times(0.934), times(12345.0)
    ('0.93', '12,000')
    """
    return _to_digits(value, math.floor(math.log10(value)) - 1) if value >= 10 else f"{value:.2g}"


def _is_none(half: float, value: float) -> bool:
    """Tell whether an interval is nothing but rounding."""
    return half <= SAME * abs(value)


def _to_half(number: float, half: float, value: float) -> str:
    """Return a number to two digits of a half width; with exponents where everything is small."""
    place = math.floor(math.log10(half)) - 1
    if place < -5 and abs(value) < 1e-2 and half < 1e-2:
        return f"{number:.1e}"
    return _to_digits(number, max(place, -12))


def _to_digits(number: float, place: int) -> str:
    """Return a number to a decimal place: tens are 1, tenths are -1."""
    return f"{round(number, -place):z,.{max(-place, 0)}f}"
