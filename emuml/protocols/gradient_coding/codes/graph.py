"""Graph codes: partitions are the vertices of a graph, workers its edges.

The worker of the edge ``{u, v}`` sends ``g_u + g_v``. Whoever answers, the best weights are found by looking at the
components of the edges that answered, in ``O(workers + partitions)``. An adversary has to stop all workers at a vertex
to lose its partition, and gains no more by it.

Source: Glasgow and Wootters, "Approximate gradient coding with optimal decoding".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Lt

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.graphs import Edges, Graph, unbalanced, vertices_of
from emuml.protocols.gradient_coding.codes.linear import LinearCode
from emuml.protocols.gradient_coding.codes.seam import check_collect, check_workers
from emuml.protocols.gradient_coding.decoders.components import Components
from emuml.protocols.gradient_coding.decoders.seam import Rows
from emuml.protocols.gradient_coding.rules.error import ErrorBelow
from emuml.shapes import All, Count, StopRule
from emuml.spec import check


@dataclass(frozen=True)
class GraphCode:
    """A worker for each edge of a graph, a partition for each of its ``k`` vertices: load ``2 workers / k``.

    A round closes as soon as the error of decoding the answers is at most ``tolerance`` times the number of
    partitions, or at ``collect`` answers. With everybody's answers it is 0.

    Parameters
    ----------
    graph : Graph
        Family of graphs; the number of workers picks the member with so many edges.
    tolerance : float or None
        In [0, 1). 0 waits for answers that decode exactly; ``None`` looks at the number of answers only.

    Examples
    --------
    >>> from emuml.protocols.gradient_coding.codes.graphs import Cycle
    >>> code = GraphCode(Cycle()).build(5)
    >>> code.decode([0, 1, 2, 4]).error  # a path through all five partitions: 1/5 is lost
    0.2
    >>> code.decode(range(5)).weights
    array([0.5, 0.5, 0.5, 0.5, 0.5])
    """

    graph: Graph
    tolerance: Annotated[float, Ge(0), Lt(1)] | None = 0.0

    def __post_init__(self) -> None:
        check(self)

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> LinearCode:
        """Return the code for ``workers`` workers; ``seed`` draws graphs that are random.

        Raises
        ------
        UserError
            If no graph of the family has so many edges, if everybody's answers would not decode exactly, or if
            ``collect`` is not in ``1..workers``.
        """
        check_workers(workers)
        check_collect(collect, workers)
        vertices = vertices_of(self.graph, workers, "edges")
        edges = self.graph.edges(vertices, seed)
        decoder = Components.of(edges, vertices)
        if decoder.weights(np.arange(workers)).error > 0.0:
            raise _not_exact(edges, vertices)
        rows = Rows(vertices, 2 * np.arange(workers + 1), edges.ravel().astype(np.int64), np.ones(2 * workers))
        return LinearCode(rows, self._rule(edges, vertices, collect), decoder, collect)

    def _rule(self, edges: Edges, vertices: int, collect: int | None) -> StopRule:
        if self.tolerance is not None:
            return ErrorBelow(tuple(map(tuple, edges.tolist())), vertices, self.tolerance, collect)
        return All(len(edges)) if collect is None else Count(len(edges), collect)


def _not_exact(edges: Edges, vertices: int) -> UserError:
    sides = unbalanced(edges, vertices)
    assert sides is not None
    larger, smaller = sides
    return UserError(
        f"its component of vertex {min(*larger, *smaller)} has no odd cycle and sides of {len(larger)} and "
        f"{len(smaller)} vertices: not even all answers together decode exactly",
        "GraphCode.graph",
        "graphs whose components have an odd cycle or sides of one size",
        f"one more edge within the larger side will do, such as ({larger[0]}, {larger[1]})",
    )
