"""Exit statuses, and the one line that an error gets."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from emuml.errors import Diverged, EmumlError, UserError, printable

VIOLATED, BAD_INPUT, FAILED = 1, 2, 3
INTERRUPTED = 130
"""What shells expect of a program that was ended by Ctrl-C."""
PIPE_CLOSED = 141
"""What shells expect of a program whose reader went away."""


class Interrupted(EmumlError):
    """The user pressed Ctrl-C; the text says where what was done is."""


class Refused(UserError):
    """Everything that is wrong with a command line and its file.

    Parameters
    ----------
    problems : tuple of str
        One line each.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        Exception.__init__(self, problems)
        self.problems = problems
        self.what, self.where, self.allowed, self.hint = "\n".join(problems), "", "", ""


def together(*questions: Callable[[], Any]) -> list[Any]:
    """Ask all questions and return the answers, or refuse with the lines of all that refused.

    Raises
    ------
    Refused
    """
    answers: list[Any] = []
    problems: list[str] = []
    for question in questions:
        try:
            answers.append(question())
        except UserError as error:
            problems += _lines(error)
    if problems:
        raise Refused(tuple(problems))
    return answers


def _lines(error: EmumlError) -> tuple[str, ...]:
    return getattr(error, "problems", (str(error),))


def say(text: str) -> None:
    """Print an error: one line after the name of the program, and what belongs to it indented below."""
    first, *rest = map(printable, text.split("\n"))
    with suppress(OSError):  # nobody can be told that nobody can be told
        print(f"emuml: {first}", *(f"  {line}" for line in rest), sep="\n", file=sys.stderr)


def report_error(error: EmumlError) -> int:
    """Print what went wrong, a line for each problem of a file, and return the exit status."""
    for problem in _lines(error):
        say(problem)
    for note in getattr(error, "__notes__", ()):
        say(note)
    if isinstance(error, Interrupted):
        return INTERRUPTED
    if isinstance(error, Diverged):
        return VIOLATED
    return BAD_INPUT if isinstance(error, UserError) else FAILED
