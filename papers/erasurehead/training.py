"""Loss against time on the data sets of ErasureHead, on the delays of its program with cancelled stragglers.

Where the real data are not at hand their synthetic twins stand in, and say so; each has its own expected numbers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

import emuml
from emuml.cluster import erasurehead_delays
from emuml.errors import UserError
from emuml.experiment.experiment import Experiment
from emuml.experiment.result import Result
from emuml.theory import round_ends
from emuml.workloads.data import Table as Rows
from emuml.workloads.data import load
from papers.erasurehead.expected import groups, values
from papers.erasurehead.parts import Part, Say, table
from papers.erasurehead.schemes import configured
from papers.erasurehead.trace import closed_form

AGC = "AGC r=3 c=15"
WIDE = ("uncoded", "ignore 3", "FRC r=3", AGC, "AGC covered")
SMALL = (
    "uncoded",
    "ignore 3",
    "ignore 15",
    "ignore 15 unscaled",
    "cyclic s=2",
    "FRC r=3",
    AGC,
    "AGC unbiased",
    "AGC covered",
    "AGC r=5 c=15",
)
SCHEMES = {"artificial": SMALL, "kc-house": SMALL, "amazon": WIDE, "covertype": WIDE}
"""What is trained on each data set; the last two take seconds for each scheme."""

CLOSE = 1.05
"""Time is taken until the loss is within this factor of the last one that exact gradients reach."""


def data_of(config: str) -> tuple[str, Rows]:
    """Return the name and the rows of a data set, or those of its twin where it is not at hand.

    Raises
    ------
    UserError
        If the data are there and cannot be used.
    """
    name = str(configured(config).workload.data)
    try:
        return name, load(name, 0, "workload.data")
    except UserError as error:
        if f"{name}-twin" not in error.hint:
            raise
        return f"{name}-twin", load(f"{name}-twin", 0, "workload.data")


def experiment(config: str, scheme: str, rows: Rows) -> Experiment:
    """Return the experiment of a configuration, on rows that are encoded already."""
    given = configured(config, scheme)
    return replace(given, workload=replace(given.workload, data=(rows.X, rows.y)))


def emulated(config: str, scheme: str, rows: Rows) -> Result:
    """Train under a scheme."""
    return emuml.run(experiment(config, scheme, rows), tier="array", trace=False)


def reached(run: Result, target: float) -> int | None:
    """Return the round from which on the training loss is at most ``target`` for the first time."""
    at = np.flatnonzero(run.metrics["train_loss"] <= target)
    return int(at[0]) if len(at) else None


def quality(run: Result) -> dict[str, float]:
    """Return the last losses, and the area under the ROC curve of the rows held back where there is one."""
    final = run.metrics.final
    found = {"train loss": final["train_loss"], "test loss": final["validation_loss"]}
    return found | ({"AUC": final["validation_auc"]} if "validation_auc" in final else {})


def waiting_for_all(scheme: str) -> NDArray[np.float64]:
    """Return when the rounds of a scheme end if the server waits for all: decode sets, and so losses, stay the same."""
    protocol = configured("artificial", scheme).protocol
    rule = protocol.code.build(30, collect=protocol.collect).stop_rule()
    return round_ends(erasurehead_delays(), rule, "wait-all").ended_s


def train(config: str, say: Say) -> Part:
    """Train under each scheme."""
    name, rows = data_of(config)
    runs = {}
    for i, scheme in enumerate(SCHEMES[config]):
        say(f"{name}, {scheme} ({i + 1} of {len(SCHEMES[config])})")
        runs[scheme] = emulated(config, scheme, rows)
    target = CLOSE * runs["uncoded"].metrics.final["train_loss"]
    at = {scheme: reached(run, target) for scheme, run in runs.items()}
    found = {f"{scheme}/{key}": value for scheme, run in runs.items() for key, value in quality(run).items()}
    found |= {f"{scheme}/rounds": rounds for scheme, rounds in at.items() if rounds is not None}
    # Of the real Amazon data, which nobody may pass on, only areas are published.
    kept = {key: value for key, value in found.items() if key in values(name)} if name in groups() else found
    return Part({name: kept}, _table(name, runs, at), _said(name, rows, runs), {name: _curves(runs)})


def _table(name: str, runs: dict[str, Result], at: dict[str, int | None]) -> Table:
    rows = []
    test = "AUC" if "AUC" in quality(runs["uncoded"]) else "test loss"
    base_s = runs["uncoded"].metrics["time_s"][at["uncoded"] or 0]
    for scheme, run in runs.items():
        final, round_at = quality(run), at[scheme]
        time_s = np.nan if round_at is None else run.metrics["time_s"][round_at]
        taken = ["-"] * 3 if round_at is None else [f"{round_at}", f"{time_s:.1f}", f"{base_s / time_s:.2f}x"]
        per_round = closed_form("uncoded")[0] / closed_form(scheme)[0]
        rows.append([scheme, f"{final['train loss']:.4f}", f"{final[test]:.4f}", *taken, f"{per_round:.2f}x"])
    heads = ["scheme", "train\nloss", test.replace(" ", "\n"), "rounds\nto it", "s\nto it", "gain", "theory"]
    return table(f"{name}: 100 rounds, and until {CLOSE:g} times the uncoded loss", heads, rows)


def _said(name: str, rows: Rows, runs: dict[str, Result]) -> str:
    exact = runs["uncoded"].metrics.final["train_loss"]
    agc, covered = (runs[scheme].metrics.final["train_loss"] / exact for scheme in (AGC, "AGC covered"))
    return (
        f"{name}: {rows.X.shape[0]:,} rows, {rows.X.shape[1]:,} columns. AGC as published ends at {agc:.4f} times the "
        f"loss of exact gradients, rescaled by what it covers at {covered:.4f} times."
    )


def _curves(runs: dict[str, Result]) -> dict[str, dict[str, list[float]]]:
    """Return loss and time of each scheme, and of ErasureHead as its program runs it."""
    made = {scheme: (run.metrics["time_s"], run.metrics["train_loss"]) for scheme, run in runs.items()}
    made[f"{AGC}, wait-all"] = np.concatenate([[0.0], waiting_for_all(AGC)]), made[AGC][1]
    return {
        scheme: {"time_s": [round(float(v), 3) for v in x], "loss": [float(f"{v:.5g}") for v in y]}
        for scheme, (x, y) in made.items()
    }
