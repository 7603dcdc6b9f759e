"""``emuml demo``: four ways to live with stragglers on real data, emulated; then one of them over real TCP.

Who wins is measured, not staged: all four have the same data, optimizer, seed and cluster. What they reach is compared
at the largest of the four final losses, which all of them reach.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from emuml.cli.folders import new_folder
from emuml.cli.status import Interrupted
from emuml.errors import RunFailed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from emuml.experiment.experiment import Experiment
    from emuml.report.view import View

BASELINE = "uncoded"
PROBLEM = """\
30 workers train a classifier on real data (breast cancer, 100 rounds). A worker
needs 0.05 s per share of the data, plus an exponential delay of mean 0.5 s: who
waits for the slowest of 30 waits four mean delays, round after round.

  uncoded                a share each, wait for all 30
  ignore stragglers      a share each, go on after 15
  fractional repetition  3 workers hold the same 3 shares: wait for one of them
  ErasureHead            the same, but go on after 15 whatever is missing
"""


class Row(NamedTuple):
    """What the table says of one scheme."""

    view: View
    round_s: float
    error_s: float
    expected_s: float
    target_s: float
    speedup: float


def demo(
    out: Annotated[Path | None, typer.Option(help="Folder of the runs.", show_default="runs/<UTC>-demo")] = None,
    tcp: Annotated[bool, typer.Option(help="Also run over real TCP.")] = True,
) -> None:
    """Emulate four ways to live with stragglers, run one over TCP, and show who wins by how much."""
    from rich.console import Console

    from emuml.report.html import write_report

    console = Console(highlight=False)
    folder = out or new_folder("demo")
    console.print(PROBLEM)
    try:
        began = time.perf_counter()
        views = emulate(folder)
        wall_s = time.perf_counter() - began
        target, rows = compare(views)
        console.print(fitting(rows, target, console))
        said = conclusion(rows, target)
        console.print(f"[bold]{said}[/bold]")
        console.print(f"Emulated {sum(v.duration_s for v in views):.0f} s of cluster time in {wall_s:.1f} s.\n")
        if tcp:
            console.print(over_tcp(folder))
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; what was done is kept in {folder}") from None
    report = write_report(views, folder / "report.html", "Four ways to live with stragglers", said)
    print(f"report: {report}")


def schemes() -> dict[str, Experiment]:
    """Return the four experiments by name."""
    import emuml
    from emuml.cluster import Cluster, ShiftedExponential
    from emuml.protocols import GradientCoding
    from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
    from emuml.workloads import LogisticRegression

    protocols = {
        BASELINE: GradientCoding(code=Uncoded()),
        "ignore stragglers": GradientCoding(code=IgnoreStragglers(), collect=15),
        "fractional repetition": GradientCoding(code=FractionalRepetition(replication=3)),
        "ErasureHead": GradientCoding(code=FractionalRepetition(replication=3), collect=15),
    }
    cluster = Cluster(workers=30, compute=ShiftedExponential(shift_s=0.05, mean_s=0.5))
    return {
        name: emuml.Experiment(
            LogisticRegression(data="breast-cancer"), protocol, cluster, rounds=100, seed=7, name=name
        )
        for name, protocol in protocols.items()
    }


def emulate(folder: Path) -> list[View]:
    """Emulate the four schemes, each with a run directory."""
    import emuml
    from emuml.report.view import View

    return [
        View.of_result(emuml.run(experiment, out=folder / name.replace(" ", "-").lower()))
        for name, experiment in schemes().items()
    ]


def compare(views: list[View]) -> tuple[float, list[Row]]:
    """Return the loss that all reach, and a row for each scheme; speed-ups are against the first."""
    import math

    target = max(view.metrics.final["train_loss"] for view in views)
    reached = [view.seconds_to(target) or math.nan for view in views]
    rows = []
    for view, target_s in zip(views, reached, strict=True):
        times = view.round_times_s
        error_s = float(times.std(ddof=1)) / math.sqrt(len(times))
        expected_s = view.expected_round_s() or math.nan
        rows.append(Row(view, float(times.mean()), error_s, expected_s, target_s, reached[0] / target_s))
    return target, rows


NOT_NEEDED = ("theory", "final loss")
"""Columns that a narrow terminal does without, the first one first."""


def fitting(rows: list[Row], target: float, console: Console) -> Table:
    """Return the table with as many columns as fit; in the end names are folded before numbers are cut."""
    from rich.measure import Measurement

    tables = (table(rows, target, NOT_NEEDED[:count]) for count in range(len(NOT_NEEDED) + 1))
    for made in tables:
        if Measurement.get(console, console.options.update(width=1000), made).maximum <= console.width:
            break
    return made


def table(rows: list[Row], target: float, without: Sequence[str] = ()) -> Table:
    """Return the table of who wins, without some columns."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    heads = ["", "s per round\nmeasured", "\ntheory", "final\nloss", f"s to loss\n{target:.4f}", "speed-up"]
    shown = [i for i, head in enumerate(heads) if head.replace("\n", " ").strip() not in without]
    for head in (heads[i] for i in shown):
        made.add_column(head, justify="right" if head else "left", no_wrap=bool(head), overflow="fold")
    best = max(row.speedup for row in rows)
    for row in rows:
        loss = f"{row.view.metrics.final['train_loss']:.4f}"
        measured = f"{row.round_s:.3f} ± {row.error_s:.3f}"
        cells = (row.view.label, measured, f"{row.expected_s:.3f}", loss, f"{row.target_s:.1f}", f"{row.speedup:.2f}x")
        made.add_row(*(cells[i] for i in shown), style="bold" if row.speedup == best else "")
    return made


