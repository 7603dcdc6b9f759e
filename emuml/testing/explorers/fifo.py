"""The plain run first, then one fault at a time, at every moment of the plain run: crashes, cuts, pauses."""

from __future__ import annotations

from emuml.testing.explorers.ground import Ground, Proposal
from emuml.testing.mishaps import AnyMishap, CrashFault, CutFault, PauseFault
from emuml.testing.scenario import Scenario

BACK_S = (0.1, 1.0, 4.0)
"""After how many seconds a node of the grid is back."""
LASTS_S = (0.8, 4.0)
"""How long cuts and pauses of the grid last: long enough for suspicion, and for a verdict."""


class Fifo:
    """Finite: plain runs, then the grid of the largest cluster of the ranges."""

    def __init__(self, ground: Ground) -> None:
        smallest = ground.smallest()
        ranges = ground.clusters
        largest = ground.fitting(ranges.workers[1], ranges.rounds[1], 0, ranges.servers[1])
        plain = ground.plain(largest)
        budget = ground.trier.budget
        crashes = [
            CrashFault(node=node, at_s=at_s, restart_after_s=back_s)
            for back_s in BACK_S
            for at_s in plain.moments
            for node in plain.may_crash
        ]
        times = [(node, at_s, for_s) for for_s in LASTS_S for at_s in plain.moments for node in plain.nodes]
        cuts = [CutFault(between=((node,), ()), at_s=at_s, for_s=for_s) for node, at_s, for_s in times if budget.cut]
        pauses = [PauseFault(node=node, at_s=at_s, for_s=for_s) for node, at_s, for_s in times if budget.pause]
        faults: tuple[AnyMishap, ...] = (*crashes, *cuts, *pauses)
        grid = [largest.model_copy(update={"faults": (fault,)}) for fault in faults]
        self._scenarios: list[Scenario] = [smallest, largest, *grid]

    def propose(self, index: int) -> Proposal | None:
        """See :class:`Explorer`."""
        return Proposal(self._scenarios[index]) if index < len(self._scenarios) else None
