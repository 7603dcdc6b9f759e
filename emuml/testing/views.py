"""What oracles see of a run: its living nodes, read-only; a step's effects; the finished run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
        object.__setattr__(self, "_node", node)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError(f"an oracle must not change nodes: {name!r} of {type(self._node).__name__}")


class Group:
    """The living nodes of a role, in the order of the roster; attributes are those of the node if the role has one."""

    __slots__ = ("_nodes", "_of")

    def __init__(self, nodes: list[Seen], of: int) -> None:
        self._nodes, self._of = nodes, of

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Seen]:
        return iter(self._nodes)

    def __getitem__(self, index: int) -> Seen:
        return self._nodes[index]

    def __getattr__(self, name: str) -> Any:
        if self._of != 1:
            raise AttributeError(f"{self._of} nodes of this role: iterate over them to read {name!r}")
        if not self._nodes:
            raise NobodyLivesError(name)
        return getattr(self._nodes[0], name)


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
        self._by_role: dict[str, list[Machine]] = {}
        for id, machine in machines.items():
            self._by_role.setdefault(id.role, []).append(machine)

    def __getitem__(self, name: str) -> Any:
        machines = self._by_role.get(name)
        if machines is not None:
            return Group([Seen(m.life.node) for m in machines if m.life is not None and m.life.events], len(machines))
        life = self._by_id[name].life
        if life is None or not life.events:
            raise NobodyLivesError(name)
        return Seen(life.node)

    def life(self, name: str) -> int:
        """Return the incarnation of a node, also of one that is down."""
        return self._by_id[name].incarnation

    def __contains__(self, name: str) -> bool:
        return name in self._by_role or name in self._by_id


@dataclass(frozen=True, slots=True)
class Sent:
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
