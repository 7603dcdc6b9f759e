"""Who takes part in a run: ids and roles, fixed before it starts, plus the run's seed and stop condition."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import overload

from emuml.errors import UserError
from emuml.node import Factory, NodeId
from emuml.stopping import Never, StopCondition


class Ids(Sequence[NodeId]):
    """Ids by counts, made when they are asked for: a roster of many millions takes no memory.

    Parameters
    ----------
    counts : dict of str to int
        How many of each role, in the order of roles.

    Examples
    --------
    >>> ids = Ids({"server": 1, "worker": 1_000_000_000})
    >>> len(ids), str(ids[-1]), NodeId("worker", 7) in ids
    (1000000001, 'worker-999999999', True)
    """

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = dict(sorted(counts.items()))
        self._roles = [role for role, count in self.counts.items() if count]
        self._ends = list(accumulate(self.counts[role] for role in self._roles))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> NodeId: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[NodeId, ...]: ...
    def __getitem__(self, index: int | slice) -> NodeId | tuple[NodeId, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        place = range(len(self))[index]
        role = bisect_right(self._ends, place)
        return NodeId(self._roles[role], place - (self._ends[role - 1] if role else 0))

    def __iter__(self) -> Iterator[NodeId]:
        return (NodeId(role, index) for role in self._roles for index in range(self.counts[role]))

    def __contains__(self, id: object) -> bool:
        return isinstance(id, NodeId) and 0 <= id.index < self.counts.get(id.role, 0)

    @cached_property
    def listed(self) -> tuple[NodeId, ...]:
        """The ids as a tuple, kept from when it is first asked for."""
        return tuple(self)

    def names(self, text: str) -> bool:
        """Tell whether one of the ids prints as ``text``."""
        try:
            id = NodeId.parse(text)
        except ValueError:
            return False
        return id in self and str(id) == text

    def __eq__(self, other: object) -> bool:
        return self.counts == other.counts if isinstance(other, Ids) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.counts.items()))


@dataclass(frozen=True)
class Roster:
    """The nodes of a run in their total order, and what protocols may know of the run.

    Parameters
    ----------
    ids : sequence of NodeId
        Sorted, without repetition; a tuple or, where nodes are too many to be kept, :class:`Ids`.
    seed : int
        Experiment seed; all named streams derive from it.
    stop : StopCondition
        When training is over; protocols ask it, engines do not.
    """

    ids: Sequence[NodeId]
    seed: int = 0
    stop: StopCondition = field(default_factory=Never)

    def __post_init__(self) -> None:
        if not isinstance(self.ids, Ids) and list(self.ids) != sorted(set(self.ids)):
            raise UserError("ids repeat or are out of order", "roster")

    @classmethod
    def of_counts(cls, seed: int = 0, stop: StopCondition | None = None, **counts: int) -> Roster:
        """Build a roster from counts by role, such as ``server=1, worker=30``."""
        ids = sorted(NodeId(role, index) for role, count in counts.items() for index in range(count))
        return cls(tuple(ids), seed, Never() if stop is None else stop)

    def of(self, role: str) -> Sequence[NodeId]:
        """Return all ids of a role in roster order."""
        return self._by_role.get(role, ())

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """The roles that there are, sorted."""
        return tuple(self._by_role)

    @cached_property
    def _by_role(self) -> dict[str, Sequence[NodeId]]:
        if isinstance(self.ids, Ids):
            return {role: Ids({role: count}) for role, count in self.ids.counts.items() if count}
        return dict(group_by_role(self.ids))


class Makers(Mapping[NodeId, tuple[str, Factory]]):
    """Nodes of a roster by what makes them, one function for each role: a factory is made when it is asked for.

    Parameters
    ----------
    roster : Roster
    makers : mapping of str to callable
        For each role a function that gives the factory of a node from its index.
    """

    def __init__(self, roster: Roster, makers: Mapping[str, Callable[[int], Factory]]) -> None:
        self._ids, self._makers = roster.ids, makers

    def __getitem__(self, id: NodeId) -> tuple[str, Factory]:
        if id not in self._known:
            raise KeyError(id)
        return id.role, self._makers[id.role](id.index)

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    @cached_property
    def _known(self) -> Ids | frozenset[NodeId]:
        return self._ids if isinstance(self._ids, Ids) else frozenset(self._ids)


def listed(ids: Sequence[NodeId]) -> tuple[NodeId, ...]:
    """Return ids as a tuple, the same one every time."""
    return ids.listed if isinstance(ids, Ids) else tuple(ids)


def group_by_role(ids: Iterable[NodeId]) -> dict[str, tuple[NodeId, ...]]:
    """Map each role to its ids, in the order given."""
    found: dict[str, list[NodeId]] = {}
    for node in ids:
        found.setdefault(node.role, []).append(node)
    return {role: tuple(nodes) for role, nodes in found.items()}
