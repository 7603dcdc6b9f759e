"""A small experiment that every test of experiments changes to its needs."""

import numpy as np

from emuml import Experiment
from emuml.cluster import Cluster, ShiftedExponential
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.workloads import LogisticRegression


def small(**changed):
    """Return six workers, two replicas, eight rounds, on 120 random rows of which 24 are held back."""
    draws = np.random.default_rng(4)
    X = draws.normal(size=(120, 3))
    y = (X @ [1.0, -2.0, 0.5] + 0.3 * draws.normal(size=120) > 0).astype(float)
    given = {
        "workload": LogisticRegression(data=(X, y)),
        "protocol": GradientCoding(FractionalRepetition(2), collect=4),
        "cluster": Cluster(workers=6, compute=ShiftedExponential(0.05, 0.5)),
        "rounds": 8,
        "seed": 3,
        "name": "small",
    }
    return Experiment(**{**given, **changed})


def rows_of(result):
    """Return the rows of metrics with every float as its bits, so that NaN equals NaN."""
    return [{name: repr(value) for name, value in row.items()} for row in result.metrics.rows]
