"""What is explored: a protocol or bare nodes, built anew for every run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from emuml.errors import UserError
from emuml.node import Nodes
from emuml.roster import Roster
from emuml.stopping import Rounds
from emuml.testing.given import checked_nodes, required
from emuml.testing.oracles import Description
from emuml.testing.probe import Probe
from emuml.testing.scenario import Scenario

SURVIVES = frozenset({"worker"})
"""Roles that may crash where a protocol does not say it: see :class:`emuml.testing.Budget`."""

Make = Callable[..., Any]
Describe = Callable[[Description], object]


@dataclass(frozen=True)
class Built:
    """The nodes of one run, and what they were built from."""

    nodes: Nodes
    roster: Roster
    unit_cost: float
    protocol: Any = None
    problem: Any = None


@dataclass(frozen=True)
class Subject:
    """Builds the nodes of a scenario.

    Parameters
    ----------
    make : callable
        Returns a protocol such as ``AsyncUpdates(...)``, or nodes as a mapping of id -> (role, factory). Called without
        arguments, or with the scenario if it takes one.
    workload : callable, optional
        Returns the problem that protocols train, given the scenario; by default a :class:`Probe`.
    """

    make: Make
    workload: Callable[[Scenario], Any] | None = None

    def build(self, scenario: Scenario) -> Built:
        """Return fresh nodes.

        Raises
        ------
        UserError
            If this scenario does not fit, such as a number of workers that the code cannot have.
        """
        made = self.make(scenario) if self._takes_scenario else self.make()
        roster = _roster(scenario.seed, scenario.rounds, scenario.workers, scenario.servers)
        if not hasattr(made, "nodes"):
            nodes = checked_nodes(made)
            return Built(nodes, Roster(tuple(sorted(nodes)), scenario.seed, roster.stop), 1.0)
        problem = _probe(scenario.workers) if self.workload is None else self.workload(scenario)
        nodes = made.nodes(problem, roster)
        return Built(nodes, roster, problem.full_cost / scenario.workers, made, problem)

    @cached_property
    def _takes_scenario(self) -> bool:
        return bool(required(self.make))

    def survives(self, protocol: Any) -> Collection[str]:
        """Return the roles whose crashes the protocol says it survives."""
        found: Collection[str] = getattr(protocol, "survives", SURVIVES)
        return found


@lru_cache(256)
def _roster(seed: int, rounds: int, workers: int, servers: int) -> Roster:
    return Roster.of_counts(seed, Rounds(rounds), server=servers, worker=workers)


_probe = cache(Probe)
"""Problems have no state: one serves all runs of its size."""


def shipped(protocol: Any) -> Callable[[Description], None]:
    """Return the oracles that come with a protocol: ``describe(run, protocol)`` of ``oracles.py`` beside its module.

    Raises
    ------
    UserError
        If it has none.
    """
    package = type(protocol).__module__.rpartition(".")[0]
    name = f"{package}.oracles"
    if not package or find_spec(name) is None:
        raise UserError(f"{type(protocol).__name__} comes without oracles", "oracles", "a function of the description")
    describe = import_module(name).describe
    return lambda run: describe(run, protocol)
