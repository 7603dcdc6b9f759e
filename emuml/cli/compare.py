"""``emuml compare``: experiments on the same seeds, and what their paired differences support."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emuml.cli.folders import check_out, new_folder
from emuml.cli.progress import progress
from emuml.cli.run import chosen, without_nan
from emuml.cli.status import Interrupted, together
from emuml.errors import EmumlError, printable

if TYPE_CHECKING:
    from rich.console import Console

    from emuml.comparison.analysis import Comparison
    from emuml.comparison.plan import Plan
    from emuml.comparison.race import Runs
    from emuml.comparison.words import Words


def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE FILE ... [KEY=VALUE ...]",
            help="Experiments in YAML, or run directories; settings over all files.",
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
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whom pairs are compared with.", show_default="the first")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the runs.", show_default="runs/<UTC>-compare")] = None,
    engine: Annotated[str | None, typer.Option(metavar="des|tcp", help="Emulate, or run over TCP.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    is_plan: Annotated[bool, typer.Option("--plan", help="Say what each run will take, and start nothing.")] = False,
) -> None:
    """Compare experiments on the same seeds: who is faster by how much, and whether that can be told."""
    from rich.console import Console

    from emuml.comparison.plan import plan
    from emuml.comparison.race import make_folder

    overrides = [text for text in files if "=" in text and not is_there(text)]
    paths = [Path(text) for text in files if text not in overrides]
    asked = engine if engine in (None, "des", "tcp") else None  # so that wrong files are told, too
    _, _, planned = together(
        lambda: chosen(engine),
        lambda: check_out(out),
        lambda: plan(paths, overrides, seeds=seeds, target=target, metric=metric, engine=asked, baseline=baseline),
    )
    if is_plan:
        _say_what_it_takes(planned, as_json)
        return
    folder = make_folder(out or new_folder("compare"))
    console = Console(highlight=False, quiet=as_json)
    _say_what_differs(console, planned)
    content, compared = _run_all(planned, folder)
    if as_json:
        print(json.dumps(content, allow_nan=False))
    else:
        _say_what_came_out(console, compared)
        print(printable(f"report: {content['report']}"))


def is_there(name: str) -> bool:
    """Tell whether a file or a folder has this name."""
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # no file can have it
        return False


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


def _say_what_it_takes(planned: Plan, as_json: bool) -> None:
    from rich.console import Console

    from emuml.comparison import takes

    plans = takes.plans(planned)
    if as_json:
        print(json.dumps(without_nan([each.as_dict() for each in plans]), allow_nan=False))
    else:
        _print(Console(highlight=False), takes.table(planned, plans))


def _say_what_differs(console: Console, plan: Plan) -> None:
    from emuml.comparison import tables

    _print(console, tables.differences(plan))


def _say_what_came_out(console: Console, compared: Comparison) -> None:
    from emuml.comparison import tables
    from emuml.comparison.verdict import verdict

    _print(console, tables.order(compared))
    console.print(f"{printable(verdict(compared))}\n", style="bold", markup=False)
    _print(console, tables.measured(compared))
    _print(console, tables.against_baseline(compared))


def _print(console: Console, words: Words) -> None:
    """Print a table with its notes and an empty line; a table without rows is its notes alone."""
    from emuml.comparison.layout import text
    from emuml.comparison.words import NO_BREAK

    console.print(printable(words.title), style="bold", markup=False)
    if words.rows:
        console.print(text(words, console.width), markup=False)
    for line in words.note.splitlines():
        console.print(printable(line.replace(NO_BREAK, " ")), markup=False)
    console.print()
