"""``emuml explain``: what other codes would do in place of that of an experiment, before anything runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emuml.cli.run import without_nan
from emuml.errors import printable

if TYPE_CHECKING:
    from emuml.explanation.codes import Explanation


def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Experiment in YAML, or a run's config.yaml.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings over those of the file: cluster.workers=50."),
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(
            metavar="SHARES", min=1.0, help="Work of a worker in a round, in equal shares.", show_default="as in FILE"
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(metavar="N", min=2, help="Rounds to sample of each code.")] = 400,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Say which gradient code suits a cluster, at equal work and in equal time, without running anything."""
    from emuml.experiment.config import load as load_file
    from emuml.explanation.codes import explain as explain_codes

    loaded = load_file(file, overrides or ())
    with loaded.pointing():
        found = _told(lambda tell: explain_codes(loaded.experiment, load, rounds, tell))
    if as_json:
        print(json.dumps(without_nan(found.as_dict()), allow_nan=False))
    else:
        _print(found)


def _told(ask: Callable[[Callable[[int, int], None]], Explanation]) -> Explanation:
    """Ask, and say on a terminal's stderr how many codes are done."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        return ask(lambda done, of: None)
    with console.status("codes") as shown:
        return ask(lambda done, of: shown.update(f"{done} of {of} codes"))


def _print(found: Explanation) -> None:
    from rich.console import Console

    from emuml.comparison.layout import text
    from emuml.explanation.words import notes, tables, verdict

    console = Console(highlight=False)
    width = console.width
    for table in tables(found):
        console.print(f"{table.title}: {table.caption}", markup=False, style="bold")
        print(text(table, width))
        console.print(printable(table.note), markup=False, style="dim")
        print()
    for line in [*verdict(found), *notes(found)]:
        console.print(printable(line), markup=False)
