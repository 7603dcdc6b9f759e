"""``emuml``: the commands, the one line that an error gets, and the exit status.

Exit status: 0 done, 1 a property was violated, 2 bad input and nothing was started, 3 the run failed, 130 interrupted.
No traceback is shown for what can go wrong on purpose; a mistake of our own shows one, and counts as a failed run.
"""

from __future__ import annotations

import sys
import traceback
from typing import Annotated, NoReturn

import typer

import emuml
from emuml.cli.compare import compare
from emuml.cli.demo import demo
from emuml.cli.doctor import doctor
from emuml.cli.replay import replay
from emuml.cli.report import report
from emuml.cli.run import run
from emuml.cli.status import BAD_INPUT, FAILED, INTERRUPTED, report_error, say
from emuml.errors import EmumlError

app = typer.Typer(
    name="emuml",
    help="Training protocols that stand stragglers and faults: emulate them, run them over TCP, compare.",
    epilog="Exit status: 0 done, 1 a property was violated, 2 bad input, 3 the run failed, 130 interrupted.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (run, compare, demo, replay, report, doctor):
    app.command()(command)

# Typer has no name for the base of its errors of usage; in every version it is the base of BadParameter.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


@app.callback(invoke_without_command=True)
def emuml_(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Print the version, or the help if there is nothing else to do."""
    if version:
        print(f"emuml {emuml.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command line and exit with its status."""
    sys.exit(status(arguments))


def status(arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit status; an error has printed its line."""
    try:
        done = typer.main.get_command(app).main(arguments, prog_name="emuml", standalone_mode=False)
    except typer.Abort:
        say("interrupted")
        return INTERRUPTED
    except EmumlError as error:
        return report_error(error)
    except _UsageError as error:
        say(f"{error.format_message()}; emuml --help says more")  # type: ignore[attr-defined]
        return BAD_INPUT
    except Exception as error:
        traceback.print_exc()
        say(f"a mistake in emuml or in an extension: {type(error).__name__}: {error}; please report the lines above")
        return FAILED
    return done if isinstance(done, int) else 0


if __name__ == "__main__":
    main()
