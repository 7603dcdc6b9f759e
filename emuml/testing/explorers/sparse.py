"""Up to four deviations, chosen among the named choices of the plain run: short counterexamples."""

from __future__ import annotations

from emuml.testing.explorers.ground import Draws, Ground, Proposal

DEVIATIONS_MAX = 4


class Sparse:
    """Few deviations by name; crashes as in the other explorers."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def propose(self, index: int) -> Proposal:
        """See :class:`Explorer`."""
        draws = Draws(self._ground.seed, f"sparse/{index}")
        scenario = self._ground.scenario(draws)
        asked = self._ground.plain(scenario).asked
        picks: dict[str, int] = {}
        for _ in range(draws.between(0, DEVIATIONS_MAX) if asked else 0):
            name, n = asked[draws.below(len(asked))]
            picks[name] = 1 + draws.below(n - 1)
        scenario = self._ground.crashes(draws, scenario, self._ground.trier.budget.crash)
        scenario = self._ground.disturbed(f"sparse/{index}", scenario)
        return Proposal(scenario, lambda name, n: min(picks.get(name, 0), n - 1))
