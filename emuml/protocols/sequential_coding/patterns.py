"""Who may straggle when: the model that a sequential code is designed for, followed round by round.

Source: Krishnan, Ebrahimi and Khisti, "Sequential gradient coding for straggler mitigation", arXiv:2211.13802.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


class Bursts:
    """Stragglers in bursts: the model ``(B, W, lambda)``.

    In any ``window`` rounds in a row at most ``stragglers`` workers straggle, and one that straggled in a round does
    not straggle again ``burst`` to ``window - 1`` rounds later.

    Parameters
    ----------
    workers, burst, window, stragglers : int
    """

    def __init__(self, workers: int, burst: int, window: int, stragglers: int) -> None:
        self.burst, self.stragglers = burst, stragglers
        self._past: deque[Flags] = deque([np.zeros(workers, np.bool_)] * (window - 1), maxlen=window - 1)

    def tolerates(self, late: Flags) -> bool:
        """Tell whether the pattern so far and these stragglers, shape (workers,), conform to the model."""
        in_window = late.copy()
        for flags in self._past:
            in_window |= flags
        if np.count_nonzero(in_window) > self.stragglers:
            return False
        n_old = len(self._past) - self.burst + 1  # rounds that are at least a burst ago
        return not any(np.any(late & self._past[i]) for i in range(n_old))

    def note(self, late: Flags) -> None:
        """Add a round with these stragglers."""
        self._past.append(late)
