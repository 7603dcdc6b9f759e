"""Loss against time on the data sets of ErasureHead, on the delays of its program with cancelled stragglers.

Where the real data are not at hand their synthetic twins stand in, and say so; each has its own expected numbers.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import repeat
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

import emuml
from emuml.cluster import erasurehead_delays
from emuml.errors import UserError
from emuml.experiment.experiment import Experiment
from emuml.experiment.result import Metrics
from emuml.theory import round_ends
from emuml.workloads.data import Table as Rows
from emuml.workloads.data import load
from papers.erasurehead.expected import values
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

UNSEEN = ("amazon-access",)
"""Of data that nobody may pass on we have no losses: only the areas that are published are compared."""

PROCESSES_MAX = 4
"""Each holds a copy of the data."""

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


def emulated(config: str, scheme: str, rows: Rows) -> Metrics:
    """Train under a scheme."""
    return emuml.run(experiment(config, scheme, rows), tier="array", trace=False).metrics


def all_emulated(config: str, rows: Rows, say: Say) -> dict[str, Metrics]:
    """Train under each scheme of a data set; wide ones, which take seconds, in processes side by side."""
    chosen, done = SCHEMES[config], dict[str, Metrics]()
    processes = min(os.cpu_count() or 1, PROCESSES_MAX) if chosen is WIDE else 1
    if processes == 1:
        for scheme in chosen:
            say(f"{scheme} ({len(done) + 1} of {len(chosen)})")
            done[scheme] = emulated(config, scheme, rows)
        return done
    say(f"{len(chosen)} schemes, {processes} at a time")
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for scheme, metrics in zip(chosen, pool.map(_in_a_process, repeat(config), chosen), strict=True):
            done[scheme] = metrics
            say(f"{len(done)} of {len(chosen)} schemes, {processes} at a time")
    return done


def _in_a_process(config: str, scheme: str) -> Metrics:
    return emulated(config, scheme, _own_rows(config))


@cache
def _own_rows(config: str) -> Rows:
    """Return the rows of a process that serves several schemes."""
    return data_of(config)[1]


def reached(run: Metrics, target: float) -> int | None:
    """Return the round from which on the training loss is at most ``target`` for the first time."""
    at = np.flatnonzero(run["train_loss"] <= target)
    return int(at[0]) if len(at) else None


def quality(run: Metrics) -> dict[str, float]:
    """Return the last losses, and the area under the ROC curve of the rows held back where there is one."""
    final = run.final
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
    runs = all_emulated(config, rows, say)
    target = CLOSE * runs["uncoded"].final["train_loss"]
    at = {scheme: reached(run, target) for scheme, run in runs.items()}
    found = {f"{scheme}/{key}": value for scheme, run in runs.items() for key, value in quality(run).items()}
    found |= {f"{scheme}/rounds": rounds for scheme, rounds in at.items() if rounds is not None}
    if name in UNSEEN:
        found = {key: value for key, value in found.items() if key in values(name)}
    return Part({name: found}, _table(name, runs, at), _said(name, rows, runs), {name: _curves(runs)})


def _table(name: str, runs: dict[str, Metrics], at: dict[str, int | None]) -> Table:
    rows = []
    test = "AUC" if "AUC" in quality(runs["uncoded"]) else "test loss"
    base_s = runs["uncoded"]["time_s"][at["uncoded"] or 0]
    for scheme, run in runs.items():
        final, round_at = quality(run), at[scheme]
        time_s = np.nan if round_at is None else run["time_s"][round_at]
        taken = ["-"] * 3 if round_at is None else [f"{round_at}", f"{time_s:.1f}", f"{base_s / time_s:.2f}x"]
        per_round = closed_form("uncoded")[0] / closed_form(scheme)[0]
        rows.append([scheme, f"{final['train loss']:.4f}", f"{final[test]:.4f}", *taken, f"{per_round:.2f}x"])
    heads = ["scheme", "train\nloss", test.replace(" ", "\n"), "rounds\nto it", "s\nto it", "gain", "theory"]
    return table(f"{name}: 100 rounds, and until {CLOSE:g} times the uncoded loss", heads, rows)


def _said(name: str, rows: Rows, runs: dict[str, Metrics]) -> str:
    exact = runs["uncoded"].final["train_loss"]
    agc, covered = (runs[scheme].final["train_loss"] / exact for scheme in (AGC, "AGC covered"))
    return (
        f"{name}: {rows.X.shape[0]:,} rows, {rows.X.shape[1]:,} columns. AGC as published ends at {agc:.4f} times the "
        f"loss of exact gradients, rescaled by what it covers at {covered:.4f} times."
    )


def _curves(runs: dict[str, Metrics]) -> dict[str, dict[str, list[float]]]:
    """Return loss and time of each scheme, and of ErasureHead as its program runs it."""
    made = {scheme: (run["time_s"], run["train_loss"]) for scheme, run in runs.items()}
    made[f"{AGC}, wait-all"] = np.concatenate([[0.0], waiting_for_all(AGC)]), made[AGC][1]
    return {
        scheme: {"time_s": [round(float(v), 3) for v in x], "loss": [float(f"{v:.5g}") for v in y]}
        for scheme, (x, y) in made.items()
    }
