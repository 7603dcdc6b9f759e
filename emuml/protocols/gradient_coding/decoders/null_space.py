"""Decoding by the left null space: all exact decodings differ by its vectors, and stragglers say which one to take.

Let ``N`` span the vectors with ``N^T B = 0`` and ``a0`` be the shortest with ``a0^T B = 1``. Every exact decoding is
``a0 + N c``; those that ask nothing of the stragglers ``Z`` have ``N_Z c = -a0_Z``: a small system for few stragglers,
where least squares would decompose the rows of all who answered.

Source: Raviv et al., "Gradient coding from cyclic MDS codes and expander graphs", arXiv:1707.03858, for the spaces.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emuml.protocols.gradient_coding.decoders.conditioning import Unsound, sound
from emuml.protocols.gradient_coding.decoders.least_squares import LeastSquares
from emuml.protocols.gradient_coding.decoders.seam import Floats, Indices, Rows, Weights


@dataclass(frozen=True, eq=False)
class ExactDecoder(ABC):
    """Exact weights for up to ``stragglers`` missing answers, those of least norm; beyond, of least error.

    Parameters
    ----------
    rows : Rows
        The code: of rank ``workers - stragglers``, with 1 in the span of every so many rows.
    stragglers : int
    """

    rows: Rows
    stragglers: int
    is_cheap = False

    def weights(self, received: Indices) -> Weights:
        """See :class:`Decoder`.

        Raises
        ------
        Unsound
            If at most ``stragglers`` are missing and their sum would drown in rounding.
        """
        is_missing = np.ones(self.rows.workers, np.bool_)
        is_missing[received] = False
        missing = np.flatnonzero(is_missing)
        if missing.size > self.stragglers:
            return LeastSquares(self.rows).weights(received)
        try:
            everybody = self.without(missing)
        except np.linalg.LinAlgError as error:
            raise Unsound(f"{received.size} answers determine no decoding in double precision") from error
        found = self.rows.judged(received, everybody[received])
        return sound(found, self.rows.partitions, self.largest_row, self.inexact(found.noise_gain))

    def inexact(self, noise_gain: float) -> float:
        """Return the relative error that the rows, as they are rounded, cause at a noise gain."""
        return 0.0

    @cached_property
    def largest_row(self) -> float:
        """Largest norm of a row."""
        return math.sqrt(float(self.rows.squared_norms.max()))

    @abstractmethod
    def without(self, missing: Indices) -> Floats:
        """Return exact weights of all workers, shape (workers,), that are 0 up to rounding for those missing."""


@dataclass(frozen=True, eq=False)
class NullSpace(ExactDecoder):
    """Exact weights for any code with such rows: O(workers^3) once, then O(stragglers^3 + stragglers workers).

    Examples
    --------
    >>> ring = Rows(3, np.array([0, 2, 4, 6]), np.array([0, 1, 1, 2, 0, 2]), np.array([0.5, 1, 1, -1, 0.5, 1]))
    >>> NullSpace(ring, stragglers=1).weights(np.array([1, 2])).values.round(9)
    array([1., 2.])
    """

    def without(self, missing: Indices) -> Floats:
        """See :class:`ExactDecoder`."""
        start, null = self.basis
        everybody: Floats = start + null @ shortest(null[missing], -start[missing])
        return everybody

    @property
    def basis(self) -> tuple[Floats, Floats]:
        """The shortest exact weights, shape (workers,), and an orthonormal basis, shape (workers, stragglers)."""
        return self._decomposed[:2]

    def inexact(self, noise_gain: float) -> float:
        """See :class:`ExactDecoder`: 1 is off the rows' span by a little, and what ``N`` annuls is not quite 0."""
        off, defect = self._decomposed[2:]
        return off + defect * noise_gain

    @cached_property
    def _decomposed(self) -> tuple[Floats, Floats, float, float]:
        """Basis, relative error of the shortest weights, and largest singular value that would be 0 without rounding.

        Rows are scaled to norm 1 before they are decomposed, as errors are relative to the largest.
        """
        matrix = self.rows.dense()
        norms = np.linalg.norm(matrix, axis=1)
        left, sizes, right = np.linalg.svd(matrix / norms[:, None])
        rank = self.rows.workers - self.stragglers
        null, _ = np.linalg.qr(left[:, rank:] / norms[:, None])
        start = (left[:, :rank] / sizes[:rank]) @ right[:rank].sum(axis=1) / norms
        start = start - null @ (null.T @ start)
        off = float(np.linalg.norm(start @ matrix - 1.0)) / math.sqrt(self.rows.partitions)
        return start, np.ascontiguousarray(null), off, float(sizes[rank:].max(initial=0.0))


def shortest(matrix: Floats, right: Floats) -> Floats:
    """Return the solution of least norm of a system with at most as many equations as unknowns.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the equations are dependent.

    Examples
    --------
    >>> shortest(np.array([[3.0, 4.0]]), np.array([5.0])).round(9)
    array([0.6, 0.8])
    """
    equations, unknowns = matrix.shape
    if equations == unknowns:
        return np.linalg.solve(matrix, right).astype(np.float64, copy=False)
    basis, triangle = np.linalg.qr(matrix.T)
    found: Floats = basis @ np.linalg.solve(triangle.T, right)
    return found
