"""Close a round of a graph code as soon as its decoding error is small enough.

The error after each arrival is known in near O(1), by union-find with parities. It is kept in whole units of
``2**-shift`` partitions, each component's part rounded once: so it does not depend on the order of arrival, and an
engine that hears of answers one by one closes a round with the same one as an engine that sorts them all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np
from annotated_types import Ge, Lt
from numpy.typing import NDArray

from emuml import _kernels
from emuml._kernels.reference_codes import Components
from emuml.errors import UserError
from emuml.protocols.gradient_coding.rules.indexed import IndexedRule, IndexedTracker
from emuml.shapes import Tracker

_BITS = 62  # of an error: sums and products of the kernel fit into 64 bits


@dataclass(frozen=True)
class ErrorBelow(IndexedRule):
    """Close once the optimal decoding error of a graph code is at most ``tolerance`` of the partitions.

    Parameters
    ----------
    edges : tuple of (int, int)
        The edge of each worker, by vertices from 0.
    vertices : int
        Number of vertices: partitions.
    tolerance : float
        Largest error over the number of partitions, in [0, 1). 0 asks for exact decoding. Others are kept to within
        ``2**-(62 - b)``, where ``b`` is the number of bits of ``vertices``.
    count : int, optional
        Answers that close a round anyhow.
    """

    edges: tuple[tuple[int, int], ...]
    vertices: int
    tolerance: Annotated[float, Ge(0), Lt(1)] = 0.0
    count: int | None = None
    workers: int = field(init=False)

    def __post_init__(self) -> None:
        # No generic check: it visits every item, which takes long with 100,000 workers.
        object.__setattr__(self, "workers", len(self.edges))
        if not 0.0 <= self.tolerance < 1.0:
            raise UserError(f"got {self.tolerance}", "ErrorBelow.tolerance", "a number >= 0 and < 1")
        self._check_count()

    @property
    def shift(self) -> int:
        """A unit of error is ``2**-shift`` partitions."""
        return _BITS - self.vertices.bit_length()

    @cached_property
    def limit(self) -> int:
        """The largest error that closes a round, in units; above 0 it allows for half a unit a component."""
        if self.tolerance == 0.0:
            return 0
        return int(self.tolerance * self.vertices * 2.0**self.shift) + (self.vertices + 1) // 2

    @cached_property
    def edge_array(self) -> NDArray[np.int32]:
        """The edges as an array of shape (workers, 2)."""
        return np.array(self.edges, np.int32).reshape(-1, 2)

    def tracker(self) -> Tracker:
        """Return a tracker for one new round."""
        return ErrorTracker(self)

    def closing_index(self, order: NDArray[np.int64]) -> int:
        """See :meth:`StopRule.closing_index`."""
        return _kernels.error_index(self.edge_array, self.vertices, order, self.shift, self.limit, self.count or 0)


class ErrorTracker(IndexedTracker):
    """The arrivals of one round, and the error of decoding them, kept up in near O(1) each.

    Parameters
    ----------
    rule : ErrorBelow
    """

    def __init__(self, rule: ErrorBelow) -> None:
        super().__init__(rule)
        self._rule, self._components = rule, Components(rule.vertices, rule.shift)

    @property
    def error(self) -> float:
        """``||a^T B - 1||^2`` of optimal weights, in partitions."""
        return self._components.error / 2.0**self._rule.shift

    def note(self, worker: int) -> None:
        """See :class:`IndexedTracker`."""
        self._components.add(*self._rule.edges[worker])
        # A round that closed stays so, whatever the rounding of a later sum.
        self.is_enough |= self._components.error <= self._rule.limit
