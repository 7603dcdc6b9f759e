"""Exit statuses, and the one line that an error gets."""

from __future__ import annotations

import sys

from emuml.errors import Diverged, EmumlError, UserError

VIOLATED, BAD_INPUT, FAILED = 1, 2, 3
INTERRUPTED = 130
"""What shells expect of a program that was ended by Ctrl-C."""


class Interrupted(EmumlError):
    """The user pressed Ctrl-C; the text says where what was done is."""


def say(text: str) -> None:
    """Print an error: one line after the name of the program, and what belongs to it indented below."""
    first, *rest = text.splitlines() or [""]
    print(f"emuml: {first}", *(f"  {line}" for line in rest), sep="\n", file=sys.stderr)


def report_error(error: EmumlError) -> int:
    """Print what went wrong, a line for each problem of a file, and return the exit status."""
    problems: tuple[str, ...] = getattr(error, "problems", (str(error),))
    for problem in problems:
        say(problem)
    for note in getattr(error, "__notes__", ()):
        say(note)
    if isinstance(error, Interrupted):
        return INTERRUPTED
    if isinstance(error, Diverged):
        return VIOLATED
    return BAD_INPUT if isinstance(error, UserError) else FAILED
