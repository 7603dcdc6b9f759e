"""Whole rounds at once: when a stop rule closes a round of given arrivals, and by whom, without sorting them.

The same answer as asking a tracker arrival by arrival in the order of (time, worker). A count is selected by
``numpy.partition``, which is faster than what a kernel of ours would do; the cover of groups, and rounds of exponential
draws, by kernels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emuml import _kernels
from emuml.durations import ExponentialDraws
from emuml.shapes import StopRule

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Closing:
    """A stop rule, made ready to close many rounds.

    Parameters
    ----------
    rule : StopRule
        Rules that do not state their parts are asked for their ``closing_index`` of sorted arrivals.
    """

    def __init__(self, rule: StopRule) -> None:
        self.rule = rule
        self.count, self.groups = 0, 0
        self.group_of = np.empty(0, np.int64)
        self.has_parts = type(rule).stop_index is StopRule.stop_index and type(rule).tracker is StopRule.tracker
        if self.has_parts:
            count, cover = rule.parts()
            self.count = count or 0
            if cover is not None:
                self.groups, self.group_of = len(cover.groups), cover.group_array

    def of(self, times: Floats) -> tuple[float, Flags]:
        """Return when a round closes, and whose answers it uses.

        Parameters
        ----------
        times : ndarray of float64, shape (workers,)
            When each worker's answer arrives, in seconds; infinite for who never answers. C-contiguous.

        Returns
        -------
        at : float
            Time of the answer that closes the round; infinite if none does.
        used : ndarray of bool, shape (workers,)
            Who answered until then, of one instant in the order of the workers; all who answer if nothing closes it.

        Examples
        --------
        >>> from emuml.shapes import Count
        >>> at, used = Closing(Count(workers=3, count=2)).of(np.array([3.0, 1.0, 3.0]))
        >>> at, used.tolist()
        (3.0, [True, True, False])
        """
        if not self.has_parts:
            return self._sorted(times)
        used = np.empty(times.shape, np.uint8)
        at = self.time(times)
        _kernels.mark_used(times, at, self.count, self.group_of, self.groups, used)
        return at, used.view(np.bool_)

    def time(self, times: Floats) -> float:
        """Return when a round closes, as :meth:`of` does."""
        if not self.has_parts:
            return self._sorted(times)[0]
        at = np.inf
        if self.count:
            at = float(np.partition(times, self.count - 1)[self.count - 1])
        return min(at, _kernels.cover_time(times, self.group_of, self.groups)) if self.groups else at

    def _sorted(self, times: Floats) -> tuple[float, Flags]:
        answers = np.count_nonzero(np.isfinite(times))
        order = np.argsort(times)[:answers]
        ascending = times[order]
        if np.any(ascending[1:] == ascending[:-1]):
            # Of one instant, the lower worker is first: a stable sort takes six times as long, so only if it matters.
            order = np.argsort(times, kind="stable")[:answers]
        used = np.zeros(times.shape, np.bool_)
        last = self.rule.closing_index(order)
        used[order[: last or order.size]] = True
        return float(times[order[last - 1]]) if last else np.inf, used

    def exponential(
        self,
        law: ExponentialDraws,
        seed: int,
        load: float,
        rounds: int,
        to_all: bool = False,
        asks_who: bool = False,
    ) -> tuple[Floats, Floats, Flags]:
        """Return when rounds are decided and end in which everybody begins anew, by selection among raw words.

        Parameters
        ----------
        law : ExponentialDraws
        seed : int
            Of the experiment.
        load : float
            Of each worker.
        rounds : int
            Round ``i`` uses draw ``i``.
        to_all : bool
            Whether a round lasts until the last answer.
        asks_who : bool
            Whether to tell whose answers were used.

        Returns
        -------
        decided_s, ended_s : ndarray of float64, shape (rounds,)
        used : ndarray of bool, shape (rounds, workers), or (0, workers) if nobody asks
        """
        workers = self.rule.workers
        decided_s, ended_s = np.empty(rounds), np.empty(rounds)
        used = np.empty((rounds if asks_who else 0, workers), np.uint8)
        _kernels.exponential_rounds(
            *law.keys(seed, workers), 0, 0.0, *law.line(load), self.count, self.group_of, self.groups, to_all,
            decided_s, ended_s, used,
        )  # fmt: skip
        return decided_s, ended_s, used.view(np.bool_)
