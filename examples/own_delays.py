"""Which code is fastest on recorded delays, and how sure is that? Twice: with the load of a worker, and without.

The experiment stands in own_delays.yaml; settings are laid over it as on the command line. A run has as many rounds as
were recorded, and its seed draws them from the recorded ones: what changes from seed to seed is what would change if
somebody recorded 50 rounds of this cluster again. All codes see the same rounds at each seed.
"""

from pathlib import Path

import numpy as np

import emuml
from emuml.experiment.config import load

FILE = Path(__file__).with_suffix(".yaml")
CODES = {
    "uncoded": ["protocol.code.kind=uncoded", "protocol.collect=null"],
    "ignore, 10 of 12": ["protocol.code.kind=ignore-stragglers", "protocol.collect=10"],
    "repetition r=2": ["protocol.collect=null"],
    "ErasureHead r=2 c=9": [],
}
SEEDS, TARGET = range(40), 0.12


def seconds(settings: list[str]) -> tuple[float, float]:
    """Return the seconds of a round, and those until the loss is reached."""
    result = emuml.run(load(FILE, settings).experiment)
    loss, time_s = result.metrics["train_loss"], result.metrics["time_s"]
    return result.duration_s / result.rounds, time_s[np.argmax(loss <= TARGET)] if min(loss) <= TARGET else np.inf


def ratio(values: np.ndarray) -> str:
    """Return the mean of some ratios, and between which values 95 % of them lie."""
    low, high = np.quantile(values, [0.025, 0.975])
    return f"{values.mean():.2f} [{low:.2f}, {high:.2f}]"


for reading in ("scaled", "ignored"):
    law = f"cluster.compute.load={reading}"
    found = np.array([[seconds([*code, law, f"seed={seed}"]) for seed in SEEDS] for code in CODES.values()])
    first = np.bincount(found[:, :, 1].argmin(axis=0), minlength=len(CODES)) / len(SEEDS)
    heads = f"{'s a round':>12}{'to uncoded':>19}{f's to {TARGET}':>12}{'to uncoded':>19}{'first':>7}"
    print(f"{f'load {reading}':20}{heads}")
    for name, own, share in zip(CODES, found, first, strict=True):
        columns = (f"{own[:, i].mean():12.3f}{ratio(own[:, i] / found[0, :, i]):>19}" for i in range(2))
        print(f"{name:20}{''.join(columns)}{share:7.0%}")
