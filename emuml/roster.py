"""Who takes part in a run: ids and roles, fixed before it starts, plus the run's seed and stop condition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from emuml.errors import UserError
from emuml.node import NodeId
from emuml.stopping import Never, StopCondition


@dataclass(frozen=True)
class Roster:
    """The nodes of a run in their total order, and what protocols may know of the run.

    Parameters
    ----------
    ids : tuple of NodeId
        Sorted, without repetition.
    seed : int
        Experiment seed; all named streams derive from it.
    stop : StopCondition
        When training is over; protocols ask it, engines do not.
    """

    ids: tuple[NodeId, ...]
    seed: int = 0
    stop: StopCondition = field(default_factory=Never)

    def __post_init__(self) -> None:
        if list(self.ids) != sorted(set(self.ids)):
            raise UserError("ids repeat or are out of order", "roster")

    @classmethod
    def of_counts(cls, seed: int = 0, stop: StopCondition | None = None, **counts: int) -> Roster:
        """Build a roster from counts by role, such as ``server=1, worker=30``."""
        ids = sorted(NodeId(role, index) for role, count in counts.items() for index in range(count))
        return cls(tuple(ids), seed, Never() if stop is None else stop)

    def of(self, role: str) -> tuple[NodeId, ...]:
        """Return all ids of a role in roster order."""
        return self._by_role.get(role, ())

    @cached_property
    def _by_role(self) -> dict[str, tuple[NodeId, ...]]:
        return group_by_role(self.ids)


def group_by_role(ids: Iterable[NodeId]) -> dict[str, tuple[NodeId, ...]]:
    """Map each role to its ids, in the order given."""
    found: dict[str, list[NodeId]] = {}
    for node in ids:
        found.setdefault(node.role, []).append(node)
    return {role: tuple(nodes) for role, nodes in found.items()}
