"""The commands of ``emuml``, put together."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import emuml
from emuml.cli.compare import compare
from emuml.cli.demo import demo
from emuml.cli.doctor import doctor
from emuml.cli.explain import explain
from emuml.cli.replay import replay
from emuml.cli.report import report
from emuml.cli.run import run

app = typer.Typer(
    name="emuml",
    help="Training protocols that stand stragglers and faults: emulate them, run them over TCP, compare.",
    epilog="Exit status: 0 done, 1 a property was violated, 2 bad input, 3 the run failed, 130 interrupted.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (run, compare, explain, demo, replay, report, doctor):
    app.command()(command)

# Typer has no name for the base of its errors of usage; in every version it is the base of BadParameter.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
Abort = typer.Abort


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


def run_command(arguments: list[str] | None) -> Any:
    """Run a command line, and return what the command returned or exited with; its errors pass."""
    return typer.main.get_command(app).main(arguments, prog_name="emuml", standalone_mode=False)
