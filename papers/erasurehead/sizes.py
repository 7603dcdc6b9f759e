"""How the gain grows with the number of workers: emulated means beside closed forms, 30 to 10,000 workers.

Exponential delays of mean 0.5 s and nothing else: uncoded rounds take ``0.5 H_n``, half of the workers answer in
``0.5 (H_n - H_(n/2))``, which tends to ``0.5 log 2``; so the gain grows like ``H_n / log 2``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import emuml
from emuml.experiment.experiment import Experiment
from emuml.theory import expected_round_time, round_time_variance
from papers.erasurehead.expected import Sampled
from papers.erasurehead.parts import Part, Say, table
from papers.erasurehead.schemes import configured

ROUNDS = {30: 1500, 100: 1000, 1000: 200, 10_000: 30}
"""Rounds by number of workers: standard errors of about one percent."""

RULES: dict[str, tuple[str, Callable[[int], int | None]]] = {
    "uncoded": ("uncoded", lambda n: None),
    "half": ("ignore 15", lambda n: n // 2),
    "FRC r=5": ("FRC r=5", lambda n: None),
    "nine tenths": ("ignore 3", lambda n: n - n // 10),
    "AGC r=3": ("AGC r=3 c=15", lambda n: n // 2),
}
"""Schemes, and how many answers they collect of ``n``; nine tenths is when a cyclic code with s = n/10 is decoded."""


def experiment(rule: str, workers: int) -> Experiment:
    """Return the experiment of a rule for so many workers."""
    scheme, collect = RULES[rule]
    answers = collect(workers)
    size = f"cluster.workers={workers}", f"rounds={ROUNDS[workers]}"
    return configured("sizes", scheme, *size, f"protocol.collect={'null' if answers is None else answers}")


def closed_form(given: Experiment) -> tuple[float, float]:
    """Return mean and standard deviation of the seconds per round."""
    arguments = given.protocol.code, given.cluster.workers, given.cluster.compute, given.protocol.collect
    return expected_round_time(*arguments), round_time_variance(*arguments) ** 0.5


def emulated(given: Experiment) -> Sampled:
    """Return the mean seconds per round of an emulation, with the standard error of theory."""
    run = emuml.run(given, tier="array", trace=False)
    return Sampled(run.duration_s / run.rounds, closed_form(given)[1] / run.rounds**0.5)


def run(say: Say) -> Part:
    """Emulate all rules for all numbers of workers."""
    found: dict[str, Sampled] = {}
    theory: dict[str, float] = {}
    rows = []
    for workers in ROUNDS:
        for rule in RULES:
            say(f"{workers:,} workers, {rule}")
            given = experiment(rule, workers)
            found[f"{rule}/{workers}"], theory[f"{rule}/{workers}"] = emulated(given), closed_form(given)[0]
        for rule in RULES:
            each, expected_s = found[f"{rule}/{workers}"], theory[f"{rule}/{workers}"]
            gains = found[f"uncoded/{workers}"].value / each.value, theory[f"uncoded/{workers}"] / expected_s
            cells = f"{each.value:.4f} ± {each.error:.4f}", f"{expected_s:.4f}", *(f"{gain:.2f}x" for gain in gains)
            rows.append([f"{workers:,} {rule}", *cells])
    most = max(ROUNDS)
    few, many = (found[f"uncoded/{n}"].value / found[f"half/{n}"].value for n in (min(ROUNDS), most))
    said = (
        f"Going on with half of the workers gains {few:.1f}x with {min(ROUNDS)} of them and {many:.1f}x with "
        f"{most:,}: the gain grows like log n. AGC r=3 tends to the same time, and FRC to uncoded's over 5."
    )
    drawn = table("Seconds per round by number of workers", ["", "emulated", "theory", "gain", "in theory"], rows)
    numbers = {"measured": {name: list(each) for name, each in found.items()}, "theory": theory}
    listed = {name: value for name, value in theory.items() if not name.startswith("AGC")}
    groups: dict[str, Mapping[str, float | Sampled]] = {"sizes": listed, "sizes emulated": found}
    return Part(groups, drawn, said, {"sizes": numbers})
