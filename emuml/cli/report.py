"""``emuml report``: the page of a run, made again from its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emuml.errors import UserError, printable


def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, such as runs/latest.")],
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Make the report of a run from its folder; an interrupted run shows what it has."""
    from emuml.report.html import write_report
    from emuml.report.view import View

    path = folder / "report.html"
    try:
        write_report([View.of_folder(folder)], path)
    except OSError as error:
        raise UserError(f"the page cannot be written: {error.strerror}", str(path)) from None
    print(printable(f"report: {path}"))
    if open_it:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
