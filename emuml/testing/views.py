"""What oracles see of a run: its living nodes, read-only; a step's effects; the finished run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from emuml.message import Message
from emuml.node import NodeId
from emuml.outcome import Logged, Published, Run
from emuml.trace import Trace

if TYPE_CHECKING:
    from emuml.des.machine import Machine
    from emuml.testing.scenario import Scenario


class NobodyLivesError(Exception):
    """A predicate asked for a node that is down; it is not judged then."""


class Seen:
    """A node as oracles see it: fields and methods can be read, not set."""

    __slots__ = ("_node",)

    def __init__(self, node: Any) -> None:
        _hold(self, node)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError(f"an oracle must not change nodes: {name!r} of {type(self._node).__name__}")


_hold = Seen._node.__set__  # type: ignore[attr-defined]


class Group:
    """The living nodes of a role, in the order of the roster; attributes are those of the node if the role has one.

    One object serves a whole run, since most oracles ask for a group after every step: who lives is seen when asked.
    """

    __slots__ = ("_machines",)

    def __init__(self, machines: Sequence[Machine]) -> None:
        self._machines = machines

    def _living(self) -> list[Seen]:
        return [Seen(m.life.node) for m in self._machines if m.life is not None and m.life.events]

    def __len__(self) -> int:
        return len(self._living())

    def __iter__(self) -> Iterator[Seen]:
        return iter(self._living())

    def __getitem__(self, index: int) -> Seen:
        return self._living()[index]

    def __getattr__(self, name: str) -> Any:
        machines = self._machines
        if len(machines) != 1:
            raise AttributeError(f"{len(machines)} nodes of this role: iterate over them to read {name!r}")
        life = machines[0].life
        if life is None or not life.events:
            raise NobodyLivesError(name)
        return getattr(life.node, name)


class Nodes:
    """All nodes of a run by role (``nodes["worker"]``) or by id (``nodes["worker-1"]``).

    Attributes
    ----------
    trace : Trace
        Records until now.
    acting : NodeId or None
        Whose step is judged.
    """

    def __init__(self, machines: Mapping[NodeId, Machine], trace: Trace) -> None:
        self.trace = trace
        self.acting: NodeId | None = None
        self._by_id = {str(id): machine for id, machine in machines.items()}
        by_role: dict[str, list[Machine]] = {}
        for id, machine in machines.items():
            by_role.setdefault(id.role, []).append(machine)
        self._by_role = {role: Group(found) for role, found in by_role.items()}

    def __getitem__(self, name: str) -> Any:
        group = self._by_role.get(name)
        if group is not None:
            return group
        if name not in self._by_id:
            known = ", ".join([*self._by_role, *self._by_id])
            raise KeyError(f"nobody is called {name!r}, but {known}")
        life = self._by_id[name].life
        if life is None or not life.events:
            raise NobodyLivesError(name)
        return Seen(life.node)

    def lives(self, name: str) -> bool:
        """Tell whether a node is there and has started."""
        life = self._by_id[name].life
        return life is not None and bool(life.events)

    def named(self, name: str) -> list[str]:
        """Return the names of the nodes that a role, or an id, names."""
        return [id for id in self._by_id if id == name or id.rpartition("-")[0] == name]

    def life(self, name: str) -> int:
        """Return the incarnation of a node, also of one that is down."""
        return self._by_id[name].incarnation

    def __contains__(self, name: str) -> bool:
        return name in self._by_role or name in self._by_id


class Noted(Nodes):
    """The same nodes, noting which of them are read.

    Attributes
    ----------
    read : set of str
        Their names.
    """

    def __init__(self, nodes: Nodes) -> None:
        vars(self).update(vars(nodes))
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.update(self.named(name))
        return super().__getitem__(name)


class Sent(NamedTuple):
    """One message that a step sent."""

    sender: NodeId
    to: NodeId
    message: Message
    nodes: Nodes


@dataclass(frozen=True)
class Finished:
    """A run that a node stopped.

    Attributes
    ----------
    scenario : Scenario
    protocol : object
        What was tried, or ``None`` for bare nodes.
    problem : object
        Its workload.
    run : Run
        The engine's record.
    """

    scenario: Scenario
    protocol: Any
    problem: Any
    run: Run

    @property
    def published(self) -> list[Published]:
        """Published versions, in order."""
        return self.run.published

    @property
    def logs(self) -> list[Logged]:
        """Logged metrics, in order."""
        return self.run.logs

    @property
    def trace(self) -> Trace:
        """All records."""
        return self.run.trace
