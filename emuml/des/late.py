"""Answers on their way to a server that has closed their rounds: how many have come when it asks next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Late:
    """Times of arrival, in sorted runs of growing length, so that adding ``n`` and taking them costs O(n log n)."""

    def __init__(self) -> None:
        self._runs: list[Floats] = []

    def add(self, arrival_s: Floats) -> None:
        """Note answers that nobody waits for; the array is kept."""
        if not arrival_s.size:
            return
        arrival_s.sort()
        while self._runs and self._runs[-1].size <= 2 * arrival_s.size:
            arrival_s = np.sort(np.concatenate((self._runs.pop(), arrival_s)), kind="stable")
        self._runs.append(arrival_s)

    def take(self, until_s: float) -> tuple[int, int]:
        """Forget those that have come by a time, and return how many came before it and at it."""
        before = at = 0
        for index, run in enumerate(self._runs):
            first, last = int(np.searchsorted(run, until_s)), int(np.searchsorted(run, until_s, side="right"))
            before, at = before + first, at + last - first
            self._runs[index] = run[last:]
        self._runs = [run for run in self._runs if run.size]
        return before, at
