"""Numbers that must come out, read from ``expected.json``, and how far what was found is from them.

A group of numbers shares what it is, its source, its tolerance and the reason for that. A tolerance is ``absolute``,
``relative``, or in ``standard_errors`` of what was found.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

EXPECTED = Path(__file__).with_name("expected.json")
TOLERANCES = ("absolute", "relative", "standard_errors")


class Sampled(NamedTuple):
    """A mean and its standard error."""

    value: float
    error: float


class Check(NamedTuple):
    """One number beside what was expected."""

    name: str
    what: str
    found: float
    expected: float
    tolerance: float
    source: str
    reason: str

    @property
    def distance(self) -> float:
        """Distance from what was expected, in tolerances: it holds up to 1."""
        apart = abs(self.found - self.expected) / self.tolerance
        return apart if math.isfinite(apart) else math.inf

    @property
    def holds(self) -> bool:
        """Whether the number is inside its band."""
        return self.distance <= 1.0

    def __str__(self) -> str:
        return (
            f"{self.name}: found {self.found:.6g}, expected {self.expected:.6g} ± {self.tolerance:.2g} ({self.source})"
        )


@cache
def groups() -> dict[str, dict[str, Any]]:
    """Return the groups of ``expected.json``."""
    found: dict[str, dict[str, Any]] = json.loads(EXPECTED.read_text(encoding="utf-8"))
    return found


def values(group: str) -> dict[str, float]:
    """Return the numbers of a group; nested names are joined by slashes."""
    return dict(_flat(groups()[group]["values"]))


def compare(group: str, found: Mapping[str, float | Sampled]) -> list[Check]:
    """Return a check for each number of a group.

    What was found and nobody expects, or is expected and was not found, is NaN on the other side and does not hold.
    """
    given, expected = groups()[group], values(group)
    kind = next(kind for kind in TOLERANCES if kind in given)
    checks = []
    for name in dict.fromkeys((*expected, *found)):
        wanted, measured = expected.get(name, math.nan), found.get(name, math.nan)
        value, error = measured if isinstance(measured, Sampled) else (measured, math.nan)
        unit = {"absolute": 1.0, "relative": abs(wanted), "standard_errors": error}[kind]
        what = (f"{group}/{name}", given["what"], value, wanted, given[kind] * unit, given["source"], given["reason"])
        checks.append(Check(*what))
    return checks


def _flat(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, float]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}/")
        else:
            yield f"{path}{name}", float(value)
