"""What stands between a protocol object such as ``GradientCoding(...)`` and its nodes; third parties implement it.

Protocol objects are frozen declarations. Engines see only the nodes; theory and array tiers see what ``shape`` and
``oracles`` answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from emuml.node import NodeId, Nodes
from emuml.roster import Roster
from emuml.shapes import Push, Round


class Outcome(NamedTuple):
    """What a finished run offers a protocol: published versions and logged metrics, in order."""

    published: Sequence[tuple[int, NDArray[Any]]]
    logs: Sequence[Mapping[str, Any]]


class Promise(NamedTuple):
    """One thing that theory says of a protocol: a name, the function that computes it, and the source.

    ``function`` is ``module:name`` as text, because protocols import no theory; it is called with the code or barrier,
    the number of workers, the compute law, and ``arguments``.
    """

    name: str
    function: str
    arguments: Mapping[str, Any]
    source: str


class Problem(Protocol):
    """What protocols need of a workload: data in partitions, gradients as tasks, and the update rule."""

    @property
    def initial(self) -> NDArray[Any]:
        """Initial parameters, shape (n_parameters,), read-only."""

    @property
    def full_cost(self) -> float:
        """Cost of one pass over all data, in work units."""

    def partition_bounds(self, partitions: int) -> NDArray[np.int64]:
        """Return where each partition of the rows begins, and where the last ends; refuse more than there are rows."""

    def gradient(
        self,
        parameters: NDArray[Any],
        owned: tuple[int, ...],
        partitions: int,
        coefficients: tuple[float, ...] | None = None,
        draw: int | None = None,
    ) -> Any:
        """Return the task whose value is the coded gradient sum over ``owned`` of ``partitions`` partitions."""

    def start(self) -> Any:
        """Return the optimizer's state before the first step."""

    def step(
        self, state: Any, parameters: NDArray[Any], gradient: NDArray[Any], round: int
    ) -> tuple[Any, NDArray[Any]]:
        """Return the optimizer's state and the parameters after one step with a gradient sum."""

    def metrics(self, parameters: NDArray[Any]) -> dict[str, float]:
        """Return loss and metrics of one version; called by observers, never in a handler."""


@runtime_checkable
class TrainingProtocol(Protocol):
    """The interface of protocol objects."""

    def nodes(self, workload: Problem, roster: Roster) -> Nodes:
        """Return a role and a factory for each id of the roster; :class:`emuml.roster.Makers` makes them on demand."""

    def parameters(self, result: Outcome) -> NDArray[Any]:
        """Return the trained parameters of a finished run."""

    def shape(self, roster: Roster, problem: Problem | None = None) -> Round | Push | None:
        """Return how its steps look to an array tier, or ``None`` when they have no such shape.

        Message sizes are counted when the problem is given.
        """

    def oracles(self) -> tuple[Promise, ...]:
        """Return what theory can say of this protocol."""

    def redo(self, lost: frozenset[NodeId]) -> tuple[str, ...]:
        """Return, in words, what must be done again after these nodes were lost."""
