"""Planted bugs: what one is, and how exploration looks for it.

Numbers are those of the list of planted bugs that all protocols of their kind are tried on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import emuml.testing as et

RUNS = 5000
"""Explored runs that may find a bug."""

RUN_TWICE = "two runs of one scenario are equal"
"""What campaigns check on their own."""


@dataclass(frozen=True)
class Swapped:
    """A protocol whose nodes are of other classes."""

    protocol: object
    server: type | None = None
    worker: type | None = None

    def __getattr__(self, name):
        return getattr(self.protocol, name)

    def nodes(self, workload, roster):
        return {
            id: (role, self._swap(role, made)) for id, (role, made) in self.protocol.nodes(workload, roster).items()
        }

    def _swap(self, role, made):
        cls = {"server": self.server, "worker": self.worker}[role]
        return made if cls is None else partial(cls, *made.args, **made.keywords)


@dataclass(frozen=True)
class Mutant:
    """One planted bug.

    ``ours`` are the same nodes without it: they must survive what it fails at. ``oracles`` are names or kinds of those
    that may find it; ``budget`` is what may fail; ``runs`` how many runs may find it. ``describe`` is by default what
    comes with the protocol.
    """

    id: str
    change: str
    wrong: Swapped
    ours: Swapped
    oracles: frozenset[str]
    budget: object = et.faults(crash=2)
    runs: int = RUNS
    workload: Callable | None = None
    describe: Callable | None = None

    @property
    def description(self):
        return self.describe or et.shipped(self.ours.protocol)

    def campaign(self, seed, runs=None, shrinks=True):
        return et.explore(
            lambda: self.wrong,
            self.description,
            runs=runs or self.runs,
            seed=seed,
            faults=self.budget,
            workload=self.workload,
            shrinks=shrinks,
        )

    def tried(self, protocol, scenario):
        """Return the run of a scenario with the bug (``wrong``) or without it (``ours``)."""
        return et.run(lambda: protocol, scenario, self.description, faults=self.budget, workload=self.workload)

    def is_caught_by(self, campaign):
        """Return whether a campaign found it, by an oracle made for it."""
        if campaign.failure is None:
            return campaign.nondeterministic is not None and RUN_TWICE in self.oracles
        signature = campaign.failure.found.signature
        return signature.name in self.oracles or signature.kind in self.oracles


def size_of(scenario):
    """Return how many faults and deviations a scenario has."""
    return len(scenario.faults) + len(scenario.deviations)
