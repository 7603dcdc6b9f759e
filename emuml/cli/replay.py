"""``emuml replay``: a run fed to the emulator again, or the scenario of a failed test tried again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emuml.cli.status import VIOLATED


def replay(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|FILE.json", help="Folder of a run, such as runs/latest, or scenario of a failed test."
        ),
    ],
    test: Annotated[
        str, typer.Option(metavar="FILE.py::NAME", help="The test that a scenario is of, where it does not say it.")
    ] = "",
    diagram: Annotated[
        bool, typer.Option("--diagram", help="Draw all of a scenario's run, whatever it shows.")
    ] = False,
) -> int:
    """Replay a run in the emulator and compare, or try a scenario.

    Exit status 1: at the first difference of a run; if an oracle objects to a scenario again.
    """
    if source.suffix == ".json" or source.is_file():
        return _try(source, test, diagram)
    if test or diagram:
        from emuml.errors import UserError

        raise UserError("--test and --diagram are of scenarios", str(source), "a file such as failures/test-3f9c.json")
    _repeat(source)
    return 0


def _try(path: Path, test: str, draws: bool) -> int:
    """Run the scenario of a file under the test that it is of, and say what the oracles say."""
    from emuml.diagram import diagram
    from emuml.errors import UserError
    from emuml.testing.oracles import OracleError
    from emuml.testing.places import check_at
    from emuml.testing.report import report
    from emuml.testing.scenario import load_stored

    scenario, place = load_stored(path)
    if not (test or place):
        hint = "--test FILE.py::NAME says it, if the test is a global of a file; else call its replay(path)"
        raise UserError("the scenario does not say which test it is of", str(path), hint=hint)
    check = check_at(test or place, path)
    try:
        trial = check.tried(scenario)
    except OracleError as error:
        raise UserError(f"the test is wrong: {error}", test or place) from error
    if draws:
        marks = [item.name for item in scenario.deviations]
        print(diagram(trial.run.trace.rows, marks, everything=True, lines_max=10_000), end="\n\n")
    print(report(trial, test=check.name))
    return 0 if trial.ok else VIOLATED


def _repeat(folder: Path) -> None:
    import emuml

    result = emuml.replay(folder)
    done = f"replayed {result.rounds} rounds, {result.events} events"
    equal = f"{' and '.join(result.compared)} equal bit for bit"
    if "parameters" in result.compared:
        print(f"{done}: {equal} (sha256 {result.parameters_sha256[:16]})")
    else:
        print(f"{done}: {equal}, as far as the run went; it did not finish, so there are no parameters to compare")
