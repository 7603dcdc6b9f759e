"""The plain run first, then one crash at a time: of every node that may crash, at every moment of the plain run."""

from __future__ import annotations

from emuml.testing.explorers.ground import Ground, Proposal
from emuml.testing.scenario import CrashFault, Scenario

BACK_S = (0.1, 1.0, 4.0)
"""After how many seconds a node of the grid is back."""


class Fifo:
    """Finite: plain runs, then the grid of the largest cluster of the ranges."""

    def __init__(self, ground: Ground) -> None:
        smallest = ground.smallest()
        ranges = ground.clusters
        largest = ground.fitting(ranges.workers[1], ranges.rounds[1], 0, ranges.servers[1])
        plain = ground.plain(largest)
        grid = [
            largest.model_copy(update={"faults": (CrashFault(node=node, at_s=at_s, restart_after_s=back_s),)})
            for back_s in BACK_S
            for at_s in plain.moments
            for node in plain.may_crash
        ]
        self._scenarios: list[Scenario] = [smallest, largest, *grid]

    def propose(self, index: int) -> Proposal | None:
        """See :class:`Explorer`."""
        return Proposal(self._scenarios[index]) if index < len(self._scenarios) else None
