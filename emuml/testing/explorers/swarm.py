"""Every run has intensities of its own: which kinds of choices deviate, how often and how far; how many crashes.

Drawing intensities per run reaches rare combinations, as the simulation tests of FoundationDB and TigerBeetle do.
"""

from __future__ import annotations

from emuml.testing.explorers.ground import Draws, Ground, Proposal
from emuml.testing.scenario import KINDS

RATES = (0.0, 0.02, 0.1, 0.3, 0.6, 0.9)
LENGTHS_S = (0.3, 2.0, 12.0)


class Swarm:
    """For rare combinations."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def propose(self, index: int) -> Proposal:
        """See :class:`Explorer`."""
        draws = Draws(self._ground.seed, f"swarm/{index}")
        scenario = self._ground.scenario(draws)
        rates = {kind: RATES[draws.below(len(RATES))] for kind in sorted({*KINDS, "save"})}
        extreme = draws.uniform() < 0.5
        longest_s = LENGTHS_S[draws.below(len(LENGTHS_S))]
        scenario = self._ground.crashes(draws, scenario, draws.between(0, 4), longest_s)
        scenario = self._ground.disturbed(f"swarm/{index}", scenario, longest_s)
        uniform = draws.uniform

        def choose(name: str, n: int) -> int:
            if uniform() >= rates[name[: name.index("/")]]:
                return 0
            return n - 1 if extreme else 1 + int(uniform() * (n - 1))

        return Proposal(scenario, choose)
