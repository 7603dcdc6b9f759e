"""Each choice deviates with one probability, to a uniform level; 0 to 3 crashes."""

from __future__ import annotations

from emuml.testing.explorers.ground import Draws, Ground, Proposal

DEVIATES = 0.4
CRASHES_MAX = 3


class Random:
    """The broad default."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def propose(self, index: int) -> Proposal:
        """See :class:`Explorer`."""
        draws = Draws(self._ground.seed, f"random/{index}")
        scenario = self._ground.crashes(draws, self._ground.scenario(draws), CRASHES_MAX)
        scenario = self._ground.disturbed(f"random/{index}", scenario)
        uniform = draws.uniform

        def choose(name: str, n: int) -> int:
            return 1 + int(uniform() * (n - 1)) if uniform() < DEVIATES else 0

        return Proposal(scenario, choose)
