"""Seconds per round on the delays that ErasureHead's program has built in: its own clock, and what really passes.

The delays are fixed, so each mean is exact; times do not depend on the data, so a small set serves. The program stops
its clock when the round is decided and then waits for all workers: ``logged`` is that clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import numpy as np

import emuml
from emuml.cluster import ShiftedExponential
from emuml.experiment.result import Result
from emuml.shapes import Stragglers
from emuml.theory import expected_round_time, round_time_variance
from papers.erasurehead.expected import Sampled
from papers.erasurehead.parts import Part, Say, table
from papers.erasurehead.schemes import configured

SCHEMES = (
    "uncoded",
    "ignore 1",
    "ignore 3",
    "ignore 6",
    "ignore 15",
    "cyclic s=2",
    "FRC r=2",
    "FRC r=3",
    "FRC r=5",
    "AGC r=3 c=15",
    "AGC r=3 c=20",
    "AGC r=5 c=15",
)
SEMANTICS = get_args(Stragglers)
SMALL = "workload.data=two-gaussians:300x5"
LAW = ShiftedExponential(shift_s=0.0, mean_s=0.5)
"""The law that the program draws its delays from."""


def emulated(scheme: str, stragglers: str) -> Result:
    """Run 100 rounds of a scheme on the built-in delays."""
    experiment = configured("artificial", scheme, SMALL, f"protocol.stragglers={stragglers}")
    return emuml.run(experiment, tier="array", trace=False)


def logged_s(run: Result) -> float:
    """Return the mean seconds from the start of a round to its decision: all that the program's clock sees."""
    return float(np.mean(run.metrics["decided_s"][1:] - run.metrics["time_s"][:-1]))


def seconds(scheme: str) -> tuple[dict[str, float], dict[str, Result]]:
    """Return the seconds per round by semantics and by the program's clock, and the runs that took them."""
    runs = {stragglers: emulated(scheme, stragglers) for stragglers in SEMANTICS}
    per_round = {stragglers: run.duration_s / run.rounds for stragglers, run in runs.items()}
    return {"logged": logged_s(runs["wait-all"]), **per_round}, runs


def coverage(run: Result) -> dict[str, float]:
    """Return how much of the gradient the rounds of a run had."""
    covered, groups = run.metrics["covered"][1:], run.metrics["groups"][1:]
    return {
        "exact rounds": float((covered == groups).sum()),
        "covered fraction": float((covered / groups).mean()),
        "arrivals used": float(run.metrics["arrivals"][1:].mean()),
    }


def closed_form(scheme: str) -> tuple[float, float]:
    """Return mean and standard deviation of a round in theory, for independent delays of the same law."""
    protocol = configured("artificial", scheme).protocol
    arguments = protocol.code, 30, LAW, protocol.collect
    return expected_round_time(*arguments), round_time_variance(*arguments) ** 0.5


def run(say: Say) -> Part:
    """Emulate every scheme under every semantics."""
    found: dict[str, float] = {}
    theory: dict[str, float | Sampled] = {}
    rows, measured, covered = [], {}, {}
    for scheme in SCHEMES:
        say(scheme)
        measured[scheme], runs = seconds(scheme)
        found |= {f"{scheme}/{name}": value for name, value in measured[scheme].items()}
        mean_s, spread_s = closed_form(scheme)
        theory[scheme] = Sampled(measured[scheme]["cancel"], spread_s / runs["cancel"].rounds ** 0.5)
        gains = measured["uncoded"]["cancel"] / measured[scheme]["cancel"], closed_form("uncoded")[0] / mean_s
        times = [f"{measured[scheme][name]:.4f}" for name in ("logged", *SEMANTICS)]
        rows.append([scheme, *times, *(f"{gain:.2f}x" for gain in gains)])
        if scheme == "AGC r=3 c=15":
            covered = coverage(runs["cancel"])
    agc, uncoded = measured["AGC r=3 c=15"], measured["uncoded"]
    said = (
        f"The program logs {agc['logged']:.4f} s a round for AGC r=3 c=15 and {uncoded['logged']:.4f} s uncoded, a "
        f"gain of {uncoded['logged'] / agc['logged']:.1f}x. It waits for all before the next round, so "
        f"{agc['wait-all']:.4f} s pass either way, which is {uncoded['wait-all'] / agc['wait-all']:.1f}x. "
        "Cancelled stragglers deliver the gain."
    )
    heads = ["scheme", "logged", "cancel", "skip-\nstale", "carry-\nover", "wait-\nall", "gain", "in\ntheory"]
    drawn = table("Seconds per round on the built-in delays: 30 workers, 100 rounds", heads, rows)
    groups: dict[str, Mapping[str, float | Sampled]] = {
        "trace": found,
        "trace in theory": theory,
        "trace coverage": covered,
    }
    return Part(groups, drawn, said, {"trace": measured})
