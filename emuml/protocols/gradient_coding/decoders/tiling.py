"""Tiling: add up answers whose intervals of partitions do not overlap and cover most, O(workers + partitions)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emuml import _kernels
from emuml.protocols.gradient_coding.decoders.seam import Indices, Weights
from emuml.protocols.gradient_coding.rules.tiling import Intervals


@dataclass(frozen=True, eq=False)
class Tiling:
    """Weights 0 and 1; the error is the number of partitions that no chosen answer has.

    ``best[x] = max(best[x-1], best[a] + x - a for each answer [a, x))`` by dynamic programming. If the intervals of no
    answers tile everything, other weights may have a smaller error; these keep every sum a plain one.

    Parameters
    ----------
    intervals : Intervals
        Of all workers.
    partitions : int
        How many there are.
    """

    intervals: Intervals
    partitions: int
    is_cheap = True

    def weights(self, received: Indices) -> Weights:
        """See :class:`Decoder`."""
        values = np.zeros(received.size)
        covered = _kernels.tiling(*self.intervals, self.partitions, received, values)
        return Weights(values, float(self.partitions - covered), (covered / self.partitions) ** 0.5)
