"""How long all workers take for one draw, where their loads differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emuml.cluster.compute import ComputeModel
from emuml.durations import durations

Floats = NDArray[np.float64]


class Drawing:
    """Draws for all workers at once, each with its own load.

    Parameters
    ----------
    law : ComputeModel
    seed : int
        Of the experiment.
    loads : ndarray of float64, shape (workers,)
    """

    def __init__(self, law: ComputeModel, seed: int, loads: Floats) -> None:
        self._fill = durations(law, seed, len(loads))
        self._loads, of_load = np.unique(loads, return_inverse=True)
        self._those = [np.flatnonzero(of_load == i) for i in range(1, len(self._loads))]
        self._spare = np.empty(len(loads) if self._those else 0)

    def fill(self, draw: int, out: Floats) -> None:
        """Write the seconds that each worker takes for a draw, shape (workers,)."""
        self._fill(draw, float(self._loads[0]), out)
        for load, those in zip(self._loads[1:].tolist(), self._those, strict=True):
            self._fill(draw, load, self._spare)
            out[those] = self._spare[those]
