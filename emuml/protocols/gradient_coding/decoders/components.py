"""Optimal weights of graph codes by the components of the edges that answered: O(workers + partitions).

Source: Glasgow and Wootters, "Approximate gradient coding with optimal decoding".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emuml import _kernels
from emuml.protocols.gradient_coding.decoders.seam import Indices, Weights


@dataclass(frozen=True, eq=False)
class Components:
    """The weights of least error of a graph code, each a quotient of integers rounded once.

    In a component with an odd cycle they combine to exactly 1 in every partition; in one with sides of ``L`` and ``R``
    vertices to ``2R/(L+R)`` on the first and ``2L/(L+R)`` on the second. Such a component costs ``(L-R)^2/(L+R)``.

    Parameters
    ----------
    starts : ndarray of int32, shape (vertices + 1,)
        Vertex ``v`` is next to ``neighbours[starts[v]:starts[v + 1]]``.
    neighbours, workers : ndarray of int32, shape (2 n_workers,)
        The vertex at the other end, and the worker of that edge.
    """

    starts: NDArray[np.int32]
    neighbours: NDArray[np.int32]
    workers: NDArray[np.int32]
    is_cheap = True

    @classmethod
    def of(cls, edges: NDArray[np.int32], vertices: int) -> Components:
        """Return the decoder of a graph of edges, shape (n_workers, 2)."""
        ends = edges.T.ravel()
        by_end = np.argsort(ends, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=vertices))])
        others = edges[:, ::-1].T.ravel()[by_end]
        return cls(starts.astype(np.int32), others.astype(np.int32), (by_end % len(edges)).astype(np.int32))

    def weights(self, received: Indices) -> Weights:
        """See :class:`Decoder`."""
        values = np.empty(received.size)
        error, squares = _kernels.component_weights(self.starts, self.neighbours, self.workers, received, values)
        return Weights(values, error, (2.0 * squares / (self.starts.size - 1)) ** 0.5)
