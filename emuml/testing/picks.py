"""What answers the emulator's questions during a run: an explorer's picks, recorded, or those of a scenario."""

from __future__ import annotations

from collections.abc import Callable

from emuml.des.environment import Choose
from emuml.testing.scenario import CrashFault, Scenario, as_text

Recorded = list[tuple[str, int, float]]
"""Name, pick and time in seconds of every choice other than 0."""


class Picks:
    """Asks the scenario first, then an explorer; records what deviates.

    After ``heal_s`` nobody is asked: a run then goes on as by default.

    Parameters
    ----------
    scenario : Scenario
        Its deviations and kept saves are replayed.
    explore : callable, optional
        ``choose(name, n)`` of an explorer, for what the scenario does not name.
    heal_s : float
        Seconds from which on nothing deviates.
    """

    def __init__(self, scenario: Scenario, explore: Choose | None, heal_s: float) -> None:
        self._levels: dict[str, int] = {}
        self._ties: list[tuple[str, str]] = []
        self._explore, self._heal_s = explore, heal_s
        self.recorded: Recorded = []
        self.now: Callable[[], float] = lambda: 0.0
        for item in scenario.deviations:
            if item.kind == "tie":
                first, second = item.tie or ((), ())
                self._ties.append((as_text(first), as_text(second)))
            else:
                self._levels[item.name] = item.level(scenario.delays)
        for crash in scenario.faults:
            if isinstance(crash, CrashFault):
                kept = (name.removeprefix("save/") for name in crash.keep)
                self._levels.update({f"save/{crash.node}/{name}": 1 for name in kept})

    def __call__(self, name: str, n: int) -> int:
        """Return the pick, 0 <= pick < n."""
        now = self.now()
        if now > self._heal_s:
            return 0
        if self._ties and name.startswith("tie/"):
            pick = self._of_tie(name[4:].split("|"))
        else:
            pick = min(self._levels[name], n - 1) if name in self._levels else 0
        if pick == 0 and self._explore is not None:
            pick = self._explore(name, n)
            if pick:
                self.recorded.append((name, pick, now))
        return pick

    def _of_tie(self, names: list[str]) -> int:
        for first, second in self._ties:
            if second == names[0] and first in names:
                return names.index(first)
        return 0
