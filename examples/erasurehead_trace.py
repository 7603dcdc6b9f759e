"""Seconds per round on the delays of ErasureHead's own program, for six codes and four fates of stragglers.

The experiment stands in erasurehead_trace.yaml; settings are laid over it as on the command line. The delays are
fixed, so the numbers are exact and nothing here is a sample.
"""

from pathlib import Path

import emuml
from emuml.experiment.config import load

FILE = Path(__file__).with_suffix(".yaml")
CODES = {
    "uncoded": ["protocol.code.kind=uncoded", "protocol.collect=null"],
    "ignore, 27 of 30": ["protocol.code.kind=ignore-stragglers", "protocol.collect=27"],
    "ignore, 15 of 30": ["protocol.code.kind=ignore-stragglers", "protocol.collect=15"],
    "repetition r=3": ["protocol.collect=null"],
    "ErasureHead r=3 c=15": [],
    "ErasureHead r=5 c=15": ["protocol.code.replication=5"],
}
SEMANTICS = ("cancel", "skip-stale", "carry-over", "wait-all")


def seconds_per_round(settings: list[str]) -> float:
    experiment = load(FILE, ["workload.data=two-gaussians:300x5", *settings]).experiment
    return emuml.run(experiment).duration_s / 100


print(f"{'':22}" + "".join(f"{stragglers:>12}" for stragglers in SEMANTICS))
for name, settings in CODES.items():
    row = [seconds_per_round([*settings, f"protocol.stragglers={stragglers}"]) for stragglers in SEMANTICS]
    print(f"{name:22}" + "".join(f"{value:12.6f}" for value in row))
