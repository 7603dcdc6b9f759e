"""What a check found: how it stands, why that matters, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "failed"]
STATES: tuple[State, ...] = ("ok", "warning", "failed")
"""From good to bad."""


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Parameters
    ----------
    state : {"ok", "warning", "failed"}
        ``"failed"``: some command will not work or not be right; ``"warning"``: slower, or something is missing that
        not everybody needs.
    found : str
        What there is, with its numbers.
    why : str
        Why it matters.
    fix : str
        What to do; empty if all is well.
    """

    state: State
    found: str
    why: str
    fix: str = ""


Check = Callable[[], Finding]


def worst(findings: list[Finding]) -> Finding:
    """Return the finding whose state is worst; the first of several."""
    return max(findings, key=lambda finding: STATES.index(finding.state))


def examined(check: Check) -> Finding:
    """Return what a check finds; one that breaks has failed, and says so itself."""
    try:
        return check()
    except Exception as error:  # whatever an ill installation or machine raises
        return Finding(
            "failed",
            f"{type(error).__name__}: {error}",
            (check.__doc__ or "").strip(),
            "repair first what is named here",
        )


def size(size_bytes: float) -> str:
    """Return bytes in the unit that gives few digits.

    Examples
    --------
    >>> size(24_903_680)
    '23.8 MiB'
    """
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    power = min(int(max(size_bytes, 1)).bit_length() - 1, 49) // 10
    return f"{size_bytes / 1024**power:.3g} {units[power]}"
