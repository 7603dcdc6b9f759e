"""``emuml``: the one line that an error gets, and the exit status.

Exit status: 0 done, 1 a property was violated, 2 bad input and nothing was started, 3 the run failed, 130 interrupted,
141 nobody reads the output any more. No traceback is shown for what can go wrong on purpose; a mistake of our own shows
one, and counts as a failed run.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

from emuml.cli.status import BAD_INPUT, FAILED, INTERRUPTED, PIPE_CLOSED, report_error, say
from emuml.errors import EmumlError


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command line and exit with its status."""
    for name in ("stdin", "stdout", "stderr"):  # in the order of their numbers, lest a file of ours gets one of them
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    sys.exit(status(arguments))


def status(arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit status; an error has printed its line."""
    try:
        return _status(arguments)
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):  # which others turn into this
            raise
        return _unread()
    except BrokenPipeError:
        return _unread()
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and _is_stdout_broken():
            _give_up_stdout()
            say(f"cannot print: {error.strerror}")
            return FAILED
        import traceback

        traceback.print_exc()
        say(f"a mistake in emuml or in an extension: {type(error).__name__}: {error}; please report the lines above")
        return FAILED


def _status(arguments: list[str] | None) -> int:
    from emuml.cli.app import Abort, UsageError, run_command

    try:
        done = run_command(arguments)
    except Abort:
        raise KeyboardInterrupt from None
    except EmumlError as error:
        done = report_error(error)
    except UsageError as error:
        context = getattr(error, "ctx", None)
        asked = "emuml" if context is None else context.command_path
        say(f"{error.format_message()}; {asked} --help says more")  # type: ignore[attr-defined]
        done = BAD_INPUT
    else:
        if done == INTERRUPTED:  # what Typer makes of Ctrl-C
            say("interrupted")
    sys.stdout.flush()
    return done if isinstance(done, int) else 0


def _unread() -> int:
    """Return the status of a program whose reader went away, which is no mistake and needs no words."""
    _give_up_stdout()
    return PIPE_CLOSED


def _is_stdout_broken() -> bool:
    """Tell whether nothing can be printed; errors of streams do not say which stream it was."""
    try:
        print(flush=True)
    except OSError:
        return True
    return False


def _give_up_stdout() -> None:
    """Let what is still to be printed go nowhere, or the interpreter complains of it at its end."""
    with suppress(OSError, ValueError):  # the second from a stream that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
