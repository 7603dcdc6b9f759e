"""Balanced repetition: ``s + 1`` copies of the data, each cut into equal intervals among its workers, for any ``n, s``.

Any ``s`` stragglers leave one copy complete; often fewer answers suffice, because intervals of different copies may
tile the data together. Every worker sends a plain sum, and answers are added without weights.

Sources: the idea of copies of nearly equal loads is that of "Generalized fractional repetition codes for binary coded
computations", arXiv:2109.10484; construction and decoder are our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge

from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.linear import LinearCode
from emuml.protocols.gradient_coding.codes.seam import check_collect, check_workers
from emuml.protocols.gradient_coding.decoders.seam import Rows
from emuml.protocols.gradient_coding.decoders.tiling import Tiling
from emuml.protocols.gradient_coding.rules.tiling import Tiled
from emuml.spec import check


@dataclass(frozen=True)
class BalancedRepetition:
    """Worker ``w`` is of copy ``w mod (s+1)``; the members of a copy cut the partitions into intervals of equal size.

    Sizes within a copy differ by at most one partition, longer ones first, and the mean load is exactly ``s + 1``. If
    ``s + 1`` divides the number of workers this is fractional repetition, with another numbering of the workers.

    Parameters
    ----------
    stragglers : int
        Workers that may stay silent, in ``0..workers-1``.

    Examples
    --------
    >>> code = BalancedRepetition(stragglers=1).build(5)
    >>> [code.assignment(worker) for worker in range(5)]
    [(0, 1), (0, 1, 2), (2, 3), (3, 4), (4,)]
    >>> code.decode([0, 2, 3]).error  # of 0, 1 and 2, 3 and 3, 4 the first two are added
    1.0
    """

    stragglers: Annotated[int, Ge(0)]

    def __post_init__(self) -> None:
        check(self)

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> LinearCode:
        """Return the code for ``workers`` workers; ``seed`` is not used, the placement is fixed.

        A round closes once intervals of those who answered tile the data, or at ``collect`` answers.

        Raises
        ------
        UserError
            If all workers might be stragglers, or if ``collect`` is not in ``1..workers``.
        """
        check_workers(workers)
        check_collect(collect, workers)
        if self.stragglers >= workers:
            where, allowed = "BalancedRepetition.stragglers", f"an integer in 0..{workers - 1}"
            raise UserError(f"got {self.stragglers}", where, allowed, f"the nearest is {workers - 1}")
        starts, stops = np.empty(workers, np.int64), np.empty(workers, np.int64)
        for copy in range(self.stragglers + 1):
            members = np.arange(copy, workers, self.stragglers + 1)
            small, n_longer = divmod(workers, members.size)
            place = np.arange(members.size + 1)
            cuts = small * place + np.minimum(place, n_longer)
            starts[members], stops[members] = cuts[:-1], cuts[1:]
        indptr = np.concatenate([[0], np.cumsum(stops - starts)])
        indices = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], stops - starts)
        rule = Tiled(tuple(zip(starts.tolist(), stops.tolist(), strict=True)), workers, collect)
        rows = Rows(workers, indptr, indices, np.ones(indices.size))
        return LinearCode(rows, rule, Tiling(rule.intervals, workers), collect)
