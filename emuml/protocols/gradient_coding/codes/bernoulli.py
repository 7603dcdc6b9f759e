"""Bernoulli codes: every worker holds every partition with the same chance, independently.

Nobody has to agree on a design, and any number of answers decodes to something near the gradient. A worker may hold
nothing; it answers all the same.

Source: Charles, Papailiopoulos and Ellenberg, "Approximate gradient coding via sparse random graphs", arXiv:1711.06771.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt
from numpy.typing import NDArray

from emuml import _kernels
from emuml.errors import UserError
from emuml.protocols.gradient_coding.codes.linear import LinearCode
from emuml.protocols.gradient_coding.codes.seam import check_collect, check_workers
from emuml.protocols.gradient_coding.decoders.least_squares import LeastSquares, check_size
from emuml.protocols.gradient_coding.decoders.one_step import OneStep
from emuml.protocols.gradient_coding.decoders.seam import Rows
from emuml.shapes import All, Count
from emuml.spec import check
from emuml.streams import stream_key, subset_at, unit_exponential_at


@dataclass(frozen=True)
class Bernoulli:
    """Every worker holds every partition with chance ``load / partitions``.

    Parameters
    ----------
    load : float
        Mean number of partitions of a worker, above 0 and at most ``partitions``.
    regularised : bool
        Whether a worker with more than ``2 load`` partitions keeps ``load`` of them, all choices being equally likely;
        then ``load`` is a whole number.
    decoder : str
        ``"one-step"``: every one of ``c`` answers gets the weight ``partitions / (c load)``. ``"optimal"``: the weights
        of least error, by least squares; those of the last sets of responders are kept.
    partitions : int, optional
        By default as many as workers.

    Examples
    --------
    >>> code = Bernoulli(load=2).build(4, seed=1, collect=3)
    >>> [code.assignment(worker) for worker in range(4)]
    [(1,), (0, 2, 3), (0, 2, 3), (0, 1, 2)]
    """

    load: Annotated[float, Gt(0)]
    regularised: bool = False
    decoder: Literal["one-step", "optimal"] = "one-step"
    partitions: Annotated[int, Ge(1)] | None = None

    def __post_init__(self) -> None:
        check(self)
        if self.regularised and not self.load.is_integer():
            nearest = max(round(self.load), 1)
            where, allowed = "Bernoulli.load", "a whole number if regularised"
            raise UserError(f"got {self.load:g}", where, allowed, f"the nearest is {nearest}")

    def build(self, workers: int, seed: int = 0, collect: int | None = None) -> LinearCode:
        """Return the code for ``workers`` workers that stops at ``collect`` answers, drawn by ``seed``.

        Raises
        ------
        UserError
            If the load is more than all partitions, or if ``collect`` is not in ``1..workers``.
        """
        check_workers(workers)
        check_collect(collect, workers)
        partitions = self.partitions or workers
        if self.load > partitions:
            where, allowed = "Bernoulli.load", f"a number above 0 and at most {partitions}, the number of partitions"
            raise UserError(f"got {self.load:g}", where, allowed, f"the nearest is {partitions}")
        if self.decoder == "optimal":
            check_size(
                collect or workers, partitions, "Bernoulli codes optimally", "decoder='one-step' needs no matrix"
            )
        cells = _drawn(workers * partitions, self.load / partitions, stream_key(seed, "", "code/bernoulli"))
        holders, indices = np.divmod(cells, partitions)
        if self.regularised:
            kept = self._kept(np.bincount(holders, minlength=workers), seed)
            holders, indices = holders[kept], indices[kept]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(holders, minlength=workers))])
        rows = Rows(partitions, indptr, indices, np.ones(indices.size))
        decoder = OneStep(rows, self.load) if self.decoder == "one-step" else LeastSquares(rows)
        return LinearCode(rows, All(workers) if collect is None else Count(workers, collect), decoder, collect)

    def _kept(self, sizes: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
        """Return which entries stay when workers that hold too much give some up."""
        kept = np.ones(int(sizes.sum()), np.bool_)
        starts = np.cumsum(sizes) - sizes
        for worker in np.flatnonzero(sizes > 2 * self.load).tolist():
            mine = kept[starts[worker] : starts[worker] + sizes[worker]]
            mine[:] = False
            key = stream_key(seed, "", f"code/bernoulli/kept/{worker}")
            mine[subset_at(key, int(sizes[worker]), int(self.load))] = True
        return kept


def _drawn(cells: int, chance: float, key: int) -> NDArray[np.int64]:
    """Return the cells of ``0..cells-1`` that are drawn, each with the same chance, in O(number of those).

    The gaps between them are geometric: ``floor(e / -log(1 - chance))`` for unit exponentials ``e``, with a logarithm
    that is the same on every machine.
    """
    if chance >= 1.0:
        return np.arange(cells)
    rate = np.empty(1)
    _kernels.exponentials_of(np.array([max(int(chance * 2.0**53), 1) << 11], np.uint64), rate)
    found, last, drawn = [np.empty(0, np.int64)], -1, 0
    while last < cells:
        more = int(cells * chance * 1.1) + 50
        gaps = np.floor(unit_exponential_at(key, np.arange(drawn, drawn + more)) / rate[0])
        # Beyond all cells it does not matter how far, and sums must not overflow.
        steps = np.minimum(gaps, float(cells)).astype(np.int64) + 1
        found.append(last + np.cumsum(steps))
        last, drawn = int(found[-1][-1]), drawn + more
    together = np.concatenate(found)
    return together[together < cells]
