"""``emuml compare``: experiments on the same seeds, and what their paired differences support."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emuml.cli.folders import new_folder
from emuml.cli.progress import progress
from emuml.cli.run import chosen
from emuml.cli.status import Interrupted
from emuml.errors import EmumlError

if TYPE_CHECKING:
    from rich.console import Console

    from emuml.comparison.analysis import Comparison
    from emuml.comparison.plan import Plan
    from emuml.comparison.race import Runs
    from emuml.comparison.tables import Words


def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE FILE ... [KEY=VALUE ...]",
            help="Experiments in YAML, or run directories, the first being the baseline; settings over all files.",
        ),
    ],
    seeds: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Runs of each, with equal seeds.", show_default="5")
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(metavar="LOSS", help="Value to reach.", show_default="the worst final one, which all reach"),
    ] = None,
    metric: Annotated[str, typer.Option(metavar="NAME", help="Metric of the target.")] = "train_loss",
    out: Annotated[Path | None, typer.Option(help="Folder of the runs.", show_default="runs/<UTC>-compare")] = None,
    engine: Annotated[str | None, typer.Option(metavar="des|tcp", help="Emulate, or run over TCP.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Compare experiments on the same seeds: who is faster by how much, and whether that can be told."""
    from rich.console import Console

    from emuml.comparison.plan import plan
    from emuml.comparison.race import make_folder

    overrides = [text for text in files if "=" in text and not Path(text).exists()]
    paths = [Path(text) for text in files if text not in overrides]
    planned = plan(paths, overrides, seeds=seeds, target=target, metric=metric, engine=chosen(engine))
    folder = make_folder(out or new_folder("compare"))
    console = Console(highlight=False, quiet=as_json)
    _say_what_differs(console, planned)
    content, compared = _run_all(planned, folder)
    if as_json:
        print(json.dumps(content, allow_nan=False))
    else:
        _say_what_came_out(console, compared)
        print(f"report: {content['report']}")


def _run_all(plan: Plan, folder: Path) -> tuple[dict[str, object], Comparison]:
    """Run and compare; what ends early leaves the comparison of the seeds that are whole, and says so."""
    from emuml.comparison.analysis import analyse
    from emuml.comparison.files import write
    from emuml.comparison.race import Runs, race, rounds_to_run

    runs = Runs()
    clocks = {"emulated" if one.loaded.engine == "des" else "real" for one in plan.contestants}
    try:
        with progress(rounds_to_run(plan), " or ".join(sorted(clocks))) as each:
            race(plan, folder, runs, each)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {_kept(plan, runs, folder)}") from None
    except EmumlError as error:
        error.add_note(_kept(plan, runs, folder))
        raise
    compared = analyse(plan, runs)
    return write(compared, folder), compared


def _kept(plan: Plan, runs: Runs, folder: Path) -> str:
    """Write what can be said of the whole seeds, and return what there is."""
    from emuml.comparison.analysis import analyse
    from emuml.comparison.files import write

    asked = len(plan.contestants) * len(plan.seeds)
    whole = runs.seeds(plan)
    text = f"{len(runs)} of {asked} runs are done and kept in {folder}"
    if not whole:
        return f"{text}; no seed has all of them, so nothing is compared"
    write(analyse(plan, runs), folder)
    return f"{text}; {len(whole)} of {len(plan.seeds)} seeds are whole and compared: {folder / 'report.html'}"


def _say_what_differs(console: Console, plan: Plan) -> None:
    from emuml.comparison import tables

    words = tables.differences(plan)
    for part in tables.chunks(words):
        _print(console, part)
    console.print(words.note, markup=False)
    console.print()


def _say_what_came_out(console: Console, compared: Comparison) -> None:
    from emuml.comparison import tables
    from emuml.comparison.verdict import verdict

    words = tables.measured(compared)
    for part in tables.chunks(words):
        _print(console, part)
    if words.note:
        console.print(f"{words.note}\n", markup=False)
    for words in tables.against_baseline(compared):
        _print(console, words)
    console.print(f"{tables.explained(compared)}\n", markup=False)
    console.print(verdict(compared), style="bold", markup=False)


def _print(console: Console, words: Words) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title_justify="left")
    for head in words.head:
        made.add_column(Text(head), justify="right" if head else "left", overflow="fold")
    for row in words.rows:
        made.add_row(*map(Text, row))
    if words.title:
        console.print(words.title, style="bold", markup=False)
    console.print(made)
