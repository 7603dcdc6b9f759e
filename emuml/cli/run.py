"""``emuml run``: an experiment from a file, to a run directory with its report."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emuml.cli.folders import check_out, new_folder
from emuml.cli.progress import progress
from emuml.cli.status import Interrupted, together
from emuml.errors import RunFailed, UserError, did_you_mean, printable

if TYPE_CHECKING:
    from emuml.experiment.config import Loaded
    from emuml.experiment.result import Result


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Experiment in YAML, or a run's config.yaml.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings over those of the file: cluster.workers=50."),
    ] = None,
    engine: Annotated[str | None, typer.Option(metavar="des|tcp", help="Emulate, or run over TCP.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run.", show_default="runs/<UTC>-<name>")] = None,
    tier: Annotated[
        str, typer.Option(metavar="auto|event|array", help="Emulate event by event, or whole rounds as arrays.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the box.")] = False,
    is_plan: Annotated[bool, typer.Option("--plan", help="Say what the run will take, and start nothing.")] = False,
) -> None:
    """Run the experiment of FILE, and leave a report."""
    from emuml.experiment.config import load
    from emuml.experiment.tiers import check_tier
    from emuml.report.html import write_report
    from emuml.report.view import View

    asked, _, _, loaded = together(
        lambda: chosen(engine),
        lambda: check_tier(tier, "--tier"),
        lambda: check_out(out),
        lambda: load(file, overrides or ()),
    )
    if is_plan:
        _plan(loaded, asked or loaded.engine, out, tier, as_json)
        return
    result, folder = _run(loaded, asked or loaded.engine, out, tier)
    view = View.of_result(result)
    try:
        report = write_report([view], folder / "report.html")
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted as the report was made; the run is complete: emuml report {folder}") from None
    if as_json:
        print(json.dumps(without_nan(result.summary())))
    else:
        from rich.console import Console

        from emuml.report.terminal import summary

        Console().print(summary(view))
        print(printable(f"report: {report}"))


def _plan(loaded: Loaded, engine: str, out: Path | None, tier: str, as_json: bool) -> None:
    """Print what the run will take."""
    from emuml.experiment.plan import plan

    with loaded.pointing():
        found = plan(loaded.experiment, engine, loaded.runtime, out, tier)  # type: ignore[arg-type]
    if as_json:
        print(json.dumps(without_nan(found.as_dict())))
        return
    from rich.console import Console

    from emuml.report.plan_box import box_of

    Console().print(box_of(found))


def _run(loaded: Loaded, engine: str, out: Path | None, tier: str) -> tuple[Result, Path]:
    """Run in the folder given, or in a new one; of runs that begin in one second, each finds a folder of its own."""
    from emuml.experiment.run_dir import FolderTaken

    while True:
        folder = out or new_folder(loaded.experiment.name)
        try:
            return _run_in(loaded, engine, folder, tier), folder
        except FolderTaken:
            if out is not None:
                raise


def _run_in(loaded: Loaded, engine: str, folder: Path, tier: str) -> Result:
    """Run, and say where the rest is when it ends early."""
    import emuml

    try:
        with loaded.pointing(), progress(loaded.experiment.rounds, "emulated" if engine == "des" else "real") as each:
            return emuml.run(
                loaded.experiment,
                engine,  # type: ignore[arg-type]
                out=folder,
                runtime=loaded.runtime,
                progress=each,
                tier=tier,  # type: ignore[arg-type]
            )
    except KeyboardInterrupt:
        if not (folder / "error.txt").exists():  # the folder had not been made, or was somebody else's
            raise Interrupted("interrupted before the run began; there is nothing to keep") from None
        raise Interrupted(f"interrupted; what was done is kept: emuml report {folder}") from None
    except RunFailed as error:
        error.add_note(f"what was done is kept: emuml report {folder}")
        raise


def chosen(engine: str | None) -> str | None:
    """Return the engine that an option names.

    Raises
    ------
    UserError
        If there is none of that name.
    """
    if engine not in (None, "des", "tcp"):
        raise UserError(f"got {engine!r}", "--engine", "des, tcp", did_you_mean(engine, ("des", "tcp")))
    return engine


def without_nan(value: Any) -> Any:
    """Return plain data with ``None`` for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
