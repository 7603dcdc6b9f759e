"""Rounds closed by the raw words of exponential draws: who is used is known before any duration is computed.

It serves where an answer arrives as it is finished, everybody begins with the question, and loads are equal. Where an
answer that is not used may come at the very instant of the decision, the durations are looked at instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emuml import _kernels
from emuml.cluster.compute import ComputeModel
from emuml.durations import ExponentialDraws
from emuml.selection import Closing

WORKERS_MAX = 1 << 20
"""Of more, the durations take less memory than what selecting among their words works on."""

_LAST = np.uint64(2**64 - 1)


class WordRounds:
    """Closes rounds of one rule, law and load.

    Parameters
    ----------
    closing : Closing
        Of a rule that states its parts.
    law : ExponentialDraws
    seed : int
    load : float
        Of each worker.
    """

    def __init__(self, closing: Closing, law: ExponentialDraws, seed: int, load: float) -> None:
        workers = closing.rule.workers
        self._keys, self._line = law.keys(seed, workers), law.line(load)
        self._closing = closing
        self._words, self._used = np.empty(workers, np.uint64), np.empty(workers, np.uint8)

    @classmethod
    def of(cls, closing: Closing, law: ComputeModel, seed: int, loads: NDArray[np.float64]) -> WordRounds | None:
        """Return what closes rounds of a law, or None if loads differ or its durations are no line of exponentials."""
        if not closing.has_parts or not isinstance(law, ExponentialDraws) or loads.min() < loads.max():
            return None
        if len(loads) > WORKERS_MAX:
            return None
        return cls(closing, law, seed, float(loads[0]))

    def take(self, draw: int, start_s: float) -> tuple[float, NDArray[np.bool_]] | None:
        """Return when a round closes and whose answers it uses, or None if another answer may come at that instant."""
        _kernels.key_words(*self._keys, draw, self._words)
        rule = self._closing
        closed_s, _ = _kernels.word_round(
            self._words, start_s, *self._line, rule.count, rule.group_of, rule.groups, self._used
        )
        is_used = self._used.view(np.bool_)
        next_word = np.where(is_used, _LAST, self._words).min()
        if next_word != _LAST:
            next_e = np.empty(1)
            _kernels.exponentials_of(np.array([next_word]), next_e)
            if start_s + (self._line[0] + self._line[1] * float(next_e[0])) <= closed_s:
                return None
        return closed_s, np.array(is_used)
