"""What an asynchronous protocol offers an array tier beside its nodes: its server, called once for each push.

An array tier makes no worker and carries no message. It knows when workers end their iterations and when pushes reach
the server, which says who may start what; tasks and copies of parameters are the server's own business there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from emuml.node import Factory, NodeId

if TYPE_CHECKING:
    from emuml.context import Context
    from emuml.protocol import Problem
    from emuml.roster import Roster

Start = Callable[[int, int, int], None]
"""``start(worker, clock, last)``: parameters for iteration ``clock`` leave for a worker that waits.

With them it does all iterations until ``last``, each followed by a push, and then waits again.
"""


class PushServer(Protocol):
    """The server of an asynchronous protocol: what an array tier calls beside ``on_start``.

    One context serves all calls; its ``now`` is that of the call.
    """

    def asked(self, ctx: Context, worker: int, start: Start) -> None:
        """Let a worker begin that has asked for its first parameters; all do at the start of a run."""

    def pushed(self, ctx: Context, worker: int, reads: bool, start: Start) -> None:
        """Take the push of a worker's next iteration; ``reads``: it waits for parameters."""

    def up_bytes(self, worker: int, clock: int, reads: bool) -> int:
        """Return the size of the push that a worker sends now; of what it asks with if the clock is -1."""

    def down_bytes(self, worker: int, clock: int) -> int:
        """Return the size of the parameters that are sent to a worker now."""


@dataclass(frozen=True)
class PushNodes:
    """The nodes of an asynchronous protocol, as an array tier sees them.

    Attributes
    ----------
    server : NodeId
        The one server.
    factory : callable
        Makes its node, a :class:`PushServer`.
    costs : callable
        Gives the costs of the tasks of all workers, shape (workers,); they are the same in all iterations. The draw of
        a task is its iteration.
    """

    server: NodeId
    factory: Factory
    costs: Callable[[], NDArray[np.float64]]


@runtime_checkable
class InPushes(Protocol):
    """A protocol that an array tier can serve; others run event by event."""

    def in_pushes(self, workload: Problem, roster: Roster) -> PushNodes | None:
        """Return what an array tier needs, or None if these pushes need all their events."""
