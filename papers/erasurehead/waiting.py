"""A workload without content: gradients that cost nothing to make and everything to wait for.

For questions that are about time alone. The numbers of ``loads.yaml`` and ``sizes.yaml`` do not depend on what is
learned, and a round of ten thousand workers then takes milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.round_times import Idle


@dataclass(frozen=True)
class Waiting:
    """Declaration of the workload."""

    def problem(self, seed: int) -> Idle:
        """Return the problem; it is the same for all seeds."""
        return Idle(1.0, np.zeros(1))
