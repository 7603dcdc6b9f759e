"""Barriers: which worker may start which iteration, as a function of the iterations that all have completed.

A barrier answers questions and holds no state. ``emuml.shapes.Barrier`` is what engines and theory ask of it.

Sources: Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server", NIPS 2013 (SSP);
Dai et al., "Toward understanding the impact of staleness in distributed machine learning", arXiv:1810.03264.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from emuml.spec import check


@dataclass(frozen=True)
class Barrier:
    """Base of all barriers."""

    def __post_init__(self) -> None:
        check(self)

    @property
    def slack(self) -> int | None:
        """How many iterations a worker may be ahead of the slowest when it starts one; ``None``: any number."""
        raise NotImplementedError

    @property
    def in_step(self) -> bool:
        """Whether the updates of one iteration are applied together, as one step."""
        return False

    def may_start(self, clock: int, completed: Sequence[int]) -> bool:
        """Return whether iteration ``clock`` may start when worker ``p`` has completed ``completed[p]`` iterations.

        Examples
        --------
        >>> SSP(1).may_start(3, [3, 2, 5]), SSP(1).may_start(4, [4, 2, 5])
        (True, False)
        """
        return not completed or self.admits(clock, min(completed))

    def admits(self, clock: int, slowest: int) -> bool:
        """Return whether iteration ``clock`` may start when the slowest worker has completed ``slowest``."""
        return self.slack is None or clock - slowest <= self.slack

    def serves_until(self, clock: int, slowest: int) -> int:
        """Return the last iteration for which parameters are fresh enough that were fetched for ``clock``.

        Parameters
        ----------
        clock : int
        slowest : int
            The parameters hold all updates of iterations before this one, of every worker.

        Examples
        --------
        >>> SSP(2).serves_until(1, slowest=1), ASP().serves_until(1, slowest=1)
        (3, 1)
        """
        return clock if self.slack is None else max(clock, slowest + self.slack)


@dataclass(frozen=True)
class BSP(Barrier):
    """Bulk synchronous: iteration ``c`` starts when all have completed ``c - 1``, and reads exactly their updates."""

    @property
    def slack(self) -> int:
        """See :class:`Barrier`."""
        return 0

    @property
    def in_step(self) -> bool:
        """See :class:`Barrier`."""
        return True


@dataclass(frozen=True)
class SSP(Barrier):
    """Stale synchronous parallel: nobody starts an iteration more than ``staleness`` ahead of the slowest.

    What iteration ``c`` reads holds at least every update of iterations up to ``c - staleness - 1`` of all workers, and
    all of its own. A worker goes on with the copy that it has while that is fresh enough, and fetches a new one when it
    is not.

    Parameters
    ----------
    staleness : int or None
        Bound in iterations, >= 0. 0 gives the schedule of :class:`BSP`, ``None`` that of :class:`ASP`.
    """

    staleness: Annotated[int | None, Ge(0)]

    @property
    def slack(self) -> int | None:
        """See :class:`Barrier`."""
        return self.staleness


@dataclass(frozen=True)
class ASP(Barrier):
    """Asynchronous parallel: no worker ever waits; each iteration reads what has arrived."""

    @property
    def slack(self) -> None:
        """See :class:`Barrier`."""
        return
