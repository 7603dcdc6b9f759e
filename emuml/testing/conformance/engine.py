"""What every check needs: the engine under test as one callable, and ways to say what was expected and what was found.

Nodes of this package judge for themselves and raise, so that a broken rule ends the run where it was broken and works
in processes of their own as well; checks judge from the outside, by trace, journals and error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from emuml.cluster.cluster import Cluster, Detection, Network, Storage
from emuml.cluster.faults import FaultPlan
from emuml.node import Factory, NodeId
from emuml.outcome import Run

Nodes = Mapping[str, tuple[str, Factory]]

WORKERS = Cluster(workers=1, network=Network(latency_s=0.001), detection=Detection(exit_s=0.01))
"""The cluster of most checks: times that an emulator takes and a real engine ignores."""


class RunNodes(Protocol):
    """The engine under test: :func:`emuml.testing.run_nodes`, bound to an engine and its settings, is one.

    It must keep journals and the trace. Deadlocks must be noticed within seconds, or checks of them take long.
    """

    def __call__(
        self,
        nodes: Nodes,
        *,
        cluster: Cluster | None = None,
        faults: FaultPlan | None = None,
        seed: int = 0,
        until_s: float | None = None,
    ) -> Run:
        """Run nodes to the end and return the record; failures of the run are in its ``error``."""


class Explored(Protocol):
    """An emulator that asks ``choose(what, n)`` for what the model leaves open, as :class:`RunNodes` otherwise."""

    def __call__(
        self,
        nodes: Nodes,
        *,
        cluster: Cluster | None = None,
        faults: FaultPlan | None = None,
        choose: Callable[[str, int], int] | None = None,
    ) -> Run:
        """Run nodes to the end and return the record."""


Check = Callable[[RunNodes], None]
"""Raises AssertionError, with what was expected and what was found, when an engine breaks the contract."""


def expect(condition: bool, text: str) -> None:
    """Raise AssertionError with a sentence unless the condition holds."""
    if not condition:
        raise AssertionError(text)


def equal(found: Any, expected: Any, what: str) -> None:
    """Raise AssertionError unless two values are equal; shows both."""
    expect(found == expected, f"{what}:\n  expected {expected!r}\n  found    {found!r}")


def stopped(run: Run, reason: str = "done") -> Run:
    """Return the run if a node stopped it with this reason; else raise what ended it."""
    if run.error is not None:
        raise run.error
    equal(run.stopped, reason, "reason of the stop")
    return run


def slow_disk(latency_s: float, exit_s: float = 0.01) -> Cluster:
    """Return a cluster on which each storage operation takes ``latency_s`` in the emulator."""
    return Cluster(
        workers=1, network=Network(latency_s=0.001), storage=Storage(latency_s), detection=Detection(exit_s=exit_s)
    )


def canonical(value: Any) -> Any:
    """Return a value in a form whose equality means equal by value *and* type; arrays by dtype, shape and bytes."""
    if isinstance(value, np.ndarray):
        little = np.array(value, value.dtype.newbyteorder("<"), order="C")
        return "ndarray", little.dtype.str, little.shape, little.tobytes()
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [canonical(item) for item in value]
    if isinstance(value, Mapping):
        return "dict", [(canonical(key), canonical(item)) for key, item in value.items()]
    if hasattr(value, "__struct_fields__"):
        return type(value).__name__, [canonical(getattr(value, name)) for name in value.__struct_fields__]
    return type(value).__name__, repr(value)


def rows_of(run: Run, node: str) -> list[tuple[str, Any]]:
    """Return kind and first detail of a node's trace records, without those that tell only of slots."""
    rows = [row for row in run.trace.rows if row[1] == node and row[2] not in ("begin", "freed")]
    return [(row[2], row[3]) for row in rows]


def ids(role: str, count: int) -> tuple[NodeId, ...]:
    """Return the first ids of a role, in the order of the roster."""
    return tuple(NodeId(role, index) for index in range(count))
