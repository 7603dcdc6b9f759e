"""Adjacency codes: workers are the vertices of a regular graph, and hold the partitions of their neighbours.

Any ``c`` answers are added with the weight ``n/c``. How wrong that may be is bounded by how well the graph expands:
with ``lambda`` the largest absolute eigenvalue of its adjacency matrix but one, the norm of the error of the
coefficients is at most ``(lambda/d) sqrt(n s/(n-s))`` for every set of ``s`` stragglers.

Source: Raviv, Tamo, Tandon and Dimakis, arXiv:1707.03858, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.graphs import Graph, vertices_of
from emuml.protocols.gradient_coding.codes.linear import LinearCode
from emuml.protocols.gradient_coding.codes.seam import check_collect, check_workers
from emuml.protocols.gradient_coding.decoders.least_squares import LeastSquares, check_size
from emuml.protocols.gradient_coding.decoders.one_step import OneStep
from emuml.protocols.gradient_coding.decoders.seam import Rows
from emuml.shapes import All, Count
from emuml.spec import check


@dataclass(frozen=True)
class Expander:
    """A worker and a partition for each vertex of a ``d``-regular graph; workers hold their neighbours': load ``d``.

    Parameters
    ----------
    graph : Graph
        Family of regular graphs; the number of workers picks the member with so many vertices.
    decoder : str
        ``"one-step"``: every one of ``c`` answers counts ``n/c`` times. ``"optimal"``: weights of least error, by least
        squares.

    Examples
    --------
    >>> from emuml.protocols.gradient_coding.codes.graphs import Petersen
    >>> code = Expander(Petersen()).build(10, collect=8)
    >>> code.assignment(0), code.decode(range(8)).weights[0]
    ((1, 4, 5), np.float64(1.25))
    """

    graph: Graph
    decoder: Literal["one-step", "optimal"] = "one-step"

    def __post_init__(self) -> None:
        check(self)

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> LinearCode:
        """Return the code for ``workers`` workers that stops at ``collect`` answers; ``seed`` draws random graphs.

        Raises
        ------
        UserError
            If no graph of the family has so many vertices, if it is not regular, or if ``collect`` is not in
            ``1..workers``.
        """
        check_workers(workers)
        check_collect(collect, workers)
        if self.decoder == "optimal":
            check_size(collect or workers, workers, "adjacency codes optimally", "decoder='one-step' needs no matrix")
        edges = self.graph.edges(vertices_of(self.graph, workers, "vertices"), seed)
        ends = np.concatenate([edges, edges[:, ::-1]]).astype(np.int64)
        degrees = np.bincount(ends[:, 0], minlength=workers)
        if degrees.min() != degrees.max():
            raise UserError(
                f"vertex {degrees.argmin()} has {degrees.min()} edges and vertex {degrees.argmax()} {degrees.max()}",
                "Expander.graph",
                "regular graphs: as many edges at every vertex",
                "GraphCode takes graphs of any degrees",
            )
        degree = int(degrees[0])
        indices = ends[np.lexsort((ends[:, 1], ends[:, 0])), 1]
        rows = Rows(workers, degree * np.arange(workers + 1), indices, np.full(indices.size, 1.0 / degree))
        decoder = OneStep(rows, load=1.0) if self.decoder == "one-step" else LeastSquares(rows)
        return LinearCode(rows, All(workers) if collect is None else Count(workers, collect), decoder, collect)
