"""Checks of what closed forms are asked with: one sentence each about what is wrong and what would be right."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from operator import index
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emuml.errors import UserError, did_you_mean
from emuml.shapes import Stragglers


def check_integer(value: Any, where: str, least: int, most: int | None = None) -> None:
    """Refuse what is no integer in ``least..most``."""
    allowed = f"an integer >= {least}" if most is None else f"an integer in {least}..{most}"
    try:
        number = index(value)
    except TypeError:
        raise UserError(f"got {value!r:.60}", where, allowed) from None
    nearest = max(number if most is None else min(number, most), least)
    if number != nearest:
        raise UserError(f"got {number}", where, allowed, f"the nearest is {nearest}")


def check_divisor(value: int, where: str, of: int) -> None:
    """Refuse what does not divide ``of``."""
    check_integer(of, "workers", 1)
    divisors = [number for number in range(1, of + 1) if of % number == 0]
    check_integer(value, where, 1)
    if value not in divisors:
        nearest = min(divisors, key=lambda number: abs(number - value))
        raise UserError(f"{value} does not divide {of}", where, f"{divisors}", f"the nearest is {nearest}")


def check_number(value: float, where: str, *, above: float = -inf, least: float = -inf, below: float = inf) -> None:
    """Refuse what is not finite or not in the bounds given."""
    parts = [(above, "> "), (least, ">= "), (below, "< ")]
    if not (np.isfinite(value) and above < value < below and value >= least):
        bounds = " and ".join(f"{sign}{bound:g}" for bound, sign in parts if np.isfinite(bound))
        raise UserError(f"got {value!r:.60}", where, f"a finite number {bounds}".rstrip())


def check_absence(absence: float) -> None:
    """Refuse what is no chance of a worker to be absent, or is one that nobody ever answers at."""
    if not 0.0 <= absence < 1.0:
        raise UserError(f"got {absence}", "absence", "a probability below 1")


def check_name(value: Any, where: str, known: Sequence[str]) -> None:
    """Refuse what is none of the names."""
    if value not in known:
        raise UserError(f"got {value!r:.60}", where, ", ".join(known), did_you_mean(str(value), known))


def check_stragglers(stragglers: Any) -> None:
    """Refuse what says nothing of the work on a closed round."""
    check_name(stragglers, "stragglers", get_args(Stragglers))


def seconds(values: ArrayLike, where: str) -> NDArray[np.float64]:
    """Return seconds as an array, refusing what is no time to wait."""
    found = np.asarray(values, np.float64)
    if not np.all(np.isfinite(found) & (found >= 0)):
        raise UserError("not all are finite and >= 0", where, "seconds")
    return found


def instants(values: ArrayLike, where: str) -> NDArray[np.float64]:
    """Return seconds as an array, refusing NaN."""
    found = np.asarray(values, np.float64)
    if np.any(np.isnan(found)):
        raise UserError("not all are numbers", where, "seconds")
    return found


def chances(values: ArrayLike) -> NDArray[np.float64]:
    """Return chances as an array, refusing what lies outside [0, 1]."""
    found = np.asarray(values, np.float64)
    if not np.all((found >= 0) & (found <= 1)):
        raise UserError(f"got {values!r:.60}", "quantile", "numbers from 0 to 1")
    return found