def conclusion(rows: list[Row], target: float) -> str:
    """Say in one sentence who wins by how much."""
    best = max(rows, key=lambda row: row.speedup)
    exact = max((row for row in rows if max(row.view.metrics["decode_error"][1:]) == 0), key=lambda row: row.speedup)
    text = f"{_first(best.view.label)} wins: it reaches loss {target:.4f} in {best.target_s:.1f} s, "
    text += f"{best.speedup:.1f} times as fast as {BASELINE}."
    if exact is not best:
        text += f" Of the exact ones {exact.view.label} wins, {exact.speedup:.1f} times as fast."
    return text


def _first(text: str) -> str:
    return text[0].upper() + text[1:]


def over_tcp(folder: Path) -> str:
    """Run a small experiment over TCP and on the emulator, and compare the parameters bit for bit."""
    import numpy as np

    import emuml
    from emuml.cluster import Cluster, ShiftedExponential
    from emuml.protocols import GradientCoding
    from emuml.protocols.gradient_coding import FractionalRepetition
    from emuml.report.html import write_report
    from emuml.report.view import View
    from emuml.workloads import LogisticRegression

    experiment = emuml.Experiment(
        workload=LogisticRegression(data="breast-cancer"),
        protocol=GradientCoding(code=FractionalRepetition(replication=2)),
        cluster=Cluster(workers=8, compute=ShiftedExponential(shift_s=0.01, mean_s=0.05)),
        rounds=20,
        seed=7,
        name="fractional repetition over TCP",
    )
    emulated = emuml.run(experiment)
    deployed = emuml.run(experiment, engine="tcp", out=folder / "tcp")
    write_report([View.of_result(deployed)], folder / "tcp" / "report.html")
    if not np.array_equal(emulated.parameters, deployed.parameters):
        raise RunFailed("the TCP run and the emulator gave different parameters; please report this")
    return (
        f"The same protocol object over real TCP, 8 workers and a server, a process each: 20 rounds in "
        f"{deployed.duration_s:.2f} s (emulated: {emulated.duration_s:.2f} s).\n"
        f"Parameters equal bit for bit (sha256 {deployed.parameters_sha256[:16]}).\n"
    )
