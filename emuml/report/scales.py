"""Axes: from numbers to places on a drawing, and where their ticks stand."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Maps ``low..high`` to ``start..end`` in pixels, linearly or by logarithms; ``is_whole`` asks for whole ticks."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False
    is_whole: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        low, high, at = (math.log(v) if self.is_log else v for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return round numbers inside, at most eight.

        Examples
        --------
        >>> Scale(0.0, 48.0, 0, 1).ticks()
        [0.0, 10.0, 20.0, 30.0, 40.0]
        >>> Scale(0.07, 0.7, 0, 1, is_log=True).ticks()
        [0.1, 0.2, 0.5]
        """
        return self._log_ticks() if self.is_log else self._linear_ticks()

    def _linear_ticks(self) -> list[float]:
        rough = (self.high - self.low) / 6
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
        step = max(step, 1.0) if self.is_whole else step
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(i * step, 12) for i in range(first, last + 1)]

    def _log_ticks(self) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in ((1, 2, 5), (1,)):
            found = [float(f"{m}e{p}") for p in powers for m in digits]
            found = [tick for tick in found if self.low <= tick * (1 + 1e-9) and tick <= self.high * (1 + 1e-9)]
            if len(found) <= 8:
                return found
        return found[:: len(found) // 8 + 1]


def scale_for(values: list[float], start: float, end: float, *, is_log: bool = False, from_zero: bool = False) -> Scale:
    """Return a scale that holds all values; equal values get room around them."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = min(low, 0.0) if from_zero else low
    if low == high:
        low, high = (low / 2, high * 2) if is_log else (low - 0.5, high + 0.5)
    return Scale(low, high, start, end, is_log)
