"""Which candidate of a menu the next round uses, from what was observed alone.

Each decision asks what the rounds of the window would have come to with every candidate: times that nobody saw are
completed (``observed.py``), moved to the candidate's load (``loads.py``) and judged (``menu.py``). The candidate with
the fewest seconds per progress is taken. All else is bounded exploration: the first rounds try two loads, and one round
in ``probe`` tries another load or a higher count, in turn, because what is never tried cannot be known.

A chooser draws from a stream of the run's seed and reads no clock: equal observations give equal choices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emuml.protocols.adaptive_coding.drift import Drift
from emuml.protocols.adaptive_coding.loads import PROPORTIONAL, LoadLaw, learned
from emuml.protocols.adaptive_coding.menu import Candidate, Floats, Judged, Menu, judge
from emuml.protocols.adaptive_coding.observed import Observed, completed
from emuml.streams import stream_key, unit_exponential_at

Objective = Literal["progress", "balanced", "exact"]
Reason = Literal["first", "best", "probe"]

HISTORY = 2
"""Load dependence is learned from so many windows."""
TIMES = 16384
"""A decision asks for no more times, all workers and rounds together, than these or those of 8 rounds."""
ROUNDS_MIN = 8
SAMPLE = 4096
"""Times of each load from which load dependence is learned; always those of two rounds at least."""
DIGITS = 9
"""Estimates are compared and logged to so many digits, which every machine has in common."""


class Settings(NamedTuple):
    """How a chooser learns; see :class:`AdaptiveCoding`."""

    objective: Objective = "progress"
    window: int = 64
    every: int = 1
    first: int = 1
    probe: int = 64


class Choice(NamedTuple):
    """What the next round uses.

    Attributes
    ----------
    candidate : Candidate
    seconds : ndarray
        What it would have taken in the rounds of the window; empty before the first estimate.
    reason : str
        ``"first"``: it is tried because nothing is known yet, ``"best"``, or ``"probe"``.
    """

    candidate: Candidate
    seconds: Floats
    reason: Reason

    @property
    def estimated_s(self) -> float | None:
        """The expected seconds of a round; None before the first estimate."""
        return _rounded(float(self.seconds.mean())) if self.seconds.size else None


class Chooser:
    """Learns from rounds, and chooses.

    Parameters
    ----------
    menu : Menu
    settings : Settings
    seed : int
        Of the run.

    Attributes
    ----------
    values : ndarray of float64, shape (candidates,)
        Expected seconds per progress of each candidate, as estimated last; empty before the first estimate.
    changes : int
        How often the law of delays was found to have changed.
    """

    def __init__(self, menu: Menu, settings: Settings, seed: int = 0) -> None:
        self.menu, self.settings = menu, settings
        self.changes = 0
        self._key = stream_key(seed, "", "adaptive-coding/unseen")
        self._n_seen = 0
        most = max(2 * ROUNDS_MIN, 8 * TIMES // menu[0].code.workers)  # or many workers would take much memory
        self._seen: deque[Observed] = deque(maxlen=min(HISTORY * settings.window, most))
        # Of each worker: how long its last answer took, at which load; load 0 before the first one.
        self._last_s, self._last_load = np.zeros((2, menu[0].code.workers))
        self._law: LoadLaw | None = None
        self._drift = Drift()
        other = _next_load(menu)
        self._first = [menu[0]] * settings.first + ([] if other is None else [other] * settings.first)
        self._judged: list[Judged] = []
        self.values = np.empty(0)
        self._best = menu[0]
        self._down: frozenset[int] = frozenset()
        self._age = self._since_probe = self._probes = 0
        self._is_new = False

    def choose(self, down: Collection[int] = ()) -> Choice:
        """Return what the next round uses, while some workers are down."""
        if self._first:
            return self._choice(self._first.pop(0), "first")
        if not self._seen:
            return self._choice(self.menu[0], "first")
        if not self._judged or self._age >= self.settings.every or frozenset(down) != self._down:
            self._decide(frozenset(down))
        self._age += 1
        self._since_probe += 1
        probe = self._probe()
        return self._choice(self._best, "best") if probe is None else self._choice(probe, "probe")

    def observe(self, choice: Choice, times: Floats, answered: NDArray[np.bool_], known: NDArray[np.bool_]) -> None:
        """Learn from a closed round.

        Parameters
        ----------
        choice : Choice
            What it used.
        times : ndarray of float64, shape (workers,)
            Seconds from the question to the answer; of those that did not answer, to the end of the round.
        answered : ndarray of bool, shape (workers,)
            Who answered.
        known : ndarray of bool, shape (workers,)
            Whose time means anything: not of workers that were down or were asked later.
        """
        seen = answered & known
        drawn = unit_exponential_at(self._key, self._n_seen * times.size + np.arange(times.size))
        self._n_seen += 1
        if not seen.any():
            return
        self._seen.append(Observed(choice.candidate.load, times, seen, known, drawn))
        self._last_s[seen], self._last_load[seen] = times[seen], choice.candidate.load
        since = self._drift.notes(float(times[seen].max()), choice.seconds)
        if since:
            self._forget(since)

    def _forget(self, since: int) -> None:
        """Keep only the last rounds: before, the law was another one."""
        self.changes += 1
        self._drift = Drift()
        kept = list(self._seen)[-since:]
        self._seen.clear()
        self._seen.extend(kept)
        self._last_load[~np.any([one.answered for one in kept], axis=0)] = 0.0
        self._age = self.settings.every
        self._is_new = True

    def _decide(self, down: frozenset[int]) -> None:
        """Judge all candidates on the rounds of the window."""
        self._law = learned(self._sample()) or self._law
        law = self._law or PROPORTIONAL
        base, times = self._seen[-1].load, self._times(law)
        self._judged = []
        for family in self.menu.families:
            moved = law.moved(times, base, family[0].load)
            if down:
                moved = moved.copy()
                moved[:, list(down)] = np.inf
            self._judged += judge(family, moved)
        self.values = _values(self._judged, self.settings.objective)
        self._down, self._age = down, 0
        self._best = self._first_of_best(self.menu)

    def _times(self, law: LoadLaw) -> Floats:
        """Return the times of the window as they would be at the load of its last round, shape (rounds, workers)."""
        workers = self.menu[0].code.workers
        rounds = list(self._seen)[-min(self.settings.window, max(ROUNDS_MIN, TIMES // workers)) :]
        base, loads = rounds[-1].load, np.array([one.load for one in rounds])
        times, answered, known, drawn = (np.array(those) for those in list(zip(*rounds, strict=True))[1:])
        for load in set(loads.tolist()) - {base}:
            times[loads == load] = law.moved(times[loads == load], load, base)
        last = np.zeros(workers)
        for load in set(self._last_load.tolist()) - {0.0}:
            those = self._last_load == load
            last[those] = law.moved(self._last_s[those], load, base)
        return completed(times, answered, known, drawn, last)

    def _first_of_best(self, among: Sequence[Candidate]) -> Candidate:
        return min(among, key=lambda one: float(self.values[one.index]))

    def _probe(self) -> Candidate | None:
        """Return, when it is time, another load's best or the next higher count, in turn; None where there is neither.

        After a change of the law, it is time for a load that was not seen since.
        """
        if self._is_new:
            self._is_new = False
            return self._unseen()
        if self._since_probe < self.settings.probe:
            return None
        self._since_probe = 0
        loads = [one for one in self.menu if one.load != self._best.load]
        counts = [one for one in self.menu if (one.family, one.index) == (self._best.family, self._best.index - 1)]
        turns = [loads, counts] if self._probes % 2 == 0 else [counts, loads]
        self._probes += 1
        among = turns[0] or turns[1]
        return self._first_of_best(among) if among else None

    def _unseen(self) -> Candidate | None:
        seen = {one.load for one in self._seen}
        unseen = [one for one in self.menu if one.load not in seen]
        return self._first_of_best(unseen) if unseen and len(seen) == 1 else None

    def _choice(self, candidate: Candidate, reason: Reason) -> Choice:
        return Choice(candidate, self._judged[candidate.index].seconds if self._judged else np.empty(0), reason)

    def _sample(self) -> list[Observed]:
        """Return the newest rounds of each load."""
        most = max(2, SAMPLE // self.menu[0].code.workers)
        left: dict[float, int] = {}
        found = []
        for one in reversed(self._seen):
            if left.setdefault(one.load, most):
                left[one.load] -= 1
                found.append(one)
        return found


def _values(judged: Sequence[Judged], objective: Objective) -> Floats:
    """Return the expected seconds per progress of each candidate; per share decoded if none can be exact."""
    found = np.array([_value(one, objective) for one in judged])
    return found if np.isfinite(found).any() else np.array([_value(one, "progress") for one in judged])


def _value(judged: Judged, objective: Objective) -> float:
    """Return seconds per progress of rounds."""
    progress = float((judged.progress >= 1.0).sum() if objective == "exact" else judged.progress.sum())
    if objective == "balanced":
        progress *= judged.balance
    return _rounded(float(judged.seconds.sum()) / progress) if progress > 0 else np.inf


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _next_load(menu: Menu) -> Candidate | None:
    """Return the candidate, without an early end, whose load is the nearest to that of the first."""
    others = [family[0] for family in menu.families if family[0].load != menu[0].load]
    return min(others, key=lambda one: abs(one.load - menu[0].load), default=None)
