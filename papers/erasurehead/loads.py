"""Whether codes gain rests on what redundant work costs: the same schemes under both readings of the delay.

Model A, ``tail="fixed"``: the delay does not know the load, as in ErasureHead's program. Model B, ``tail="scaled"``: a
worker with three shares is delayed three times as long (Lee et al., arXiv:1512.02673).
"""

from __future__ import annotations

from collections.abc import Mapping

import emuml
from emuml.theory import expected_round_time, round_time_variance
from papers.erasurehead.expected import Sampled
from papers.erasurehead.parts import Part, Say, table
from papers.erasurehead.schemes import configured, schemes

SHIFTS_S = (0.05, 0.5)
MODELS = {"A": "fixed", "B": "scaled"}
EMULATED = ("uncoded", "ignore 3", "ignore 15", "cyclic s=3", "FRC r=3", "AGC r=3 c=15")
LAWS = tuple((model, shift_s) for shift_s in SHIFTS_S for model in MODELS)
EXACT = ("uncoded", "cyclic", "FRC")
"""How the names of schemes that lose nothing begin."""


def settings(model: str, shift_s: float) -> tuple[str, str]:
    """Return the settings of a law."""
    return f"cluster.compute.tail={MODELS[model]}", f"cluster.compute.shift_s={shift_s}"


def compared() -> list[str]:
    """Return the schemes that differ in time: scalings do not."""
    return [name for name in schemes() if not name.endswith(("scaled", "biased", "covered"))]


def closed_form(scheme: str, model: str, shift_s: float) -> tuple[float, float]:
    """Return mean and standard deviation of the seconds per round."""
    experiment = configured("loads", scheme, *settings(model, shift_s))
    protocol, cluster = experiment.protocol, experiment.cluster
    arguments = protocol.code, cluster.workers, cluster.compute, protocol.collect
    return expected_round_time(*arguments), round_time_variance(*arguments) ** 0.5


def emulated(scheme: str, model: str, shift_s: float) -> Sampled:
    """Return the mean seconds per round of an emulation, with the standard error of theory."""
    run = emuml.run(configured("loads", scheme, *settings(model, shift_s)), tier="array", trace=False)
    return Sampled(run.duration_s / run.rounds, closed_form(scheme, model, shift_s)[1] / run.rounds**0.5)


def conclusions(theory: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Say what the closed forms show; ``theory`` has seconds by scheme and law, such as ``"A 0.05"``."""
    small, large = SHIFTS_S
    by_a, by_b = (theory["uncoded"][law] / theory["FRC r=3"][law] for law in (f"A {small}", f"B {small}"))
    said = [
        f"FRC r=3 is {by_a:.2f} times as fast as uncoded under A, {by_b:.2f} times under B with shift {small} s: there "
        f"it saves 0.5 s (H_30 - H_10) = 0.53 s of delays, about 0.5 s log 3, and its load costs {2 * small:.1f} s."
    ]
    laws = [f"B {shift_s}" for shift_s in SHIFTS_S]
    if cyclic := [times for name, times in theory.items() if name.startswith("cyclic")]:
        slower = all(times[law] > theory["uncoded"][law] for times in cyclic for law in laws)
        said.append(f"Under B {'every' if slower else 'not every'} cyclic code is slower than uncoded.")
    for law in (f"{model} {large}" for model in MODELS):
        exact = min((name for name in theory if name.startswith(EXACT)), key=lambda name: theory[name][law])
        ignoring_s, exact_s = theory["ignore 3"][law], theory[exact][law]
        said.append(
            f"With shift {large} s under {law[0]}, ignoring 3 of 30 ({ignoring_s:.2f} s) "
            f"{'beats' if ignoring_s < exact_s else 'does not beat'} every exact code; the fastest of them is {exact} "
            f"({exact_s:.2f} s)."
        )
    return said


def run(say: Say) -> Part:
    """Compare the schemes under both models, in closed form and emulated."""
    theory = {
        scheme: {f"{model} {shift_s}": closed_form(scheme, model, shift_s)[0] for model, shift_s in LAWS}
        for scheme in compared()
    }
    found: dict[str, Sampled] = {}
    for scheme in EMULATED:
        for model, shift_s in LAWS:
            say(f"{scheme}, model {model}, shift {shift_s} s")
            found[f"{scheme}/{model} {shift_s}"] = emulated(scheme, model, shift_s)
    rows = []
    for scheme, times in theory.items():
        rows.append([scheme, *(f"{time_s:.4f}" for time_s in times.values())])
        if scheme in EMULATED:
            means = [found[f"{scheme}/{law}"] for law in times]
            rows.append(["  emulated", *(f"{mean.value:.3f} ± {mean.error:.3f}" for mean in means)])
    heads = ["scheme", *(f"{model}, shift\n{shift_s} s" for model, shift_s in LAWS)]
    drawn = table("Seconds per round in theory, delays of mean 0.5 s", heads, rows)
    flat = {f"{scheme}/{law}": value for scheme, times in theory.items() for law, value in times.items()}
    groups: dict[str, Mapping[str, float | Sampled]] = {"loads": flat, "loads emulated": found}
    return Part(groups, drawn, "\n".join(conclusions(theory)), {"loads": theory})
