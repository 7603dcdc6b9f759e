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
        self._least = float(loads.min())
        self._others: dict[float, NDArray[np.int64]] = {}
        if loads.max() > self._least:
            found, of_load = np.unique(loads, return_inverse=True)
            self._others = {load: np.flatnonzero(of_load == i) for i, load in enumerate(found.tolist()) if i}
        self._spare = np.empty(len(loads) if self._others else 0)

    def fill(self, draw: int, out: Floats) -> None:
        """Write the seconds that each worker takes for a draw, shape (workers,)."""
        self._fill(draw, self._least, out)
        for load, those in self._others.items():
            self._fill(draw, load, self._spare)
            out[those] = self._spare[those]
