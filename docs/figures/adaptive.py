"""Draws ``adaptive.svg`` for docs/codes/adaptive.md: ``python docs/figures/adaptive.py``.

A cluster of 30 workers whose delays change twice: first large random delays, then hardly any, then three workers that
are six times slower than the others. Left: the redundancy chosen before each round, with ``objective="exact"``. Right:
how many rounds are done after how many seconds, and with each fixed redundancy. All runs are emulated.
"""

from pathlib import Path

import numpy as np
from stragglers import panel

import emuml
from emuml.cluster import Cluster, DelayTrace
from emuml.protocols import AdaptiveCoding, GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.report.charts import COLOURS, Series, lines
from emuml.report.markup import tag, to_text
from emuml.report.style import FIGURE
from emuml.workloads import LogisticRegression

FIGURE_PATH = Path(__file__).with_suffix(".svg")
WORKERS, PHASE = 30, 100
REPLICATIONS = (1, 2, 5)


def delays() -> np.ndarray:
    """Return the seconds of load 1, shape (rounds, workers)."""
    drawn = np.random.default_rng(7)
    random = 0.05 + drawn.exponential(0.5, (PHASE, WORKERS))
    calm = 0.5 + drawn.exponential(0.02, (2 * PHASE, WORKERS))
    calm[PHASE:, [4, 11, 23]] *= 6.0
    return np.vstack([random, calm])


def trained(protocol: object) -> emuml.Result:
    """Emulate all three phases."""
    cluster = Cluster(workers=WORKERS, compute=DelayTrace(delays(), load="scaled"))
    workload = LogisticRegression(data="two-gaussians:300x4")
    return emuml.run(emuml.Experiment(workload, protocol, cluster, rounds=3 * PHASE), out=None)


def draw() -> str:
    """Return the figure."""
    codes = tuple(FractionalRepetition(r) for r in REPLICATIONS)
    adaptive = trained(AdaptiveCoding(codes, objective="exact")).metrics
    rounds = np.arange(1.0, 3 * PHASE + 1)
    chosen = Series(
        "redundancy", np.repeat(rounds, 2), np.append(adaptive["redundancy"][1:].repeat(2)[1:], np.nan), "s0"
    )
    done = [Series("adaptive", adaptive["time_s"], np.append(0.0, rounds))]
    for code in codes:
        metrics = trained(GradientCoding(code)).metrics
        done.append(Series(f"always {code.replication}", metrics["time_s"], np.append(0.0, rounds)))
    parts = [
        *panel(
            lines([chosen], "Redundancy chosen", "round", "copies of the data", may_log=False, from_zero=True, top=6.0),
            "Chosen: delays change at 100 and 200", 0, 0, 410,
        ),
        *panel(
            lines(done, "Rounds done over time", "seconds of emulated time", "rounds", may_log=False, from_zero=True),
            "Rounds done, with fixed choices", 430, 0, 410,
        ),
    ]  # fmt: skip
    for i, one in enumerate(done):
        at = 455 + 95 * i
        parts.append(tag("polyline", points=f"{at},292 {at + 26},292", class_=f"line s{i % COLOURS}"))
        parts.append(tag("text", one.name, x=at + 32, y=296, style="font-size: 12px"))
    background = tag("rect", width="100%", height="100%", style="fill: var(--back)")
    title = "Redundancy that adaptive coding chooses while delays change, and the rounds that it gets done"
    box = {"viewBox": "0 0 840 310", "role": "img", "xmlns": "http://www.w3.org/2000/svg"}
    return to_text(tag("svg", tag("title", title), tag("style", FIGURE), background, *parts, **box)) + "\n"


if __name__ == "__main__":
    FIGURE_PATH.write_text(draw(), encoding="utf-8")
