"""Durations by (worker, iteration), drawn for all workers at once when the first of them gets there."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from emuml.cluster.compute import ComputeModel
from emuml.des.drawing import Drawing
from emuml.node import NodeId

Floats = NDArray[np.float64]

KEPT = 1 << 23
"""So many drawn durations are kept; workers that are further ahead draw for themselves."""


class Rows:
    """What each worker takes for each iteration; each is asked for once.

    Parameters
    ----------
    law : ComputeModel
    seed : int
    loads : ndarray of float64, shape (workers,)
    """

    def __init__(self, law: ComputeModel, seed: int, loads: Floats) -> None:
        self._law, self._seed, self._loads = law, seed, loads
        self._drawing = Drawing(law, seed, loads)
        self.most = max(KEPT // len(loads), 2)
        self._first = 0
        self._rows: list[Floats] = []
        self._left: list[int] = []
        self._before: Counter[int] = Counter()  # how many drew for themselves, by iteration

    def seconds(self, worker: int, clock: int) -> float:
        """Return how long an iteration of a worker takes."""
        index = clock - self._first
        if not 0 <= index < self.most:
            return self.alone(worker, clock)
        while index >= len(self._rows):
            row, left = self.draw(self._first + len(self._rows))
            self._rows.append(row)
            self._left.append(left)
        self._left[index] -= 1
        found = float(self._rows[index][worker])
        while self._left and not self._left[0]:
            del self._rows[0], self._left[0]
            self._first += 1
        return found

    def draw(self, clock: int) -> tuple[Floats, int]:
        """Return the seconds of all workers for an iteration, and how many of them have not drawn for themselves."""
        row = np.empty(len(self._loads))
        self._drawing.fill(clock, row)
        return row, len(self._loads) - self._before.pop(clock, 0)

    def alone(self, worker: int, clock: int) -> float:
        """Draw for one worker."""
        self._before[clock] += 1
        return self._law.sampler(self._seed, NodeId("worker", worker))(clock, float(self._loads[worker]))
