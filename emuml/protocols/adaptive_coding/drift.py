"""Changes of the law of delays, noticed by how long rounds take: a two-sided cumulative sum of logarithms.

Each round gives the logarithm of its seconds over the estimate, in standard deviations of the estimate. What lies
beyond half a deviation is added up; at ``LIMIT`` the law has changed, about when the sum last was below ``LOW``.

References
----------
Page, "Continuous inspection schemes", Biometrika 41, 1954. With independent normal logarithms a false alarm comes once
in more than ten thousand rounds; a shift by two deviations is noticed after about eight.
"""

from __future__ import annotations

import math

import numpy as np

from emuml.protocols.adaptive_coding.observed import Floats

SLACK = 0.5
LIMIT = 12.0
LOW = 3.0
MOST = 3.0
"""No round counts for more deviations, so that one outlier is no change."""
LEAST_DEVIATION = 0.02
"""Rounds that differ by less than about two in a hundred are alike."""
ROUNDS_MIN = 8
"""Estimates from fewer rounds tell nothing of a change."""


class Drift:
    """Both sums, and since when they are above 0."""

    def __init__(self) -> None:
        self._sums = [0.0, 0.0]
        self._rounds = [0, 0]

    def notes(self, seconds: float, estimated: Floats) -> int:
        """Take the seconds of a round and those that an estimate consists of; return since how many rounds it changed.

        Returns
        -------
        int
            0 if it did not change.
        """
        if estimated.size < ROUNDS_MIN or seconds <= 0 or estimated.min() <= 0:
            return 0
        logs = np.log(estimated)
        deviation = max(float(logs.std()) * math.sqrt(1 + 1 / logs.size), LEAST_DEVIATION)
        z = min(max((math.log(seconds) - float(logs.mean())) / deviation, -MOST), MOST)
        for side, sign in enumerate((1, -1)):
            self._sums[side] = max(self._sums[side] + sign * z - SLACK, 0.0)
            self._rounds[side] = self._rounds[side] + 1 if self._sums[side] >= LOW else 0
            if self._sums[side] > LIMIT:
                return self._rounds[side]
        return 0
