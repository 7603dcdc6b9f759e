"""Deadlines of rounds: when a round closes by the clock, with whatever has arrived until then.

A deadline is no stop rule: it asks for times, not for who has answered, and with it more answers may mean an earlier
end of a round. Hence nothing that is proved of stop rules holds for it, such as the order of the semantics of
stragglers. An answer counts if it arrives before the deadline, and not at it, so that nothing depends on the order of
events of one instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Deadline:
    """The instant at which a round closes at the latest.

    Parameters
    ----------
    after_s : float or None
        Seconds after the question was sent.
    first_times : float or None
        Multiple, above 1, of the time that the first answer took. A first answer at once sets no deadline.

    Examples
    --------
    >>> Deadline(after_s=5.0, first_times=2.0).due_s(10.0, first_s=11.5)
    13.0
    """

    after_s: float | None = None
    first_times: float | None = None

    def __bool__(self) -> bool:
        return self.after_s is not None or self.first_times is not None

    def due_s(self, asked_s: float, first_s: float = inf) -> float:
        """Return when a round is due whose question left at ``asked_s`` and whose first answer came at ``first_s``."""
        due_s = inf if self.after_s is None else asked_s + self.after_s
        if not asked_s < first_s < inf:
            return due_s
        return min(due_s, first_s + self.more_s(first_s - asked_s))

    def more_s(self, first_took_s: float) -> float:
        """Return for how long the others are waited for after a first answer that took so long."""
        return inf if self.first_times is None else (self.first_times - 1.0) * first_took_s

    def close(
        self, asked_s: float, arrival_s: NDArray[np.float64], closed_s: float, is_used: NDArray[np.bool_]
    ) -> tuple[float, NDArray[np.bool_], bool]:
        """Return when a round closes, whose answers it uses, and whether that is by the clock.

        It begins with what the stop rule says of the same arrivals.

        Parameters
        ----------
        asked_s : float
            When the question left.
        arrival_s : ndarray of float64, shape (workers,)
        closed_s : float
            When the stop rule closes the round; infinite if it does not.
        is_used : ndarray of bool, shape (workers,)
            Whose answers it uses.
        """
        due_s = self.due_s(asked_s, float(arrival_s.min()))
        return (closed_s, is_used, False) if closed_s < due_s else (due_s, arrival_s < due_s, True)


NO_DEADLINE = Deadline()
